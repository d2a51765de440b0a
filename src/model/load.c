/* load.c -- names of tensors and the shapes that they must have; see load.h.
 *
 * GGUF's names: the converter of llama.cpp.  Folders': the classes of transformers.
 */
#include "model/load.h"

#include <stdio.h>
#include <string.h>

#include "model/config.h"

/* ---- names ----------------------------------------------------------------- */

typedef struct LayerNames {
    const char *attention_norm, *mlp_norm, *q, *k, *v, *qkv, *output, *q_norm, *k_norm;
    const char *gate, *up, *down;
} LayerNames;

/* prefix: may stand before all names but those of the head.  NULL: the family has no such thing. */
typedef struct Names {
    const char *prefix, *embedding, *positions, *types, *embedding_norm, *map;
    const char *layer, *layer_end; /* around a layer's number */
    LayerNames  of;
    const char *final_norm, *head;
    const char *head_dense, *head_norm, *head_bias;
} Names;

static const Names names_gguf = {
    "", "token_embd", NULL, NULL, NULL, NULL, "blk.", ".",
    { "attn_norm", "ffn_norm", "attn_q", "attn_k", "attn_v", NULL, "attn_output", "attn_q_norm",
      "attn_k_norm", "ffn_gate", "ffn_up", "ffn_down" },
    "output_norm", "output", NULL, NULL, NULL,
};

static const Names names_gguf_gpt2 = {
    "", "token_embd", "position_embd", NULL, NULL, NULL, "blk.", ".",
    { "attn_norm", "ffn_norm", NULL, NULL, NULL, "attn_qkv", "attn_output", NULL, NULL, NULL,
      "ffn_up", "ffn_down" },
    "output_norm", "output", NULL, NULL, NULL,
};

static const Names names_gguf_bert = {
    "", "token_embd", "position_embd", "token_types", "token_embd_norm", NULL, "blk.", ".",
    { "attn_output_norm", "layer_output_norm", "attn_q", "attn_k", "attn_v", "attn_qkv",
      "attn_output", NULL, NULL, NULL, "ffn_up", "ffn_down" },
    NULL, NULL, NULL, NULL, NULL,
};

static const Names names_llama = {
    "model.", "embed_tokens", NULL, NULL, NULL, NULL, "layers.", ".",
    { "input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj",
      "self_attn.v_proj", NULL, "self_attn.o_proj", "self_attn.q_norm", "self_attn.k_norm",
      "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj" },
    "norm", "lm_head", NULL, NULL, NULL,
};

static const Names names_gpt2 = {
    "transformer.", "wte", "wpe", NULL, NULL, NULL, "h.", ".",
    { "ln_1", "ln_2", NULL, NULL, NULL, "attn.c_attn", "attn.c_proj", NULL, NULL, NULL,
      "mlp.c_fc", "mlp.c_proj" },
    "ln_f", "lm_head", NULL, NULL, NULL,
};

static const Names names_bert = {
    "bert.", "embeddings.word_embeddings", "embeddings.position_embeddings",
    "embeddings.token_type_embeddings", "embeddings.LayerNorm", NULL, "encoder.layer.", ".",
    { "attention.output.LayerNorm", "output.LayerNorm", "attention.self.query",
      "attention.self.key", "attention.self.value", NULL, "attention.output.dense", NULL, NULL,
      NULL, "intermediate.dense", "output.dense" },
    NULL, "cls.predictions.decoder", "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm", "cls.predictions",
};

static const Names names_albert = {
    "albert.", "embeddings.word_embeddings", "embeddings.position_embeddings",
    "embeddings.token_type_embeddings", "embeddings.LayerNorm",
    "encoder.embedding_hidden_mapping_in", "encoder.albert_layer_groups.", ".albert_layers.0.",
    { "attention.LayerNorm", "full_layer_layer_norm", "attention.query", "attention.key",
      "attention.value", NULL, "attention.dense", NULL, NULL, NULL, "ffn", "ffn_output" },
    NULL, "predictions.decoder", "predictions.dense", "predictions.LayerNorm", "predictions",
};

static const Names *names_of(const char *arch, bool gguf)
{
    if (strcmp(arch, "gpt2") == 0)
        return gguf ? &names_gguf_gpt2 : &names_gpt2;
    if (strcmp(arch, "bert") == 0)
        return gguf ? &names_gguf_bert : &names_bert;
    if (strcmp(arch, "albert") == 0)
        return &names_albert;
    return gguf ? &names_gguf : &names_llama;
}

/* ---- a tensor -------------------------------------------------------------- */

/* shape: the last one is contiguous, of both kinds of files. */
typedef struct Found {
    const char    *name; /* in the file */
    const char    *type_text;
    WeightType     type; /* WEIGHT_NONE: not read */
    const uint8_t *data;
    int            rank;
    int64_t        shape[STORE_MAX_RANK];
} Found;

/* An error stays, and the rest of the loading goes on to nothing. */
typedef struct Loader {
    Model           *model;
    const ModelFile *file;
    const Names     *names;
    Arena           *arena;
    Error           *err;
    bool             failed;
    char             begin[256]; /* of a layer's names; "" outside of layers */
} Loader;

static void from_gguf(const GgufTensor *t, Found *out)
{
    *out = (Found){ .name = t->name, .type_text = weight_type_name(t->type), .type = t->type,
                    .data = t->data, .rank = t->rank };
    for (int i = 0; i < t->rank; i++)
        out->shape[i] = t->dims[t->rank - 1 - i];
}

static WeightType type_of_entry(const StoreEntry *entry)
{
    if (entry->type.kind == ELEMENT_BFLOAT)
        return WEIGHT_BF16;
    if (entry->type.kind != ELEMENT_FLOAT)
        return WEIGHT_NONE;
    return entry->type.size == 2 ? WEIGHT_F16 : entry->type.size == 4 ? WEIGHT_F32 : WEIGHT_F64;
}

static void from_entry(const StoreEntry *entry, Found *out)
{
    *out = (Found){ .name = entry->info.name, .type_text = entry->info.dtype,
                    .type = type_of_entry(entry), .data = entry->data, .rank = entry->info.rank };
    memcpy(out->shape, entry->info.shape, sizeof(out->shape));
}

static bool find_exact(const Loader *l, const char *name, Found *out)
{
    const GgufTensor *tensor = l->file->gguf ? gguf_tensor(l->file->gguf, name) : NULL;
    const StoreEntry *entry = l->file->folder ? folder_find(l->file->folder, name) : NULL;

    if (tensor)
        from_gguf(tensor, out);
    else if (entry)
        from_entry(entry, out);
    return tensor || entry;
}

/* The tensor NAME.KIND of the layer or the model, with the prefix or without. */
static bool find(const Loader *l, const char *name, const char *kind, Found *out)
{
    char full[512];

    if (l->failed || !name)
        return false;
    snprintf(full, sizeof(full), "%s%s%s.%s", l->names->prefix, l->begin, name, kind);
    return find_exact(l, full, out) || find_exact(l, full + strlen(l->names->prefix), out);
}

static void missing(Loader *l, const char *name, const char *kind)
{
    if (!l->failed)
        error_set(l->err, ERR_DATA, "tensor %s%s%s.%s is missing", l->names->prefix, l->begin,
                  name, kind);
    l->failed = true;
}

static const char *shape_text(const Found *f, char *out, size_t size)
{
    size_t length = 0;

    out[0] = '\0';
    for (int i = 0; i < f->rank && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", i ? "," : "",
                                   (long long)f->shape[i]);
    return out;
}

static bool readable(Loader *l, const Found *f)
{
    if (f->type == WEIGHT_NONE && !l->failed)
        l->failed = !error_set(l->err, ERR_UNSUPPORTED, "tensor %.200s is of type %s, which is not "
                               "read", f->name, f->type_text);
    return !l->failed;
}

/* Extents of 1 around the wanted ones do not matter to how the values lie. */
static bool has_shape(Loader *l, const Found *f, int rank, const int64_t *wanted)
{
    char found[200], text[80] = "";
    Found plain = *f, want = { .rank = rank };
    bool  same;

    memcpy(want.shape, wanted, (size_t)rank * sizeof(*wanted));
    while (plain.rank > rank && plain.shape[0] == 1)
        memmove(plain.shape, plain.shape + 1, (size_t)--plain.rank * sizeof(*plain.shape));
    same = plain.rank == rank &&
           memcmp(plain.shape, wanted, (size_t)rank * sizeof(*wanted)) == 0;
    if (!same && !l->failed)
        l->failed = !error_set(l->err, ERR_DATA, "tensor %.200s has shape (%s), wanted (%s)",
                               f->name, shape_text(f, found, sizeof(found)),
                               shape_text(&want, text, sizeof(text)));
    return same;
}

/* ---- matrices and vectors -------------------------------------------------- */

typedef enum Need { OPTIONAL, NEEDED } Need;

static Weight matrix_of(Loader *l, const Found *f, int64_t rows, int64_t cols)
{
    if (!readable(l, f) || !has_shape(l, f, 2, (int64_t[]){ rows, cols }))
        return (Weight){ .type = WEIGHT_NONE };
    return (Weight){ .type = f->type, .data = f->data, .rows = rows, .cols = cols };
}

static Weight matrix(Loader *l, const char *name, int64_t rows, int64_t cols, Need need)
{
    Found f;

    if (find(l, name, "weight", &f))
        return matrix_of(l, &f, rows, cols);
    if (name && need == NEEDED)
        missing(l, name, "weight");
    return (Weight){ .type = WEIGHT_NONE };
}

static const float *vector_of(Loader *l, const Found *f, int64_t size, int64_t unpermute)
{
    float *values;
    Weight w;

    if (!readable(l, f) || !has_shape(l, f, 1, &size))
        return NULL;
    values = arena_alloc(l->arena, size, sizeof(*values));
    if (!values) {
        l->failed = !error_set(l->err, ERR_NOMEM, "no memory for tensor %.200s", f->name);
        return NULL;
    }
    w = (Weight){ .type = f->type, .data = f->data, .rows = 1, .cols = size };
    if (unpermute) /* a column */
        w = (Weight){ .type = f->type, .data = f->data, .rows = size, .cols = 1,
                      .unpermute = unpermute };
    if (unpermute && weight_block_values(f->type) > 1)
        l->failed = !error_set(l->err, ERR_UNSUPPORTED, "tensor %.200s is of type %s; a vector of "
                               "it is not read", f->name, f->type_text);
    else
        weight_read(&w, 0, w.rows, values);
    return values;
}

/* kind: "weight", "bias". */
static const float *vector(Loader *l, const char *name, const char *kind, int64_t size, Need need)
{
    Found f;

    if (find(l, name, kind, &f))
        return vector_of(l, &f, size, 0);
    if (name && need == NEEDED)
        missing(l, name, kind);
    return NULL;
}

/* Gemma's folders hold w of 1 + w. */
static void add_one(const float *values, int64_t size)
{
    union {
        const float *read_only;
        float       *plain;
    } v = { .read_only = values };

    for (int64_t i = 0; values && i < size; i++)
        v.plain[i] += 1;
}

/* LayerNorm is weight and bias, of old checkpoints gamma and beta. */
static ModelNormWeights norm(Loader *l, const char *name, int64_t size)
{
    ModelNormWeights n = { 0 };
    Found            f;
    bool             old = name && !find(l, name, "weight", &f) && find(l, name, "gamma", &f);

    if (!name)
        return n;
    n.weight = vector(l, name, old ? "gamma" : "weight", size, NEEDED);
    if (l->model->config.norm == MODEL_LAYER_NORM)
        n.bias = vector(l, name, old ? "beta" : "bias", size, NEEDED);
    if (l->file->folder && strcmp(l->model->config.arch, "gemma") == 0)
        add_one(n.weight, size);
    return n;
}

/* ---- a layer --------------------------------------------------------------- */

/* GPT-2's Conv1D of folders lies as [in, out]; the converter turns it. */
static bool is_conv(const Loader *l)
{
    return l->file->folder && strcmp(l->model->config.arch, "gpt2") == 0;
}

/* Rows `first` on of a matrix of `all` rows. */
static Weight part(Loader *l, const char *name, int64_t all, int64_t first, int64_t rows,
                   int64_t cols)
{
    Found  f;
    Weight w;

    if (!is_conv(l)) {
        w = matrix(l, name, all, cols, NEEDED);
        if (w.type != WEIGHT_NONE)
            w.data += first * (cols / weight_block_values(w.type)) * weight_block_bytes(w.type);
    } else if (find(l, name, "weight", &f)) {
        w = matrix_of(l, &f, cols, all);
        if (w.type != WEIGHT_NONE)
            w.data += first * weight_block_bytes(w.type);
        w.transposed = true;
        w.stride = all;
    } else {
        missing(l, name, "weight");
        return (Weight){ .type = WEIGHT_NONE };
    }
    w.rows = rows;
    w.cols = cols;
    return w;
}

/* Biases of encoders and GPT-2 are always there; in the llama family the file decides. */
static Need need_bias(const Loader *l)
{
    return l->model->config.norm == MODEL_LAYER_NORM ? NEEDED : OPTIONAL;
}

static const float *bias(Loader *l, const char *name, int64_t size, int64_t unpermute)
{
    Found f;

    if (unpermute && find(l, name, "bias", &f))
        return vector_of(l, &f, size, unpermute);
    return vector(l, name, "bias", size, need_bias(l));
}

/* q, k and v in one matrix and one bias. */
static void load_joint(Loader *l, ModelLayer *out, int64_t q_rows, int64_t k_rows)
{
    const char  *name = l->names->of.qkv;
    int64_t      all = q_rows + 2 * k_rows, width = l->model->config.width;
    const float *b = vector(l, name, "bias", all, need_bias(l));

    out->q = part(l, name, all, 0, q_rows, width);
    out->k = part(l, name, all, q_rows, k_rows, width);
    out->v = part(l, name, all, q_rows + k_rows, k_rows, width);
    out->q_bias = b;
    out->k_bias = b ? b + q_rows : NULL;
    out->v_bias = b ? b + q_rows + k_rows : NULL;
}

/* The converter of llama reorders the rows of q and k inside each head. */
static void load_separate(Loader *l, ModelLayer *out, int64_t q_rows, int64_t k_rows)
{
    const ModelConfig *c = &l->model->config;
    const LayerNames  *n = &l->names->of;
    bool               turned = l->file->gguf && strcmp(c->arch, "llama") == 0;

    out->q = matrix(l, n->q, q_rows, c->width, NEEDED);
    out->k = matrix(l, n->k, k_rows, c->width, NEEDED);
    out->v = matrix(l, n->v, k_rows, c->width, NEEDED);
    out->q.unpermute = turned ? c->heads : 0;
    out->k.unpermute = turned ? c->kv_heads : 0;
    out->q_bias = bias(l, n->q, q_rows, out->q.unpermute);
    out->k_bias = bias(l, n->k, k_rows, out->k.unpermute);
    out->v_bias = bias(l, n->v, k_rows, 0);
}

static void load_attention(Loader *l, ModelLayer *out)
{
    const ModelConfig *c = &l->model->config;
    const LayerNames  *n = &l->names->of;
    int64_t            q_rows = c->heads * c->head_dim, k_rows = c->kv_heads * c->head_dim;
    Found              joint;

    out->attention_norm = norm(l, n->attention_norm, c->width);
    if (!n->q || find(l, n->qkv, "weight", &joint))
        load_joint(l, out, q_rows, k_rows);
    else
        load_separate(l, out, q_rows, k_rows);
    if (strcmp(c->arch, "qwen3") == 0) {
        out->q_norm = vector(l, n->q_norm, "weight", c->head_dim, NEEDED);
        out->k_norm = vector(l, n->k_norm, "weight", c->head_dim, NEEDED);
    }
    out->output = part(l, n->output, c->width, 0, c->width, q_rows);
    out->output_bias = bias(l, n->output, c->width, 0);
}

static void load_mlp(Loader *l, ModelLayer *out)
{
    const ModelConfig *c = &l->model->config;
    const LayerNames  *n = &l->names->of;

    out->mlp_norm = norm(l, n->mlp_norm, c->width);
    if (c->gated) {
        out->gate = part(l, n->gate, c->inner, 0, c->inner, c->width);
        out->gate_bias = bias(l, n->gate, c->inner, 0);
    }
    out->up = part(l, n->up, c->inner, 0, c->inner, c->width);
    out->up_bias = bias(l, n->up, c->inner, 0);
    out->down = part(l, n->down, c->width, 0, c->width, c->inner);
    out->down_bias = bias(l, n->down, c->width, 0);
}

static void load_layers(Loader *l)
{
    Model  *m = l->model;
    int64_t layers = m->config.layers, groups = m->config.groups;

    m->layer = arena_zalloc(l->arena, layers, sizeof(*m->layer));
    if (!m->layer)
        l->failed = !error_set(l->err, ERR_NOMEM, "no memory for %lld layers", (long long)layers);
    for (int64_t i = 0; !l->failed && i < layers; i++) {
        int64_t group = i * groups / layers;

        if (i && group == (i - 1) * groups / layers) {
            m->layer[i] = m->layer[i - 1];
            continue;
        }
        snprintf(l->begin, sizeof(l->begin), "%s%lld%s", l->names->layer, (long long)group,
                 l->names->layer_end);
        load_attention(l, &m->layer[i]);
        load_mlp(l, &m->layer[i]);
    }
    l->begin[0] = '\0';
}

/* ---- around the layers ----------------------------------------------------- */

/* Rows are what the file has, at least one; cols must be right. */
static Weight table(Loader *l, const char *name, int64_t cols)
{
    Found  f;
    Weight w;

    if (!find(l, name, "weight", &f)) {
        missing(l, name, "weight");
        return (Weight){ .type = WEIGHT_NONE };
    }
    w = matrix_of(l, &f, f.rank == 2 ? f.shape[0] : 1, cols);
    if (!l->failed && w.rows < 1)
        l->failed = !error_set(l->err, ERR_DATA, "tensor %.200s has no rows, wanted at least 1",
                               f.name);
    return w;
}

static void load_embedding(Loader *l)
{
    Model       *m = l->model;
    ModelConfig *c = &m->config;
    const Names *n = l->names;

    m->embedding = table(l, n->embedding, c->embedding_width);
    if (c->vocab && !l->failed && m->embedding.rows != c->vocab)
        l->failed = !error_set(l->err, ERR_DATA, "tensor %s.weight has %lld rows, wanted %lld, the "
                               "vocabulary", n->embedding, (long long)m->embedding.rows,
                               (long long)c->vocab);
    c->vocab = m->embedding.rows;
    if (!l->failed && (c->vocab < 1 || c->vocab > CONFIG_VOCAB_MAX))
        l->failed = !error_set(l->err, ERR_DATA, "tensor %s.weight has %lld rows, wanted 1 to %d",
                               n->embedding, (long long)c->vocab, CONFIG_VOCAB_MAX);
    m->positions = matrix(l, n->positions, c->context, c->embedding_width, NEEDED);
    if (n->types)
        m->types = table(l, n->types, c->embedding_width);
    m->embedding_norm = norm(l, n->embedding_norm, c->embedding_width);
    m->map = matrix(l, n->map, c->width, c->embedding_width, NEEDED);
    m->map_bias = vector(l, n->map, "bias", c->width, NEEDED);
}

/* The head of masked language models, if the file has it. */
static void load_masked_head(Loader *l)
{
    Model       *m = l->model;
    ModelConfig *c = &m->config;
    const Names *n = l->names;
    int64_t      width = strcmp(c->arch, "albert") == 0 ? c->embedding_width : c->width;
    Found        f;

    if (!find(l, n->head_dense, "weight", &f))
        return;
    m->head_dense = matrix_of(l, &f, width, c->width);
    m->head_dense_bias = vector(l, n->head_dense, "bias", width, NEEDED);
    m->head_norm = norm(l, n->head_norm, width);
    m->head_activation = c->activation;
    m->head = matrix(l, n->head, c->vocab, width, OPTIONAL);
    m->head_bias = vector(l, n->head_bias, "bias", c->vocab, OPTIONAL);
    if (!m->head_bias)
        m->head_bias = vector(l, n->head, "bias", c->vocab, NEEDED);
    c->tied = m->head.type == WEIGHT_NONE;
    if (c->tied)
        m->head = m->embedding;
}

static void load_head(Loader *l)
{
    Model *m = l->model;

    m->final_norm = norm(l, l->names->final_norm, m->config.width);
    if (!m->config.causal) {
        load_masked_head(l);
        return;
    }
    m->head = matrix(l, l->names->head, m->config.vocab, m->config.width, OPTIONAL);
    m->config.tied = m->head.type == WEIGHT_NONE;
    if (m->config.tied)
        m->head = m->embedding;
}

static void count_types(Model *m, const ModelFile *file)
{
    int64_t count = 0;

    if (file->folder) {
        for (int64_t i = 0; i < folder_count(file->folder); i++)
            m->type_count[type_of_entry(folder_tensor(file->folder, i))]++;
        return;
    }
    for (const GgufTensor *t = gguf_tensors(file->gguf, &count); count > 0; t++, count--)
        m->type_count[t->type]++;
}

bool model_load(Model *m, const ModelFile *file, Arena *arena, Error *err)
{
    Loader l = { .model = m, .file = file, .arena = arena, .err = err,
                 .names = names_of(m->config.arch, file->gguf != NULL) };

    load_embedding(&l);
    load_layers(&l);
    load_head(&l);
    count_types(m, file);
    return !l.failed;
}
