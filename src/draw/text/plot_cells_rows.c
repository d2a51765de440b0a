/* plot_cells_rows.c -- a plot with rows as characters: names, lying bars, whiskers, draws. */
#include <math.h>

#include "draw/text/field.h"

#define NAMES_SHARE 0.42 /* of the width that names take at most */

static int bars_of(const Plot *plot)
{
    int count = 0;

    for (int k = 0; k < plot->count; k++)
        count += plot->series[k].mark == CURVE_BARS;
    return count;
}

static int lines_of(const Plot *plot)
{
    int bars = bars_of(plot);

    return bars > 1 ? bars + 1 : 1; /* a blank line keeps groups apart */
}

int plot_cells_lines(const Plot *plot, int width)
{
    return plot->row_count * lines_of(plot) + 3 + cells_legend_lines(plot, width);
}

/* ---- one line --------------------------------------------------------------- */

/* Columns from the left of the field, with a fraction; NaN: no place. */
static double column(const Field *f, double value)
{
    return plot_place(&f->axis, value) * f->w;
}

static void put_bar(Field *f, int y, double from, double to, int ink)
{
    static const uint32_t eighths[] = { ' ',    0x258F, 0x258E, 0x258D, 0x258C,
                                        0x258B, 0x258A, 0x2589, 0x2588 };

    for (int x = (int)floor(from); x < to; x++) {
        int part = (int)lround(8 * fmin(to - x, 1));

        if (f->utf8 && part > 0)
            cells_put(f->out, y, f->x + x, eighths[part], ink);
        else if (!f->utf8 && part >= 4)
            cells_put(f->out, y, f->x + x, '=', ink);
    }
}

/* "|--|" from low to high. */
static void put_whisker(Field *f, int y, double low, double high)
{
    int from = (int)floor(low), to = (int)floor(high);

    to = to >= f->w ? f->w - 1 : to;
    for (int x = from; x <= to; x++)
        cells_put(f->out, y, f->x + x, f->utf8 ? 0x2500 : '-', PLOT_INK_TEXT);
    cells_put(f->out, y, f->x + from, f->utf8 ? 0x251C : '|', PLOT_INK_TEXT);
    cells_put(f->out, y, f->x + to, f->utf8 ? 0x2524 : '|', PLOT_INK_TEXT);
    if (from == to)
        cells_put(f->out, y, f->x + to, f->utf8 ? 0x253C : '+', PLOT_INK_TEXT);
}

/* Beyond `after`, or where the field ends; a number that has no room is left out, never cut. */
static void put_words(Field *f, int y, double after, const char *text, bool known)
{
    int x = (int)ceil(after) + 1, width = cells_width(text);

    if (x + width > f->w)
        x = f->w - width;
    if (x < 0)
        return;
    cells_text(f->out, y, f->x + x, f->w - x, text, known ? PLOT_INK_TEXT : PLOT_INK_GUIDE,
               f->utf8);
}

static bool has_interval(const PlotSeries *s, int64_t i)
{
    return s->low && isfinite(s->low[i]) && isfinite(s->high[i]);
}

static void put_bar_line(Field *f, const PlotSeries *s, int64_t i, int y)
{
    double zero = column(f, fmax(0, f->plot->x.lo)), end = column(f, s->x[i]), after = end;

    if (isfinite(end))
        put_bar(f, y, zero, end, s->hue);
    if (isfinite(end) && has_interval(s, i)) {
        put_whisker(f, y, column(f, s->low[i]), column(f, s->high[i]));
        after = fmax(after, floor(column(f, s->high[i])) + 1);
    }
    if (s->labels && s->labels[i][0])
        put_words(f, y, isfinite(after) ? after : zero, s->labels[i], isfinite(end));
}

/* A line from least to most, the mean as a stroke; the draws come upon it. */
static void put_spread(Field *f, const PlotSeries *s, int64_t i, int y)
{
    double x = column(f, s->x[i]), after = x;

    if (isfinite(x) && has_interval(s, i)) {
        after = floor(column(f, s->high[i])) + 1;
        put_whisker(f, y, column(f, s->low[i]), column(f, s->high[i]));
    }
    if (s->labels && s->labels[i][0])
        put_words(f, y, isfinite(after) ? after : 0, s->labels[i], isfinite(x));
}

static void put_mean(Field *f, const PlotSeries *s, int64_t i, int y)
{
    double x = column(f, s->x[i]);

    if (isfinite(x))
        cells_put(f->out, y, f->x + (int)fmin(floor(x), f->w - 1), f->utf8 ? 0x2503 : '!', s->hue);
}

/* A cell at least; without colours the letter of the series tells them apart. */
static void put_span(Field *f, const PlotSeries *s, int64_t i, int y)
{
    int from = (int)floor(column(f, s->low[i])), to = (int)ceil(column(f, s->high[i]));

    to = to > from ? to : from + 1;
    for (int x = from < f->w ? from : f->w - 1; x < to && x < f->w; x++)
        cells_put(f->out, y, f->x + x, (uint32_t)plot_letter(s->hue), s->hue);
}

/* ---- all -------------------------------------------------------------------- */

static void put_points(Field *f, const PlotSeries *s, int each)
{
    bool spread = s->low || s->labels;

    for (int64_t i = 0; i < s->count; i++) {
        int    y = f->y + (int)s->y[i] * each;
        double x = column(f, s->x[i]);

        if (y >= f->y + f->h)
            continue;
        if (s->mark == CURVE_SPANS)
            put_span(f, s, i, y);
        else if (spread)
            put_spread(f, s, i, y);
        else if (isfinite(x))
            cells_put(f->out, y, f->x + (int)fmin(floor(x), f->w - 1),
                      (uint32_t)plot_letter(s->hue), s->hue);
    }
}

static void put_names(Field *f, int width, int each)
{
    for (int r = 0; r < f->plot->row_count; r++) {
        int y = f->y + r * each;

        if (y >= f->y + f->h)
            break;
        cells_cut(f->out, y, 0, width, f->plot->rows[r], PLOT_INK_TEXT, f->utf8);
    }
}

/* It says all by its extent. */
static bool is_shape(const PlotSeries *s)
{
    return s->mark == CURVE_BARS || s->mark == CURVE_SPANS;
}

static void put_all(Field *f, int each)
{
    const Plot *plot = f->plot;
    int         bar = 0;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        for (int64_t i = 0; s->mark == CURVE_BARS && i < s->count; i++)
            if (f->y + (int)s->y[i] * each + bar < f->y + f->h)
                put_bar_line(f, s, i, f->y + (int)s->y[i] * each + bar);
        bar += s->mark == CURVE_BARS;
        if (s->mark != CURVE_BARS)
            put_points(f, s, each);
    }
    for (int k = 0; k < plot->count; k++)
        for (int64_t i = 0; !is_shape(&plot->series[k]) && i < plot->series[k].count; i++)
            if ((plot->series[k].low || plot->series[k].labels) &&
                (int)plot->series[k].y[i] * each < f->h)
                put_mean(f, &plot->series[k], i, f->y + (int)plot->series[k].y[i] * each);
}

static double width_of(const void *context, const char *text)
{
    (void)context;
    return cells_width(text);
}

void cells_rows(Field *f, int top)
{
    const Plot *plot = f->plot;
    int         most = (int)(NAMES_SHARE * f->out->width), each = lines_of(plot), widest = 0;
    int         length;

    for (int r = 0; r < plot->row_count; r++)
        widest = cells_width(plot->rows[r]) > widest ? cells_width(plot->rows[r]) : widest;
    widest = widest < most ? widest : most;
    f->x = widest + 2;
    f->y = top;
    f->w = f->out->width - f->x - 1;
    f->h = f->out->height - top - 3;
    each += f->h > plot->row_count * (each + 1) && each < 3;
    f->h = f->h < plot->row_count * each ? f->h : plot->row_count * each;
    f->axis = plot_rows_axis(plot, f->w, 2, width_of, NULL);
    f->places.frame = (LabelBox){ f->x, f->y, f->w, f->h };
    cells_guides(f);
    put_all(f, each);
    cells_name_guides(f);
    put_names(f, widest, each);
    for (int y = 0; y < f->h; y++)
        cells_put(f->out, f->y + y, f->x - 1, f->utf8 ? 0x2502 : '|', PLOT_INK_AXIS);
    cells_x_axis(f);
    length = cells_width(plot->x.name);
    cells_cut(f->out, f->y + f->h + 2, f->x + (f->w > length ? (f->w - length) / 2 : 0), f->w,
              plot->x.name, PLOT_INK_TEXT, f->utf8);
}
