/* text_arrays.c -- arrays as text: CSV, and JSON of nested lists.
 *
 * CSV: one matrix, one row per line, cells separated by ',', ';', tab or blanks: the first of
 * these in the first line of numbers. Lines that begin with '#', empty lines and one heading line
 * without numbers are skipped. All rows have the same length.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "input/labels.h"
#include "input/store.h"

typedef struct Reader {
    const char *at, *end;
    int64_t     line;      /* 1-based number of the current line */
    char        separator; /* 0: not known yet; ' ' takes runs of blanks */
    bool        headed;    /* a heading was passed over */
    double     *values;    /* owned by the entry */
    int64_t     count, room, columns, rows;
} Reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char find_separator(const char *line, size_t length)
{
    static const char choices[] = { ',', ';', '\t' };

    for (size_t i = 0; i < sizeof(choices); i++)
        if (memchr(line, choices[i], length))
            return choices[i];
    return ' ';
}

/* Takes the next cell of [*at, end); false at the end of the line. */
static bool next_cell(const char **at, const char *end, char separator, const char **cell,
                      size_t *length)
{
    const char *stop;

    if (separator == ' ')
        while (*at < end && is_blank(**at))
            (*at)++;
    if (*at >= end)
        return false;
    for (stop = *at; stop < end && *stop != separator && !(separator == ' ' && is_blank(*stop));)
        stop++;
    *cell = *at;
    *length = (size_t)(stop - *at);
    *at = stop < end ? stop + 1 : end;
    return true;
}

static bool add_value(Reader *r, double value, int64_t column, const char *cell, size_t length,
                      bool valid, Error *err)
{
    if (!valid)
        return error_set(err, ERR_FORMAT, "line %lld, column %lld: expected a number, found "
                         "\"%.*s\"", (long long)r->line, (long long)column + 1,
                         (int)(length < 40 ? length : 40), cell);
    if (r->count == r->room)
        return error_set(err, ERR_INTERNAL, "line %lld: more numbers than bytes allow",
                         (long long)r->line);
    r->values[r->count++] = value;
    return true;
}

/* Cells of a line that are numbers; *all when none is not. */
static int64_t count_numbers(const char *line, const char *end, char separator, bool *all)
{
    const char *cell;
    size_t      length;
    int64_t     numbers = 0;
    double      value;

    *all = true;
    while (next_cell(&line, end, separator, &cell, &length)) {
        bool valid = labels_parse(cell, length, &value);

        numbers += valid;
        *all = *all && valid;
    }
    return numbers;
}

static bool read_line(Reader *r, const char *line, const char *end, Error *err)
{
    const char *cell;
    size_t      length;
    int64_t     columns = 0;
    double      value = 0;
    bool        all;

    if (!r->separator) {
        char separator = find_separator(line, (size_t)(end - line));

        if (count_numbers(line, end, separator, &all) == 0 && !r->headed && !all)
            return r->headed = true;
        r->separator = separator;
    }
    while (next_cell(&line, end, r->separator, &cell, &length)) {
        bool valid = labels_parse(cell, length, &value);

        if (!add_value(r, value, columns++, cell, length, valid, err))
            return false;
    }
    if (r->rows && columns != r->columns)
        return error_set(err, ERR_FORMAT, "line %lld has %lld numbers, the lines before it %lld",
                         (long long)r->line, (long long)columns, (long long)r->columns);
    r->columns = columns;
    r->rows++;
    return true;
}

static bool read_lines(Reader *r, Error *err)
{
    for (r->line = 1; r->at < r->end; r->line++) {
        const char *line = r->at, *stop = memchr(line, '\n', (size_t)(r->end - line));
        const char *end = stop ? stop : r->end;

        r->at = stop ? stop + 1 : r->end;
        while (end > line && is_blank(end[-1]))
            end--;
        if (line < end && *line != '#' && !read_line(r, line, end, err))
            return false;
    }
    return r->rows || error_set(err, ERR_FORMAT, "holds no line of numbers");
}

bool store_open_csv(Store *store, Mapped bytes, const char *stem, Error *err)
{
    StoreEntry *entry = store_add(store, stem, strlen(stem), err);
    Reader      r = { .at = (const char *)bytes.data,
                      .end = (const char *)bytes.data + bytes.size,
                      .room = bytes.size / 2 + 1 }; /* a digit and a separator each */

    store->kind = "csv";
    if (!entry)
        return false;
    if (r.room > store->max_bytes / 8)
        return error_set(err, ERR_NOMEM, "%lld bytes of text are above the limit",
                         (long long)bytes.size);
    entry->owned = malloc((size_t)r.room * sizeof(double));
    r.values = (double *)(void *)entry->owned;
    if (!r.values)
        return error_set(err, ERR_NOMEM, "no memory for %lld numbers", (long long)r.room);
    if (!read_lines(&r, err))
        return false;
    entry->type = (ElementType){ .kind = ELEMENT_FLOAT, .size = 8 };
    strcpy(entry->info.dtype, "text");
    entry->info.rank = 2;
    entry->info.shape[0] = r.rows;
    entry->info.shape[1] = r.columns;
    entry->data = entry->owned;
    return store_entry_size(entry, err);
}

/* JSON: arrays as nested lists of numbers.
 *
 *     [[0.5, 0.5], [0.1, 0.9]]                       one array, named as the file
 *     {"q": [[...], ...], "k": ..., "v": ..., "tokens": ["the", "cat"], "causal": true}
 *
 * Lists of one depth have the same length. Texts, single numbers and booleans are metadata, and so
 * are the lists tokens, q_tokens and k_tokens. An object with "weight_map" is the index of a
 * sharded safetensors model.
 */

#define BYTES_EACH 32 /* per parsed number, whose text may be two bytes */

/* ---- one array ------------------------------------------------------------ */

/* The shape of the first list at each depth; false: too deep. */
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

/* Copies the numbers to *out; false: the lists do not have the shape. */
static bool take_nested(const InputEntry *info, const json_t *value, int depth, double **out,
                        Error *err)
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
        if (!take_nested(info, json_array_get(value, i), depth + 1, out, err))
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
    return take_nested(&entry->info, value, 0, &numbers, err);
}

/* ---- the file ------------------------------------------------------------- */

/* Adds metadata: a text or number as it is, a boolean as 1 or 0, a list of texts as JSON. */
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

/* A list of labels, whose texts are no numbers: metadata_tokens reads them. */
static bool is_labels(const char *key)
{
    return !strcmp(key, "tokens") || !strcmp(key, "q_tokens") || !strcmp(key, "k_tokens");
}

static bool add_json(Store *store, const char *key, const json_t *value, Error *err)
{
    if (json_is_object(value) || json_is_null(value))
        return error_set(err, ERR_FORMAT, "%.80s: expected nested lists of numbers, or a text",
                         key);
    if (json_is_array(value) && !is_labels(key))
        return add_array(store, key, value, err);
    return add_words(store, key, value, err);
}

static bool add_object(Store *store, json_t *root, Error *err)
{
    const char *key;
    json_t     *value;

    json_object_foreach(root, key, value)
        if (!add_json(store, key, value, err))
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
                                 : add_object(store, root, err);
    json_decref(root);
    return ok;
}
