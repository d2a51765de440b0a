/* model/load.h -- the tensors of a file to the fields of a Model, by their names. */
#ifndef MODEL_LOAD_H
#define MODEL_LOAD_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/error.h"
#include "model/file/folder.h"
#include "model/file/gguf.h"
#include "model/model.h"

/* One of the two is NULL. */
typedef struct ModelFile {
    Gguf        *gguf;
    ModelFolder *folder;
} ModelFile;

/* m->config is filled, but for vocab, which may be 0, and tied.  Matrices point into the file;
 * vectors and the list of layers are in the arena.  Every shape is checked. */
bool model_load(Model *m, const ModelFile *file, Arena *arena, Error *err);

#endif
