/* safetensors.c -- the tensor file of the Hugging Face libraries, and its shards.
 *
 *     u64 little-endian N; N bytes of JSON; then the elements, little-endian, row-major.
 *     {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
 *      "__metadata__": {"key": "text", ...}}
 *
 * Offsets count from byte 8 + N.  Each tensor must lie inside the file and be as
 * long as its shape says; together they fill it, none over another.  Headers
 * above 100 MB are refused, as the reference library does.
 *
 * A model.safetensors.index.json names for each tensor the file beside it that
 * holds it (weight_map); the shards are opened and merged into one store.
 */
#include "input/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MAX 100000000
#define SHARDS_MAX 4096

static const struct {
    const char *name;
    ElementType type;
} dtypes[] = {
    { "F32", { ELEMENT_FLOAT, 4, false } },    { "F16", { ELEMENT_FLOAT, 2, false } },
    { "BF16", { ELEMENT_BFLOAT, 2, false } },  { "F64", { ELEMENT_FLOAT, 8, false } },
    { "I64", { ELEMENT_INT, 8, false } },      { "I32", { ELEMENT_INT, 4, false } },
    { "I16", { ELEMENT_INT, 2, false } },      { "I8", { ELEMENT_INT, 1, false } },
    { "U64", { ELEMENT_UINT, 8, false } },     { "U32", { ELEMENT_UINT, 4, false } },
    { "U16", { ELEMENT_UINT, 2, false } },     { "U8", { ELEMENT_UINT, 1, false } },
    { "BOOL", { ELEMENT_BOOL, 1, false } },    { "F8_E4M3", { ELEMENT_E4M3, 1, false } },
    { "F8_E5M2", { ELEMENT_E5M2, 1, false } },
};

static bool parse_dtype(StoreEntry *entry, const json_t *value, Error *err)
{
    const char *text = json_string_value(value);

    if (!text || strlen(text) >= sizeof(entry->info.dtype))
        return error_set(err, ERR_FORMAT, "tensor %.80s: expected a dtype such as \"F32\"",
                         entry->info.name);
    for (size_t i = 0; text[i]; i++)
        entry->info.dtype[i] = (unsigned char)text[i] < 0x20 ? '?' : text[i];
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(dtypes[i].name, text) == 0)
            entry->type = dtypes[i].type;
    return true;
}

static bool parse_shape(StoreEntry *entry, const json_t *value, Error *err)
{
    size_t rank = json_array_size(value);

    if (!json_is_array(value) || rank > STORE_MAX_RANK)
        return error_set(err, ERR_FORMAT, "tensor %.80s: expected a shape of at most %d extents",
                         entry->info.name, STORE_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);

        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return error_set(err, ERR_FORMAT, "tensor %.80s: extent %zu of its shape is not a "
                             "whole number", entry->info.name, i);
        entry->info.shape[i] = json_integer_value(extent);
    }
    entry->info.rank = (int)rank;
    return true;
}

/* Sets data and bytes from two offsets into [0, room). */
static bool parse_offsets(StoreEntry *entry, const json_t *value, const uint8_t *base,
                          int64_t room, Error *err)
{
    const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
    int64_t       begin = json_integer_value(first), end = json_integer_value(second);
    char          shape[200];

    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return error_set(err, ERR_FORMAT, "tensor %.80s: expected data_offsets [begin, end]",
                         entry->info.name);
    if (begin < 0 || end < begin || end > room)
        return error_set(err, ERR_FORMAT,
                         "tensor %.80s: data_offsets [%lld, %lld] lie outside the %lld bytes of "
                         "data in the file", entry->info.name, (long long)begin, (long long)end,
                         (long long)room);
    if (entry->type.kind != ELEMENT_UNKNOWN && entry->info.bytes != end - begin)
        return error_set(err, ERR_FORMAT,
                         "tensor %.80s: shape %s of dtype %s needs %lld bytes, but its "
                         "data_offsets span %lld", entry->info.name,
                         store_shape_text(entry, shape, sizeof(shape)), entry->info.dtype,
                         (long long)entry->info.bytes, (long long)(end - begin));
    entry->info.bytes = end - begin;
    entry->data = base + begin;
    return true;
}

static bool add_tensor(Store *store, const char *name, const json_t *value, const uint8_t *base,
                       int64_t room, Error *err)
{
    StoreEntry *entry = store_add(store, name, strlen(name), err);

    if (!entry)
        return false;
    if (!json_is_object(value))
        return error_set(err, ERR_FORMAT, "tensor %.80s: expected a JSON object",
                         entry->info.name);
    if (!parse_dtype(entry, json_object_get(value, "dtype"), err) ||
        !parse_shape(entry, json_object_get(value, "shape"), err))
        return false;
    if (!store_entry_size(entry, err)) {
        error_prefix(err, "tensor %.80s", entry->info.name);
        return false;
    }
    return parse_offsets(entry, json_object_get(value, "data_offsets"), base, room, err);
}

static bool add_texts(Store *store, json_t *object, Error *err)
{
    const char *key;
    json_t     *value;

    if (!json_is_object(object))
        return error_set(err, ERR_FORMAT, "__metadata__ is not a JSON object");
    json_object_foreach(object, key, value) {
        if (!json_is_string(value))
            return error_set(err, ERR_FORMAT, "__metadata__: the value of %.80s is not text", key);
        if (!store_metadata(store, key) &&
            !store_add_metadata(store, key, json_string_value(value), err))
            return false;
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const StoreEntry *const *x = a, *const *y = b;

    if ((*x)->data != (*y)->data)
        return (*x)->data < (*y)->data ? -1 : 1;
    return ((*x)->info.bytes > (*y)->info.bytes) - ((*x)->info.bytes < (*y)->info.bytes);
}

/* Each tensor begins where the last one ended, and the last ends with the file: no byte is shared
 * or unused. */
static bool check_row(const StoreEntry *const *order, int64_t count, const uint8_t *base,
                      int64_t room, Error *err)
{
    int64_t end = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t begin = order[i]->data - base;

        if (begin < end)
            return error_set(err, ERR_FORMAT, "tensors %.80s and %.80s overlap in the file",
                             order[i - 1]->info.name, order[i]->info.name);
        if (begin > end)
            return error_set(err, ERR_FORMAT, "tensor %.80s begins at byte %lld of the data, but "
                             "what is before it ends at %lld; a safetensors file has no gaps: "
                             "write it anew", order[i]->info.name, (long long)begin,
                             (long long)end);
        end = begin + order[i]->info.bytes;
    }
    return end == room ||
           error_set(err, ERR_FORMAT, "the tensors end at byte %lld of the data, but %lld are "
                     "there; a safetensors file ends with its last tensor: write it anew",
                     (long long)end, (long long)room);
}

/* The entries from `first` on fill the data of one file. */
static bool check_packed(const Store *store, int64_t first, const uint8_t *base, int64_t room,
                         Error *err)
{
    int64_t            count = store->count - first;
    const StoreEntry **order = malloc((size_t)count * sizeof(*order) + 1);
    bool               ok;

    if (!order)
        return error_set(err, ERR_NOMEM, "no memory to check %lld tensors", (long long)count);
    for (int64_t i = 0; i < count; i++)
        order[i] = &store->entries[first + i];
    qsort(order, (size_t)count, sizeof(*order), by_begin);
    ok = check_row(order, count, base, room, err);
    free(order);
    return ok;
}

static bool add_header(Store *store, json_t *root, const uint8_t *base, int64_t room, Error *err)
{
    int64_t     first = store->count;
    const char *name;
    json_t     *value;

    json_object_foreach(root, name, value) {
        if (strcmp(name, "__metadata__") == 0) {
            if (!add_texts(store, value, err))
                return false;
        } else if (!add_tensor(store, name, value, base, room, err)) {
            return false;
        }
    }
    return check_packed(store, first, base, room, err);
}

static json_t *parse_json(const uint8_t *text, int64_t size, int64_t offset, Error *err)
{
    json_error_t why;
    json_t      *root = json_loadb((const char *)text, (size_t)size, JSON_REJECT_DUPLICATES, &why);

    if (root && json_is_object(root))
        return root;
    if (root)
        error_set(err, ERR_FORMAT, "byte %lld: expected a JSON object", (long long)offset);
    else
        error_set(err, ERR_FORMAT, "byte %lld: bad JSON: %.150s",
                  (long long)(offset + why.position), why.text);
    json_decref(root);
    return NULL;
}

bool store_open_safetensors(Store *store, Mapped bytes, Error *err)
{
    uint64_t length = 0;
    json_t  *root;
    bool     ok;

    store->kind = "safetensors";
    if (bytes.size < 9)
        return error_set(err, ERR_FORMAT, "byte %lld: a safetensors file has at least 10 bytes",
                         (long long)bytes.size);
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes.data[i];
    if (length > HEADER_MAX || length > (uint64_t)(bytes.size - 8))
        return error_set(err, ERR_FORMAT,
                         "byte 0: safetensors header of %llu bytes, but %lld follow (and at most "
                         "%d are read)", (unsigned long long)length, (long long)(bytes.size - 8),
                         HEADER_MAX);
    if (bytes.data[8] != '{')
        return error_set(err, ERR_FORMAT, "byte 8: expected '{' of the safetensors header, found "
                         "byte 0x%02x", bytes.data[8]);
    root = parse_json(bytes.data + 8, (int64_t)length, 8, err);
    if (!root)
        return false;
    ok = add_header(store, root, bytes.data + 8 + length, bytes.size - 8 - (int64_t)length, err);
    json_decref(root);
    return ok;
}

/* A shard is a plain file name beside the index. */
static bool shard_path(const char *index, const char *name, char *out, size_t size, Error *err)
{
    const char *slash = strrchr(index, '/');
    int         folder = slash ? (int)(slash - index) + 1 : 0;

    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return error_set(err, ERR_FORMAT, "weight_map: \"%.80s\" is not a file name", name);
    if (snprintf(out, size, "%.*s%s", folder, index, name) >= (int)size)
        return error_set(err, ERR_FORMAT, "weight_map: the path of \"%.80s\" is too long", name);
    return true;
}

static bool open_shard(Store *store, const char *index, const char *name, int64_t number,
                       Error *err)
{
    char    path[4096];
    Mapped *shard = &store->shards[store->shards_count];
    int64_t first = store->count;

    if (!shard_path(index, name, path, sizeof(path), err))
        return false;
    if (!mapped_open(path, shard, err))
        return error_prefix(err, "shard %.80s", name);
    store->shards_count++;
    if (!store_open_safetensors(store, *shard, err))
        return error_prefix(err, "shard %.80s", name);
    for (int64_t i = first; i < store->count; i++)
        store->entries[i].member = number;
    return true;
}

/* Opens each shard in order of first mention and numbers them. */
static bool open_shards(Store *store, const char *index, json_t *map, json_t *numbers, Error *err)
{
    const char *tensor;
    json_t     *file;

    store->shards = calloc(SHARDS_MAX, sizeof(*store->shards));
    if (!store->shards)
        return error_set(err, ERR_NOMEM, "no memory for the list of shards");
    json_object_foreach(map, tensor, file) {
        const char *name = json_string_value(file);
        size_t      number = json_object_size(numbers);

        if (!name)
            return error_set(err, ERR_FORMAT, "weight_map: %.80s has no file name", tensor);
        if (json_object_get(numbers, name))
            continue;
        if (number == SHARDS_MAX)
            return error_set(err, ERR_FORMAT, "weight_map: more than %d shards", SHARDS_MAX);
        if (json_object_set_new(numbers, name, json_integer((json_int_t)number)) != 0)
            return error_set(err, ERR_NOMEM, "no memory for the list of shards");
        if (!open_shard(store, index, name, (int64_t)number, err))
            return false;
    }
    return true;
}

/* Each tensor is in the shard that the index names, and in no other. */
static bool check_map(const Store *store, json_t *map, json_t *numbers, Error *err)
{
    size_t found = 0;

    for (int64_t i = 0; i < store->count; i++) {
        const StoreEntry *entry = &store->entries[i];
        const char       *name = json_string_value(json_object_get(map, entry->info.name));
        json_t           *number = name ? json_object_get(numbers, name) : NULL;

        if (!number)
            continue; /* the index may leave tensors out */
        if (json_integer_value(number) != entry->member)
            return error_set(err, ERR_FORMAT,
                             "tensor %.80s: the index places it in %.80s, but another shard holds "
                             "it", entry->info.name, name);
        found++;
    }
    if (found != json_object_size(map))
        return error_set(err, ERR_FORMAT,
                         "weight_map names %zu tensors, but its shards hold %zu of them",
                         json_object_size(map), found);
    return true;
}

bool store_open_shards(Store *store, Mapped bytes, const char *path, Error *err)
{
    json_t *root = parse_json(bytes.data, bytes.size, 0, err), *numbers = json_object();
    json_t *map = json_object_get(root, "weight_map");
    bool    ok = false;

    store->kind = "safetensors";
    if (root && !json_is_object(map))
        error_set(err, ERR_FORMAT, "is JSON without \"weight_map\"; of JSON files only the index "
                  "of a sharded safetensors model is read");
    else if (root && numbers)
        ok = open_shards(store, path, map, numbers, err) && check_map(store, map, numbers, err);
    json_decref(numbers);
    json_decref(root);
    return ok;
}
