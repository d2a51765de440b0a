/* model/config.h -- what a file says about its model, as a ModelConfig.
 *
 * What is not covered is refused by name.  config.vocab is what the file says, or 0: it is the
 * embedding's number of rows that counts.
 */
#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <jansson.h>
#include <stdbool.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/text.h"
#include "model/file/gguf.h"
#include "model/model.h"
#include "model/rope.h"

typedef enum ConfigSource { CONFIG_GGUF, CONFIG_FOLDER } ConfigSource;

/* notes: lines for the user are added. */
bool config_from_gguf(const Gguf *g, Arena *arena, ModelConfig *out, Text *notes, Error *err);
/* root: config.json; pooling: that of sentence-transformers, or NULL. */
bool config_from_json(json_t *root, json_t *pooling, Arena *arena, ModelConfig *out, Text *notes,
                      Error *err);

/* What is wrong with a file becomes ERR_MODEL, with its path in front; returns false. */
bool model_failed(const char *path, Error *err);

/* ---- for the two of them --------------------------------------------------- */

/* Whether the family is one of encoders, which write no text. */
bool config_is_encoder(const char *family);
/* Begins *out with what follows from the family; refuses one that is not covered. */
bool config_begin(const char *family, ConfigSource source, ModelConfig *out, Error *err);
/* Sizes that must fit each other; sets scale, and fills in groups and embedding_width. */
bool config_finish(ModelConfig *config, Error *err);
/* RoPE over `channels`, into config; `where` begins the messages. */
bool config_rope(const Rope *rope, const char *where, Arena *arena, ModelConfig *config,
                 Error *err);

#define CONFIG_SIZE_MAX ((int64_t)1 << 24) /* of a width; keeps products within 63 bits */
#define CONFIG_HEAD_MAX 1024
#define CONFIG_CONTEXT_MAX ((int64_t)1 << 31)
#define CONFIG_VOCAB_MAX (1 << 28)

#endif
