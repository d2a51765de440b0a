/* config_gguf.c -- the keys of a GGUF file to a ModelConfig; see config.h. */
#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys of one architecture; an error stays, and the rest of the reading goes on to nothing. */
typedef struct Keys {
    const Gguf *gguf;
    const char *arch;
    char        name[128]; /* of the key last looked for */
    Error      *err;
    bool        failed;
} Keys;

/* NULL: there is none. */
static const GgufKey *find(Keys *k, const char *rest)
{
    snprintf(k->name, sizeof(k->name), "%s.%s", k->arch, rest);
    return k->failed ? NULL : gguf_key(k->gguf, k->name);
}

static void missing(Keys *k)
{
    if (!k->failed)
        error_set(k->err, ERR_DATA, "key %s is missing", k->name);
    k->failed = true;
}

/* A whole number; of an array all values must be equal.  fallback below 0: must be there. */
static int64_t whole(Keys *k, const char *rest, int64_t low, int64_t high, int64_t fallback)
{
    const GgufKey *key = find(k, rest);
    int64_t        value = 0, other;

    if (!key && fallback < 0)
        missing(k);
    if (!key)
        return fallback < 0 ? low : fallback;
    for (int64_t i = 0; !k->failed && i < key->count; i++)
        if (!gguf_integer(key, i, &other) || (i && other != value))
            k->failed = !error_set(k->err, i ? ERR_UNSUPPORTED : ERR_DATA,
                                   i ? "key %s differs between layers, which is not covered"
                                     : "key %s is no whole number", k->name);
        else
            value = other;
    if (!k->failed && (key->count == 0 || value < low || value > high))
        k->failed = !error_set(k->err, ERR_DATA, "key %s is %lld, wanted %lld to %lld", k->name,
                               (long long)value, (long long)low, (long long)high);
    return k->failed ? low : value;
}

static double real(Keys *k, const char *rest, double fallback)
{
    const GgufKey *key = find(k, rest);
    double         value;

    if (!key && isnan(fallback))
        missing(k);
    if (!key)
        return fallback;
    if (key->type == GGUF_ARRAY || !gguf_number(key, 0, &value) || !isfinite(value)) {
        k->failed = !error_set(k->err, ERR_DATA, "key %s is no finite number", k->name);
        return fallback;
    }
    return value;
}

/* Copies a text; false: it is not there, or too long to be one that is known. */
static bool text(Keys *k, const char *rest, char *out, size_t size)
{
    const GgufKey *key = find(k, rest);
    GgufString     value;

    if (!key)
        return false;
    if (!gguf_string(key, &value)) {
        k->failed = !error_set(k->err, ERR_DATA, "key %s is no text", k->name);
        return false;
    }
    snprintf(out, size, "%.*s", (int)(value.length < 80 ? value.length : 80), value.text);
    return true;
}

/* ---- RoPE ------------------------------------------------------------------ */

/* The converter's divisors stand for any scaling that it has worked out. */
static bool divide_frequencies(const Keys *k, ModelConfig *config)
{
    const GgufTensor *t = gguf_tensor(k->gguf, "rope_freqs.weight");
    union {
        const double *read_only;
        double       *plain;
    } inverse = { .read_only = config->inverse };
    float  divisor;

    if (!t)
        return true;
    if (t->type != WEIGHT_F32 || t->rank != 1 || t->dims[0] != config->rotary / 2)
        return error_set(k->err, ERR_DATA, "tensor rope_freqs.weight has %lld values of %s, wanted "
                         "%lld of F32", (long long)t->dims[0], weight_type_name(t->type),
                         (long long)(config->rotary / 2));
    for (int64_t i = 0; i < t->dims[0]; i++) {
        memcpy(&divisor, t->data + 4 * i, 4);
        if (!(divisor > 0 && isfinite(divisor)))
            return error_set(k->err, ERR_DATA, "tensor rope_freqs.weight: value %lld is %g, wanted "
                             "above 0", (long long)i, (double)divisor);
        inverse.plain[i] /= (double)divisor;
    }
    return true;
}

static void scaling(Keys *k, Rope *rope, const ModelConfig *config)
{
    char   type[96] = "";
    double old = real(k, "rope.scale_linear", 1); /* of files before rope.scaling.type */

    if (!text(k, "rope.scaling.type", type, sizeof(type))) {
        rope->kind = old == 1 ? ROPE_PLAIN : ROPE_LINEAR;
        rope->factor = old;
        return;
    }
    if (strcmp(type, "none") == 0)
        return;
    if (strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0) {
        k->failed = !error_set(k->err, ERR_UNSUPPORTED, "key %s is '%s', which is not covered; "
                               "covered are none, linear and yarn", k->name, type);
        return;
    }
    rope->kind = *type == 'l' ? ROPE_LINEAR : ROPE_YARN;
    rope->factor = real(k, "rope.scaling.factor", (double)NAN);
    rope->original = real(k, "rope.scaling.original_context_length", (double)config->context);
    rope->beta_fast = real(k, "rope.scaling.yarn_beta_fast", 32);
    rope->beta_slow = real(k, "rope.scaling.yarn_beta_slow", 1);
    if (real(k, "rope.scaling.attn_factor", 1) != 1)
        k->failed = !error_set(k->err, ERR_UNSUPPORTED, "key %s other than 1 is not covered",
                               k->name);
}

static bool rotate(Keys *k, Arena *arena, ModelConfig *config)
{
    Rope rope = rope_plain(0, real(k, "rope.freq_base", 10000));

    rope.channels = whole(k, "rope.dimension_count", 2, 1024, config->head_dim);
    scaling(k, &rope, config);
    return !k->failed && config_rope(&rope, "RoPE's keys", arena, config, k->err) &&
           divide_frequencies(k, config);
}

/* ---- what is not covered --------------------------------------------------- */

static bool refuse_others(Keys *k, ModelConfig *config)
{
    const GgufKey *causal = find(k, "attention.causal");
    int64_t        value;

    if (causal && gguf_integer(causal, 0, &value) && (value != 0) != config->causal)
        return error_set(k->err, ERR_UNSUPPORTED, "key %s is %lld, which is not covered for %s",
                         k->name, (long long)value, k->arch);
    if (gguf_tensor(k->gguf, "rope_factors_long.weight"))
        return error_set(k->err, ERR_UNSUPPORTED, "tensor rope_factors_long.weight: RoPE scaling "
                         "longrope is not covered");
    if (whole(k, "expert_count", 0, INT64_MAX, 0) > 0)
        return error_set(k->err, ERR_UNSUPPORTED, "key %s: a mixture of experts is not covered",
                         k->name);
    return !k->failed;
}

/* A window longer than any text leaves out nothing. */
static void note_window(Keys *k, Text *notes)
{
    int64_t window = whole(k, "attention.sliding_window", 0, INT64_MAX, 0);

    if (window > 0 && window <= CONFIG_CONTEXT_MAX)
        text_addf(notes, "key %s of %lld is ignored: attention is over all keys; swap in "
                  "window(window=%lld) for it\n", k->name, (long long)window,
                  2 * (long long)window - 1);
}

static void pool(Keys *k, ModelConfig *config, Text *notes)
{
    int64_t kind = whole(k, "pooling_type", INT64_MIN, INT64_MAX, 0);

    if (kind >= 0 && kind <= 2)
        config->pooling = (int)kind;
    else
        text_addf(notes, "key %s of %lld is ignored: known are 1, mean, and 2, first token\n",
                  k->name, (long long)kind);
}

/* ---- the tokenizer's keys -------------------------------------------------- */

/* Lists as long as the tokens, and no more tokens than the embedding has rows. */
static bool check_lists(const Gguf *g, int64_t vocab, Error *err)
{
    static const char *const lists[] = { "tokenizer.ggml.scores", "tokenizer.ggml.token_type" };
    const GgufKey *tokens = gguf_key(g, "tokenizer.ggml.tokens");

    if (tokens && (tokens->type != GGUF_ARRAY || tokens->element != GGUF_STRING))
        return error_set(err, ERR_DATA, "key tokenizer.ggml.tokens is no list of texts");
    if (tokens && tokens->count > vocab)
        return error_set(err, ERR_DATA, "key tokenizer.ggml.tokens has %lld tokens, but tensor "
                         "token_embd.weight has %lld rows", (long long)tokens->count,
                         (long long)vocab);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const GgufKey *list = gguf_key(g, lists[i]);

        if (list && (!tokens || list->type != GGUF_ARRAY || list->count != tokens->count))
            return error_set(err, ERR_DATA, "key %s has %lld values, wanted %lld, one a token",
                             lists[i], (long long)list->count,
                             (long long)(tokens ? tokens->count : 0));
    }
    return true;
}

static bool check_specials(const Gguf *g, int64_t vocab, Error *err)
{
    static const char *const names[] = { "bos", "eos", "unknown", "padding", "cls", "seperator",
                                         "separator", "mask" };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char           name[64];
        const GgufKey *key;
        int64_t        id;

        snprintf(name, sizeof(name), "tokenizer.ggml.%s_token_id", names[i]);
        key = gguf_key(g, name);
        if (key && (key->type == GGUF_ARRAY || !gguf_integer(key, 0, &id)))
            return error_set(err, ERR_DATA, "key %s is no whole number", name);
        if (key && (id < -1 || id >= vocab) && id != UINT32_MAX)
            return error_set(err, ERR_DATA, "key %s is %lld, wanted below %lld", name,
                             (long long)id, (long long)vocab);
    }
    return true;
}

/* "left right": one blank, neither first nor last. */
static bool check_merges(const Gguf *g, Error *err)
{
    const GgufKey *merges = gguf_key(g, "tokenizer.ggml.merges");
    const uint8_t *cursor = NULL;
    GgufString     merge;

    if (merges && (merges->type != GGUF_ARRAY || merges->element != GGUF_STRING))
        return error_set(err, ERR_DATA, "key tokenizer.ggml.merges is no list of texts");
    for (int64_t i = 0; merges && gguf_next_string(merges, &cursor, &merge); i++) {
        const char *blank = memchr(merge.text, ' ', (size_t)merge.length);
        int64_t     left = blank ? blank - merge.text : 0, right = merge.length - left - 1;

        if (left < 1 || right < 1 || memchr(blank + 1, ' ', (size_t)right))
            return error_set(err, ERR_DATA, "key tokenizer.ggml.merges: merge %lld is not two "
                             "tokens with one blank between them", (long long)i);
    }
    return true;
}

/* ---- all ------------------------------------------------------------------- */

static void sizes(Keys *k, ModelConfig *c)
{
    bool rms = c->norm == MODEL_RMS;

    c->layers = whole(k, "block_count", 1, 1024, -1);
    c->width = whole(k, "embedding_length", 1, CONFIG_SIZE_MAX, -1);
    c->inner = whole(k, "feed_forward_length", 1, CONFIG_SIZE_MAX, -1);
    c->context = whole(k, "context_length", 1, CONFIG_CONTEXT_MAX, -1);
    c->heads = whole(k, "attention.head_count", 1, 1024, -1);
    c->kv_heads = whole(k, "attention.head_count_kv", 1, 1024, c->heads);
    c->eps = real(k, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                  (double)NAN);
}

static bool head_size(Keys *k, ModelConfig *c)
{
    int64_t even = c->width / c->heads, value;

    c->head_dim = whole(k, "attention.key_length", 1, CONFIG_HEAD_MAX, even);
    if (!k->failed && !find(k, "attention.key_length") && c->width % c->heads)
        return error_set(k->err, ERR_DATA, "%lld channels cannot be shared by %lld heads evenly, "
                         "and key %s is missing", (long long)c->width, (long long)c->heads,
                         k->name);
    value = whole(k, "attention.value_length", 1, CONFIG_HEAD_MAX, c->head_dim);
    if (!k->failed && value != c->head_dim)
        return error_set(k->err, ERR_UNSUPPORTED, "key %s is %lld, but keys have %lld channels; "
                         "they must be equal", k->name, (long long)value, (long long)c->head_dim);
    return !k->failed;
}

static bool architecture(const Gguf *g, ModelConfig *out, Error *err)
{
    const GgufKey *key = gguf_key(g, "general.architecture");
    GgufString     value;
    char           name[81];

    if (!key || !gguf_string(key, &value))
        return error_set(err, ERR_DATA, "key general.architecture is %s",
                         key ? "no text" : "missing; is the file a model?");
    snprintf(name, sizeof(name), "%.*s", (int)(value.length < 80 ? value.length : 80), value.text);
    return config_begin(name, CONFIG_GGUF, out, err);
}

bool config_from_gguf(const Gguf *g, Arena *arena, ModelConfig *out, Text *notes, Error *err)
{
    const GgufTensor *embedding = gguf_tensor(g, "token_embd.weight");
    Keys              k = { .gguf = g, .err = err };

    if (!architecture(g, out, err))
        return false;
    k.arch = out->arch;
    sizes(&k, out);
    if (!head_size(&k, out) || !refuse_others(&k, out) || !config_finish(out, err))
        return false;
    if (out->norm == MODEL_RMS && !rotate(&k, arena, out))
        return false;
    note_window(&k, notes);
    if (!out->causal)
        pool(&k, out, notes);
    out->vocab = embedding && embedding->rank == 2 ? embedding->dims[1] : 0;
    return !k.failed && (!out->vocab || (check_lists(g, out->vocab, err) &&
                                         check_specials(g, out->vocab, err) &&
                                         check_merges(g, err)));
}
