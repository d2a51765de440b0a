/* exponents.c -- a chart of exponents as a plot, as JSON and back; see exponents.h.
 *
 * The JSON holds all that is drawn, so a stored chart is drawn again without its records, to the
 * same bytes.
 */
#include "draw/plot/exponents.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plot --------------------------------------------------------------- */

#define TICK_STEP 0.5
#define LEAST     (-2.0) /* of the axis: values beyond lie on its ends */
#define MOST      5.0

static void widen(PlotAxis *axis, double value)
{
    if (!isfinite(value))
        return;
    axis->lo = fmin(axis->lo, fmax(value, LEAST));
    axis->hi = fmax(axis->hi, fmin(value, MOST));
}

/* At least 0 to 2, in whole ticks; wide intervals are cut at the edge. */
static void settle_range(const ExponentChart *chart, PlotAxis *axis)
{
    axis->lo = 0;
    axis->hi = 2;
    for (int i = 0; i < chart->count; i++) {
        const ExponentRow *row = &chart->rows[i];

        for (int k = 0; k < row->claim_count; k++)
            widen(axis, row->claims[k]);
        for (int of = 0; of < EXPONENTS; of++)
            if (row->measured[of].valid)
                widen(axis, row->measured[of].value);
    }
    axis->lo = floor(axis->lo / TICK_STEP) * TICK_STEP;
    axis->hi = ceil((axis->hi + 0.05) / TICK_STEP) * TICK_STEP;
}

int exponent_tick(double at)
{
    return (int)lround(at / TICK_STEP);
}

/* The ticks are names, so that all have one digit after the point. */
static bool settle_ticks(const ExponentChart *chart, PlotAxis *axis)
{
    int most = (int)((MOST + 1 - LEAST) / TICK_STEP) + 1;

    snprintf(axis->name, sizeof(axis->name), "exponent of n");
    settle_range(chart, axis);
    axis->names = calloc((size_t)most, sizeof(*axis->names));
    for (double at = axis->lo; axis->names && at <= axis->hi + 1e-9; at += TICK_STEP) {
        PlotName *name = &axis->names[axis->name_count++];

        name->at = at;
        snprintf(name->text, sizeof(name->text), "%s%.1f", at < 0 ? "\xe2\x88\x92" : "", fabs(at));
    }
    return axis->names != NULL;
}

static bool add_measured(const ExponentChart *chart, ExponentOf of, Plot *plot)
{
    static const char *const of_run[EXPONENTS] = { "FLOPs counted", "time", "memory" };
    static const char *const of_step[EXPONENTS] = { "FLOPs of a step", "its time",
                                                    "bytes it reads" };
    PlotSeries *s = plot_add(plot, chart->step ? of_step[of] : of_run[of], CURVE_POINTS,
                             chart->count, true);

    for (int i = 0; s && i < chart->count; i++) {
        const Exponent *e = &chart->rows[i].measured[of];

        s->y[i] = i;
        s->x[i] = e->valid ? e->value : (double)NAN;
        s->low[i] = e->valid && e->bounded ? e->lo : (double)NAN;
        s->high[i] = e->valid && e->bounded ? e->hi : (double)NAN;
    }
    return s != NULL;
}

static bool any_claim(const ExponentChart *chart)
{
    for (int i = 0; i < chart->count; i++)
        if (chart->rows[i].claim_count)
            return true;
    return false;
}

static bool any_interval(const ExponentChart *chart)
{
    for (int i = 0; i < chart->count * EXPONENTS; i++) {
        const Exponent *e = &chart->rows[i / EXPONENTS].measured[i % EXPONENTS];

        if (e->valid && e->bounded)
            return true;
    }
    return false;
}

/* Some interval is longer than the axis. */
static bool any_is_cut(const ExponentChart *chart, const PlotAxis *axis)
{
    for (int i = 0; i < chart->count * EXPONENTS; i++) {
        const Exponent *e = &chart->rows[i / EXPONENTS].measured[i % EXPONENTS];

        if (e->valid && e->bounded && (e->lo < axis->lo || e->hi > axis->hi))
            return true;
    }
    return false;
}

static bool add_claims(const ExponentChart *chart, Plot *plot)
{
    PlotSeries *s = plot_add(plot, "", CURVE_POINTS, (int64_t)chart->count * EXPONENT_CLAIMS,
                             false);

    if (s) /* what there is in the picture */
        snprintf(s->name, sizeof(s->name), "%s%s%s%s", any_claim(chart) ? "claimed" : "",
                 any_claim(chart) && any_interval(chart) ? "; " : "",
                 any_interval(chart) ? "lines: 95 % intervals" : "",
                 any_is_cut(chart, &plot->x) ? "; arrows: beyond the axis" : "");
    for (int64_t i = 0; s && i < s->count; i++) {
        const ExponentRow *row = &chart->rows[i / EXPONENT_CLAIMS];

        s->y[i] = (double)(i / EXPONENT_CLAIMS);
        s->x[i] = i % EXPONENT_CLAIMS < row->claim_count ? row->claims[i % EXPONENT_CLAIMS]
                                                         : (double)NAN;
    }
    if (s)
        s->hue = -1; /* grey */
    return s != NULL;
}

Plot *exponents_plot(const ExponentChart *chart, Error *err)
{
    Plot *plot = plot_new(err);
    bool  ok = plot && settle_ticks(chart, &plot->x);

    for (ExponentOf of = EXPONENT_FLOPS; ok && of < EXPONENTS; of++)
        ok = add_measured(chart, of, plot);
    if (ok && add_claims(chart, plot))
        return plot;
    if (plot)
        error_set(err, ERR_NOMEM, "a chart of exponents: out of memory");
    plot_free(plot);
    return NULL;
}

/* A file with more rows is none of ours. */
#define ROWS_MOST 4096

static const char *const keys[EXPONENTS] = {
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
    jsonw_key_open(out, "claims", '[');
    for (int i = 0; i < row->claim_count; i++)
        jsonw_number(out, row->claims[i]);
    jsonw_close(out, ']');
    for (int of = 0; of < EXPONENTS; of++) {
        jsonw_key(out, keys[of]);
        exponent_json(&row->measured[of], out);
    }
    jsonw_close(out, '}');
}

void exponents_json(const ExponentChart *chart, Json *out)
{
    jsonw_key_string(out, "measured", chart->measured);
    jsonw_key_string(out, "title", chart->title);
    jsonw_key_string(out, "caption", chart->caption);
    if (chart->step)
        jsonw_key_bool(out, "step", true);
    jsonw_key_open(out, "rows", '[');
    for (int i = 0; i < chart->count; i++)
        row_json(&chart->rows[i], out);
    jsonw_close(out, ']');
}

/* ---- from JSON -------------------------------------------------------------- */

/* Copies a string; *text NULL: absent. False: no string, or out of memory. */
static bool copy_string(const json_t *object, const char *key, const char **text)
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
        if (!take_exponent(json_object_get(object, keys[of]), &row->measured[of]))
            return false;
    if (!json_is_array(claims) || count > EXPONENT_CLAIMS)
        return false;
    row->claim_count = (int)count;
    for (size_t i = 0; i < count; i++)
        row->claims[i] = json_number_value(json_array_get(claims, i));
    return copy_string(object, "group", &row->group) && copy_string(object, "note", &row->note) &&
           copy_string(object, "name", &row->name) && row->name &&
           copy_string(object, "claim", &row->claim) && row->claim;
}

static bool take_chart(const json_t *json, ExponentChart *chart)
{
    const json_t *list = json_object_get(json, "rows");
    size_t        count = json_array_size(list);
    ExponentRow  *rows = count && count <= ROWS_MOST ? calloc(count, sizeof(*rows)) : NULL;

    chart->step = json_is_true(json_object_get(json, "step"));
    chart->rows = rows;
    chart->count = rows ? (int)count : 0;
    for (int i = 0; i < chart->count; i++)
        if (!take_row(json_array_get(list, (size_t)i), &rows[i]))
            return false;
    return rows && copy_string(json, "measured", &chart->measured) && chart->measured &&
           copy_string(json, "title", &chart->title) && chart->title &&
           copy_string(json, "caption", &chart->caption) && chart->caption;
}

ExponentChart *exponents_of_json(const json_t *json, Error *err)
{
    ExponentChart *chart = calloc(1, sizeof(*chart));

    if (!chart) {
        error_set(err, ERR_NOMEM, "not enough memory for a chart of exponents");
        return NULL;
    }
    if (take_chart(json, chart))
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
