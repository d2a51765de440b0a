/* json.c -- arrays as nested lists of numbers, as many a script writes them.
 *
 *     [[0.5, 0.5], [0.1, 0.9]]                       one array, called as the file
 *     {"q": [[...], ...], "k": ..., "v": ..., "tokens": ["the", "cat"], "causal": true}
 *
 * Every list of one depth is equally long.  Texts, single numbers and truths
 * are metadata, and so is the list of tokens.  An object with "weight_map" is
 * the index of a sharded safetensors model.
 */
#include "input/store.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_EACH 32 /* of a parsed number, whose text may be two bytes */

/* ---- one array ------------------------------------------------------------ */

/* The shape that the first of each list shows; false: deeper than is read. */
static bool first_shape(StoreEntry *entry, const json_t *value, Error *err)
{
    InputEntry *info = &entry->info;

    for (; json_is_array(value); value = json_array_get(value, 0)) {
        if (info->rank == STORE_MAX_RANK)
            return error_set(err, ERR_FORMAT, "%.80s: lists in more than %d lists", info->name,
                             STORE_MAX_RANK);
        info->shape[info->rank++] = (int64_t)json_array_size(value);
    }
    return true;
}

/* Whether lists and numbers are as the shape says; the numbers go to *out. */
static bool take(const InputEntry *info, const json_t *value, int depth, double **out, Error *err)
{
    if (depth == info->rank) {
        if (!json_is_number(value) && !json_is_boolean(value))
            return error_set(err, ERR_FORMAT, "%.80s: expected a number at depth %d, found %s",
                             info->name, depth,
                             json_is_string(value) ? "a text"
                             : json_is_array(value) ? "a list" : "something else");
        *(*out)++ = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
        return true;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != info->shape[depth])
        return error_set(err, ERR_FORMAT, "%.80s: a list at depth %d has %zu entries, the first "
                         "one %lld", info->name, depth + 1, json_array_size(value),
                         (long long)info->shape[depth]);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!take(info, json_array_get(value, i), depth + 1, out, err))
            return false;
    return true;
}

static bool add_array(Store *store, const char *name, const json_t *value, Error *err)
{
    StoreEntry *entry = store_add(store, name, strlen(name), err);
    double     *numbers;

    if (!entry || !first_shape(entry, value, err))
        return false;
    entry->type = (ElementType){ .kind = ELEMENT_FLOAT, .size = 8 };
    strcpy(entry->info.dtype, "number");
    if (!store_entry_size(entry, err))
        return false;
    entry->owned = malloc((size_t)entry->info.bytes + 1);
    if (!entry->owned)
        return error_set(err, ERR_NOMEM, "%.80s: no memory for %lld bytes", entry->info.name,
                         (long long)entry->info.bytes);
    entry->data = entry->owned;
    numbers = (double *)(void *)entry->owned;
    return take(&entry->info, value, 0, &numbers, err);
}

/* ---- the file ------------------------------------------------------------- */

/* A text or a number as it is, a truth as 1 or 0, a list of texts as JSON. */
static bool add_words(Store *store, const char *key, const json_t *value, Error *err)
{
    char *text = json_is_string(value)    ? strdup(json_string_value(value))
                 : json_is_boolean(value) ? strdup(json_is_true(value) ? "1" : "0")
                                          : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    bool  ok = text ? store_add_metadata(store, key, text, err)
                    : error_set(err, ERR_NOMEM, "no memory for %.80s", key);

    free(text);
    return ok;
}

static bool add_member(Store *store, const char *key, const json_t *value, Error *err)
{
    if (json_is_object(value) || json_is_null(value))
        return error_set(err, ERR_FORMAT, "%.80s: expected nested lists of numbers, or a text",
                         key);
    if (json_is_array(value) && strcmp(key, "tokens") != 0)
        return add_array(store, key, value, err);
    return add_words(store, key, value, err);
}

static bool add_members(Store *store, json_t *root, Error *err)
{
    const char *key;
    json_t     *value;

    json_object_foreach(root, key, value)
        if (!add_member(store, key, value, err))
            return false;
    return true;
}

bool store_open_json(Store *store, Mapped bytes, const char *path, const char *stem, Error *err)
{
    json_error_t why;
    json_t      *root;
    bool         ok;

    if (bytes.size > store->max_bytes / BYTES_EACH)
        return error_set(err, ERR_NOMEM, "%lld bytes of JSON are above the limit: save npz or "
                         "safetensors", (long long)bytes.size);
    root = json_loadb((const char *)bytes.data, (size_t)bytes.size, JSON_REJECT_DUPLICATES, &why);
    store->kind = "json";
    if (!root)
        return error_set(err, ERR_FORMAT, "byte %d: bad JSON: %.150s", why.position, why.text);
    if (json_object_get(root, "weight_map"))
        ok = store_open_shards(store, bytes, path, err);
    else if (json_object_get(root, "mechanism"))
        ok = error_set(err, ERR_FORMAT, "is the record of a run, not an input");
    else if (json_is_array(root) && json_is_string(json_array_get(root, 0)))
        ok = error_set(err, ERR_FORMAT, "is a list of texts: tokens alone are read from a text "
                       "file, one in each line");
    else
        ok = json_is_array(root) ? add_array(store, stem, root, err)
                                 : add_members(store, root, err);
    json_decref(root);
    return ok;
}
