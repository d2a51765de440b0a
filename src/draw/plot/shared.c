/* shared.c -- what curves share: equal ones of a plot one line; the plots of a page one colour and
 * mark for each name, and one key; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/plot/plot.h"

#define NAMES_MOST 128 /* different ones on a page; later ones keep their own hues */

static bool in_key(const PlotSeries *s)
{
    return !s->guide;
}

static bool share_a_name(const Plot *a, const Plot *b)
{
    if (!a || !b || a == b || !a->rows != !b->rows)
        return false;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; in_key(&a->series[i]) && k < b->count; k++)
            if (in_key(&b->series[k]) && !strcmp(a->series[i].name, b->series[k].name))
                return true;
    return false;
}

/* ---- one line --------------------------------------------------------------- */

#define ONE_LINE 0.004 /* of the height: less than the width of a line */

static bool on_one_line(const Plot *plot, const PlotSeries *a, const PlotSeries *b)
{
    bool any = false;

    if (plot->rows || a->guide || b->guide || a->mark == CURVE_BARS || a->mark != b->mark ||
        a->count != b->count)
        return false;
    for (int64_t i = 0; i < a->count; i++) {
        bool there = isfinite(a->y[i]);

        if (there != isfinite(b->y[i]) || a->x[i] < b->x[i] || a->x[i] > b->x[i])
            return false;
        if (there && !(fabs(plot_place(&plot->y, a->y[i]) - plot_place(&plot->y, b->y[i])) <
                       ONE_LINE))
            return false;
        any = any || there;
    }
    return any;
}

int plot_twins(const Plot *plot, int series, int *at)
{
    int count = 1;

    *at = 0;
    for (int k = 0; k < plot->count; k++)
        if (k != series && on_one_line(plot, &plot->series[k], &plot->series[series])) {
            count++;
            *at += k < series;
        }
    return count;
}

#define TWINS_NAMED 4

/* "A, B and C", "A, B, C, D and 5 more": the curves on the line of one. */
static void name_twins(const Plot *plot, int series, int count, Text *out)
{
    int shown = count <= TWINS_NAMED ? count : TWINS_NAMED, at = 0;

    for (int k = series; k < plot->count && at < shown; k++)
        if (k == series || on_one_line(plot, &plot->series[k], &plot->series[series])) {
            text_addf(out, "%s%s", !at ? "" : at + 1 < count ? ", " : " and ",
                      plot->series[k].name);
            at++;
        }
    if (count > shown)
        text_addf(out, " and %d more", count - shown);
    text_add(out, plot->series[series].mark == CURVE_POINTS ? " have the same points"
                                                            : " lie on one line");
}

void plot_twins_words(const Plot *plot, Text *out)
{
    for (int k = 0; k < plot->count; k++) {
        int at, count = plot_twins(plot, k, &at);

        if (count < 2 || at)
            continue;
        text_add(out, out->length ? "; " : "");
        name_twins(plot, k, count, out);
    }
}

/* ---- hues ------------------------------------------------------------------- */

typedef struct NameHue {
    const char *name;
    int         plot, hue;
} NameHue;

typedef struct NameHues {
    NameHue list[NAMES_MOST];
    int     count;
} NameHues;

static bool hue_is_taken(const NameHues *names, int hue)
{
    for (int k = 0; k < names->count; k++)
        if (names->list[k].hue == hue)
            return true;
    return false;
}

/* That of an earlier plot's series of this name, else its own, else the first free one. */
static int hue_for(NameHues *names, int plot, const PlotSeries *s)
{
    int hue = s->hue;

    for (int k = 0; k < names->count; k++)
        if (names->list[k].plot != plot && !strcmp(names->list[k].name, s->name))
            return names->list[k].hue;
    for (int free = 0; hue_is_taken(names, hue); free++)
        hue = free;
    if (names->count < NAMES_MOST)
        names->list[names->count++] = (NameHue){ s->name, plot, hue };
    return hue;
}

/* A line in the colour of a series follows it. */
static void settle_hues(NameHues *names, int plot, Plot *to)
{
    int before[PLOT_SERIES_MOST];

    for (int k = 0; k < to->count; k++)
        before[k] = to->series[k].hue;
    for (int k = 0; k < to->count; k++)
        if (in_key(&to->series[k]))
            to->series[k].hue = hue_for(names, plot, &to->series[k]);
    for (int g = 0; g < to->count; g++)
        for (int k = 0; !in_key(&to->series[g]) && k < to->count; k++)
            if (in_key(&to->series[k]) && before[k] == before[g])
                to->series[g].hue = to->series[k].hue;
}

void plots_share_hues(Plot *const *plots, int count)
{
    NameHues names = { .count = 0 };

    for (int a = 0; a < count; a++) {
        bool shares = false;

        for (int b = 0; b < count; b++)
            shares = shares || share_a_name(plots[a], plots[b]);
        if (shares)
            settle_hues(&names, a, plots[a]);
    }
}

/* ---- the key ---------------------------------------------------------------- */

bool plot_has_key(const Plot *plot)
{
    return plot && plot_named(plot) > 1;
}

/* A reader cannot tell the two signs apart. */
static bool is_one_sign(const PlotKeyEntry *a, const PlotKeyEntry *b)
{
    return a->series->hue == b->series->hue && a->series->mark == b->series->mark &&
           !a->plot->rows == !b->plot->rows &&
           (!a->plot->rows || !a->series->low == !b->series->low);
}

/* In the order of hues, each name once; false: a name has two signs, or there are too many. */
static bool add_to_key(const Plot *plot, const PlotSeries *series, PlotKeyEntry *out, int *count)
{
    PlotKeyEntry entry = { plot, series };
    int          at = *count;

    for (int k = 0; k < *count; k++)
        if (!strcmp(out[k].series->name, series->name))
            return is_one_sign(&out[k], &entry);
    if (*count == PLOT_SERIES_MOST)
        return false;
    for (; at > 0 && out[at - 1].series->hue > series->hue; at--)
        out[at] = out[at - 1];
    out[at] = entry;
    (*count)++;
    return true;
}

/* A plot with a key shares no name with another one. */
static bool stands_apart(const Plot *const *plots, int count, int at)
{
    for (int k = 0; k < count; k++)
        if (share_a_name(plots[at], plots[k]))
            return false;
    return true;
}

int plots_shared_key(const Plot *const *plots, int count, PlotKeyEntry *out)
{
    int entries = 0, sharing = 0;
    bool keys = false;

    for (int a = 0; a < count; a++) {
        const Plot *plot = plots[a];
        bool        apart = !plot || stands_apart(plots, count, a);

        if (apart && plot_has_key(plot))
            return 0;
        keys = keys || plot_has_key(plot);
        sharing += !apart;
        for (int k = 0; !apart && k < plot->count; k++)
            if (in_key(&plot->series[k]) &&
                !add_to_key(plot, &plot->series[k], out, &entries))
                return 0;
    }
    return keys && sharing > 1 ? entries : 0;
}
