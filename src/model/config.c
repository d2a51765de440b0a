/* config.c -- families, and checks that both kinds of files need; see config.h. */
#include "model/config.h"

#include <math.h>
#include <string.h>

static const struct {
    const char     *name;
    bool            in_gguf, causal, gated;
    ModelNorm       norm;
    ModelActivation activation;
} families[] = {
    { "llama", true, true, true, MODEL_RMS, MODEL_SILU },
    { "mistral", false, true, true, MODEL_RMS, MODEL_SILU },
    { "qwen2", true, true, true, MODEL_RMS, MODEL_SILU },
    { "qwen3", true, true, true, MODEL_RMS, MODEL_SILU },
    { "gemma", true, true, true, MODEL_RMS, MODEL_GELU_TANH },
    { "gpt2", true, true, false, MODEL_LAYER_NORM, MODEL_GELU_TANH },
    { "bert", true, false, false, MODEL_LAYER_NORM, MODEL_GELU },
    { "albert", false, false, false, MODEL_LAYER_NORM, MODEL_GELU },
};

static bool unknown_family(const char *family, ConfigSource source, Error *err)
{
    return error_set(err, ERR_UNSUPPORTED, "%s is '%.80s', which is not covered; covered are %s",
                     source == CONFIG_GGUF ? "general.architecture" : "model_type", family,
                     source == CONFIG_GGUF
                         ? "llama, qwen2, qwen3, gemma, gpt2 and bert"
                         : "llama, mistral, qwen2, qwen3, gemma, gpt2, bert and albert");
}

bool config_is_encoder(const char *family)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (!strcmp(families[i].name, family))
            return !families[i].causal;
    return false;
}

bool config_begin(const char *family, ConfigSource source, ModelConfig *out, Error *err)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        if (strcmp(families[i].name, family) != 0 ||
            (source == CONFIG_GGUF && !families[i].in_gguf))
            continue;
        *out = (ModelConfig){
            .arch = families[i].name, .causal = families[i].causal, .norm = families[i].norm,
            .activation = families[i].activation, .gated = families[i].gated,
            .embedding_scale = 1, .rotary_scale = 1,
        };
        return true;
    }
    return unknown_family(family, source, err);
}

bool config_finish(ModelConfig *c, Error *err)
{
    if (c->kv_heads > c->heads || c->heads % c->kv_heads)
        return error_set(err, ERR_DATA, "%lld heads cannot share %lld key and value heads evenly",
                         (long long)c->heads, (long long)c->kv_heads);
    if (c->head_dim % 2 || c->head_dim > CONFIG_HEAD_MAX)
        return error_set(err, ERR_DATA, "a head has %lld channels, wanted an even number up to %d",
                         (long long)c->head_dim, CONFIG_HEAD_MAX);
    if (!(c->eps > 0 && c->eps < 1))
        return error_set(err, ERR_DATA, "epsilon of the norms is %g, wanted between 0 and 1",
                         c->eps);
    if (strcmp(c->arch, "gemma") == 0)
        c->embedding_scale = sqrt((double)c->width);
    if (!c->embedding_width)
        c->embedding_width = c->width;
    if (!c->groups)
        c->groups = c->layers;
    c->scale = 1 / sqrt((double)c->head_dim);
    return true;
}

bool config_rope(const Rope *rope, const char *where, Arena *arena, ModelConfig *config,
                 Error *err)
{
    if (rope->channels < 2 || rope->channels % 2 || rope->channels > config->head_dim ||
        rope->channels > CONFIG_HEAD_MAX)
        return error_set(err, ERR_DATA, "%s: RoPE turns %lld channels, wanted an even number from "
                         "2 to %lld, the channels of a head", where, (long long)rope->channels,
                         (long long)config->head_dim);
    return rope_check(rope, where, err) && rope_fill(rope, arena, config, err);
}

bool model_failed(const char *path, Error *err)
{
    if (err && (err->code == ERR_FORMAT || err->code == ERR_DATA || err->code == ERR_UNSUPPORTED))
        err->code = ERR_MODEL;
    return error_prefix(err, "%.200s", path);
}
