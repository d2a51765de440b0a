/* json.c -- a plot as JSON and back; see plot.h.
 *
 * The JSON holds everything that is drawn, so a file's plot is drawn again without measuring:
 * plot_of_json restores the plot of plot_json to the last bit. Defaults are left out.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/plot/plot.h"

static const char *const marks[] = {
    [CURVE_LINE] = "line", [CURVE_STEPS] = "steps", [CURVE_BARS] = "bars",
    [CURVE_POINTS] = "points", [CURVE_SPANS] = "spans",
};
#define MARKS ((int)(sizeof(marks) / sizeof(*marks)))

/* ---- to JSON ---------------------------------------------------------------- */

static void key_numbers(Json *out, const char *key, const double *values, int64_t count)
{
    if (!values)
        return;
    jsonw_key_open(out, key, '[');
    for (int64_t i = 0; i < count; i++)
        jsonw_number(out, values[i]); /* NaN is null */
    jsonw_close(out, ']');
}

static void key_words(Json *out, const char *key, const char *words, size_t each, int64_t count)
{
    if (!words)
        return;
    jsonw_key_open(out, key, '[');
    for (int64_t i = 0; i < count; i++)
        jsonw_string(out, words + (size_t)i * each);
    jsonw_close(out, ']');
}

static void key_true(Json *out, const char *key, bool value)
{
    if (!value)
        return;
    jsonw_key_bool(out, key, true);
}

/* The numbers of the busy points. */
static void busy_json(const PlotSeries *s, Json *out)
{
    if (!s->busy)
        return;
    jsonw_key_open(out, "busy", '[');
    for (int64_t i = 0; i < s->count; i++)
        if (s->busy[i])
            jsonw_int(out, i);
    jsonw_close(out, ']');
}

static void series_json(const PlotSeries *s, int number, Json *out)
{
    jsonw_open(out, '{');
    jsonw_key_string(out, "name", s->name);
    jsonw_key_string(out, "mark", marks[s->mark]);
    key_numbers(out, "x", s->x, s->count);
    key_numbers(out, "y", s->y, s->count);
    key_numbers(out, "low", s->low, s->count);
    key_numbers(out, "high", s->high, s->count);
    key_words(out, "labels", s->labels ? s->labels[0] : NULL, sizeof(s->labels[0]), s->count);
    busy_json(s, out);
    key_true(out, "whiskers", s->whiskers);
    key_true(out, "guide", s->guide);
    key_true(out, "roof", s->roof);
    if (s->hue != number) {
        jsonw_key_int(out, "hue", s->hue);
    }
    jsonw_close(out, '}');
}

static void axis_json(const char *key, const PlotAxis *axis, Json *out)
{
    jsonw_key_open(out, key, '{');
    key_numbers(out, "range", (double[]){ axis->lo, axis->hi }, 2);
    key_true(out, "log", axis->log);
    key_true(out, "twos", axis->twos);
    key_true(out, "whole", axis->whole);
    key_true(out, "words", axis->words);
    key_true(out, "cut", axis->cut);
    key_true(out, "zero", axis->zero);
    jsonw_close(out, '}');
}

static void guides_json(const Plot *plot, Json *out)
{
    if (!plot->guide_count)
        return;
    jsonw_key_open(out, "guides", '[');
    for (int k = 0; k < plot->guide_count; k++) {
        jsonw_open(out, '{');
        jsonw_key_string(out, "name", plot->guides[k].name);
        key_true(out, "vertical", plot->guides[k].vertical);
        key_numbers(out, "at", &plot->guides[k].at, 1);
        jsonw_close(out, '}');
    }
    jsonw_close(out, ']');
}

static void names_json(const PlotAxis *axis, Json *out)
{
    if (!axis->names)
        return;
    key_words(out, "names", axis->names[0].text, sizeof(axis->names[0]), axis->name_count);
    jsonw_key_open(out, "places", '[');
    for (int k = 0; k < axis->name_count; k++)
        jsonw_number(out, axis->names[k].at);
    jsonw_close(out, ']');
}

void plot_json(const Plot *plot, Json *out)
{
    jsonw_key_string(out, "measured", plot->measured);
    jsonw_key_string(out, "x", plot->x.name);
    jsonw_key_string(out, "y", plot->y.name);
    names_json(&plot->x, out);
    key_words(out, "rows", plot->rows ? plot->rows[0] : NULL, sizeof(plot->rows[0]),
              plot->row_count);
    jsonw_key_open(out, "series", '[');
    for (int k = 0; k < plot->count; k++)
        series_json(&plot->series[k], k, out);
    jsonw_close(out, ']');
    guides_json(plot, out);
    axis_json("along", &plot->x, out);
    axis_json("up", &plot->y, out);
    jsonw_some_string(out, "note", plot->note);
    jsonw_some_int(out, "left_out", plot->left_out);
    jsonw_some_int(out, "binned", plot->binned);
}

/* ---- from JSON -------------------------------------------------------------- */

/* False: the value exists and is no string. */
static bool take_string(const json_t *object, const char *key, char *out, size_t size)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value))
        snprintf(out, size, "%s", json_string_value(value));
    return !value || json_is_string(value);
}

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static bool is_list(const json_t *value, size_t count)
{
    return json_is_array(value) && json_array_size(value) == count;
}

static bool take_numbers(const json_t *object, const char *key, double *out, int64_t count)
{
    const json_t *list = json_object_get(object, key);

    if (!is_list(list, (size_t)count))
        return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = number_of(json_array_get(list, (size_t)i));
    return true;
}

static bool take_words(const json_t *list, char *out, size_t each, int64_t count)
{
    if (!is_list(list, (size_t)count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(list, (size_t)i));

        snprintf(out + (size_t)i * each, each, "%s", word ? word : "");
    }
    return true;
}

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* -1: no such mark. */
static int mark_of(const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "mark"));

    for (int k = 0; name && k < MARKS; k++)
        if (!strcmp(marks[k], name))
            return k;
    return -1;
}

/* A hue is the number of a series, or -1. */
static bool take_hue(const json_t *object, int number, PlotSeries *s)
{
    const json_t *hue = json_object_get(object, "hue");
    json_int_t    value = hue ? json_integer_value(hue) : number;

    s->hue = (int)value;
    return value >= -1 && value < PLOT_SERIES_MOST && (s->guide || value >= 0);
}

static bool take_busy(const json_t *object, PlotSeries *s)
{
    const json_t *list = json_object_get(object, "busy"), *one;
    size_t        k;

    json_array_foreach(list, k, one)
        if (!json_is_integer(one) || json_integer_value(one) < 0 ||
            json_integer_value(one) >= s->count || !plot_busy(s, json_integer_value(one)))
            return false;
    return !list || json_is_array(list);
}

static bool read_series(const json_t *object, Plot *plot)
{
    const json_t *labels = json_object_get(object, "labels");
    int64_t       count = (int64_t)json_array_size(json_object_get(object, "x"));
    bool          band = json_object_get(object, "low") != NULL;
    int           mark = mark_of(object);
    PlotSeries   *s = mark < 0 ? NULL : plot_add(plot, "", (CurveMark)mark, count, band);

    if (!s || (labels && !plot_label(s)))
        return false;
    s->whiskers = is_true(object, "whiskers");
    s->guide = is_true(object, "guide");
    s->roof = s->guide && is_true(object, "roof");
    return take_string(object, "name", s->name, sizeof(s->name)) &&
           take_numbers(object, "x", s->x, count) && take_numbers(object, "y", s->y, count) &&
           (!band || (take_numbers(object, "low", s->low, count) &&
                      take_numbers(object, "high", s->high, count))) &&
           (!labels || take_words(labels, s->labels[0], sizeof(s->labels[0]), count)) &&
           take_busy(object, s) && take_hue(object, plot->count - 1, s);
}

static bool take_axis(const json_t *object, const char *key, PlotAxis *axis)
{
    const json_t *own = json_object_get(object, key);
    double        range[2];

    if (!take_numbers(own, "range", range, 2) || !(range[0] < range[1]))
        return false;
    axis->lo = range[0];
    axis->hi = range[1];
    axis->log = is_true(own, "log");
    axis->twos = is_true(own, "twos");
    axis->whole = is_true(own, "whole");
    axis->words = is_true(own, "words");
    axis->cut = is_true(own, "cut");
    axis->zero = is_true(own, "zero");
    return !axis->log || axis->lo > 0;
}

static bool take_names(const json_t *object, PlotAxis *axis)
{
    const json_t *names = json_object_get(object, "names");
    const json_t *places = json_object_get(object, "places");
    size_t        count = json_array_size(names);

    if (!names)
        return true;
    axis->names = calloc(count ? count : 1, sizeof(*axis->names));
    if (!axis->names || !is_list(places, count))
        return false;
    axis->name_count = (int)count;
    for (size_t k = 0; k < count; k++)
        axis->names[k].at = number_of(json_array_get(places, k));
    return take_words(names, axis->names[0].text, sizeof(axis->names[0]), (int64_t)count);
}

static bool take_rows(const json_t *object, Plot *plot)
{
    const json_t *rows = json_object_get(object, "rows");

    return !rows || (plot_rows(plot, (int)json_array_size(rows), NULL) &&
                     take_words(rows, plot->rows[0], sizeof(plot->rows[0]), plot->row_count));
}

static bool take_guides(const json_t *object, Plot *plot)
{
    const json_t *guides = json_object_get(object, "guides"), *guide;
    size_t        k;

    json_array_foreach(guides, k, guide) {
        char   name[sizeof(plot->guides->name)] = "";
        double at;

        if (!take_string(guide, "name", name, sizeof(name)) || !take_numbers(guide, "at", &at, 1))
            return false;
        plot_guide(plot, name, is_true(guide, "vertical"), at);
    }
    return json_array_size(guides) == (size_t)plot->guide_count;
}

static bool take_plot(const json_t *json, Plot *plot)
{
    const json_t *series = json_object_get(json, "series"), *one;
    size_t        k;

    json_array_foreach(series, k, one)
        if (!read_series(one, plot))
            return false;
    plot->left_out = json_integer_value(json_object_get(json, "left_out"));
    plot->binned = json_integer_value(json_object_get(json, "binned"));
    return json_is_array(series) &&
           take_string(json, "measured", plot->measured, sizeof(plot->measured)) &&
           take_string(json, "x", plot->x.name, sizeof(plot->x.name)) &&
           take_string(json, "y", plot->y.name, sizeof(plot->y.name)) &&
           take_string(json, "note", plot->note, sizeof(plot->note)) &&
           take_names(json, &plot->x) && take_rows(json, plot) && take_guides(json, plot) &&
           take_axis(json, "along", &plot->x) && take_axis(json, "up", &plot->y);
}

Plot *plot_of_json(const json_t *json, Error *err)
{
    Plot *plot = plot_new(err);

    if (!plot || take_plot(json, plot))
        return plot;
    plot_free(plot);
    error_set(err, ERR_FORMAT, "its numbers are damaged, or of another version; rerender --measure "
                               "takes new ones");
    return NULL;
}
