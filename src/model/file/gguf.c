/* gguf.c -- the header of a GGUF file, every read bounded; see gguf.h.
 *
 * Little-endian.  string: u64 length, bytes.
 *
 *     "GGUF", u32 version, u64 tensors, u64 keys
 *     keys    x { string name, u32 type, value }
 *     tensors x { string name, u32 rank, u64 dims[rank], u32 type, u64 offset }
 *     zeros up to a multiple of general.alignment; the tensors' data
 *
 * Counts are compared with the bytes that remain before anything is allocated, so memory is at
 * most a few times the header.  Names are sorted once; duplicates are then neighbours.
 */
#include "model/file/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "input/store.h"

#define COUNT_MAX 65536
#define NAME_MAX_BYTES 256
#define KEY_MIN 13    /* bytes: name of one, type of four */
#define TENSOR_MIN 33 /* name of one, one dim */
#define VALUES_MAX ((int64_t)1 << 40)

struct Gguf {
    Mapped            map;
    GgufKey          *keys;
    const GgufKey   **key_order; /* by name */
    int64_t           key_count;
    GgufTensor       *tensors;
    const GgufTensor **tensor_order;
    int64_t           tensor_count;
    int64_t           alignment;
};

/* ---- reading --------------------------------------------------------------- */

typedef struct Cursor {
    const uint8_t *data;
    int64_t        size, at;
    Error         *err;
} Cursor;

static bool fail(Cursor *c, int64_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool fail(Cursor *c, int64_t at, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    error_vset(c->err, ERR_FORMAT, fmt, args);
    va_end(args);
    return error_prefix(c->err, "byte %lld", (long long)at);
}

static bool take(Cursor *c, void *out, int64_t bytes, const char *field)
{
    if (bytes > c->size - c->at)
        return fail(c, c->at, "the file ends inside %s: %lld bytes wanted, %lld left", field,
                    (long long)bytes, (long long)(c->size - c->at));
    memcpy(out, c->data + c->at, (size_t)bytes);
    c->at += bytes;
    return true;
}

static bool take_u32(Cursor *c, uint32_t *out, const char *field)
{
    *out = 0;
    return take(c, out, 4, field);
}

static bool take_u64(Cursor *c, uint64_t *out, const char *field)
{
    *out = 0;
    return take(c, out, 8, field);
}

/* A number of things of at least `least` bytes each, which must all be there. */
static bool take_count(Cursor *c, int64_t most, int64_t least, int64_t *out, const char *field)
{
    int64_t  at = c->at;
    uint64_t count;

    if (!take_u64(c, &count, field))
        return false;
    if (most && count > (uint64_t)most)
        return fail(c, at, "%s is %llu, but at most %lld are read", field,
                    (unsigned long long)count, (long long)most);
    if (count > (uint64_t)((c->size - c->at) / least))
        return fail(c, at, "%s is %llu, which the %lld bytes left cannot hold", field,
                    (unsigned long long)count, (long long)(c->size - c->at));
    *out = (int64_t)count;
    return true;
}

static bool take_string(Cursor *c, GgufString *out, const char *field)
{
    if (!take_count(c, 0, 1, &out->length, field))
        return false;
    out->text = (const char *)c->data + c->at;
    c->at += out->length;
    return true;
}

/* Names stand in messages, so control characters and bytes that are no UTF-8 are refused. */
static bool take_name(Cursor *c, GgufString *out, const char *field)
{
    int64_t at = c->at;

    if (!take_string(c, out, field))
        return false;
    if (out->length < 1 || out->length > NAME_MAX_BYTES)
        return fail(c, at, "%s has %lld bytes, wanted 1 to %d", field, (long long)out->length,
                    NAME_MAX_BYTES);
    for (int64_t i = 0; i < out->length;) {
        uint32_t code;
        int      bytes = utf8_decode(out->text + i, (size_t)(out->length - i), &code);

        if (!bytes || utf8_is_control(code))
            return fail(c, at + 8 + i, "%s holds the byte 0x%02x, which is no text", field,
                        (unsigned char)out->text[i]);
        i += bytes;
    }
    return true;
}

/* ---- keys ------------------------------------------------------------------ */

/* Bytes of a value; the least of a string. */
static int64_t type_bytes(GgufType type)
{
    switch (type) {
    case GGUF_U8: case GGUF_I8: case GGUF_BOOL: return 1;
    case GGUF_U16: case GGUF_I16: return 2;
    case GGUF_U32: case GGUF_I32: case GGUF_F32: return 4;
    default: return 8;
    }
}

static bool check_bools(Cursor *c, const GgufKey *key)
{
    for (int64_t i = 0; i < key->count; i++)
        if (key->data[i] > 1)
            return fail(c, key->offset + i, "key %.*s is the bool %d, wanted 0 or 1",
                        (int)key->name.length, key->name.text, key->data[i]);
    return true;
}

/* Steps over key->count values of a type. */
static bool skip_values(Cursor *c, GgufKey *key, GgufType type)
{
    GgufString text;

    key->data = c->data + c->at;
    key->offset = c->at;
    if (type == GGUF_STRING) {
        for (int64_t i = 0; i < key->count; i++)
            if (!take_string(c, &text, "the length of a string"))
                return error_prefix(c->err, "key %.*s", (int)key->name.length, key->name.text);
    } else if (key->count > (c->size - c->at) / type_bytes(type)) {
        return fail(c, c->at, "the file ends inside the value of key %.*s", (int)key->name.length,
                    key->name.text);
    } else {
        c->at += key->count * type_bytes(type);
    }
    key->end = c->data + c->at;
    return type != GGUF_BOOL || check_bools(c, key);
}

static bool take_type(Cursor *c, const GgufKey *key, GgufType *out)
{
    int64_t  at = c->at;
    uint32_t type;

    if (!take_u32(c, &type, "the type of a value"))
        return false;
    if (type > GGUF_F64)
        return fail(c, at, "key %.*s has the type %u, wanted 0 to %d", (int)key->name.length,
                    key->name.text, type, GGUF_F64);
    *out = (GgufType)type;
    return true;
}

static bool take_array(Cursor *c, GgufKey *key)
{
    int64_t at = c->at;

    if (!take_type(c, key, &key->element))
        return false;
    if (key->element == GGUF_ARRAY)
        return fail(c, at, "key %.*s is an array of arrays, which is not read",
                    (int)key->name.length, key->name.text);
    if (!take_count(c, 0, type_bytes(key->element), &key->count, "the length of an array"))
        return error_prefix(c->err, "key %.*s", (int)key->name.length, key->name.text);
    return skip_values(c, key, key->element);
}

static bool take_key(Cursor *c, GgufKey *key)
{
    if (!take_name(c, &key->name, "the name of a key") || !take_type(c, key, &key->type))
        return false;
    if (key->type == GGUF_ARRAY)
        return take_array(c, key);
    key->element = key->type;
    key->count = 1;
    return skip_values(c, key, key->type);
}

/* ---- tensors --------------------------------------------------------------- */

/* ggml's numbers of types; those without a WeightType have a name for the message. */
static const struct {
    const char *name;
    WeightType  type;
} types[] = {
    [0] = { "F32", WEIGHT_F32 },    [1] = { "F16", WEIGHT_F16 },    [2] = { "Q4_0", WEIGHT_Q4_0 },
    [3] = { "Q4_1", WEIGHT_Q4_1 },  [4] = { "Q4_2", 0 },            [5] = { "Q4_3", 0 },
    [6] = { "Q5_0", WEIGHT_Q5_0 },  [7] = { "Q5_1", WEIGHT_Q5_1 },  [8] = { "Q8_0", WEIGHT_Q8_0 },
    [9] = { "Q8_1", 0 },            [10] = { "Q2_K", WEIGHT_Q2_K }, [11] = { "Q3_K", WEIGHT_Q3_K },
    [12] = { "Q4_K", WEIGHT_Q4_K }, [13] = { "Q5_K", WEIGHT_Q5_K }, [14] = { "Q6_K", WEIGHT_Q6_K },
    [15] = { "Q8_K", 0 },           [16] = { "IQ2_XXS", 0 },        [17] = { "IQ2_XS", 0 },
    [18] = { "IQ3_XXS", 0 },        [19] = { "IQ1_S", 0 },          [20] = { "IQ4_NL", 0 },
    [21] = { "IQ3_S", 0 },          [22] = { "IQ2_S", 0 },          [23] = { "IQ4_XS", 0 },
    [24] = { "I8", 0 },             [25] = { "I16", 0 },            [26] = { "I32", 0 },
    [27] = { "I64", 0 },            [28] = { "F64", 0 },            [29] = { "IQ1_M", 0 },
    [30] = { "BF16", WEIGHT_BF16 }, [34] = { "TQ1_0", 0 },          [35] = { "TQ2_0", 0 },
    [39] = { "MXFP4", 0 },          [40] = { "NVFP4", 0 },          [41] = { "Q1_0", 0 },
};

static bool take_tensor_type(Cursor *c, GgufTensor *t)
{
    int64_t  at = c->at;
    uint32_t number;

    if (!take_u32(c, &number, "the type of a tensor"))
        return false;
    if (number >= sizeof(types) / sizeof(*types) || !types[number].name)
        return fail(c, at, "tensor %.80s is of type number %u, which is not known", t->name,
                    number);
    if (types[number].type == WEIGHT_NONE)
        return fail(c, at, "tensor %.80s is of type %s, which is not read; requantise it, for "
                    "example to Q8_0", t->name, types[number].name);
    t->type = types[number].type;
    return true;
}

static bool take_dims(Cursor *c, GgufTensor *t)
{
    int64_t  at = c->at, values = 1;
    uint32_t rank;

    if (!take_u32(c, &rank, "the rank of a tensor"))
        return false;
    if (rank < 1 || rank > 4)
        return fail(c, at, "tensor %.80s has rank %u, wanted 1 to 4", t->name, rank);
    t->rank = (int)rank;
    for (int i = 0; i < t->rank; i++) {
        uint64_t dim;

        at = c->at;
        if (!take_u64(c, &dim, "the dims of a tensor"))
            return false;
        if (dim < 1 || dim > (uint64_t)(VALUES_MAX / values))
            return fail(c, at, "tensor %.80s: dim %d is %llu, wanted 1 or more and at most 2^40 "
                        "values in all", t->name, i, (unsigned long long)dim);
        t->dims[i] = (int64_t)dim;
        values *= t->dims[i];
    }
    return true;
}

/* All but t->data, which needs the begin of the data section. */
static bool take_tensor(Cursor *c, GgufTensor *t, uint64_t *offset)
{
    GgufString name;
    int64_t    at, values = 1, block;

    if (!take_name(c, &name, "the name of a tensor"))
        return false;
    memcpy(t->name, name.text, (size_t)name.length);
    at = c->at;
    if (!take_dims(c, t) || !take_tensor_type(c, t))
        return false;
    block = weight_block_values(t->type);
    if (t->dims[0] % block)
        return fail(c, at, "tensor %.80s: dim 0 is %lld, wanted a multiple of %lld, the block of "
                    "%s", t->name, (long long)t->dims[0], (long long)block,
                    weight_type_name(t->type));
    for (int i = 0; i < t->rank; i++)
        values *= t->dims[i];
    t->bytes = values / block * weight_block_bytes(t->type);
    return take_u64(c, offset, "the offset of a tensor");
}

static bool place_tensor(Cursor *c, const Gguf *g, GgufTensor *t, uint64_t offset, int64_t begin)
{
    int64_t room = c->size - begin;

    if (offset % (uint64_t)g->alignment)
        return error_set(c->err, ERR_FORMAT, "tensor %.80s: offset %llu is not a multiple of the "
                         "alignment %lld", t->name, (unsigned long long)offset,
                         (long long)g->alignment);
    if (room < 0 || offset > (uint64_t)room || t->bytes > room - (int64_t)offset)
        return error_set(c->err, ERR_FORMAT, "tensor %.80s: %lld bytes of %s at offset %llu, but "
                         "the data section has %lld bytes; is the file cut off?", t->name,
                         (long long)t->bytes, weight_type_name(t->type),
                         (unsigned long long)offset, (long long)(room < 0 ? 0 : room));
    t->data = c->data + begin + offset;
    return true;
}

/* ---- names ----------------------------------------------------------------- */

static int compare(const char *a, int64_t a_length, const char *b, int64_t b_length)
{
    int order = memcmp(a, b, (size_t)(a_length < b_length ? a_length : b_length));

    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int key_by_name(const void *a, const void *b)
{
    const GgufKey *x = *(const GgufKey *const *)a, *y = *(const GgufKey *const *)b;

    return compare(x->name.text, x->name.length, y->name.text, y->name.length);
}

static int tensor_by_name(const void *a, const void *b)
{
    const GgufTensor *x = *(const GgufTensor *const *)a, *y = *(const GgufTensor *const *)b;

    return strcmp(x->name, y->name);
}

static bool sort_keys(Gguf *g, Error *err)
{
    for (int64_t i = 0; i < g->key_count; i++)
        g->key_order[i] = &g->keys[i];
    qsort(g->key_order, (size_t)g->key_count, sizeof(*g->key_order), key_by_name);
    for (int64_t i = 1; i < g->key_count; i++)
        if (key_by_name(&g->key_order[i - 1], &g->key_order[i]) == 0)
            return error_set(err, ERR_FORMAT, "byte %lld: key %.*s is there twice",
                             (long long)g->key_order[i]->offset,
                             (int)g->key_order[i]->name.length, g->key_order[i]->name.text);
    return true;
}

static bool sort_tensors(Gguf *g, Error *err)
{
    for (int64_t i = 0; i < g->tensor_count; i++)
        g->tensor_order[i] = &g->tensors[i];
    qsort(g->tensor_order, (size_t)g->tensor_count, sizeof(*g->tensor_order), tensor_by_name);
    for (int64_t i = 1; i < g->tensor_count; i++)
        if (tensor_by_name(&g->tensor_order[i - 1], &g->tensor_order[i]) == 0)
            return error_set(err, ERR_FORMAT, "tensor %.80s is there twice",
                             g->tensor_order[i]->name);
    return true;
}

/* ---- the file -------------------------------------------------------------- */

static bool take_version(Cursor *c)
{
    uint32_t magic, version;

    if (!take_u32(c, &magic, "the magic") || !take_u32(c, &version, "the version"))
        return false;
    if (memcmp(c->data, "GGUF", 4) != 0)
        return fail(c, 0, "the magic is 0x%08x, wanted \"GGUF\"; a model of safetensors is given "
                    "as its folder, with config.json", magic);
    if ((version & 0xffff) == 0)
        return fail(c, 4, "version 0x%08x: the file is big-endian, which is not read; convert it "
                    "with gguf_convert_endian.py", version);
    if (version == 1)
        return fail(c, 4, "version 1, which is not read; convert the model anew");
    return version == 2 || version == 3 ||
           fail(c, 4, "version %u, wanted 2 or 3", version);
}

static bool read_alignment(Cursor *c, Gguf *g)
{
    const GgufKey *key = gguf_key(g, "general.alignment");

    g->alignment = 32;
    if (!key)
        return true;
    if (!gguf_integer(key, 0, &g->alignment) || key->type == GGUF_ARRAY || g->alignment < 8 ||
        g->alignment > 65536 || (g->alignment & (g->alignment - 1)))
        return fail(c, key->offset, "general.alignment: wanted a power of two from 8 to 65536");
    return true;
}

static bool no_memory(Cursor *c)
{
    return error_set(c->err, ERR_NOMEM, "no memory for the header of a model");
}

static bool read_keys(Cursor *c, Gguf *g)
{
    g->keys = calloc((size_t)g->key_count + 1, sizeof(*g->keys));
    g->key_order = calloc((size_t)g->key_count + 1, sizeof(*g->key_order));
    if (!g->keys || !g->key_order)
        return no_memory(c);
    for (int64_t i = 0; i < g->key_count; i++)
        if (!take_key(c, &g->keys[i]))
            return false;
    return sort_keys(g, c->err) && read_alignment(c, g);
}

static bool read_tensors(Cursor *c, Gguf *g)
{
    uint64_t *offsets = calloc((size_t)g->tensor_count + 1, sizeof(*offsets));
    bool      ok;
    int64_t   begin;

    g->tensors = calloc((size_t)g->tensor_count + 1, sizeof(*g->tensors));
    g->tensor_order = calloc((size_t)g->tensor_count + 1, sizeof(*g->tensor_order));
    ok = (offsets && g->tensors && g->tensor_order) || no_memory(c);
    for (int64_t i = 0; ok && i < g->tensor_count; i++)
        ok = take_tensor(c, &g->tensors[i], &offsets[i]);
    begin = (c->at + g->alignment - 1) & -g->alignment;
    for (int64_t i = 0; ok && i < g->tensor_count; i++)
        ok = place_tensor(c, g, &g->tensors[i], offsets[i], begin);
    free(offsets);
    return ok && sort_tensors(g, c->err);
}

static bool read_header(Cursor *c, Gguf *g)
{
    return take_version(c) &&
           take_count(c, COUNT_MAX, TENSOR_MIN, &g->tensor_count, "the tensor count") &&
           take_count(c, COUNT_MAX, KEY_MIN, &g->key_count, "the key count") &&
           read_keys(c, g) && read_tensors(c, g);
}

/* Takes the map, also when it fails. */
static Gguf *open_map(Mapped map, Error *err)
{
    Gguf  *g = calloc(1, sizeof(*g));
    Cursor c = { .data = map.data, .size = map.size, .err = err };

    if (!g) {
        no_memory(&c);
        mapped_close(&map);
        return NULL;
    }
    g->map = map;
    if (read_header(&c, g))
        return g;
    gguf_close(g);
    return NULL;
}

Gguf *gguf_open(const char *path, Error *err)
{
    Mapped map;

    if (!mapped_open(path, &map, err))
        return NULL;
    return open_map(map, err);
}

Gguf *gguf_open_bytes(const uint8_t *data, int64_t size, Error *err)
{
    return open_map((Mapped){ .data = data, .size = size }, err);
}

void gguf_close(Gguf *g)
{
    if (!g)
        return;
    mapped_close(&g->map);
    free(g->keys);
    free(g->key_order);
    free(g->tensors);
    free(g->tensor_order);
    free(g);
}

int64_t gguf_file_bytes(const Gguf *g)
{
    return g->map.size;
}

const GgufKey *gguf_keys(const Gguf *g, int64_t *count)
{
    *count = g->key_count;
    return g->keys;
}

const GgufTensor *gguf_tensors(const Gguf *g, int64_t *count)
{
    *count = g->tensor_count;
    return g->tensors;
}

static int name_to_key(const void *name, const void *key)
{
    const GgufKey *k = *(const GgufKey *const *)key;

    return compare(name, (int64_t)strlen(name), k->name.text, k->name.length);
}

static int name_to_tensor(const void *name, const void *tensor)
{
    return strcmp(name, (*(const GgufTensor *const *)tensor)->name);
}

const GgufKey *gguf_key(const Gguf *g, const char *name)
{
    const GgufKey *const *found = bsearch(name, g->key_order, (size_t)g->key_count,
                                          sizeof(*g->key_order), name_to_key);

    return found ? *found : NULL;
}

const GgufTensor *gguf_tensor(const Gguf *g, const char *name)
{
    const GgufTensor *const *found = bsearch(name, g->tensor_order, (size_t)g->tensor_count,
                                             sizeof(*g->tensor_order), name_to_tensor);

    return found ? *found : NULL;
}

/* ---- values ---------------------------------------------------------------- */

bool gguf_number(const GgufKey *k, int64_t index, double *out)
{
    int64_t whole;
    float   single;

    if (index < 0 || index >= k->count)
        return false;
    if (k->element == GGUF_F64) {
        memcpy(out, k->data + 8 * index, 8);
        return true;
    }
    if (k->element == GGUF_F32) {
        memcpy(&single, k->data + 4 * index, 4);
        *out = (double)single;
        return true;
    }
    if (!gguf_integer(k, index, &whole))
        return false;
    *out = (double)whole;
    return true;
}

/* A float that is a whole number below 2^53. */
static bool whole_number(const GgufKey *k, int64_t index, int64_t *out)
{
    double value;

    if (!gguf_number(k, index, &value) || !(fabs(value) < 0x1p53) || value != trunc(value))
        return false;
    *out = (int64_t)value;
    return true;
}

bool gguf_integer(const GgufKey *k, int64_t index, int64_t *out)
{
    const uint8_t *at = k->data + index * type_bytes(k->element);
    uint64_t       bits = 0;

    if (index < 0 || index >= k->count)
        return false;
    if (k->element == GGUF_F32 || k->element == GGUF_F64)
        return whole_number(k, index, out);
    if (k->element == GGUF_STRING || k->element == GGUF_ARRAY)
        return false;
    memcpy(&bits, at, (size_t)type_bytes(k->element));
    switch (k->element) {
    case GGUF_I8: *out = (int8_t)bits; break;
    case GGUF_I16: *out = (int16_t)bits; break;
    case GGUF_I32: *out = (int32_t)bits; break;
    default: *out = (int64_t)bits; break;
    }
    return k->element != GGUF_U64 || bits <= INT64_MAX;
}

/* The string at *at, whose bounds were checked when the file was opened; moves past it. */
static GgufString string_at(const uint8_t **at)
{
    GgufString text;

    memcpy(&text.length, *at, 8);
    text.text = (const char *)*at + 8;
    *at += 8 + text.length;
    return text;
}

bool gguf_string(const GgufKey *k, GgufString *out)
{
    const uint8_t *at = k->data;

    if (k->type != GGUF_STRING)
        return false;
    *out = string_at(&at);
    return true;
}

bool gguf_next_string(const GgufKey *k, const uint8_t **cursor, GgufString *out)
{
    const uint8_t *at = *cursor ? *cursor : k->data;

    if (k->element != GGUF_STRING || at == k->end)
        return false;
    *out = string_at(&at);
    *cursor = at;
    return true;
}
