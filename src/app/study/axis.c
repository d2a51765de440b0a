/* axis.c -- the values of a parameter in words, and lists of words; see study.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/study/sweep.h"
#include "app/study/study.h"
#include "attn/run/param.h"
#include "core/text.h"

void axis_free(Axis *axis)
{
    for (int i = 0; i < axis->count; i++)
        free(axis->values[i]);
    free(axis->values);
    *axis = (Axis){ 0 };
}

double axis_number(const Axis *axis, int index)
{
    char  *end;
    double value = strtod(axis->values[index], &end);

    return *end || end == axis->values[index] ? (double)NAN : value;
}

void axis_json(const Axis *axis, int index, Json *out)
{
    double number = index >= 0 ? axis_number(axis, index) : (double)NAN;

    if (index < 0)
        jsonw_null(out);
    else if (isfinite(number))
        jsonw_number(out, number);
    else
        jsonw_string(out, axis->values[index]);
}

static bool add_value(Axis *out, const char *text, size_t length, Error *err)
{
    char **grown;

    if (out->count == AXIS_MOST)
        return error_set(err, ERR_USAGE, "%s: more than %d values", out->name, AXIS_MOST);
    if (!length)
        return error_set(err, ERR_USAGE, "%s: an empty value in the list", out->name);
    grown = realloc(out->values, (size_t)(out->count + 1) * sizeof(*grown));
    if (grown) {
        out->values = grown;
        grown[out->count] = strndup(text, length);
    }
    if (!grown || !grown[out->count])
        return error_set(err, ERR_NOMEM, "not enough memory for the values of %s", out->name);
    out->count++;
    return true;
}

static void write_number(double value, char text[32])
{
    snprintf(text, 32, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g", value);
}

static bool add_number(Axis *out, double value, Error *err)
{
    char text[32];

    write_number(value, text);
    return add_value(out, text, strlen(text), err);
}

/* Writes "32k" as 32000, so that one number has one word; false: it is no number with a unit. */
static bool without_unit(const char *word, size_t length, char text[32])
{
    const char *end;
    double      value = text_number_at(word, &end);

    if (end == word || end != word + length || isdigit((unsigned char)end[-1]) || end[-1] == '.' ||
        !isfinite(value))
        return false;
    write_number(value, text);
    return true;
}

static bool add_list(Axis *out, const char *text, Error *err)
{
    for (;; text++) {
        size_t length = strcspn(text, ",");
        char   plain[32];
        bool   unit = without_unit(text, length, plain);

        if (!add_value(out, unit ? plain : text, unit ? strlen(plain) : length, err))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

#define FORM "expected FIRST:LAST:xFACTOR, FIRST:LAST:+STEP or values with commas"

static bool add_range(Axis *out, const char *text, Error *err)
{
    const char *end;
    double      first = text_number_at(text, &end), last, by = 2, slack;
    bool        times = true;

    if (end == text || *end != ':')
        return error_set(err, ERR_USAGE, "%s=%s: " FORM, out->name, text);
    last = text_number_at(end + 1, &end);
    if (*end == ':' && (end[1] == 'x' || end[1] == '+')) {
        times = end[1] == 'x';
        by = text_number_at(end + 2, &end);
    }
    if (*end || isnan(last) || !(times ? by > 1 && first > 0 : by > 0))
        return error_set(err, ERR_USAGE, "%s=%s: " FORM, out->name, text);
    if (!(last >= first))
        return error_set(err, ERR_USAGE, "%s=%s: the range begins behind its end", out->name, text);
    out->times = times;
    slack = 1 + 1e-9; /* 0.1 + 0.1 + 0.1 is a little more than 0.3 */
    for (double value = first, k = 0; value <= last * slack || value <= last + 1e-9 * by; k++) {
        if (!add_number(out, value, err))
            return false;
        value = times ? value * by : first + (k + 1) * by;
    }
    return true;
}

bool axis_parse(const char *text, Axis *out, Error *err)
{
    const char *equals = strchr(text, '=');
    bool        ok;

    *out = (Axis){ 0 };
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof(out->name))
        return error_set(err, ERR_USAGE, "'%s': expected NAME=VALUES, as features=16:512:x2", text);
    memcpy(out->name, text, (size_t)(equals - text));
    ok = strchr(equals, ':') ? add_range(out, equals + 1, err) : add_list(out, equals + 1, err);
    if (!ok)
        axis_free(out);
    return ok;
}

/* ---- a usual range around a value ---------------------------------------- */

static void write_choices(const Param *param, Text *out)
{
    for (int i = 0; param->choices[i]; i++)
        text_addf(out, "%s%s", i ? "," : "", param->choices[i]);
}

/* Writes the value in the parameter's form (whole, even) unless it equals *last. */
static void write_value(const Param *param, double value, double *last, Text *out)
{
    if (param->type == PARAM_TYPE_INT)
        value = param->even ? 2 * round(value / 2) : round(value);
    if (!(value >= param->lo) || !(value <= param->hi) || !(value > *last))
        return;
    text_addf(out, isfinite(*last) ? ",%.6g" : "%.6g", value);
    *last = value;
}

/* The present value, else the default; without either, a small start. */
static double value_of(const Param *param, const char *now)
{
    char  *end;
    double value = strtod(now, &end);

    if (end == now || *end)
        value = param->fallback;
    return value > 0 && value < PARAM_COUNT_MAX ? value : param->type == PARAM_TYPE_INT ? 8 : 1;
}

static bool add_numbers(const Param *param, const char *now, int64_t n, bool dense, Text *out)
{
    bool   whole = param->type == PARAM_TYPE_INT;
    double value = value_of(param, now), least = whole ? fmax(1, param->lo) : value / 16, last;
    double first = dense ? least : value / 8, by = dense ? M_SQRT2 : 2;
    double most = dense && whole ? 2 * (double)n : 4 * value;

    last = -HUGE_VAL;
    if (whole && !dense && most > (double)n && value <= (double)n)
        most = (double)n; /* values above the number of tokens are rarely useful */
    for (double at = first; at <= most * (1 + 1e-9); at *= by)
        if (whole ? at >= 1 : at >= value / 4 * (1 - 1e-9))
            write_value(param, at, &last, out);
    if (dense && whole) /* a window of 2n - 1 and more is full attention */
        write_value(param, most, &last, out);
    return isfinite(last);
}

bool axis_usual(const struct Param *param, const char *now, int64_t n, bool dense, Text *out)
{
    text_addf(out, "%s=", param->name);
    switch (param->type) {
    case PARAM_TYPE_ENUM: write_choices(param, out); return true;
    case PARAM_TYPE_BOOL: text_add(out, "false,true"); return true;
    case PARAM_TYPE_INT:
    case PARAM_TYPE_FLOAT: return add_numbers(param, now, n, dense, out);
    default: return false;
    }
}

/* ---- lists and ranges: "256:4096:x2", "3,5,9" ---------------------------- */

bool words_add(WordList *list, const char *word, size_t length, Error *err)
{
    char *copy = strndup(word, length);

    if (list->count == list->capacity) {
        int    capacity = list->capacity ? 2 * list->capacity : 16;
        char **items = realloc(list->items, (size_t)capacity * sizeof(*items));

        if (items) {
            list->items = items;
            list->capacity = capacity;
        }
    }
    if (!copy || list->count == list->capacity) {
        free(copy);
        return error_set(err, ERR_NOMEM, "not enough memory for a list");
    }
    list->items[list->count++] = copy;
    return true;
}

void words_free(WordList *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (WordList){ 0 };
}

/* "256:4096": a number comes before the colon. */
static bool is_range(const char *item)
{
    const char *end;

    text_number_at(item, &end);
    return end != item && *end == ':';
}

static bool words_add_range(const char *what, const char *item, WordList *out, Error *err)
{
    char text[200];
    Axis axis;
    bool ok;

    if (snprintf(text, sizeof(text), "%s=%s", what, item) >= (int)sizeof(text))
        return error_set(err, ERR_USAGE, "%s: '%.60s...' is too long for a range", what, item);
    ok = axis_parse(text, &axis, err);
    for (int i = 0; ok && i < axis.count; i++)
        ok = words_add(out, axis.values[i], strlen(axis.values[i]), err);
    if (ok)
        axis_free(&axis);
    return ok;
}

static bool add_item(const char *what, const char *start, size_t length, WordList *out, Error *err)
{
    char *item = strndup(start, length);
    char  plain[32];
    bool  ok;

    if (!item)
        return error_set(err, ERR_NOMEM, "not enough memory for a list");
    if (!length)
        ok = error_set(err, ERR_USAGE, "%s: a value is empty (a comma too many?)", what);
    else if (is_range(item))
        ok = words_add_range(what, item, out, err);
    else if (without_unit(item, length, plain))
        ok = words_add(out, plain, strlen(plain), err);
    else
        ok = words_add(out, item, length, err);
    free(item);
    return ok;
}

bool words_expand(const char *what, const char *text, WordList *out, Error *err)
{
    const char *start = text;
    int         depth = 0;
    char        quote = 0;

    for (;; text++) {
        if (!*text || (*text == ',' && depth <= 0 && !quote)) {
            if (!add_item(what, start, (size_t)(text - start), out, err))
                return false;
            if (!*text)
                return true;
            start = text + 1;
        } else if (quote || *text == '\'' || *text == '"') {
            quote = !quote ? *text : quote == *text ? 0 : quote;
        } else {
            depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
        }
    }
}

static int by_number(const void *a, const void *b)
{
    long long x = strtoll(*(char *const *)a, NULL, 10), y = strtoll(*(char *const *)b, NULL, 10);

    return (x > y) - (x < y);
}

void words_sort_numbers(WordList *list)
{
    int kept = 0;

    if (list->count)
        qsort(list->items, (size_t)list->count, sizeof(*list->items), by_number);
    for (int i = 0; i < list->count; i++) {
        if (kept && by_number(&list->items[kept - 1], &list->items[i]) == 0)
            free(list->items[i]);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}
