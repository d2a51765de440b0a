/* cache.c -- see cache.h.
 *
 * Names, defaults and the order of layers: the configuration classes of transformers.  A null
 * counts as absent.  A window of w keys has the query's own among them.
 */
#include "model/cache.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "model/config.h"
#include "model/file/folder.h"

#define LAYERS_MOST 1024
#define NEEDED (-1) /* has no default */

/* What the layers are where the file has no layer_types. */
typedef enum Order {
    ALL_FULL,
    ALL_WINDOW,   /* where there is a sliding_window */
    LATER_WINDOW, /* with use_sliding_window those from max_window_layers on */
    EVERY_FULL,   /* the last of so many; the others have a window */
    EVERY_STATE,  /* the last of so many is full; the others have a state */
} Order;

static const struct Family {
    const char *name;
    Order       order;
    int64_t     every;                       /* of EVERY_ */
    const char *every_name;                  /* its key; NULL: none */
    int64_t     heads, kv_heads, dim, window; /* defaults; 0: none */
    const char *state;                       /* the mechanism of its states; NULL: unknown */
    bool        latent;                      /* all heads share one latent for keys and values */
} families[] = {
    { "llama", ALL_FULL, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "mistral", ALL_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "mixtral", ALL_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "qwen2", LATER_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "qwen2_moe", LATER_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "qwen3", LATER_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "qwen3_moe", LATER_WINDOW, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "qwen3_next", EVERY_STATE, 4, "full_attention_interval", 16, 2, 256, 0,
      "gated-deltanet", false },
    { "gemma", ALL_FULL, 0, NULL, 0, 0, 256, 0, NULL, false },
    { "gemma2", EVERY_FULL, 2, NULL, 8, 4, 256, 4096, NULL, false },
    { "gemma3_text", EVERY_FULL, 6, "sliding_window_pattern", 8, 4, 256, 4096, NULL, false },
    { "gpt2", ALL_FULL, 0, NULL, 0, 0, 0, 0, NULL, false },
    { "gpt_oss", EVERY_FULL, 2, NULL, 64, 8, 64, 128, NULL, false },
    { "deepseek_v2", ALL_FULL, 0, NULL, 0, 0, 0, 0, NULL, true },
    { "deepseek_v3", ALL_FULL, 0, NULL, 0, 0, 0, 0, NULL, true },
};

/* An object of config.json; an error stays, and the rest of the reading goes on to nothing. */
typedef struct Keys {
    json_t              *object;
    const struct Family *family;
    int64_t              window;
    Error               *err;
    bool                 failed;
} Keys;

static json_t *find(const Keys *k, const char *name)
{
    json_t *value = json_object_get(k->object, name);

    return json_is_null(value) || k->failed ? NULL : value;
}

static void refuse(Keys *k, ErrorCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(Keys *k, ErrorCode code, const char *fmt, ...)
{
    va_list args;

    if (k->failed)
        return;
    va_start(args, fmt);
    error_vset(k->err, code, fmt, args);
    va_end(args);
    k->failed = true;
}

static int64_t whole(Keys *k, const char *name, int64_t low, int64_t high, int64_t fallback)
{
    json_t *value = find(k, name);
    double  number = json_number_value(value);

    if (!value && fallback == NEEDED)
        refuse(k, ERR_DATA, "%s is missing", name);
    if (!value)
        return fallback == NEEDED ? low : fallback;
    if (!json_is_number(value) || number != trunc(number))
        refuse(k, ERR_DATA, "%s is no whole number", name);
    else if (!(number >= (double)low && number <= (double)high))
        refuse(k, ERR_DATA, "%s is %.0f, wanted %lld to %lld", name, number, (long long)low,
               (long long)high);
    return k->failed ? low : (int64_t)number;
}

static bool flag(Keys *k, const char *name)
{
    json_t *value = find(k, name);

    if (value && !json_is_boolean(value))
        refuse(k, ERR_DATA, "%s is neither true nor false", name);
    return json_is_true(value);
}

/* ---- layers ---------------------------------------------------------------- */

/* The short convolution runs over queries and keys, which share heads, and over values. */
static void add_state(Keys *k, Text *layers)
{
    int64_t heads = whole(k, "linear_num_value_heads", 1, CONFIG_SIZE_MAX, 32);
    int64_t shared = whole(k, "linear_num_key_heads", 1, CONFIG_SIZE_MAX, 16);
    int64_t keys = whole(k, "linear_key_head_dim", 1, CONFIG_SIZE_MAX, 128);
    int64_t values = whole(k, "linear_value_head_dim", 1, CONFIG_SIZE_MAX, 128);
    int64_t width = whole(k, "linear_conv_kernel_dim", 1, CONFIG_SIZE_MAX, 4);

    text_addf(layers, "%s(%lld,%lld,%lld)", k->family->state ? k->family->state : "state",
              (long long)heads, (long long)keys, (long long)values);
    if (k->family->state)
        text_addf(layers, "+conv(%lld,%lld)", (long long)(2 * shared * keys + heads * values),
                  (long long)width);
}

static void add_layer(Keys *k, const char *type, Text *layers)
{
    text_add(layers, layers->length ? "," : "");
    if (!strcmp(type, "full_attention"))
        text_add(layers, "full");
    else if (!strcmp(type, "linear_attention"))
        add_state(k, layers);
    else if (strcmp(type, "sliding_attention") != 0)
        refuse(k, ERR_UNSUPPORTED, "layers of '%.60s' are not covered; covered are "
               "full_attention, sliding_attention and linear_attention", type);
    else if (!k->window)
        refuse(k, ERR_DATA, "layers of sliding_attention, but sliding_window is missing");
    else
        text_addf(layers, "window(%lld)", (long long)k->window);
}

static void layers_named(Keys *k, json_t *list, ModelCache *out)
{
    json_t *item;
    size_t  i;

    if (!json_is_array(list) || (int64_t)json_array_size(list) != out->depth) {
        refuse(k, ERR_DATA, "layer_types is no list of %lld, the num_hidden_layers",
               (long long)out->depth);
        return;
    }
    json_array_foreach(list, i, item)
        add_layer(k, json_is_string(item) ? json_string_value(item) : "?", &out->layers);
}

/* From which layer on the layers have a window; the depth: none has. */
static int64_t first_window(Keys *k, int64_t depth)
{
    if (!k->window || k->family->order == ALL_FULL)
        return depth;
    if (k->family->order == ALL_WINDOW)
        return 0;
    return flag(k, "use_sliding_window") ? whole(k, "max_window_layers", 0, INT32_MAX, 28) : depth;
}

static void layers_by_family(Keys *k, ModelCache *out)
{
    const struct Family *f = k->family;
    const char          *other = f->order == EVERY_STATE ? "linear_attention" : "sliding_attention";
    int64_t first = f->every ? 0 : first_window(k, out->depth), every = f->every;

    if (f->every_name)
        every = whole(k, f->every_name, 1, LAYERS_MOST, every);
    for (int64_t i = 0; i < out->depth && !k->failed; i++) {
        bool full = every ? (i + 1) % every == 0 : i < first;

        add_layer(k, full ? "full_attention" : other, &out->layers);
    }
}

/* ---- config.json ------------------------------------------------------------ */

static const struct Family *family_named(const char *type)
{
    for (size_t i = 0; type && i < sizeof(families) / sizeof(*families); i++)
        if (!strcmp(families[i].name, type))
            return &families[i];
    return NULL;
}

static bool find_family(Keys *k, const char *type)
{
    Text known = { 0 };

    k->family = family_named(type);
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        text_addf(&known, "%s%s", i ? ", " : "", families[i].name);
    if (!type)
        refuse(k, ERR_DATA, "model_type is missing");
    else if (!k->family && config_is_encoder(type))
        refuse(k, ERR_UNSUPPORTED, "%.60s is an encoder: it writes no text, so it keeps no cache; "
               "give a decoder, or --layers and sizes instead of the model", type);
    else if (!k->family)
        refuse(k, ERR_UNSUPPORTED, "model_type is '%.60s', of which the layers are not known; "
               "known are %s; give --layers and sizes instead of the model", type,
               text_str(&known));
    text_free(&known);
    return k->family != NULL;
}

/* The text model of one that sees, too: it may leave out its own model_type. */
static const char *enter_text(Keys *k, const char *type)
{
    json_t *inner = find(k, "text_config");
    json_t *own = json_object_get(inner, "model_type");

    if (!json_is_object(inner) || find(k, "num_hidden_layers"))
        return type;
    k->object = inner;
    if (json_is_string(own))
        return json_string_value(own);
    return type && !strcmp(type, "gemma3") ? "gemma3_text" : type;
}

static void read_sizes(Keys *k, ModelCache *out)
{
    bool    gpt2 = !strcmp(k->family->name, "gpt2");
    int64_t width = whole(k, gpt2 ? "n_embd" : "hidden_size", 1, CONFIG_SIZE_MAX, 0);
    int64_t heads = k->family->heads, kv_heads = k->family->kv_heads, dim = k->family->dim;

    out->depth = whole(k, gpt2 ? "n_layer" : "num_hidden_layers", 1, LAYERS_MOST, NEEDED);
    out->heads = whole(k, gpt2 ? "n_head" : "num_attention_heads", 1, CONFIG_SIZE_MAX,
                       heads ? heads : NEEDED);
    out->kv_heads = whole(k, "num_key_value_heads", 1, CONFIG_SIZE_MAX,
                          kv_heads ? kv_heads : out->heads);
    out->dim = whole(k, "head_dim", 1, CONFIG_SIZE_MAX, dim);
    if (!out->dim && !width)
        refuse(k, ERR_DATA, "neither head_dim nor %s is there", gpt2 ? "n_embd" : "hidden_size");
    if (!out->dim && !k->failed && width % out->heads)
        refuse(k, ERR_DATA, "%lld channels cannot be shared by %lld heads evenly",
               (long long)width, (long long)out->heads);
    if (!out->dim && !k->failed)
        out->dim = width / out->heads;
    if (!k->failed && out->heads % out->kv_heads)
        refuse(k, ERR_DATA, "%lld heads cannot share %lld key and value heads evenly",
               (long long)out->heads, (long long)out->kv_heads);
}

static void read_latent(Keys *k, ModelCache *out)
{
    if (!k->family->latent)
        return;
    out->rank = whole(k, "kv_lora_rank", 1, CONFIG_SIZE_MAX, NEEDED);
    out->rope = whole(k, "qk_rope_head_dim", 1, CONFIG_SIZE_MAX, NEEDED);
    out->kv_heads = out->heads; /* all share the latent */
}

static bool take_json(json_t *root, ModelCache *out, Error *err)
{
    Keys        k = { .object = root, .err = err };
    const char *type = json_string_value(json_object_get(root, "model_type"));
    json_t     *types;

    *out = (ModelCache){ 0 };
    if (!find_family(&k, enter_text(&k, type)))
        return false;
    read_sizes(&k, out);
    read_latent(&k, out);
    k.window = whole(&k, "sliding_window", 1, CONFIG_CONTEXT_MAX, k.family->window);
    out->context = whole(&k, "max_position_embeddings", 1, CONFIG_CONTEXT_MAX, 0);
    types = find(&k, "layer_types");
    if (types)
        layers_named(&k, types, out);
    else if (!k.failed)
        layers_by_family(&k, out);
    if (!k.failed && !text_ok(&out->layers))
        refuse(&k, ERR_NOMEM, "not enough memory for its layers");
    return !k.failed;
}

bool model_cache_from_json(json_t *root, ModelCache *out, Error *err)
{
    return take_json(root, out, err) || error_prefix(err, "config.json");
}

/* ---- GGUF ------------------------------------------------------------------- */

/* Architectures of GGUF files that model_open does not run, and their names in config.json. */
static const struct {
    const char *arch, *family;
} archs[] = {
    { "gemma2", "gemma2" },       { "gemma3", "gemma3_text" },  { "gpt-oss", "gpt_oss" },
    { "qwen2moe", "qwen2_moe" },  { "qwen3moe", "qwen3_moe" },  { "deepseek2", "deepseek_v3" },
};

static const char *gguf_family(const Gguf *g, char *arch, size_t size)
{
    const GgufKey *key = gguf_key(g, "general.architecture");
    GgufString     value;

    if (!key || !gguf_string(key, &value))
        return NULL;
    snprintf(arch, size, "%.*s", (int)(value.length < 60 ? value.length : 60), value.text);
    for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
        if (!strcmp(archs[i].arch, arch))
            return archs[i].family;
    return NULL;
}

/* Key ARCH.rest as `name` of root; where it is absent, nothing unless it is needed.  0 is none. */
static bool put_key(const Gguf *g, const char *arch, const char *rest, const char *name,
                    bool needed, json_t *root, Error *err)
{
    char           full[160];
    const GgufKey *key;
    int64_t        value = 0, other;

    snprintf(full, sizeof(full), "%s.%s", arch, rest);
    key = gguf_key(g, full);
    if (!key)
        return !needed || error_set(err, ERR_DATA, "key %s is missing", full);
    for (int64_t i = 0; i < key->count; i++) {
        if (!gguf_integer(key, i, &other))
            return error_set(err, ERR_DATA, "key %s is no whole number", full);
        if (i && other != value)
            return error_set(err, ERR_UNSUPPORTED,
                             "key %s differs between layers, which is not covered", full);
        value = other;
    }
    return !value || !json_object_set_new(root, name, json_integer(value)) ||
           error_set(err, ERR_NOMEM, "no memory for a configuration");
}

/* The keys that a cache depends on, as config.json names them. */
static bool gguf_as_json(const Gguf *g, const char *arch, const char *family, json_t *root,
                         Error *err)
{
    bool latent = family_named(family)->latent;

    return (!json_object_set_new(root, "model_type", json_string(family)) ||
            error_set(err, ERR_NOMEM, "no memory for a configuration")) &&
           put_key(g, arch, "block_count", "num_hidden_layers", true, root, err) &&
           put_key(g, arch, "attention.head_count", "num_attention_heads", true, root, err) &&
           put_key(g, arch, "attention.head_count_kv", "num_key_value_heads", !latent, root, err) &&
           put_key(g, arch, "embedding_length", "hidden_size", true, root, err) &&
           put_key(g, arch, "context_length", "max_position_embeddings", false, root, err) &&
           put_key(g, arch, "attention.key_length", "head_dim", false, root, err) &&
           put_key(g, arch, "attention.sliding_window", "sliding_window", false, root, err) &&
           (!latent ||
            (put_key(g, arch, "attention.kv_lora_rank", "kv_lora_rank", true, root, err) &&
             put_key(g, arch, "rope.dimension_count", "qk_rope_head_dim", true, root, err)));
}

static bool take_gguf(const Gguf *g, const char *arch, const char *family, ModelCache *out,
                      Error *err)
{
    json_t *root = json_object();
    bool    ok = root ? gguf_as_json(g, arch, family, root, err) && take_json(root, out, err)
                      : error_set(err, ERR_NOMEM, "no memory for a configuration");

    json_decref(root);
    return ok;
}

/* ---- files ------------------------------------------------------------------ */

static bool read_json(const char *path, ModelCache *out, Error *err)
{
    json_t *root;
    bool    ok;

    if (access(path, R_OK) != 0)
        return error_set(err, ERR_FILE, "cannot be opened: %s", strerror(errno));
    root = folder_json(path, err);
    ok = root ? model_cache_from_json(root, out, err) : error_prefix(err, "config.json");
    json_decref(root);
    return ok;
}

static bool take_config(const ModelConfig *config, ModelCache *out, Error *err)
{
    if (!config->causal)
        return error_set(err, ERR_UNSUPPORTED, "a model of the family %s reads both ways, so it "
                         "does not generate and keeps no cache", config->arch);
    out->depth = config->layers;
    out->heads = config->heads;
    out->kv_heads = config->kv_heads;
    out->dim = config->head_dim;
    out->context = config->context;
    text_addf(&out->layers, "fullx%lld", (long long)config->layers);
    return text_ok(&out->layers) || error_set(err, ERR_NOMEM, "not enough memory for its layers");
}

static bool read_gguf(const char *path, ModelCache *out, Error *err)
{
    Arena      *arena = arena_new();
    Gguf       *g = arena ? gguf_open(path, err) : NULL;
    char        arch[64];
    const char *family = g ? gguf_family(g, arch, sizeof(arch)) : NULL;
    ModelConfig config;
    bool        ok;

    if (!arena)
        error_set(err, ERR_NOMEM, "no memory for a model");
    if (family)
        ok = take_gguf(g, arch, family, out, err);
    else
        ok = g && config_from_gguf(g, arena, &config, &out->notes, err) &&
             take_config(&config, out, err);
    gguf_close(g);
    arena_free(arena);
    return ok;
}

bool model_cache_read(const char *path, ModelCache *out, Error *err)
{
    char        config[PATH_MAX];
    struct stat status;
    bool        ok;

    *out = (ModelCache){ 0 };
    snprintf(config, sizeof(config), "%.4000s/config.json", path);
    if (access(config, F_OK) == 0)
        ok = read_json(config, out, err);
    else if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        ok = error_set(err, ERR_DATA, "the folder holds no config.json; name a folder that does, "
                       "or a GGUF file");
    else
        ok = text_ends_in(path, ".json") ? read_json(path, out, err) : read_gguf(path, out, err);
    return ok || model_failed(path, err);
}

void model_cache_free(ModelCache *cache)
{
    text_free(&cache->layers);
    text_free(&cache->notes);
    *cache = (ModelCache){ 0 };
}
