/* model/file/folder.h -- a Hugging Face folder: config.json and its safetensors.
 *
 * model.safetensors, or the shards that model.safetensors.index.json names.  All files are mapped;
 * nothing of a tensor's data is read here.
 */
#ifndef MODEL_FILE_FOLDER_H
#define MODEL_FILE_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "input/store.h"

typedef struct ModelFolder ModelFolder;

/* NULL with *err set; its text names the file in the folder, not the folder. */
ModelFolder *folder_open(const char *path, Error *err);
void         folder_close(ModelFolder *f);

/* The object of a JSON file of such a folder; owned by the caller.  NULL with *err set; its text
 * names no file. */
json_t           *folder_json(const char *path, Error *err);

json_t           *folder_config(const ModelFolder *f); /* config.json: an object; borrowed */
json_t           *folder_pooling(const ModelFolder *f); /* 1_Pooling/config.json; NULL: none */
int64_t           folder_bytes(const ModelFolder *f);   /* of the files with tensors */
int64_t           folder_count(const ModelFolder *f);
const StoreEntry *folder_tensor(const ModelFolder *f, int64_t index);
const StoreEntry *folder_find(const ModelFolder *f, const char *name); /* NULL: none */

#endif
