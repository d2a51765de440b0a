/* curve.c -- the series of a curve view; see plot.h.
 *
 * A long axis is read in equal bins; each keeps its least and its largest value, so no peak is
 * lost.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/plot/plot.h"

typedef struct Source {
    const View *view;
    ViewCurve   curve;
    bool        by_rows; /* a series is a row of the view */
    int64_t     plane, points, series;
} Source;

static Source source_of(const View *view, const ViewCurve *curve, int64_t plane)
{
    Source s = { .view = view, .curve = *curve };

    s.by_rows = curve->by_rows || view->rank < 2;
    s.plane = plane < view_planes(view) ? plane : view_planes(view) - 1;
    s.points = s.by_rows ? view_cols(view) : view_rows(view);
    s.series = s.by_rows ? view_rows(view) : view_cols(view);
    return s;
}

static double value_at(const Source *s, const View *view, int64_t series, int64_t point)
{
    float value;

    if (view->tensor.data && view->tensor.dtype == DT_F64) /* exactly, not through floats */
        return ((const double *)view->tensor.data)[(s->plane * view_rows(view) +
                                                    (s->by_rows ? series : point)) *
                                                       view_cols(view) +
                                                   (s->by_rows ? point : series)];
    view_read(view, s->plane, s->by_rows ? series : point, s->by_rows ? point : series, 1, 1,
              &value);
    return (double)value;
}

static double point_x(const Source *s, int64_t point)
{
    const View *along = s->view->along;
    Source      x;

    if (!along || view_cols(along) * view_rows(along) * view_planes(along) < s->points)
        return s->curve.first +
               (double)point * (s->curve.spacing > 0 ? s->curve.spacing : 1);
    x = (Source){ .view = along, .by_rows = true };
    if (view_cols(along) < s->points) /* [.., points, 1] or [h, points]: by the row */
        return value_at(&(Source){ .view = along, .by_rows = false }, along, 0,
                        point < view_rows(along) ? point : view_rows(along) - 1);
    return value_at(&x, along, 0, point);
}

/* Name `at` of "plain|reversible". */
static void series_name(const Source *s, int64_t at, const char *prefix, char *text, size_t size)
{
    const char *names = s->curve.series, *end;

    for (int64_t k = 0; names && k < at; k++) {
        names = strchr(names, '|');
        names = names ? names + 1 : NULL;
    }
    if (names) {
        end = strchr(names, '|');
        snprintf(text, size, "%s%.*s", prefix, (int)(end ? end - names : (long)strlen(names)),
                 names);
    } else if (s->series == 1) {
        snprintf(text, size, "%s%s", prefix, s->view->name);
    } else {
        snprintf(text, size, "%s%s %lld", prefix,
                 s->by_rows ? s->view->rows : s->view->cols, (long long)at);
    }
}

static bool same_shape(const View *a, const View *b)
{
    return b && view_rows(a) == view_rows(b) && view_cols(a) == view_cols(b);
}

static double shown_value(const Source *s, const View *minus, int64_t series, int64_t point)
{
    double value = value_at(s, s->view, series, point);

    return minus ? value - value_at(s, minus, series, point) : value;
}

static void fill_points(const Source *s, const View *minus, int64_t series, PlotSeries *out)
{
    for (int64_t i = 0; i < s->points; i++) {
        out->x[i] = point_x(s, i);
        out->y[i] = shown_value(s, minus, series, i);
        if (!out->low)
            continue;
        out->low[i] = value_at(s, s->view->low, series, i);
        out->high[i] = value_at(s, s->view->high, series, i);
    }
    if (out->count > s->points) {
        out->x[s->points] = point_x(s, s->points);
        out->y[s->points] = out->y[s->points - 1];
    }
}

static void fill_bins(const Source *s, const View *minus, int64_t series, int64_t bin,
                      PlotSeries *out)
{
    for (int64_t first = 0, at = 0; first < s->points; first += bin, at += 2) {
        double  lo = (double)NAN, hi = (double)NAN;
        int64_t lo_at = first, hi_at = first;

        for (int64_t i = first; i < first + bin && i < s->points; i++) {
            double value = shown_value(s, minus, series, i);

            lo_at = !(lo <= value) ? i : lo_at;
            hi_at = !(hi >= value) ? i : hi_at;
            lo = lo_at == i ? value : lo;
            hi = hi_at == i ? value : hi;
        }
        out->x[at] = point_x(s, lo_at < hi_at ? lo_at : hi_at);
        out->y[at] = lo_at < hi_at ? lo : hi;
        out->x[at + 1] = point_x(s, lo_at < hi_at ? hi_at : lo_at);
        out->y[at + 1] = lo_at < hi_at ? hi : lo;
    }
}

static void name_axes(Plot *plot, const Source *s, bool difference)
{
    plot->x.log = s->curve.log_x;
    plot->y.log = s->curve.log_y && !difference;
    snprintf(plot->x.name, sizeof(plot->x.name), "%s", s->curve.x ? s->curve.x : "");
    snprintf(plot->y.name, sizeof(plot->y.name), "%s%s", difference ? "difference of " : "",
             s->curve.y);
}

static bool add_series(Plot *plot, const Source *s, const View *minus, int64_t at,
                       const char *prefix)
{
    int64_t     bin = s->points > PLOT_POINTS_MOST ? (2 * s->points - 1) / PLOT_POINTS_MOST + 1 : 1;
    bool        band = bin == 1 && !minus && same_shape(s->view, s->view->low) &&
                same_shape(s->view, s->view->high);
    /* A step is as wide as those before it, the last one too. */
    bool        ends = s->curve.mark == CURVE_STEPS && bin == 1 && !s->view->along && !band;
    PlotSeries *out;
    char        name[64];

    series_name(s, at, prefix, name, sizeof(name));
    out = plot_add(plot, name, s->curve.mark,
                   bin > 1 ? 2 * ((s->points + bin - 1) / bin) : s->points + ends, band);
    if (!out)
        return false;
    if (s->curve.numbers)
        out->hue = s->curve.numbers[at];
    if (bin == 1) {
        fill_points(s, minus, at, out);
        return true;
    }
    plot->binned = bin;
    fill_bins(s, minus, at, bin, out);
    return true;
}

bool plot_has_heads(const View *view)
{
    ViewCurve   curve;
    const char *series;

    if (view->rank != 2 || !view_curve(view, &curve) || curve.series)
        return false;
    series = curve.by_rows ? view->rows : view->cols;
    return series && !strcmp(series, "head");
}

bool plot_add_view(Plot *plot, const View *view, const View *minus, int64_t plane, int64_t head,
                   const char *prefix, Error *err)
{
    ViewCurve curve;
    Source    s;

    if (!view_curve(view, &curve))
        return error_set(err, ERR_USAGE, "%s is a matrix, not a curve", view->name);
    if (minus && !same_shape(view, minus))
        return error_set(err, ERR_USAGE, "no difference: the curves have other shapes");
    s = source_of(view, &curve, plane);
    if (!plot->count)
        name_axes(plot, &s, minus != NULL);
    if (*prefix && curve.main && curve.main < s.series) {
        s.series = curve.main;
        series_name(&s, 0, "", plot->y.name, sizeof(plot->y.name));
    }
    head = plot_has_heads(view) && head <= s.series ? head : 0;
    for (int64_t k = head ? head - 1 : 0; k < (head ? head : s.series); k++) {
        if (plot->count == PLOT_SERIES_MOST) {
            plot->left_out += s.series - k;
            break;
        }
        if (!add_series(plot, &s, minus, k, prefix))
            return error_set(err, ERR_NOMEM, "a plot: out of memory");
    }
    if (curve.points && !plot_name_points(plot, curve.points))
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    for (int k = 0; k < view->guide_count && !minus; k++)
        plot_guide(plot, view->guides[k].name, view->guides[k].vertical, view->guides[k].at);
    return true;
}
