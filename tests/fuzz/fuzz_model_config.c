/* fuzz_model_config.c -- config.json of a model's folder: any JSON ends in sizes within their
 * limits, or in a message. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_sound(const ModelConfig *c)
{
    if (c->layers < 1 || c->layers > 1024 || c->kv_heads < 1 || c->heads % c->kv_heads ||
        c->heads > 1024 || c->head_dim < 2 || c->head_dim % 2 || c->rotary > c->head_dim ||
        c->rotary % 2 || c->groups < 1 || c->groups > c->layers || c->window < 0)
        return false;
    for (int64_t t = 0; t < c->rotary / 2; t++)
        if (!(c->inverse[t] >= 0 && isfinite(c->inverse[t])))
            return false;
    return c->width > 0 && c->inner > 0 && c->eps > 0 && isfinite(c->rotary_scale);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Error        err = ERROR_INIT;
    Text         notes = { 0 };
    Arena       *arena = arena_new();
    json_error_t why;
    json_t      *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &why);
    ModelConfig  config;

    if (json_is_object(root) &&
        (config_from_json(root, root, arena, &config, &notes, &err) ? !is_sound(&config)
                                                                    : err.code == ERR_NONE))
        abort();
    json_decref(root);
    text_free(&notes);
    arena_free(arena);
    return 0;
}
