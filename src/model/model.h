/* model/model.h -- a transformer read from a GGUF file or a Hugging Face folder.
 *
 * Families: llama (SmolLM2, Llama 3, Mistral), qwen2, qwen3, gemma, gpt2, bert, albert.  One
 * ModelLayer holds what any of them has; what a family lacks is absent (Weight.type WEIGHT_NONE,
 * vector NULL).  Matrices stay in the mapped file and are dequantised a layer at a time; vectors
 * (norms, biases) are float32 in the model's memory.  A Model is immutable after model_open and
 * may be read by several threads.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "model/file/weight.h"
#include "model/token/tokenizer.h"

typedef enum ModelNorm { MODEL_RMS, MODEL_LAYER_NORM } ModelNorm;
typedef enum ModelActivation {
    MODEL_SILU, MODEL_GELU /* erf */, MODEL_GELU_TANH, MODEL_RELU
} ModelActivation;

typedef struct ModelConfig {
    const char *arch;          /* the family's name: "llama", "mistral", ... "albert" */
    bool        causal;        /* decoders; pre-norm.  Encoders are post-norm */
    int64_t     layers, width, heads, kv_heads, head_dim, inner, vocab, context;
    int64_t     embedding_width; /* albert: E; else width */
    int64_t     groups;          /* albert: layers with weights of their own; else layers */
    double      eps;
    ModelNorm   norm;
    ModelActivation activation;  /* of the MLP */
    bool        gated;           /* MLP has a gate */
    double      embedding_scale; /* gemma: sqrt(width); else 1 */
    int64_t     rotary;          /* channels turned by RoPE, by halves; 0: none */
    const double *inverse;       /* [rotary/2] inverse frequencies, scaling applied */
    double      rotary_scale;    /* cos and sin times this (YaRN); else 1 */
    int64_t     window;          /* sliding window, keys with themselves; 0: none */
    double      scale;           /* 1/sqrt(head_dim) */
    bool        tied;            /* head is the embedding */
    int         pooling;         /* encoders: 0 none, 1 mean, 2 first token */
} ModelConfig;

typedef struct ModelNormWeights {
    const float *weight, *bias; /* [size]; bias NULL: none; weight NULL: no such norm */
} ModelNormWeights;

typedef struct ModelLayer {
    ModelNormWeights attention_norm, mlp_norm; /* before (decoders) or after (encoders) */
    Weight           q, k, v, output;          /* [H d, D], [K d, D], [K d, D], [D, H d] */
    const float     *q_bias, *k_bias, *v_bias, *output_bias; /* NULL: none */
    const float     *q_norm, *k_norm;          /* [d] qwen3; NULL: none */
    Weight           gate, up, down;           /* [F, D], [F, D], [D, F] */
    const float     *gate_bias, *up_bias, *down_bias;
} ModelLayer;

typedef struct Model {
    ModelConfig      config;
    ModelLayer      *layer; /* [config.layers]; albert: groups repeated */
    Weight           embedding, positions, types; /* [V, E], [context, E], [T, E] */
    Weight           map;   /* albert: [D, E] */
    const float     *map_bias;
    ModelNormWeights embedding_norm, final_norm;
    Weight           head;  /* [V, D]; absent: no head (sentence encoders) */
    /* Masked-language head before `head` (bert, albert). */
    Weight           head_dense;
    const float     *head_dense_bias, *head_bias;
    ModelNormWeights head_norm;
    ModelActivation  head_activation;
    Tokenizer       *tokenizer;       /* NULL: none that can be read, see tokenizer_why */
    char             tokenizer_why[512];
    char            *path, *name;     /* its file or folder; as reports name it */
    const char      *format;          /* "gguf", "folder" */
    int64_t          file_bytes;
    int64_t          type_count[WEIGHT_TYPES]; /* tensors of each type */
    char            *notes;           /* lines for the user (an ignored window), or "" */
    void            *owned;           /* private: arena, mapped files */
} Model;

/* path: a GGUF file, or a folder with config.json.  NULL with *err set: file, field or tensor,
 * found, wanted; ERR_MODEL where the files themselves are wrong.  Reads no matrix. */
Model *model_open(const char *path, Error *err);
/* Reports name it so from now on, not by its path; copied. */
bool   model_name(Model *m, const char *name, Error *err);
void   model_close(Model *m);
bool   model_is_model(const char *path); /* begins as GGUF, or is a folder with config.json */

#endif
