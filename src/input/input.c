/* input.c -- an Input from a spec: its format and its loader; see input.h.
 *
 * All messages get the path here, so the loaders need not know it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "core/utf8.h"
#include "input/input.h"
#include "input/labels.h"
#include "input/store.h"


/* ---- loading ------------------------------------------------------------- */

/* The name of the only array: the file's without folder and extension. */
static void stem_of(const char *path, char *out, size_t size)
{
    char *dot;

    snprintf(out, size, "%s", path_name(path));
    dot = strrchr(out, '.');
    if (dot && dot != out)
        *dot = '\0';
}

bool load_open_store(Store *store, const char *path, Mapped bytes, InputFormat format, Error *err)
{
    char stem[256];

    stem_of(path, stem, sizeof(stem));
    switch (format) {
    case FORMAT_NPY: return store_open_npy(store, bytes, stem, err);
    case FORMAT_NPZ: return store_open_npz(store, bytes, err);
    case FORMAT_SAFETENSORS: return store_open_safetensors(store, bytes, err);
    case FORMAT_JSON: return store_open_json(store, mapped_text(bytes), path, stem, err);
    default: return store_open_csv(store, mapped_text(bytes), stem, err);
    }
}

/* The fingerprint of a sharded model covers the index and all shards. */
static bool hash_store(Input *in, Mapped bytes, const Store *store, const InputChoice *choice,
                       Error *err)
{
    Mapped *parts;
    bool    ok;

    if (choice->shapes)
        return true;
    parts = calloc((size_t)store->shards_count + 1, sizeof(*parts));
    if (!parts)
        return error_set(err, ERR_NOMEM, "no memory for the fingerprint");
    parts[0] = bytes;
    for (int64_t i = 0; i < store->shards_count; i++)
        parts[i + 1] = store->shards[i];
    ok = mapped_sha256_unless(choice->cancel, parts, store->shards_count + 1, in->sha256);
    free(parts);
    return ok || load_goes_on(choice, err);
}

static bool load_arrays(Input *in, const char *path, Mapped bytes, InputFormat format,
                        const InputChoice *choice, Error *err)
{
    Store store = { .max_bytes = load_limit(choice) };
    bool  ok = load_open_store(&store, path, bytes, format, err) &&
              load_name_arrays(&store, in->name + strlen(path), err) &&
              load_assemble(in, &store, choice, err) && load_goes_on(choice, err) &&
              hash_store(in, bytes, &store, choice, err);

    store_close(&store);
    return ok;
}

bool load_goes_on(const InputChoice *choice, Error *err)
{
    return !choice->cancel || !atomic_load(choice->cancel) ||
           error_set(err, ERR_CANCELLED, "interrupted");
}

static bool check_choice(const InputChoice *choice, Error *err)
{
    const struct {
        const char *name;
        int64_t     value;
    } fields[] = {
        { "layer", choice->layer == -1 ? 0 : choice->layer }, /* -1: the first */
        { "n", choice->n }, { "d", choice->d }, { "heads", choice->heads },
        { "the memory limit", choice->max_bytes },
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].value < 0)
            return error_set(err, ERR_PARAM, "%s must not be negative, got %lld", fields[i].name,
                             (long long)fields[i].value);
    return true;
}

static Input *input_new(const char *name, const InputChoice *choice, Error *err)
{
    Arena *arena = arena_new();
    Input *in = NULL;

    if (arena)
        arena_limit(arena, load_limit(choice));
    if (arena && (in = arena_zalloc(arena, 1, sizeof(*in)))) {
        in->arena = arena;
        in->name = arena_strdup(arena, name);
        in->causal = -1;
        in->layers = 1;
    }
    if (in && in->name)
        return in;
    arena_free(arena);
    error_set(err, ERR_NOMEM, "no memory for an input");
    return NULL;
}

int64_t input_layer_number(const Input *in, int64_t i)
{
    return in->held ? in->held[i] : i;
}

int64_t input_layer_index(const Input *in)
{
    int64_t i = 0;

    while (in->held && in->held[i] != in->layer)
        i++;
    return in->held ? i : in->layer;
}

int64_t input_kv_heads(const Input *in)
{
    return in->v.data && in->v.rank == 3 ? in->v.shape[0] : in->heads;
}

const char *input_short_name(const Input *in)
{
    const char *name = in->name, *end = name + load_path_length(name);

    if (!strncmp(in->name, SYNTHETIC, strlen(SYNTHETIC)))
        return in->name;
    if (!strncmp(in->name, "sample:", strlen("sample:")))
        return in->name + strlen("sample:");
    if (!strncmp(in->name, "model:", strlen("model:")))
        name += strlen("model:");
    for (const char *c = name; c + 1 < end; c++)
        name = *c == '/' ? c + 1 : name;
    return name;
}

void input_free(Input *input)
{
    if (input)
        arena_free(input->arena);
}

/* Texts, pictures and generators have one layer. */
static bool only_layer(const InputChoice *choice, Error *err)
{
    return choice->layer <= 0 ||
           error_set(err, ERR_DATA, "layer %lld is not there; it has 1 layer, number 0",
                     (long long)choice->layer);
}

static bool load_format(Input *in, const char *path, Mapped bytes, const InputChoice *choice,
                        Error *err)
{
    InputFormat format;
    bool        ok;

    if (!load_find_format(path, bytes, &format, err))
        return false;
    if (format != FORMAT_TEXT && format != FORMAT_PNG && format != FORMAT_PNM)
        return load_arrays(in, path, bytes, format, choice, err);
    if (in->name[strlen(path)])
        return error_set(err, ERR_USAGE, "a text or a picture has no arrays to be named");
    ok = only_layer(choice, err) && (format == FORMAT_TEXT
                                         ? load_text(in, bytes, choice, err)
                                         : load_image(in, bytes, format, choice, err));
    if (ok)
        mapped_sha256(&bytes, 1, in->sha256);
    return ok;
}

#define PATH_SHOWN 200 /* bytes of a path in a message */

/* Long paths keep their end. */
bool load_prefix_path(Error *err, const char *path)
{
    size_t      length = strlen(path);
    const char *end = path + length - (length < PATH_SHOWN ? length : PATH_SHOWN);

    while (end > path && utf8_continues(*end))
        end++;
    return error_prefix(err, "%s%s", end > path ? "..." : "", end);
}

/* name: the path and the brackets behind it. */
static Input *load_named(const char *name, const char *path, Mapped bytes,
                         const InputChoice *choice, Error *err)
{
    Input *in = check_choice(choice, err) ? input_new(name, choice, err) : NULL;

    if (in && !load_format(in, path, bytes, choice, err)) {
        input_free(in);
        in = NULL;
    }
    if (!in)
        load_prefix_path(err, path);
    return in;
}

Input *input_load_bytes(const char *path, Mapped bytes, const InputChoice *choice, Error *err)
{
    return load_named(path, path, bytes, choice, err);
}

/* "-": sizes without tensors. */
static bool load_nothing(Input *in, const InputChoice *choice, Error *err)
{
    in->heads = choice->heads ? choice->heads : 1;
    in->n = in->m = choice->n ? choice->n : 64;
    in->d = in->e = choice->d ? choice->d : 64;
    in->kind = arena_strdup(in->arena, "none");
    mapped_sha256(NULL, 0, in->sha256);
    return in->kind || error_set(err, ERR_NOMEM, "no memory for an input");
}

static Input *load_made(const char *spec, const InputChoice *choice, Error *err)
{
    Input *in = check_choice(choice, err) ? input_new(spec, choice, err) : NULL;

    if (in && only_layer(choice, err) &&
        (strcmp(spec, "-") == 0 ? load_nothing(in, choice, err)
                                : load_synthetic(in, spec + strlen(SYNTHETIC), choice, err)))
        return in;
    input_free(in);
    if (err && err->code != ERR_USAGE) /* these already name the generator */
        error_prefix(err, "%.200s", spec);
    return NULL;
}

Input *input_load(const char *spec, const InputChoice *choice, Error *err)
{
    InputChoice plain = INPUT_CHOICE_DEFAULT;
    char       *path;
    Mapped      bytes;
    Input      *in = NULL;

    choice = choice ? choice : &plain;
    if (!spec || !*spec) {
        error_set(err, ERR_USAGE, "no input named: give a file, synthetic:NAME or -");
        return NULL;
    }
    if (strcmp(spec, "-") == 0 || strncmp(spec, SYNTHETIC, strlen(SYNTHETIC)) == 0)
        return load_made(spec, choice, err);
    path = strndup(spec, load_path_length(spec));
    if (!path) {
        error_set(err, ERR_NOMEM, "no memory for an input");
    } else if (!mapped_open(path, &bytes, err)) {
        load_prefix_path(err, path);
    } else {
        in = load_named(spec, path, bytes, choice, err);
        if (in && !mapped_whole(err)) {
            load_prefix_path(err, path);
            input_free(in);
            in = NULL;
        }
        mapped_close(&bytes);
    }
    free(path);
    return in;
}

/* ---- listing ------------------------------------------------------------- */

/* A listing is printed, and the file's bytes must not steer a terminal. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* Moves the store's metadata into the listing. */
static bool list_store(Store *store, InputListing *out, Error *err)
{
    out->entries = calloc((size_t)store->count + 1, sizeof(*out->entries));
    if (!out->entries)
        return error_set(err, ERR_NOMEM, "no memory for %lld entries", (long long)store->count);
    for (int64_t i = 0; i < store->count; i++)
        out->entries[i] = store->entries[i].info;
    out->count = store->count;
    out->keys = store->keys;
    out->values = store->values;
    out->metadata_count = store->metadata_count;
    for (int64_t i = 0; i < out->metadata_count; i++) {
        make_printable(out->keys[i]);
        make_printable(out->values[i]);
    }
    store->keys = store->values = NULL;
    store->metadata_count = 0;
    return true;
}

/* Lists a text or a picture as one entry. */
static bool list_one(const char *path, Mapped bytes, InputFormat format, InputListing *out,
                     Error *err)
{
    bool        text = format == FORMAT_TEXT;
    InputEntry *entry = calloc(1, sizeof(*entry));

    out->entries = entry;
    if (!entry)
        return error_set(err, ERR_NOMEM, "no memory for an entry");
    out->count = 1;
    strcpy(out->kind, text ? "text" : "image");
    strcpy(entry->name, text ? "tokens" : "pixels");
    strcpy(entry->dtype, text ? "text" : "u8");
    entry->rank = text ? 1 : 2;
    entry->bytes = bytes.size;
    return text ? text_count(path, bytes, &entry->shape[0], err)
                : image_size(bytes, format, &entry->shape[1], &entry->shape[0], err);
}

static bool list_bytes(const char *path, Mapped bytes, InputListing *out, Error *err)
{
    InputFormat format;
    Store       store = { .max_bytes = INPUT_MAX_BYTES_DEFAULT };
    bool        ok;

    if (!load_find_format(path, bytes, &format, err))
        return false;
    if (format == FORMAT_TEXT || format == FORMAT_PNG || format == FORMAT_PNM)
        return list_one(path, bytes, format, out, err);
    ok = load_open_store(&store, path, bytes, format, err) && list_store(&store, out, err);
    if (ok)
        snprintf(out->kind, sizeof(out->kind), "%s", store.kind);
    store_close(&store);
    return ok;
}

bool input_list(const char *path, InputListing *out, Error *err)
{
    Mapped bytes;
    bool   ok;

    *out = (InputListing){ .count = 0 };
    ok = mapped_open(path, &bytes, err) && list_bytes(path, bytes, out, err) && mapped_whole(err);
    mapped_close(&bytes);
    if (ok)
        return true;
    input_listing_free(out);
    return load_prefix_path(err, path);
}

void input_listing_free(InputListing *listing)
{
    for (int64_t i = 0; i < listing->metadata_count; i++) {
        free(listing->keys[i]);
        free(listing->values[i]);
    }
    free(listing->keys);
    free(listing->values);
    free(listing->entries);
    *listing = (InputListing){ .count = 0 };
}

/* ---- formats ---------------------------------------------------------------- */

static bool begins(Mapped bytes, const char *magic, int64_t length)
{
    return bytes.size >= length && memcmp(bytes.data, magic, (size_t)length) == 0;
}

bool load_path_ends(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);

    return length >= tail && strcasecmp(path + length - tail, ending) == 0;
}

static bool looks_like_safetensors(Mapped bytes)
{
    uint64_t length = 0;

    if (bytes.size < 10 || bytes.data[8] != '{')
        return false;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes.data[i];
    return length >= 2 && length <= (uint64_t)bytes.size - 8;
}

static bool is_pickle(const char *path, Mapped bytes)
{
    static const char *const extensions[] = { ".pt", ".pth", ".bin", ".ckpt", ".pkl" };

    if (bytes.size >= 2 && bytes.data[0] == 0x80 && bytes.data[1] >= 2 && bytes.data[1] <= 5)
        return true;
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (load_path_ends(path, extensions[i]))
            return true;
    return false;
}

/* The first bytes are UTF-8 without a zero byte. */
static bool is_text(Mapped bytes)
{
    int64_t end = bytes.size < 4096 ? bytes.size : 4096;

    for (int64_t at = 0, step; at < end; at += step) {
        step = utf8_decode(bytes.data + at, (size_t)(bytes.size - at), NULL);
        if (step == 0 || bytes.data[at] == 0)
            return false;
    }
    return bytes.size > 0;
}

static InputFormat format_by_content(Mapped bytes)
{
    if (begins(bytes, "\x93NUMPY", 6))
        return FORMAT_NPY;
    if (begins(bytes, "PK\3\4", 4) || begins(bytes, "PK\5\6", 4))
        return FORMAT_NPZ;
    if (begins(bytes, "\x89PNG\r\n\x1a\n", 8))
        return FORMAT_PNG;
    if (bytes.size > 2 && bytes.data[0] == 'P' && strchr("2356", bytes.data[1]) &&
        strchr(" \t\r\n#", bytes.data[2]))
        return FORMAT_PNM;
    return looks_like_safetensors(bytes) ? FORMAT_SAFETENSORS : FORMAT_UNKNOWN;
}

static const struct {
    const char *extension;
    InputFormat format;
} extensions[] = {
    { ".npy", FORMAT_NPY },          { ".npz", FORMAT_NPZ },
    { ".safetensors", FORMAT_SAFETENSORS },
    { ".json", FORMAT_JSON },        { ".csv", FORMAT_CSV },
    { ".tsv", FORMAT_CSV },          { ".png", FORMAT_PNG },
    { ".pgm", FORMAT_PNM },          { ".ppm", FORMAT_PNM },
    { ".pnm", FORMAT_PNM },          { ".txt", FORMAT_TEXT },
    { ".ids", FORMAT_TEXT },         { ".md", FORMAT_TEXT },
};

bool load_find_format(const char *path, Mapped bytes, InputFormat *out, Error *err)
{
    *out = format_by_content(bytes);
    if (*out == FORMAT_UNKNOWN && is_pickle(path, bytes))
        return pickle_refuse(err);
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (*out == FORMAT_UNKNOWN && load_path_ends(path, extensions[i].extension))
            *out = extensions[i].format;
    if (*out == FORMAT_UNKNOWN && begins(bytes, "{\"key\":", 7) && load_path_ends(path, ".jsonl"))
        return error_set(err, ERR_FORMAT, "holds the records of a sweep, not an input: attnscope "
                         "fit, diff and merge read it");
    if (*out == FORMAT_UNKNOWN && is_text(bytes))
        *out = FORMAT_TEXT;
    if (bytes.size == 0)
        return error_set(err, ERR_FORMAT, "is empty");
    if (begins(bytes, "GGUF", 4))
        return error_set(err, ERR_FORMAT, "is a model in GGUF, not an array: attnscope model PATH "
                         "describes it, --input model:PATH --text FILE gives the q, k, v and "
                         "x of a layer");
    if (*out == FORMAT_UNKNOWN)
        return error_set(err, ERR_FORMAT, "is in no format known here; npy, npz, safetensors, "
                         "CSV, JSON, text, PNG and PGM files are read");
    return true;
}
