/* plot_parts.c -- rows, words and lines of a plot; its copy; see plot.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/plot/plot.h"

bool plot_label(PlotSeries *series)
{
    size_t count = (size_t)(series->count > 0 ? series->count : 1);

    series->labels = calloc(count, sizeof(*series->labels));
    return series->labels != NULL;
}

PlotSeries *plot_line(Plot *plot, const char *name, int hue, const double *x, const double *y,
                      int count)
{
    PlotSeries *s = plot_add(plot, name, CURVE_LINE, count, false);

    if (!s)
        return NULL;
    s->guide = true;
    s->hue = hue;
    memcpy(s->x, x, (size_t)count * sizeof(*x));
    memcpy(s->y, y, (size_t)count * sizeof(*y));
    return s;
}

bool plot_rows(Plot *plot, int count, Error *err)
{
    if (count < 1 || count > PLOT_ROWS_MOST)
        return error_set(err, ERR_USAGE, "a plot has 1 to %d rows, not %d", PLOT_ROWS_MOST, count);
    plot->rows = calloc((size_t)count, sizeof(*plot->rows));
    plot->row_count = count;
    return plot->rows || error_set(err, ERR_NOMEM, "a plot: out of memory");
}

int plot_named(const Plot *plot)
{
    int count = 0;

    for (int k = 0; k < plot->count; k++)
        count += !plot->series[k].guide;
    return count;
}

#define LEAST_BAR 0.1 /* of the room, that words leave to what they stand beside */

PlotAxis plot_rows_axis(const Plot *plot, double room, double gap,
                        double (*width)(const void *context, const char *text),
                        const void *context)
{
    PlotAxis axis = plot->x;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        for (int64_t i = 0; s->labels && i < s->count; i++) {
            double end = s->high && isfinite(s->high[i]) ? fmax(s->x[i], s->high[i]) : s->x[i];
            double left = room - width(context, s->labels[i]) - gap;

            if (isfinite(end) && left > LEAST_BAR * room)
                axis.hi = fmax(axis.hi, axis.lo + (end - axis.lo) * room / left);
        }
    }
    return axis;
}

/* ---- a copy ----------------------------------------------------------------- */

static bool copy_series(Plot *to, const PlotSeries *from)
{
    size_t      size = (size_t)from->count * sizeof(double);
    PlotSeries *s = plot_add(to, from->name, from->mark, from->count, from->low != NULL);

    if (!s || (from->labels && !plot_label(s)))
        return false;
    memcpy(s->x, from->x, size);
    memcpy(s->y, from->y, size);
    if (s->low) {
        memcpy(s->low, from->low, size);
        memcpy(s->high, from->high, size);
    }
    if (s->labels)
        memcpy(s->labels, from->labels, (size_t)from->count * sizeof(*s->labels));
    s->whiskers = from->whiskers;
    s->guide = from->guide;
    s->hue = from->hue;
    return true;
}

/* Those of the axis are the original's as yet. */
static bool copy_names(Plot *copy, Error *err)
{
    const PlotName *names = copy->x.names;
    size_t          size = (size_t)copy->x.name_count * sizeof(*names);

    if (!names)
        return true;
    copy->x.names = malloc(size ? size : 1);
    if (!copy->x.names)
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    memcpy(copy->x.names, names, size);
    return true;
}

Plot *plot_copy(const Plot *plot, Error *err)
{
    Plot *copy = plot_new(err);
    bool  ok = copy != NULL;

    if (!ok)
        return NULL;
    *copy = *plot;
    copy->count = 0;
    copy->rows = NULL;
    ok = copy_names(copy, err) && (!plot->rows || plot_rows(copy, plot->row_count, err));
    if (ok && plot->rows)
        memcpy(copy->rows, plot->rows, (size_t)plot->row_count * sizeof(*copy->rows));
    for (int k = 0; ok && k < plot->count; k++)
        ok = copy_series(copy, &plot->series[k]) ||
             error_set(err, ERR_NOMEM, "a plot: out of memory");
    if (ok)
        return copy;
    plot_free(copy);
    return NULL;
}
