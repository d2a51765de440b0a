/* model/cache.h -- what a model's configuration says of the cache that it fills while it generates.
 *
 * Only the configuration is read: a folder, or a config.json alone, needs no weights.  So more
 * families are covered than model_open runs: mixtures of experts, layers that alternate, latent
 * attention, layers with a state.
 */
#ifndef MODEL_CACHE_H
#define MODEL_CACHE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"

typedef struct ModelCache {
    Text    layers; /* one by one, as profile/stack reads them: "window(1024),full" */
    int64_t depth;  /* how many */
    int64_t heads, kv_heads, dim; /* of queries; of keys and values; numbers of a head */
    int64_t rank, rope;           /* of latent attention; 0: none */
    int64_t context;              /* tokens that the model was made for; 0: not said */
    Text    notes;  /* lines for the user, or "" */
} ModelCache;

/* path: a GGUF file, a folder with config.json, or a config.json.  ERR_MODEL with the file, the
 * field, what was found and what was wanted.  Free with model_cache_free, also on failure. */
bool model_cache_read(const char *path, ModelCache *out, Error *err);
/* root: config.json. */
bool model_cache_from_json(json_t *root, ModelCache *out, Error *err);
void model_cache_free(ModelCache *cache);

#endif
