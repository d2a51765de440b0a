/* store.c -- see store.h. */
#include "input/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool grow(void **array, int64_t capacity, size_t size, Error *err)
{
    void *grown = realloc(*array, (size_t)capacity * size);

    if (!grown)
        return error_set(err, ERR_NOMEM, "no memory for a list of %lld items",
                         (long long)capacity);
    *array = grown;
    return true;
}

/* Names go into messages and onto terminals. */
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

        if (!grow(&entries, capacity, sizeof(*store->entries), err))
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
    if (!grow(&keys, capacity, sizeof(char *), err))
        return false;
    store->keys = keys;
    if (!grow(&values, capacity, sizeof(char *), err))
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
    if (*dtype == '[') /* of which only the beginning is kept */
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

    if (box->stride[2] == 1 && box->stride[1] == run) { /* rows follow each other */
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
