/* tests/unit/model_fixture.h -- small models of each family in memory, with random weights. */
#ifndef TESTS_UNIT_MODEL_FIXTURE_H
#define TESTS_UNIT_MODEL_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/arena.h"
#include "core/rng.h"
#include "model/model.h"

#define TOKENS 37
#define LAYERS 2
#define VOCAB 61

typedef struct Made {
    Model      m;
    ModelLayer layer[LAYERS];
    double     inverse[64];
    Arena     *arena;
    Rng        rng;
} Made;

static inline const float *vector(Made *made, int64_t count, double mean, double deviation)
{
    float *x = arena_alloc(made->arena, count, sizeof(float));

    rng_fill_normal(&made->rng, x, count, deviation);
    for (int64_t i = 0; i < count; i++)
        x[i] += (float)mean;
    return x;
}

static inline Weight matrix(Made *made, int64_t rows, int64_t cols, double deviation)
{
    return (Weight){ .type = WEIGHT_F32, .rows = rows, .cols = cols,
                     .data = (const uint8_t *)vector(made, rows * cols, 0, deviation) };
}

static inline ModelNormWeights norm_of(Made *made, int64_t width, bool bias)
{
    return (ModelNormWeights){ vector(made, width, 1, 0.1),
                               bias ? vector(made, width, 0, 0.1) : NULL };
}

static inline void make_layer(Made *made, ModelLayer *l, bool bias, bool qk_norm)
{
    const ModelConfig *c = &made->m.config;
    int64_t wide = c->heads * c->head_dim, narrow = c->kv_heads * c->head_dim;
    bool    ln = c->norm == MODEL_LAYER_NORM;

    *l = (ModelLayer){ .attention_norm = norm_of(made, c->width, ln),
                       .mlp_norm = norm_of(made, c->width, ln),
                       .q = matrix(made, wide, c->width, 0.3),
                       .k = matrix(made, narrow, c->width, 0.3),
                       .v = matrix(made, narrow, c->width, 0.2),
                       .output = matrix(made, c->width, wide, 0.2),
                       .up = matrix(made, c->inner, c->width, 0.2),
                       .down = matrix(made, c->width, c->inner, 0.2) };
    if (c->gated)
        l->gate = matrix(made, c->inner, c->width, 0.3);
    if (qk_norm) {
        l->q_norm = vector(made, c->head_dim, 1, 0.1);
        l->k_norm = vector(made, c->head_dim, 1, 0.1);
    }
    if (bias) {
        l->q_bias = vector(made, wide, 0, 0.2);
        l->k_bias = vector(made, narrow, 0, 0.2);
        l->v_bias = vector(made, narrow, 0, 0.2);
        l->output_bias = vector(made, c->width, 0, 0.2);
        l->up_bias = vector(made, c->inner, 0, 0.2);
        l->down_bias = vector(made, c->width, 0, 0.2);
    }
}

static inline void make_common(Made *made, ModelConfig config, bool bias, bool qk_norm)
{
    Model *m = &made->m;

    m->config = config;
    m->layer = made->layer;
    for (int64_t t = 0; t < config.rotary / 2; t++)
        made->inverse[t] = pow(100, -2.0 * (double)t / (double)config.rotary);
    m->config.inverse = made->inverse;
    for (int64_t l = 0; l < LAYERS; l++)
        make_layer(made, &made->layer[l], bias, qk_norm);
}

/* The llama family: RMS, RoPE on a part of the channels, grouped heads, a gate. */
static inline Made *make_llama(bool qk_norm, bool bias, int64_t window, ModelActivation activation)
{
    Made       *made = calloc(1, sizeof(*made));
    ModelConfig c = { .arch = "llama", .causal = true, .layers = LAYERS, .width = 40, .heads = 6,
                      .kv_heads = 2, .head_dim = 12, .inner = 56, .vocab = VOCAB, .context = 64,
                      .embedding_width = 40, .eps = 1e-5, .norm = MODEL_RMS,
                      .activation = activation, .gated = true, .rotary = qk_norm ? 8 : 12,
                      .rotary_scale = bias ? 1.07 : 1, .window = window, .scale = 1 / sqrt(12),
                      .embedding_scale = activation == MODEL_SILU ? 1 : sqrt(40) };

    made->arena = arena_new();
    made->rng = (Rng){ .seed = 7 + (uint64_t)window };
    make_common(made, c, bias, qk_norm);
    made->m.embedding = matrix(made, VOCAB, c.width, 0.5);
    made->m.head = activation == MODEL_SILU ? matrix(made, VOCAB, c.width, 0.4)
                                            : made->m.embedding;
    made->m.final_norm = norm_of(made, c.width, false);
    return made;
}

/* GPT-2: LayerNorm, a table of positions, biases, no gate; albert: an encoder with a map and an MLM
 * head. */
static inline Made *make_older(bool encoder)
{
    Made       *made = calloc(1, sizeof(*made));
    ModelConfig c = { .arch = encoder ? "albert" : "gpt2", .causal = !encoder, .layers = LAYERS,
                      .width = 32, .heads = 4, .kv_heads = 4, .head_dim = 8, .inner = 48,
                      .vocab = VOCAB, .context = 64, .embedding_width = encoder ? 16 : 32,
                      .eps = 1e-5, .norm = MODEL_LAYER_NORM, .embedding_scale = 1,
                      .activation = encoder ? MODEL_GELU : MODEL_GELU_TANH, .rotary_scale = 1,
                      .scale = 1 / sqrt(8) };
    Model *m = &made->m;

    made->arena = arena_new();
    made->rng = (Rng){ .seed = encoder ? 21 : 22 };
    make_common(made, c, true, false);
    m->embedding = matrix(made, VOCAB, c.embedding_width, 0.5);
    m->positions = matrix(made, 64, c.embedding_width, 0.3);
    m->head = m->embedding;
    if (!encoder) {
        m->final_norm = norm_of(made, c.width, true);
        return made;
    }
    m->types = matrix(made, 2, c.embedding_width, 0.3);
    m->embedding_norm = norm_of(made, c.embedding_width, true);
    m->map = matrix(made, c.width, c.embedding_width, 0.3);
    m->map_bias = vector(made, c.width, 0, 0.1);
    m->head_dense = matrix(made, c.embedding_width, c.width, 0.3);
    m->head_dense_bias = vector(made, c.embedding_width, 0, 0.1);
    m->head_norm = norm_of(made, c.embedding_width, true);
    m->head_activation = MODEL_GELU;
    m->head_bias = vector(made, VOCAB, 0, 0.2);
    return made;
}

static inline void made_free(Made *made)
{
    arena_free(made->arena);
    free(made);
}

static inline void make_ids(int32_t ids[TOKENS])
{
    Rng rng = { .seed = 3 };

    for (int t = 0; t < TOKENS; t++)
        ids[t] = (int32_t)rng_below(&rng, VOCAB);
}

#endif
