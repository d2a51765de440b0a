/* store.c -- open tensor files: entries, element types, array names; see store.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "input/store.h"

void store_drop(StoreEntry *entry)
{
    if (!entry->owned)
        return;
    free(entry->owned);
    entry->owned = NULL;
    entry->data = NULL;
}

void store_close(Store *store)
{
    for (int64_t i = 0; i < store->count; i++)
        store_drop(&store->entries[i]);
    if (store->close)
        store->close(store);
    for (int64_t i = 0; i < store->shards_count; i++)
        mapped_close(&store->shards[i]);
    for (int64_t i = 0; i < store->metadata_count; i++) {
        free(store->keys[i]);
        free(store->values[i]);
    }
    free(store->shards);
    free(store->keys);
    free(store->values);
    free(store->entries);
    *store = (Store){ 0 };
}

static bool grow_list(void **array, int64_t capacity, size_t size, Error *err)
{
    void *grown = realloc(*array, (size_t)capacity * size);

    if (!grown)
        return error_set(err, ERR_NOMEM, "no memory for a list of %lld items",
                         (long long)capacity);
    *array = grown;
    return true;
}

/* Replaces control characters: names appear in messages and on terminals. */
static void copy_name(char *to, size_t size, const char *from, size_t length)
{
    size_t n = length < size ? length : size - 1;

    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
    to[n] = '\0';
}

StoreEntry *store_add(Store *store, const char *name, size_t length, Error *err)
{
    StoreEntry *entry;

    if (store->count == STORE_MAX_ENTRIES) {
        error_set(err, ERR_FORMAT, "more than %d arrays", STORE_MAX_ENTRIES);
        return NULL;
    }
    if (store->count == store->capacity) {
        int64_t capacity = store->capacity ? 2 * store->capacity : 8;
        void   *entries = store->entries;

        if (!grow_list(&entries, capacity, sizeof(*store->entries), err))
            return NULL;
        store->entries = entries;
        store->capacity = capacity;
    }
    entry = &store->entries[store->count++];
    *entry = (StoreEntry){ .member = -1 };
    copy_name(entry->info.name, sizeof(entry->info.name), name, length);
    return entry;
}

static bool metadata_room(Store *store, Error *err)
{
    int64_t capacity = store->metadata_capacity ? 2 * store->metadata_capacity : 8;
    void   *keys = store->keys, *values = store->values;

    if (store->metadata_count < store->metadata_capacity)
        return true;
    if (!grow_list(&keys, capacity, sizeof(char *), err))
        return false;
    store->keys = keys;
    if (!grow_list(&values, capacity, sizeof(char *), err))
        return false;
    store->values = values;
    store->metadata_capacity = capacity;
    return true;
}

bool store_add_metadata(Store *store, const char *key, const char *value, Error *err)
{
    char *key_copy, *value_copy;

    if (!metadata_room(store, err))
        return false;
    key_copy = strdup(key);
    value_copy = strdup(value);
    if (!key_copy || !value_copy) {
        free(key_copy);
        free(value_copy);
        return error_set(err, ERR_NOMEM, "no memory for the metadata");
    }
    store->keys[store->metadata_count] = key_copy;
    store->values[store->metadata_count++] = value_copy;
    return true;
}

bool store_entry_size(StoreEntry *entry, Error *err)
{
    int64_t bytes = entry->type.size;

    for (int i = 0; i < entry->info.rank; i++)
        if (entry->info.shape[i] < 0 ||
            __builtin_mul_overflow(bytes, entry->info.shape[i], &bytes)) {
            char text[200];

            return error_set(err, ERR_FORMAT, "shape %s of elements of %lld bytes is impossible",
                             store_shape_text(entry, text, sizeof(text)),
                             (long long)entry->type.size);
        }
    entry->info.bytes = bytes;
    return true;
}

StoreEntry *store_find(const Store *store, const char *name)
{
    for (int64_t i = 0; i < store->count; i++)
        if (strcmp(store->entries[i].info.name, name) == 0)
            return &store->entries[i];
    return NULL;
}

const char *store_metadata(const Store *store, const char *key)
{
    for (int64_t i = 0; i < store->metadata_count; i++)
        if (strcmp(store->keys[i], key) == 0)
            return store->values[i];
    return NULL;
}

bool store_is_number(const StoreEntry *entry, Error *err)
{
    const char *name = entry->info.name, *dtype = entry->info.dtype;

    if (element_is_number(entry->type))
        return true;
    if (element_is_text(entry->type))
        return error_set(err, ERR_DATA, "array %.80s holds text (dtype %s), not numbers", name,
                         dtype);
    if (strchr(dtype, 'O'))
        return error_set(err, ERR_FORMAT,
                         "array %.80s holds pickled Python objects (dtype %s), which are never "
                         "read; save it with .astype('f4'), or np.array(list, dtype=str)",
                         name, dtype);
    if (*dtype == '[') /* only its beginning is kept */
        return error_set(err, ERR_FORMAT, "array %.80s has a dtype of several fields, %s..., which "
                         "is not read; save one array for each field, with .astype('f4')", name,
                         dtype);
    return error_set(err, ERR_FORMAT,
                     "array %.80s has dtype %s, which is not read; save it with .astype('f4')",
                     name, dtype);
}

bool store_fetch(Store *store, StoreEntry *entry, Error *err)
{
    if (entry->data)
        return true;
    if (!store->fetch)
        return error_set(err, ERR_FORMAT, "array %.80s holds no bytes", entry->info.name);
    return store->fetch(store, entry, err);
}

void store_strides(const StoreEntry *entry, int64_t stride[STORE_MAX_RANK])
{
    int64_t step = 1;

    for (int i = 0; i < entry->info.rank; i++) {
        int axis = entry->fortran ? i : entry->info.rank - 1 - i;

        stride[axis] = step;
        step *= entry->info.shape[axis];
    }
}

void store_copy_f32(const StoreEntry *entry, const StoreBox *box, float *out)
{
    int64_t        size = entry->type.size, run = box->extent[2];
    int64_t        planes = box->extent[0], rows = box->extent[1];
    const uint8_t *base = entry->data + box->offset * size;

    if (box->stride[2] == 1 && box->stride[1] == run) { /* rows are contiguous */
        run *= rows;
        rows = 1;
    }
    for (int64_t a = 0; a < planes; a++)
        for (int64_t b = 0; b < rows; b++, out += run)
            element_to_f32(entry->type,
                           base + (a * box->stride[0] + b * box->stride[1]) * size,
                           box->stride[2] * size, run, out);
}

char *store_shape_text(const StoreEntry *entry, char *text, size_t size)
{
    size_t length = 0;

    for (int i = 0; i < entry->info.rank; i++) {
        int written = snprintf(text + length, size - length, "%s%lld", i ? "," : "(",
                               (long long)entry->info.shape[i]);

        if (written < 0 || length + (size_t)written + 2 > size)
            return text;
        length += (size_t)written;
    }
    snprintf(text + length, size - length, "%s", entry->info.rank ? ")" : "()");
    return text;
}

/* ---- element types ---------------------------------------------------------- */

bool element_is_number(ElementType type)
{
    return type.kind >= ELEMENT_BOOL && type.kind <= ELEMENT_E5M2;
}

bool element_is_text(ElementType type)
{
    return type.kind == ELEMENT_BYTES || type.kind == ELEMENT_UCS4;
}

DType element_dtype(ElementType type)
{
    switch (type.kind) {
    case ELEMENT_BOOL: return DT_U8;
    case ELEMENT_INT: return type.size <= 4 ? DT_I32 : DT_I64;
    case ELEMENT_UINT: return type.size == 1 ? DT_U8 : type.size == 2 ? DT_I32 : DT_I64;
    case ELEMENT_FLOAT: return type.size == 8 ? DT_F64 : DT_F32;
    default: return DT_F32;
    }
}

static uint64_t load_bits(ElementType type, const uint8_t *src)
{
    uint16_t half;
    uint32_t word;
    uint64_t wide;

    switch (type.size) {
    case 1:
        return *src;
    case 2:
        memcpy(&half, src, 2);
        return type.swapped ? __builtin_bswap16(half) : half;
    case 4:
        memcpy(&word, src, 4);
        return type.swapped ? __builtin_bswap32(word) : word;
    default:
        memcpy(&wide, src, 8);
        return type.swapped ? __builtin_bswap64(wide) : wide;
    }
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, 4);
    return value;
}

static double double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, 8);
    return value;
}

/* binary16: 1 sign, 5 exponent (bias 15), 10 fraction. */
static float half_to_float(uint32_t bits)
{
    uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    float    magnitude;

    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* OCP E4M3: 1 sign, 4 exponent (bias 7), 3 fraction; all ones is NaN. */
static float e4m3_to_float(uint32_t bits)
{
    int   exponent = (int)(bits >> 3 & 15), fraction = (int)(bits & 7);
    float magnitude;

    if (exponent == 15 && fraction == 7)
        return NAN;
    magnitude = exponent ? ldexpf((float)(8 + fraction), exponent - 10)
                         : ldexpf((float)fraction, -9);
    return bits & 0x80 ? -magnitude : magnitude;
}

static int64_t signed_bits(ElementType type, uint64_t bits)
{
    int shift = 64 - 8 * (int)type.size;

    return (int64_t)(bits << shift) >> shift;
}

int64_t element_to_i64(ElementType type, const uint8_t *src)
{
    uint64_t bits = load_bits(type, src);

    if (type.kind == ELEMENT_BOOL)
        return bits != 0;
    return type.kind == ELEMENT_INT ? signed_bits(type, bits) : (int64_t)bits;
}

static inline double to_real(ElementType type, const uint8_t *src)
{
    uint64_t bits = load_bits(type, src);

    switch (type.kind) {
    case ELEMENT_BOOL: return bits != 0;
    case ELEMENT_INT: return (double)signed_bits(type, bits);
    case ELEMENT_UINT: return (double)bits;
    case ELEMENT_BFLOAT: return (double)float_of_bits((uint32_t)bits << 16);
    case ELEMENT_E4M3: return (double)e4m3_to_float((uint32_t)bits);
    case ELEMENT_E5M2: return (double)half_to_float((uint32_t)bits << 8);
    case ELEMENT_FLOAT:
        if (type.size == 2)
            return (double)half_to_float((uint32_t)bits);
        return type.size == 4 ? (double)float_of_bits((uint32_t)bits) : double_of_bits(bits);
    default: return (double)NAN;
    }
}

static bool is_native(ElementType type, int64_t step, int64_t size)
{
    return type.kind == ELEMENT_FLOAT && type.size == size && step == size && !type.swapped;
}

void element_to_f32(ElementType type, const uint8_t *src, int64_t step, int64_t count, float *out)
{
    if (count > 0 && is_native(type, step, 4)) {
        memcpy(out, src, (size_t)count * 4);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)to_real(type, src + i * step);
}

void element_to_f64(ElementType type, const uint8_t *src, int64_t step, int64_t count, double *out)
{
    if (count > 0 && is_native(type, step, 8)) {
        memcpy(out, src, (size_t)count * 8);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = to_real(type, src + i * step);
}

/* Array names: "layer.npz[q=query,k=key,v=value]".
 *
 * The brackets behind the path say which arrays are q, k, v, x, attn, segments and the tokens;
 * others keep their own names. A file whose name really has brackets is opened as that file.
 */

static const char *const roles[] = { "q", "k", "v", "x", "attn", "segments", "tokens", "q_tokens",
                                     "k_tokens", NULL };

size_t load_path_length(const char *spec)
{
    size_t      length = strlen(spec);
    const char *open = length && spec[length - 1] == ']' ? strrchr(spec, '[') : NULL;

    return open && open > spec && access(spec, F_OK) != 0 ? (size_t)(open - spec) : length;
}

static const char *role_at(const char *text, size_t length)
{
    for (int i = 0; roles[i]; i++)
        if (strlen(roles[i]) == length && !strncmp(roles[i], text, length))
            return roles[i];
    return NULL;
}

static bool no_array(const Store *store, const char *name, Error *err)
{
    Meant nearest = { name, NULL, ANY_SLIPS };

    for (int64_t i = 0; i < store->count; i++)
        meant_offer(&nearest, store->entries[i].info.name);
    return error_set(err, ERR_DATA, "holds no array '%.80s'%s%.80s%s", name,
                     nearest.name ? "; did you mean '" : "", nearest.name ? nearest.name : "",
                     nearest.name ? "'?" : "");
}

/* The array for a role; no array is lost to the roles named after it. */
typedef struct Naming {
    const char *role;
    int64_t     entry;
} Naming;

/* Parses one "q=query". */
static bool read_one(const Store *store, const char *item, size_t length, Naming *out, Error *err)
{
    const char *equal = memchr(item, '=', length), *role;
    StoreEntry *entry;
    char        name[sizeof(store->entries->info.name)];
    size_t      size = equal ? length - (size_t)(equal + 1 - item) : 0;

    role = equal ? role_at(item, (size_t)(equal - item)) : NULL;
    if (!role || size == 0 || size >= sizeof(name))
        return error_set(err, ERR_USAGE, "'%.*s' in brackets: expected ROLE=ARRAY, where the role "
                         "is q, k, v, x, attn, segments, tokens, q_tokens or k_tokens",
                         (int)(length < 80 ? length : 80), item);
    memcpy(name, equal + 1, size);
    name[size] = '\0';
    entry = store_find(store, name);
    if (!entry)
        return no_array(store, name, err);
    *out = (Naming){ role, entry - store->entries };
    return true;
}

/* Adds an entry with the role's name for the same array, so that an array may have several roles;
 * an entry that had this name loses it. */
static bool give_role(Store *store, const Naming *naming, Error *err)
{
    StoreEntry *copy = store_add(store, naming->role, strlen(naming->role), err);

    if (!copy)
        return false;
    *copy = store->entries[naming->entry];
    copy->owned = NULL;
    strcpy(copy->info.name, naming->role);
    return true;
}

bool load_name_arrays(Store *store, const char *brackets, Error *err)
{
    Naming      namings[sizeof(roles) / sizeof(*roles)];
    size_t      most = sizeof(namings) / sizeof(*namings), count = 0, length;
    StoreEntry *before;

    if (!*brackets)
        return true;
    for (const char *at = brackets + 1; *at; at += length + 1) {
        length = strcspn(at, ",]");
        if (count == most)
            return error_set(err, ERR_USAGE, "more arrays in brackets than there are roles");
        if (!read_one(store, at, length, &namings[count], err))
            return false;
        for (size_t i = 0; i < count; i++)
            if (namings[i].role == namings[count].role)
                return error_set(err, ERR_USAGE, "%s is named twice in brackets", namings[i].role);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        if ((before = store_find(store, namings[i].role)))
            before->info.name[0] = '\0';
    for (size_t i = 0; i < count; i++)
        if (!give_role(store, &namings[i], err))
            return false;
    return true;
}
