/* config_json.c -- config.json of a Hugging Face folder to a ModelConfig; see config.h.
 *
 * Names and defaults: the configuration classes of transformers.  A null counts as absent.
 */
#include "model/config.h"

#include <math.h>
#include <string.h>

/* An object of config.json; an error stays, and the rest of the reading goes on to nothing. */
typedef struct Reader {
    json_t *object;
    Error  *err;
    bool    failed;
} Reader;

#define REQUIRED INT64_MIN

static json_t *find(const Reader *r, const char *name)
{
    json_t *value = json_object_get(r->object, name);

    return json_is_null(value) || r->failed ? NULL : value;
}

static void refuse(Reader *r, ErrorCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(Reader *r, ErrorCode code, const char *fmt, ...)
{
    va_list args;

    if (r->failed)
        return;
    va_start(args, fmt);
    error_vset(r->err, code, fmt, args);
    va_end(args);
    error_prefix(r->err, "config.json");
    r->failed = true;
}

static int64_t whole(Reader *r, const char *name, int64_t low, int64_t high, int64_t fallback)
{
    json_t *value = find(r, name);
    double  number;

    if (!value && fallback == REQUIRED)
        refuse(r, ERR_DATA, "%s is missing", name);
    if (!value)
        return fallback == REQUIRED ? low : fallback;
    number = json_number_value(value);
    if (!json_is_number(value) || number != trunc(number))
        refuse(r, ERR_DATA, "%s is no whole number", name);
    else if (!(number >= (double)low && number <= (double)high))
        refuse(r, ERR_DATA, "%s is %.0f, wanted %lld to %lld", name, number, (long long)low,
               (long long)high);
    return r->failed ? low : (int64_t)number;
}

static double real(Reader *r, const char *name, double fallback)
{
    json_t *value = find(r, name);

    if (value && !json_is_number(value))
        refuse(r, ERR_DATA, "%s is no number", name);
    if (!value && isnan(fallback))
        refuse(r, ERR_DATA, "%s is missing", name);
    return value ? json_number_value(value) : fallback;
}

static bool flag(Reader *r, const char *name, bool fallback)
{
    json_t *value = find(r, name);

    if (value && !json_is_boolean(value))
        refuse(r, ERR_DATA, "%s is neither true nor false", name);
    return value ? json_is_true(value) : fallback;
}

static const char *text(Reader *r, const char *name, const char *fallback)
{
    json_t *value = find(r, name);

    if (value && !json_is_string(value))
        refuse(r, ERR_DATA, "%s is no text", name);
    return value && !r->failed ? json_string_value(value) : fallback;
}

/* ---- what is not covered --------------------------------------------------- */

/* Keys that must be absent, null, false, 0 or 1: of experts a single one is none. */
static void refuse_features(Reader *r)
{
    static const struct {
        const char *name, *what;
    } features[] = {
        { "num_local_experts", "a mixture of experts" }, { "num_experts", "a mixture of experts" },
        { "n_routed_experts", "a mixture of experts" },
        { "num_experts_per_tok", "a mixture of experts" },
        { "moe_intermediate_size", "a mixture of experts" },
        { "attn_logit_softcapping", "a soft cap of logits" },
        { "final_logit_softcapping", "a soft cap of logits" },
        { "is_decoder", "a decoder of this family" },
        { "is_encoder_decoder", "an encoder with a decoder" },
        { "add_cross_attention", "cross attention" },
        { "scale_attn_by_inverse_layer_idx", "a scale that differs between layers" },
        { "quantization_config", "a quantised checkpoint" },
    };

    for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++) {
        json_t *value = find(r, features[i].name);

        if (value && !json_is_false(value) &&
            !(json_is_number(value) && json_number_value(value) >= 0 &&
              json_number_value(value) <= 1))
            refuse(r, ERR_UNSUPPORTED, "%s: %s is not covered", features[i].name, features[i].what);
    }
    if (!flag(r, "scale_attn_weights", true))
        refuse(r, ERR_UNSUPPORTED, "scale_attn_weights false is not covered");
    if (strcmp(text(r, "position_embedding_type", "absolute"), "absolute") != 0)
        refuse(r, ERR_UNSUPPORTED, "position_embedding_type is '%.80s'; only absolute is covered",
               text(r, "position_embedding_type", ""));
}

/* ---- activations ----------------------------------------------------------- */

static void activate(Reader *r, const char *name, ModelConfig *c)
{
    static const struct {
        const char     *name;
        ModelActivation value;
    } known[] = {
        { "silu", MODEL_SILU }, { "swish", MODEL_SILU }, { "gelu", MODEL_GELU },
        { "gelu_new", MODEL_GELU_TANH }, { "gelu_pytorch_tanh", MODEL_GELU_TANH },
        { "relu", MODEL_RELU },
    };
    const char *value = text(r, name, NULL);

    if (!value || strcmp(c->arch, "gemma") == 0) /* its "gelu" means the one by tanh, too */
        return;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(known[i].name, value) == 0) {
            c->activation = known[i].value;
            return;
        }
    refuse(r, ERR_UNSUPPORTED, "%s is '%.80s', which is not covered; covered are silu, gelu, "
           "gelu_new, gelu_pytorch_tanh and relu", name, value);
}

/* ---- RoPE ------------------------------------------------------------------ */

static void scale_rope(Reader *r, const char *kind, Rope *rope)
{
    static const struct {
        const char *name;
        RopeKind    kind;
    } kinds[] = { { "default", ROPE_PLAIN }, { "none", ROPE_PLAIN }, { "linear", ROPE_LINEAR },
                  { "llama3", ROPE_LLAMA3 }, { "yarn", ROPE_YARN } };
    size_t i = 0, count = sizeof(kinds) / sizeof(*kinds);

    while (i < count && strcmp(kinds[i].name, kind) != 0)
        i++;
    if (i == count) {
        refuse(r, ERR_UNSUPPORTED, "a RoPE scaling of type '%.80s' is not covered; covered are "
               "linear, llama3 and yarn", kind);
        return;
    }
    rope->kind = kinds[i].kind;
    if (rope->kind == ROPE_PLAIN)
        return;
    rope->factor = real(r, "factor", (double)NAN);
    if (rope->kind == ROPE_LLAMA3) {
        rope->low_factor = real(r, "low_freq_factor", (double)NAN);
        rope->high_factor = real(r, "high_freq_factor", (double)NAN);
        rope->original = real(r, "original_max_position_embeddings", (double)NAN);
    }
    if (rope->kind == ROPE_YARN) {
        rope->original = real(r, "original_max_position_embeddings", rope->original);
        rope->beta_fast = real(r, "beta_fast", 32);
        rope->beta_slow = real(r, "beta_slow", 1);
        rope->attention_factor = real(r, "attention_factor", 0);
    }
}

static void refuse_scaling(Reader *r)
{
    const char *name;
    json_t     *value;

    if (find(r, "mscale") || find(r, "mscale_all_dim"))
        refuse(r, ERR_UNSUPPORTED, "RoPE scaling with mscale is not covered");
    if (!flag(r, "truncate", true))
        refuse(r, ERR_UNSUPPORTED, "RoPE scaling with truncate false is not covered");
    json_object_foreach(r->object, name, value)
        if (json_is_object(value))
            refuse(r, ERR_UNSUPPORTED, "RoPE that differs between layers (%.80s) is not covered",
                   name);
}

/* transformers 5 has all of it in rope_parameters; before, the base and the share of channels
 * stood outside of rope_scaling. */
static bool rotate(Reader *r, Arena *arena, ModelConfig *c)
{
    json_t *now = find(r, "rope_parameters"), *before = find(r, "rope_scaling");
    Reader  inner = { .object = now ? now : before, .err = r->err };
    double  share = real(r, "partial_rotary_factor", 1);
    Rope    rope = rope_plain(c->head_dim, real(r, "rope_theta", 10000));

    rope.original = (double)c->context;
    if (inner.object && !json_is_object(inner.object))
        refuse(r, ERR_DATA, "%s is no object", now ? "rope_parameters" : "rope_scaling");
    if (inner.object && !r->failed) {
        refuse_scaling(&inner);
        share = real(&inner, "partial_rotary_factor", share);
        rope.base = real(&inner, "rope_theta", rope.base);
        scale_rope(&inner, text(&inner, "rope_type", text(&inner, "type", "default")), &rope);
    }
    if (!(share > 0 && share <= 1))
        refuse(r, ERR_DATA, "partial_rotary_factor is %g, wanted above 0 and at most 1", share);
    rope.channels = (int64_t)(share * (double)c->head_dim);
    return !r->failed && !inner.failed && config_rope(&rope, "config.json", arena, c, r->err);
}

/* ---- sliding window -------------------------------------------------------- */

/* "full_attention", "sliding_attention", or "" when the file names no types of layers. */
static const char *layer_type(Reader *r)
{
    json_t     *list = find(r, "layer_types"), *item;
    const char *first = "";
    size_t      i;

    json_array_foreach(list, i, item) {
        const char *name = json_is_string(item) ? json_string_value(item) : "?";

        if (i == 0)
            first = name;
        if (strcmp(name, first) != 0)
            refuse(r, ERR_UNSUPPORTED, "layer_types that alternate are not covered");
    }
    if (*first && strcmp(first, "full_attention") != 0 && strcmp(first, "sliding_attention") != 0)
        refuse(r, ERR_UNSUPPORTED, "layer_types of '%.80s' are not covered", first);
    return first;
}

/* Whether the older keys give all layers a window. */
static bool old_window(Reader *r, const ModelConfig *c)
{
    int64_t full;

    if (strcmp(c->arch, "mistral") == 0)
        return true;
    if (strncmp(c->arch, "qwen", 4) != 0 || !flag(r, "use_sliding_window", false))
        return false;
    full = whole(r, "max_window_layers", 0, INT32_MAX, 28);
    if (full > 0 && full < c->layers)
        refuse(r, ERR_UNSUPPORTED, "max_window_layers of %lld of %lld layers: layers that "
               "alternate are not covered", (long long)full, (long long)c->layers);
    return full == 0;
}

static void slide(Reader *r, ModelConfig *c)
{
    const char *type = layer_type(r);
    int64_t     window;

    if (*type == 'f' || (!*type && !old_window(r, c)))
        return;
    window = whole(r, "sliding_window", 1, CONFIG_CONTEXT_MAX, 0);
    if (*type && !window)
        refuse(r, ERR_DATA, "layer_types says sliding_attention, but sliding_window is missing");
    c->window = window;
}

/* ---- families -------------------------------------------------------------- */

static int64_t even_share(Reader *r, const ModelConfig *c)
{
    if (!r->failed && c->width % c->heads)
        refuse(r, ERR_DATA, "%lld channels cannot be shared by %lld heads evenly",
               (long long)c->width, (long long)c->heads);
    return c->width / c->heads;
}

static bool read_llama(Reader *r, Arena *arena, ModelConfig *c)
{
    c->layers = whole(r, "num_hidden_layers", 1, 1024, REQUIRED);
    c->width = whole(r, "hidden_size", 1, CONFIG_SIZE_MAX, REQUIRED);
    c->inner = whole(r, "intermediate_size", 1, CONFIG_SIZE_MAX, REQUIRED);
    c->heads = whole(r, "num_attention_heads", 1, 1024, REQUIRED);
    c->kv_heads = whole(r, "num_key_value_heads", 1, 1024, c->heads);
    c->context = whole(r, "max_position_embeddings", 1, CONFIG_CONTEXT_MAX, REQUIRED);
    c->eps = real(r, "rms_norm_eps", 1e-6);
    c->head_dim = find(r, "head_dim") ? whole(r, "head_dim", 1, CONFIG_HEAD_MAX, REQUIRED)
                                      : even_share(r, c);
    activate(r, "hidden_act", c);
    slide(r, c);
    return !r->failed && rotate(r, arena, c);
}

static bool read_gpt2(Reader *r, ModelConfig *c)
{
    c->layers = whole(r, "n_layer", 1, 1024, REQUIRED);
    c->width = whole(r, "n_embd", 1, CONFIG_SIZE_MAX / 4, REQUIRED);
    c->inner = whole(r, "n_inner", 1, CONFIG_SIZE_MAX, 4 * c->width);
    c->heads = c->kv_heads = whole(r, "n_head", 1, 1024, REQUIRED);
    c->context = whole(r, "n_positions", 1, CONFIG_CONTEXT_MAX, REQUIRED);
    c->eps = real(r, "layer_norm_epsilon", 1e-5);
    c->head_dim = even_share(r, c);
    activate(r, "activation_function", c);
    return !r->failed;
}

static bool read_bert(Reader *r, ModelConfig *c)
{
    c->layers = whole(r, "num_hidden_layers", 1, 1024, REQUIRED);
    c->width = whole(r, "hidden_size", 1, CONFIG_SIZE_MAX, REQUIRED);
    c->inner = whole(r, "intermediate_size", 1, CONFIG_SIZE_MAX, REQUIRED);
    c->heads = c->kv_heads = whole(r, "num_attention_heads", 1, 1024, REQUIRED);
    c->context = whole(r, "max_position_embeddings", 1, CONFIG_CONTEXT_MAX, REQUIRED);
    c->eps = real(r, "layer_norm_eps", 1e-12);
    c->head_dim = even_share(r, c);
    activate(r, "hidden_act", c);
    if (strcmp(c->arch, "albert") == 0) {
        c->embedding_width = whole(r, "embedding_size", 1, CONFIG_SIZE_MAX, REQUIRED);
        c->groups = whole(r, "num_hidden_groups", 1, c->layers, 1);
        if (whole(r, "inner_group_num", 0, INT32_MAX, 1) != 1)
            refuse(r, ERR_UNSUPPORTED, "inner_group_num other than 1 is not covered");
    }
    return !r->failed;
}

static void pool(json_t *pooling, ModelConfig *c, Text *notes)
{
    if (json_is_true(json_object_get(pooling, "pooling_mode_mean_tokens")))
        c->pooling = 1;
    else if (json_is_true(json_object_get(pooling, "pooling_mode_cls_token")))
        c->pooling = 2;
    else if (pooling)
        text_add(notes, "1_Pooling/config.json is ignored: known are the mean and the first "
                 "token\n");
}

bool config_from_json(json_t *root, json_t *pooling, Arena *arena, ModelConfig *out, Text *notes,
                      Error *err)
{
    Reader      r = { .object = root, .err = err };
    bool        encoder = find(&r, "type_vocab_size"); /* old files name no model_type */
    const char *type = text(&r, "model_type", encoder ? "bert" : NULL);

    if (r.failed)
        return false;
    if (!type)
        return error_set(err, ERR_DATA, "config.json: model_type is missing");
    if (!config_begin(type, CONFIG_FOLDER, out, err))
        return error_prefix(err, "config.json");
    refuse_features(&r);
    if (out->norm == MODEL_RMS ? !read_llama(&r, arena, out)
                               : !(out->causal ? read_gpt2(&r, out) : read_bert(&r, out)))
        return false;
    out->vocab = whole(&r, "vocab_size", 1, CONFIG_SIZE_MAX, 0);
    if (!out->causal)
        pool(pooling, out, notes);
    if (r.failed)
        return false;
    return config_finish(out, err) || error_prefix(err, "config.json");
}
