/* exponents_json.c -- a chart of exponents as JSON and back; see exponents.h.
 *
 * All that is drawn is there, so that a file's chart can be drawn again without the records it
 * was made of, to the same bytes.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "draw/plot/exponents.h"

/* What is larger in a file is not ours. */
#define ROWS_MOST 4096

static const char *const names[EXPONENTS] = {
    [EXPONENT_FLOPS] = "flops", [EXPONENT_TIME] = "time", [EXPONENT_MEMORY] = "memory",
};

/* ---- to JSON ---------------------------------------------------------------- */

/* [value, lo, hi], [value], or null where it was not measured. */
static void exponent_json(const Exponent *e, Json *out)
{
    if (!e->valid) {
        jsonw_null(out);
        return;
    }
    jsonw_open(out, '[');
    jsonw_number(out, e->value);
    if (e->bounded) {
        jsonw_number(out, e->lo);
        jsonw_number(out, e->hi);
    }
    jsonw_close(out, ']');
}

static void row_json(const ExponentRow *row, Json *out)
{
    jsonw_open(out, '{');
    jsonw_some_string(out, "group", row->group);
    jsonw_key_string(out, "name", row->name);
    jsonw_key_string(out, "claim", row->claim);
    jsonw_some_string(out, "note", row->note);
    jsonw_key(out, "claims");
    jsonw_open(out, '[');
    for (int i = 0; i < row->claim_count; i++)
        jsonw_number(out, row->claims[i]);
    jsonw_close(out, ']');
    for (int of = 0; of < EXPONENTS; of++) {
        jsonw_key(out, names[of]);
        exponent_json(&row->measured[of], out);
    }
    jsonw_close(out, '}');
}

void exponents_json(const ExponentChart *chart, Json *out)
{
    jsonw_key_string(out, "measured", chart->measured);
    jsonw_key_string(out, "title", chart->title);
    jsonw_key_string(out, "caption", chart->caption);
    jsonw_key(out, "rows");
    jsonw_open(out, '[');
    for (int i = 0; i < chart->count; i++)
        row_json(&chart->rows[i], out);
    jsonw_close(out, ']');
}

/* ---- from JSON -------------------------------------------------------------- */

/* A copy; *text NULL where there is none.  False: it is there and no string, or no memory. */
static bool take_string(const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);

    *text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    return !value || *text;
}

static bool take_exponent(const json_t *list, Exponent *out)
{
    size_t count = json_array_size(list);

    *out = (Exponent){ .valid = count > 0, .bounded = count == 3 };
    out->value = json_number_value(json_array_get(list, 0));
    out->lo = json_number_value(json_array_get(list, 1));
    out->hi = json_number_value(json_array_get(list, 2));
    return json_is_null(list) ? count == 0 : count == 1 || count == 3;
}

static bool take_row(const json_t *object, ExponentRow *row)
{
    const json_t *claims = json_object_get(object, "claims");
    size_t        count = json_array_size(claims);

    for (int of = 0; of < EXPONENTS; of++)
        if (!take_exponent(json_object_get(object, names[of]), &row->measured[of]))
            return false;
    if (!json_is_array(claims) || count > EXPONENT_CLAIMS)
        return false;
    row->claim_count = (int)count;
    for (size_t i = 0; i < count; i++)
        row->claims[i] = json_number_value(json_array_get(claims, i));
    return take_string(object, "group", &row->group) && take_string(object, "note", &row->note) &&
           take_string(object, "name", &row->name) && row->name &&
           take_string(object, "claim", &row->claim) && row->claim;
}

static bool take_all(const json_t *json, ExponentChart *chart)
{
    const json_t *list = json_object_get(json, "rows");
    size_t        count = json_array_size(list);
    ExponentRow  *rows = count && count <= ROWS_MOST ? calloc(count, sizeof(*rows)) : NULL;

    chart->rows = rows;
    chart->count = rows ? (int)count : 0;
    for (int i = 0; i < chart->count; i++)
        if (!take_row(json_array_get(list, (size_t)i), &rows[i]))
            return false;
    return rows && take_string(json, "measured", &chart->measured) && chart->measured &&
           take_string(json, "title", &chart->title) && chart->title &&
           take_string(json, "caption", &chart->caption) && chart->caption;
}

ExponentChart *exponents_of_json(const json_t *json, Error *err)
{
    ExponentChart *chart = calloc(1, sizeof(*chart));

    if (!chart) {
        error_set(err, ERR_NOMEM, "not enough memory for a chart of exponents");
        return NULL;
    }
    if (take_all(json, chart))
        return chart;
    exponents_free(chart);
    error_set(err, ERR_FORMAT, "its numbers are damaged, or of another version; rerender --measure "
                               "draws the sweep's records");
    return NULL;
}

static void text_drop(const char *text)
{
    free((char *)(uintptr_t)text);
}

void exponents_free(ExponentChart *chart)
{
    if (!chart)
        return;
    for (int i = 0; i < chart->count; i++) {
        text_drop(chart->rows[i].group);
        text_drop(chart->rows[i].name);
        text_drop(chart->rows[i].claim);
        text_drop(chart->rows[i].note);
    }
    text_drop(chart->title);
    text_drop(chart->caption);
    text_drop(chart->measured);
    free((void *)(uintptr_t)chart->rows);
    free(chart);
}
