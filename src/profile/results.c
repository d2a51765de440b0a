/* results.c -- reads result files by jansson; see results.h. */
#include "profile/results.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one line --------------------------------------------------------------- */

static const char *string_of(const json_t *object, const char *key, const char *fallback)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : fallback;
}

/* A stranger's text may hold colours and other sequences that a terminal obeys. */
static bool clean_text(json_t *text)
{
    const char *s = json_string_value(text);
    Text        shown = { 0 };
    bool        ok;

    text_add_shown(&shown, s, json_string_length(text), false);
    ok = text_ok(&shown) && (!strcmp(s, text_str(&shown)) ||
                             json_string_set(text, text_str(&shown)) == 0);
    text_free(&shown);
    return ok;
}

/* Every text in a value; false: no memory. */
static bool clean_texts(json_t *value)
{
    const char *key;
    json_t     *part;
    size_t      at;
    bool        ok = true;

    if (json_is_string(value))
        return clean_text(value);
    if (json_is_array(value))
        json_array_foreach(value, at, part)
            ok = ok && clean_texts(part);
    if (json_is_object(value))
        json_object_foreach(value, key, part)
            ok = ok && clean_texts(part);
    return ok;
}

static int64_t integer_of(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

static void row_free(ResultRow *row)
{
    json_decref(row->json);
    free(row->line);
    free(row->params);
}

/* A length that is given is one. */
static bool is_record(const json_t *json)
{
    const char   *status = string_of(json, "status", NULL);
    const json_t *params = json_object_get(json, "params"), *n = json_object_get(json, "n");

    return status && string_of(json, "mechanism", NULL) && (!params || json_is_object(params)) &&
           (!n || integer_of(json, "n") > 0 ||
            strcmp(status, record_status_name(RECORD_OK)) != 0);
}

/* False: no record. */
static bool row_parse(const char *line, size_t length, ResultRow *row)
{
    json_t       *json = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *environment, *params;

    if (!clean_texts(json) || !is_record(json)) {
        json_decref(json);
        return false;
    }
    params = json_object_get(json, "params");
    environment = json_object_get(json, "environment");
    *row = (ResultRow){
        .json = json,
        .line = strndup(line, length),
        .params = params ? json_dumps(params, JSON_SORT_KEYS | JSON_COMPACT) : strdup("{}"),
        .key = string_of(json, "key", ""),
        .point = string_of(json, "point", ""),
        .input_sha256 = string_of(json, "input_sha256", ""),
        .script_sha256 = string_of(json, "script_sha256", ""),
        .asked = string_of(json, "asked", ""),
        .mechanism = string_of(json, "mechanism", ""),
        .position = string_of(json, "position", "none"),
        .device = string_of(json, "device", "cpu"),
        .precision = string_of(json, "precision", "f32"),
        .source = string_of(json, "source", string_of(json, "input", "")),
        .status = string_of(json, "status", ""),
        .message = string_of(json, "message", ""),
        .version = string_of(environment, "version", ""),
        .cpu = string_of(environment, "cpu", ""),
        .gpu = string_of(json_object_get(json, "gpu"), "name", ""),
        .host = string_of(json, "host", ""),
        .time = string_of(json, "time", ""),
        .commit = string_of(json, "commit", ""),
        .record_version = integer_of(json, "record_version"),
        .against = string_of(json_object_get(json, "process"), "against", ""),
        .process = integer_of(json_object_get(json, "process"), "number"),
        .n = integer_of(json, "n"),
        .seed = integer_of(json, "seed"),
        .threads = integer_of(json, "threads"),
        .d = integer_of(json, "d"),
        .heads = integer_of(json, "heads"),
        .causal = json_is_true(json_object_get(json, "causal")),
        .oversubscribed = json_is_true(json_object_get(json, "oversubscribed")),
    };
    row->process = row->process > 0 ? row->process : 1;
    row->ok = !strcmp(row->status, record_status_name(RECORD_OK));
    return true;
}

static bool results_out_of_memory(Error *err)
{
    return error_set(err, ERR_NOMEM, "not enough memory for the records of a file");
}

bool results_add(Results *out, const char *line, size_t length, int file, Error *err)
{
    ResultRow row;

    if (!row_parse(line, length, &row)) {
        out->damaged++;
        return true;
    }
    if (!row.line || !row.params) { /* who gets false may still sort the rows */
        row_free(&row);
        return results_out_of_memory(err);
    }
    if (out->count == out->capacity) {
        int        capacity = out->capacity ? 2 * out->capacity : 64;
        ResultRow *rows = realloc(out->rows, (size_t)capacity * sizeof(*rows));

        if (!rows) {
            row_free(&row);
            return results_out_of_memory(err);
        }
        out->rows = rows;
        out->capacity = capacity;
    }
    row.file = file;
    out->rows[out->count++] = row;
    return true;
}

/* ---- files ------------------------------------------------------------------ */

#define LINE_MOST    (64 << 20) /* bytes */
#define DAMAGED_MOST 100000     /* lines before the first record */

/* As getline, but a line ends after LINE_MOST bytes: a device like /dev/zero has no line's end. */
static ssize_t read_line(FILE *stream, char **line, size_t *capacity)
{
    ssize_t length = 0;

    for (int byte; length < LINE_MOST && (byte = getc_unlocked(stream)) != EOF;) {
        if ((size_t)length + 1 >= *capacity) {
            size_t size = *capacity ? 2 * *capacity : 4096;
            char  *larger = realloc(*line, size);

            if (!larger)
                return -1;
            *line = larger;
            *capacity = size;
        }
        (*line)[length++] = (char)byte;
        if (byte == '\n')
            break;
    }
    return length;
}

/* False, with an error: this is no file of records, and may have no end. */
static bool looks_like_records(const Results *out, ssize_t length, const char *line, int before,
                               int damaged, Error *err)
{
    if (length == LINE_MOST && line[length - 1] != '\n')
        return error_set(err, ERR_FORMAT, "a line of more than %d MiB is no record of attnscope "
                         "(expected the .jsonl file of a sweep)", LINE_MOST >> 20);
    if (out->count == before && out->damaged - damaged > DAMAGED_MOST)
        return error_set(err, ERR_FORMAT, "its first %d lines hold no record of attnscope "
                         "(expected the .jsonl file of a sweep)", DAMAGED_MOST);
    return true;
}

static bool read_records(FILE *stream, int file, Results *out, Error *err)
{
    char   *line = NULL;
    size_t  capacity = 0;
    ssize_t length;
    int     before = out->count, damaged = out->damaged;
    bool    ok = true;

    while (ok && (length = read_line(stream, &line, &capacity)) > 0) {
        if (!looks_like_records(out, length, line, before, damaged, err)) {
            ok = false;
        } else if (line[length - 1] != '\n') {
            out->torn = true;
            break;
        } else {
            out->whole_bytes += length;
            if (length > 1)
                ok = results_add(out, line, (size_t)length - 1, file, err);
        }
    }
    ok = ok && (length >= 0 || results_out_of_memory(err));
    /* What could not be read is no torn line, which a sweep that goes on would cut off. */
    if (ok && ferror(stream))
        ok = error_set(err, ERR_FILE, "cannot be read: %s", strerror(errno));
    free(line);
    return ok;
}

bool results_read(const char *path, int file, Results *out, Error *err)
{
    FILE *stream = fopen(path, "re");
    int   before = out->count;
    bool  ok;

    out->whole_bytes = 0;
    out->torn = false;
    if (!stream)
        return error_set(err, ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    ok = read_records(stream, file, out, err);
    fclose(stream);
    if (!ok)
        return error_prefix(err, "%s", path);
    if (out->count == before && out->whole_bytes > 0)
        return error_set(err, ERR_FORMAT, "%s: no line of it is a record of attnscope (expected "
                         "the .jsonl file of a sweep)", path);
    return ok;
}

void results_free(Results *results)
{
    for (int i = 0; i < results->count; i++)
        row_free(&results->rows[i]);
    free(results->rows);
    *results = (Results){ 0 };
}

const ResultRow *results_find(const Results *results, const char *key)
{
    for (int i = results->count - 1; i >= 0; i--)
        if (!strcmp(results->rows[i].key, key))
            return &results->rows[i];
    return NULL;
}

/* ---- versions ----------------------------------------------------------------- */

static void find_versions(const Results *results, int64_t *least, int64_t *most)
{
    for (int i = 0; i < results->count; i++) {
        int64_t version = results->rows[i].record_version;

        *least = version < *least ? version : *least;
        *most = version > *most ? version : *most;
    }
}

void results_note_versions(const Results *a, const Results *b, Text *out)
{
    int64_t least = INT64_MAX, most = 0;

    find_versions(a, &least, &most);
    if (b)
        find_versions(b, &least, &most);
    if (least < most && !least)
        text_addf(out, "records of several versions (record_version none to %lld): a number that "
                  "a version lacks is n/a\n", (long long)most);
    else if (least < most)
        text_addf(out, "records of several versions (record_version %lld to %lld): a number that "
                  "a version lacks is n/a\n", (long long)least, (long long)most);
    if (most > RECORD_VERSION)
        text_addf(out, "records of version %lld: this program knows versions up to %d, and reads "
                  "their keys as those of %d\n", (long long)most, RECORD_VERSION, RECORD_VERSION);
}

void results_note_broken(const Results *results, const char *path, int damaged_before, Text *out)
{
    int damaged = results->damaged - damaged_before;

    if (!damaged && !results->torn)
        return;
    text_addf(out, "%s: ", path);
    if (damaged) {
        text_add_count(out, damaged, "damaged line");
        text_add(out, " left out");
    }
    if (results->torn)
        text_addf(out, "%sa torn last line left out: its sweep did not end", damaged ? "; " : "");
    text_add(out, "\n");
}

static bool status_met(const Results *results, int before, const char *status)
{
    for (int i = 0; i < before; i++)
        if (!strcmp(results->rows[i].status, status))
            return true;
    return false;
}

static int count_status(const Results *results, const char *status)
{
    int count = 0;

    for (int i = 0; i < results->count; i++)
        count += !strcmp(results->rows[i].status, status);
    return count;
}

void results_note_failed(const Results *results, Text *out)
{
    const ResultRow *first = NULL;
    int              count = 0;

    for (int i = 0; i < results->count; i++) {
        count += !results->rows[i].ok;
        first = first || results->rows[i].ok ? first : &results->rows[i];
    }
    if (!first)
        return;
    text_addf(out, "%d of %d points left out:", count, results->count);
    for (int i = 0; i < results->count; i++) {
        const ResultRow *row = &results->rows[i];

        if (row->ok || status_met(results, i, row->status))
            continue;
        text_addf(out, "%s %d %s", row == first ? "" : ",", count_status(results, row->status),
                  row->status);
    }
    text_addf(out, "; %s%s n=%lld: %s\n", count > 1 ? "first " : "", first->mechanism,
              (long long)first->n, first->message);
}

/* ---- warnings --------------------------------------------------------------- */

#define KINDS_MOST 64

/* Warnings that differ in numbers alone; text: of the first row. */
typedef struct WarningKind {
    const char      *text;
    const ResultRow *row;
    int              count;
} WarningKind;

static int count_warning(const ResultRow *row, const char *text, WarningKind *kinds, int count)
{
    for (int k = 0; k < count; k++)
        if (text_same_words(kinds[k].text, text)) {
            kinds[k].count++;
            return count;
        }
    if (count < KINDS_MOST)
        kinds[count++] = (WarningKind){ text, row, 1 };
    return count;
}

static void add_warning_kind(const WarningKind *kind, const char *mark, Text *out)
{
    const ResultRow *row = kind->row;

    text_addf(out, "%s  %s n=%lld", mark, row->mechanism, (long long)row->n);
    if (kind->count > 1) {
        text_add(out, " and ");
        text_add_count(out, kind->count - 1, "other point");
    }
    text_addf(out, ": %s\n", kind->text);
}

/* The list of that key, which the records have; mark: first in the lines. */
static void note_lines(const Results *results, const char *key, const char *mark, Text *out)
{
    WarningKind kinds[KINDS_MOST];
    int         count = 0;

    for (int i = 0; i < results->count; i++) {
        const json_t *list = json_object_get(results->rows[i].json, key);

        for (size_t w = 0; w < json_array_size(list); w++) {
            const char *text = json_string_value(json_array_get(list, w));

            count = text ? count_warning(&results->rows[i], text, kinds, count) : count;
        }
    }
    for (int k = 0; k < count; k++)
        add_warning_kind(&kinds[k], mark, out);
}

void results_note_warnings(const Results *results, Text *out)
{
    note_lines(results, "notes", "note   ", out);
    note_lines(results, "warnings", "warning", out);
}

static int count_oversubscribed(const Results *rows, const ResultRow **first)
{
    int count = 0;

    for (int i = 0; rows && i < rows->count; i++)
        if (rows->rows[i].ok && rows->rows[i].oversubscribed) {
            *first = *first ? *first : &rows->rows[i];
            count++;
        }
    return count;
}

void results_note_oversubscribed(const Results *a, const Results *b, Text *out)
{
    const ResultRow *first = NULL;
    int              count = count_oversubscribed(a, &first);

    count += count_oversubscribed(b, &first);
    if (!count)
        return;
    text_add_count(out, count, "record");
    text_addf(out, " oversubscribed (%s%s n=%lld, %lld thread%s): more threads than processors "
              "were free, so the times are too long. Measure again with fewer --threads, fewer "
              "jobs at once or an idle machine\n", count > 1 ? "first " : "", first->mechanism,
              (long long)first->n, (long long)first->threads, first->threads == 1 ? "" : "s");
}

/* Two orders on one array: by key and file to find doubles, then as they stood. */
typedef struct Ranked {
    const ResultRow *row;
    int              at;
} Ranked;

static int by_key(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    int           order = strcmp(x->row->key, y->row->key);

    if (!order)
        order = x->row->file - y->row->file;
    return order ? order : x->at - y->at;
}

bool results_latest(Results *results, Error *err)
{
    Ranked *ranked = calloc((size_t)results->count + 1, sizeof(*ranked));
    bool   *stale = calloc((size_t)results->count + 1, sizeof(*stale));
    bool    ok = ranked && stale;
    int     kept = 0;

    for (int i = 0; ok && i < results->count; i++)
        ranked[i] = (Ranked){ &results->rows[i], i };
    if (ok)
        qsort(ranked, (size_t)results->count, sizeof(*ranked), by_key);
    for (int i = 0; ok && i + 1 < results->count; i++)
        stale[ranked[i].at] = *ranked[i].row->key &&
                              !strcmp(ranked[i].row->key, ranked[i + 1].row->key) &&
                              ranked[i].row->file == ranked[i + 1].row->file;
    for (int i = 0; ok && i < results->count; i++) {
        if (stale[i]) {
            row_free(&results->rows[i]);
            results->replaced++;
        } else {
            results->rows[kept++] = results->rows[i];
        }
    }
    if (ok)
        results->count = kept;
    free(ranked);
    free(stale);
    return ok || error_set(err, ERR_NOMEM, "not enough memory to look for repeated records");
}

/* ---- order ------------------------------------------------------------------ */

static int compare_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Place of the mechanism in the catalogue; unknown ones last. */
static size_t place(const char *mechanism)
{
    size_t at = 0;

    while (mechanism_at(at) && strcmp(mechanism_at(at)->id, mechanism) != 0)
        at++;
    return at;
}

static int by_series(const void *a, const void *b)
{
    const ResultRow *x = a, *y = b;
    int              order;

    order = compare_ints((int64_t)place(x->mechanism), (int64_t)place(y->mechanism));
    order = order ? order : strcmp(x->mechanism, y->mechanism);
    order = order ? order : strcmp(x->params, y->params);
    order = order ? order : strcmp(x->source, y->source);
    order = order ? order : strcmp(x->input_sha256, y->input_sha256);
    order = order ? order : compare_ints(x->heads, y->heads);
    order = order ? order : compare_ints(x->d, y->d);
    order = order ? order : x->causal - y->causal;
    order = order ? order : strcmp(x->position, y->position);
    order = order ? order : strcmp(x->device, y->device);
    order = order ? order : strcmp(x->precision, y->precision);
    order = order ? order : compare_ints(x->threads, y->threads);
    order = order ? order : strcmp(x->against, y->against);
    order = order ? order : strcmp(x->version, y->version);
    order = order ? order : strcmp(x->script_sha256, y->script_sha256);
    order = order ? order : compare_ints(x->n, y->n);
    order = order ? order : compare_ints(x->seed, y->seed);
    order = order ? order : compare_ints(x->process, y->process);
    order = order ? order : strcmp(x->key, y->key);
    return order ? order : compare_ints(x->file, y->file);
}

void results_sort(Results *results)
{
    if (results->count)
        qsort(results->rows, (size_t)results->count, sizeof(*results->rows), by_series);
}

int key_point_length(const char *key)
{
    return (int)strcspn(key, ".@");
}

/* ---- values ----------------------------------------------------------------- */

static const json_t *look_up(const json_t *json, const char *path)
{
    char name[64];

    while (json && *path) {
        size_t length = strcspn(path, ".");

        snprintf(name, sizeof(name), "%.*s", (int)length, path);
        json = json_object_get(json, name);
        path += length + (path[length] == '.');
    }
    return json;
}

Number row_number(const ResultRow *row, const char *path)
{
    const json_t *value = look_up(row->json, path);

    return json_is_number(value) ? number_of(json_number_value(value)) : NUMBER_NONE;
}

const char *row_flag(const ResultRow *row, const char *path)
{
    const json_t *value = look_up(row->json, path);

    return json_is_true(value) ? "true" : json_is_false(value) ? "false" : NULL;
}

const char *row_text(const ResultRow *row, const char *path)
{
    return json_string_value(look_up(row->json, path));
}

const char *row_command(const ResultRow *row)
{
    return string_of(row->json, "command", NULL);
}

void row_option(const ResultRow *row, const char *flag, char *value, size_t size)
{
    const char *at = row_command(row);
    size_t      length = strlen(flag);

    *value = '\0';
    for (; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!strncmp(at, flag, length) && at[length] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
            return;
        }
}

char *row_list(const ResultRow *row, const char *path)
{
    const json_t *value = look_up(row->json, path);

    return json_is_array(value) ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
}

int row_sample_count(const ResultRow *row)
{
    return (int)json_array_size(look_up(row->json, "time_ms.samples"));
}

/* ---- names ------------------------------------------------------------------ */

/* Whether rows of this mechanism disagree on the parameter. */
static bool differs(const Results *results, const ResultRow *row, const char *name,
                    const json_t *value)
{
    for (int i = 0; i < results->count; i++) {
        const ResultRow *other = &results->rows[i];

        const json_t    *theirs = json_object_get(json_object_get(other->json, "params"), name);

        if (theirs && !strcmp(other->mechanism, row->mechanism) && !json_equal(theirs, value))
            return true;
    }
    return false;
}

void row_name(const Results *results, const ResultRow *row, Text *out)
{
    const char *name;
    json_t     *value;
    int         shown = 0;

    text_add(out, row->mechanism);
    json_object_foreach(json_object_get(row->json, "params"), name, value) {
        char *text;

        if (json_is_null(value) || !differs(results, row, name, value))
            continue;
        text = json_is_string(value) ? strdup(json_string_value(value))
                                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        text_addf(out, "%s%s=%s", shown++ ? "," : "(", name, text ? text : "?");
        free(text);
    }
    text_add(out, shown ? ")" : "");
}
