/* plot_cells.c -- a plot drawn in characters: dots, axes, legend, rows; see plot_cells.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "draw/text/field.h"
#include "draw/text/unicode.h"

#define LEGEND_LINES 2 /* in any height; more take a share of it */
#define LEGEND_SHARE 3
#define LEGEND_LINES_ROWS 4
#define USUAL_LINES 20 /* of a plot of curves with few names */
#define FIELD_LEAST 3 /* lines that are left to the curves */
#define CURVES_LEAST 8 /* lines of curves with their axes, below a legend */
#define DRAWN_MOST  6 /* drawings, the last with the key as it is then */
#define FEW_POINTS   24 /* up to which each has its letter */

/* ---- characters ------------------------------------------------------------- */

/* NULL: outside */
static PlotCell *cells_at(PlotCells *c, int y, int x)
{
    return y >= 0 && x >= 0 && y < c->height && x < c->width ? &c->cells[y * c->width + x] : NULL;
}

void cells_put(PlotCells *c, int y, int x, uint32_t ch, int ink)
{
    PlotCell *cell = cells_at(c, y, x);

    if (cell)
        *cell = (PlotCell){ ch, ink };
}

int cells_text(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8)
{
    int used = 0;

    while (*text && used < room) {
        uint32_t ch = utf8_next(&text);

        if (ch >= 128 && !utf8)
            ch = ch == 0xB7 || ch == 0x2212 ? '-' : '?';
        cells_put(c, y, x + used++, ch == UTF8_MALFORMED ? UTF8_REPLACEMENT : ch, ink);
    }
    return used;
}

void cells_cut(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8)
{
    cells_text(c, y, x, room, text, ink, utf8);
    if (utf8_columns(text) > room)
        cells_put(c, y, x + room - 1, utf8 ? 0x2026 : '~', ink);
}

/* Words share the width equally, numbers are never cut. */
static int tick_width(const Field *f, const PlotTick *tick, int count)
{
    int room = f->w / (count > 0 ? count : 1) - 1, width = utf8_columns(tick->text);

    return !f->axis.words || width <= room || room < 3 ? width : room;
}

/* The x axis with its numbers; the caller draws the y axis. */
static void cells_x_axis(Field *f)
{
    PlotCells *c = f->out;
    PlotTick   ticks[PLOT_TICKS_MOST];
    int        count = plot_ticks(&f->axis, f->w / 9, ticks), free_x = 0;

    for (int x = 0; x < f->w; x++)
        cells_put(c, f->y + f->h, f->x + x, f->utf8 ? 0x2500 : '-', PLOT_INK_AXIS);
    cells_put(c, f->y + f->h, f->x - 1, f->utf8 ? 0x2514 : '+', PLOT_INK_AXIS);
    for (int k = 0; k < count; k++) {
        int x = f->x + (int)lround(ticks[k].place * (f->w - 1));
        int width = tick_width(f, &ticks[k], count), left = x - width / 2;

        left = left + width > c->width ? c->width - width : left < 0 ? 0 : left;
        if (left < free_x)
            continue;
        cells_put(c, f->y + f->h, x, f->utf8 ? 0x252C : '+', PLOT_INK_AXIS);
        cells_cut(c, f->y + f->h + 1, left, width, ticks[k].text, PLOT_INK_TEXT, f->utf8);
        free_x = left + width + 1;
    }
}

/* ---- dots ------------------------------------------------------------------- */

/* Braille: one bit per dot of a character; ASCII: the letter of the series. */
void cells_dot(Field *f, int dot_y, int dot_x, int ink)
{
    static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    int       across = f->utf8 ? 2 : 1, down = f->utf8 ? 4 : 1;
    PlotCell *cell;

    if (dot_x < 0 || dot_y < 0 || dot_x >= across * f->w || dot_y >= down * f->h)
        return;
    cell = cells_at(f->out, f->y + dot_y / down, f->x + dot_x / across);
    if (!cell)
        return;
    if (!f->utf8) {
        *cell = (PlotCell){ ink < 0 ? '.' : (uint32_t)plot_letter(ink), ink };
        return;
    }
    if (cell->ch < 0x2800 || cell->ch > 0x28FF)
        cell->ch = 0x2800;
    cell->ch |= bits[dot_y % 4][dot_x % 2];
    cell->ink = ink;
}

static int dots_across(const Field *f)
{
    return f->utf8 ? 2 * f->w : f->w;
}

static int dots_down(const Field *f)
{
    return f->utf8 ? 4 * f->h : f->h;
}

/* False: the point has no place. */
bool cells_dot_of(const Field *f, double x, double y, int *dot_x, int *dot_y)
{
    double px = plot_place(&f->axis, x), py = plot_place(&f->plot->y, y);

    if (isnan(px) || isnan(py))
        return false;
    *dot_x = (int)lround(px * (dots_across(f) - 1));
    *dot_y = (int)lround((1 - py) * (dots_down(f) - 1));
    return true;
}

static void put_line(Field *f, int x0, int y0, int x1, int y1, int series)
{
    int dx = abs(x1 - x0), dy = abs(y1 - y0), steps = dx > dy ? dx : dy;

    for (int k = 0; k <= steps; k++)
        cells_dot(f, steps ? y0 + (int)lround((double)k * (y1 - y0) / steps) : y0,
                steps ? x0 + (int)lround((double)k * (x1 - x0) / steps) : x0, series);
}

static void put_bars(Field *f, const PlotSeries *s, int series)
{
    static const uint32_t eighths[] = { ' ',    0x2581, 0x2582, 0x2583, 0x2584,
                                        0x2585, 0x2586, 0x2587, 0x2588 };
    double step = s->count > 1 ? fabs(s->x[1] - s->x[0]) : 1;

    for (int64_t i = 0; i < s->count; i++) {
        double left = plot_place(&f->plot->x, s->x[i] - 0.4 * step), top;
        double right = plot_place(&f->plot->x, s->x[i] + 0.4 * step);
        int    from, to, high;

        if (isnan(plot_place(&f->plot->y, s->y[i])) || isnan(left) || isnan(right))
            continue;
        top = plot_place(&f->plot->y, s->y[i]) * f->h * 8;
        from = (int)lround(left * f->w);
        to = (int)lround(right * f->w);
        to = to > from ? to : from + 1;
        high = (int)ceil(top / 8);
        for (int x = from; x < to && x < f->w; x++)
            for (int y = 0; y < high; y++) {
                int part = (int)lround(fmin(top - 8 * y, 8));

                if (part > 0)
                    cells_put(f->out, f->y + f->h - 1 - y, f->x + x,
                        f->utf8 ? eighths[part] : (uint32_t)plot_letter(series), series);
            }
    }
}

static void put_series(Field *f, const PlotSeries *s, int series)
{
    int  x0 = 0, y0 = 0, x, y;
    bool drawn = false;

    for (int64_t i = 0; i < s->count; i++) {
        if (!cells_dot_of(f, s->x[i], s->y[i], &x, &y)) {
            drawn = false;
            continue;
        }
        if (!drawn || s->mark == CURVE_POINTS) {
            cells_dot(f, y, x, series);
        } else if (s->mark == CURVE_STEPS) {
            put_line(f, x0, y0, x, y0, series);
            put_line(f, x, y0, x, y, series);
        } else {
            put_line(f, x0, y0, x, y, series);
        }
        drawn = true;
        x0 = x;
        y0 = y;
    }
}

/* Letters on points, so that series differ without colours. */
static void put_letters(Field *f, const PlotSeries *s, int series)
{
    int64_t every = (s->count + 7) / 8;
    int64_t first;
    int     x, y, at;

    if ((s->count <= FEW_POINTS && s->count * 3 <= f->w) || s->mark == CURVE_POINTS)
        every = 1;
    first = (series * every) / (f->plot->count ? f->plot->count : 1);
    if (every == 1) { /* curves on one line take turns */
        every = plot_twins(f->plot, series, &at);
        first = at < s->count ? at : 0;
    }
    for (int64_t i = first; i < s->count; i += every)
        if (cells_dot_of(f, s->x[i], s->y[i], &x, &y))
            cells_put(f->out, f->y + y / (f->utf8 ? 4 : 1), f->x + x / (f->utf8 ? 2 : 1),
                      (uint32_t)plot_letter(s->hue), s->hue);
}

/* A busy point has its sign in place of a letter. */
static void put_busy(Field *f, const PlotSeries *s)
{
    int x, y;

    for (int64_t i = 0; s->busy && i < s->count; i++)
        if (s->busy[i] && cells_dot_of(f, s->x[i], s->y[i], &x, &y))
            cells_put(f->out, f->y + y / (f->utf8 ? 4 : 1), f->x + x / (f->utf8 ? 2 : 1), '!',
                      s->hue);
}

static void put_band(Field *f, const PlotSeries *s, int series)
{
    for (int64_t i = 0; s->low && i < s->count; i++) {
        int x, low, high;

        if (!cells_dot_of(f, s->x[i], s->low[i], &x, &low) ||
            !cells_dot_of(f, s->x[i], s->high[i], &x, &high))
            continue;
        if (s->whiskers)
            put_line(f, x, low, x, high, series);
        cells_dot(f, low, x, series);
        cells_dot(f, high, x, series);
    }
}

/* ---- around ----------------------------------------------------------------- */

/* Of two ticks that share a line only the first has its words. */
static void put_y_axis(Field *f, const PlotTick *ticks, int count)
{
    PlotCells *c = f->out;
    int        above = -1;

    for (int y = 0; y < f->h; y++)
        cells_put(c, f->y + y, f->x - 1, f->utf8 ? 0x2502 : '|', PLOT_INK_AXIS);
    for (int k = 0; k < count; k++) {
        int y = f->y + (int)lround((1 - ticks[k].place) * (f->h - 1));
        int width = utf8_columns(ticks[k].text);

        if (y == above)
            continue;
        above = y;
        cells_text(c, y, f->x - 1 - width, width, ticks[k].text, PLOT_INK_TEXT, f->utf8);
        cells_put(c, y, f->x - 1, f->utf8 ? 0x2524 : '+', PLOT_INK_AXIS);
    }
}

#define ENTRY_LEAST 4 /* columns of a name that is cut, with its letter and a blank */

/* Each name after the other; 0: they take more than `most` lines. */
static int legend_flows(const Plot *plot, PlotCells *c, int top, int most, bool utf8, bool draw)
{
    int x = 0, line = 0;

    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];
        int               width = utf8_columns(s->name) + 2;

        if (s->guide)
            continue;
        if (x && x + width > c->width) {
            x = 0;
            line++;
        }
        if (line == most)
            return 0;
        if (draw) {
            cells_put(c, top + line, x, (uint32_t)plot_letter(s->hue), s->hue);
            cells_text(c, top + line, x + 2, c->width - x - 2, s->name, PLOT_INK_TEXT, utf8);
        }
        x += width + 2;
    }
    return line + 1;
}

/* Names cut to columns of one width, so that no letter lacks one; where they have no room, the last
 * place says how many lack it: "+3". */
static void legend_columns(const Plot *plot, PlotCells *c, int top, int lines, bool utf8)
{
    int  count = plot_named(plot), each = (count + lines - 1) / lines, width, at = 0;
    int  most = c->width / ENTRY_LEAST, shown;
    char rest[16];

    each = each < most ? each : most;
    width = c->width / each;
    shown = count <= each * lines ? count : each * lines - 1;
    for (int k = 0; k < plot->count && at < shown; k++) {
        const PlotSeries *s = &plot->series[k];
        int               x = at % each * width, y = top + at / each;

        if (s->guide)
            continue;
        cells_put(c, y, x, (uint32_t)plot_letter(s->hue), s->hue);
        cells_cut(c, y, x + 2, width - 3, s->name, PLOT_INK_TEXT, utf8);
        at++;
    }
    snprintf(rest, sizeof(rest), "+%d", count - shown);
    if (shown < count)
        cells_text(c, top + at / each, at % each * width, width, rest, PLOT_INK_TEXT, utf8);
}

/* Lines that names take at most, of a plot of so many. */
static int legend_most(const Plot *plot, int height)
{
    int share = height / LEGEND_SHARE, left = height - CURVES_LEAST;

    if (plot->rows)
        return LEGEND_LINES_ROWS;
    share = share < left ? share : left;
    return share > LEGEND_LINES ? share : LEGEND_LINES;
}

/* Returns the number of lines; `draw` draws them. */
static int legend(const Plot *plot, PlotCells *c, int top, bool utf8, bool draw)
{
    int most = legend_most(plot, c->height), lines;

    if (plot_named(plot) < 2)
        return 0;
    lines = legend_flows(plot, c, top, most, utf8, false);
    if (draw && lines)
        legend_flows(plot, c, top, most, utf8, true);
    else if (draw)
        legend_columns(plot, c, top, most, utf8);
    return lines ? lines : most;
}

/* Lines that the whole names of the series take in any height. */
static int cells_legend_lines(const Plot *plot, int width)
{
    PlotCells c = { .width = width, .height = LEGEND_SHARE * PLOT_SERIES_MOST };

    return legend(plot, &c, 0, false, false);
}

static bool is_curve(const PlotSeries *s)
{
    return s->mark != CURVE_BARS && !s->guide;
}

static void draw_all(Field *f, const PlotTick *ys, int y_count)
{
    const Plot *plot = f->plot;
    bool        several = plot_named(plot) > 1;

    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark == CURVE_BARS)
            put_bars(f, &plot->series[k], plot->series[k].hue);
    cells_take_points(f);
    cells_guides(f);
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].guide)
            cells_guide_line(f, &plot->series[k]);
    for (int k = 0; k < plot->count; k++)
        if (is_curve(&plot->series[k])) {
            put_band(f, &plot->series[k], plot->series[k].hue);
            put_series(f, &plot->series[k], plot->series[k].hue);
        }
    for (int k = 0; k < plot->count; k++)
        if (is_curve(&plot->series[k]) &&
            (several || plot->x.names || plot->series[k].count <= 1 ||
             plot->series[k].mark == CURVE_POINTS))
            put_letters(f, &plot->series[k], k);
    for (int k = 0; plot_has_busy_signs(plot) && k < plot->count; k++)
        put_busy(f, &plot->series[k]);
    cells_labels(f);
    put_y_axis(f, ys, y_count);
    cells_x_axis(f);
}

static void clear(PlotCells *c)
{
    for (int i = 0; i < c->width * c->height; i++)
        c->cells[i] = (PlotCell){ ' ', PLOT_INK_NONE };
}

/* Draws curves, axes, and the axes' names above and below; key_lines at the bottom stay free. */
static void draw_field(Field *f, int above, int below, int key_lines)
{
    const Plot *plot = f->plot;
    PlotCells  *out = f->out;
    PlotTick    ys[PLOT_TICKS_MOST];
    int         y_count, widest = 1;

    f->y = above;
    f->h = out->height - above - below - key_lines;
    y_count = plot_ticks(&plot->y, f->h / 3 + 1, ys);
    for (int k = 0; k < y_count; k++)
        widest = utf8_columns(ys[k].text) > widest ? utf8_columns(ys[k].text) : widest;
    f->x = widest + 1;
    f->w = out->width - f->x - 1;
    f->places.frame = (LabelBox){ f->x, f->y, f->w, f->h };
    f->places.count = f->places.lines = f->places.guides = 0;
    draw_all(f, ys, y_count);
    if (above)
        cells_cut(out, above - 1, 0, out->width, plot->y.name, PLOT_INK_TEXT, f->utf8);
    if (below == 3) {
        int length = utf8_columns(plot->x.name), left = f->w > length ? (f->w - length) / 2 : 0;

        cells_cut(out, out->height - 1 - key_lines, f->x + left, f->w, plot->x.name,
                  PLOT_INK_TEXT, f->utf8);
    }
}

/* Names without room get numbers and a key below, which leaves less room for others: so the plot
 * is drawn again until all names have a place, or the key has all the lines it may take. */
static void put_curves(Field *f, int above)
{
    int     below = f->out->height >= above + 6 ? 3 : 2, lines = 0;
    int     most = f->out->height - above - below - FIELD_LEAST;
    NameKey key = { .count = 0 };

    f->key = &key;
    for (int drawn = 1;; drawn++) {
        key.full |= drawn == DRAWN_MOST;
        clear(f->out);
        draw_field(f, above, below, lines);
        if (!cells_key_grow(&key))
            break;
        while ((lines = cells_key(f, 0, false)) > most && key.count > 0) {
            key.count--;
            key.full = true;
        }
    }
    cells_key(f, f->out->height - lines, true);
}

static void cells_rows(Field *f, int top);

bool plot_cells(const Plot *plot, int width, int height, bool utf8, PlotCells *out, Error *err)
{
    Field f = { .plot = plot, .out = out, .utf8 = utf8, .axis = plot->x };
    int   above;

    *out = (PlotCells){ .width = width < 12 ? 12 : width, .height = height < 4 ? 4 : height };
    out->cells = malloc((size_t)(out->width * out->height) * sizeof(*out->cells));
    if (!out->cells)
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    clear(out);
    above = legend(plot, out, 0, utf8, false);
    if (plot->rows) {
        above = out->height >= above + 5 ? above : 0;
        cells_rows(&f, above);
    } else {
        above = out->height >= above + CURVES_LEAST ? above + 1 : out->height >= 7 ? 1 : 0;
        put_curves(&f, above);
    }
    if (above > !plot->rows)
        legend(plot, out, 0, utf8, true);
    return true;
}

void plot_cells_free(PlotCells *cells)
{
    free(cells->cells);
    *cells = (PlotCells){ 0 };
}

/* ---- rows: names, bars, whiskers, draws --------------------------------------- */

#define NAMES_SHARE 0.42 /* share of the width for names */

static int lines_of(const Plot *plot)
{
    int bars = plot_bars(plot);

    return bars > 1 ? bars + 1 : 1; /* a blank line separates groups */
}

int plot_cells_lines(const Plot *plot, int width)
{
    int names = cells_legend_lines(plot, width), own = USUAL_LINES - LEGEND_LINES + names;

    if (plot->rows)
        return plot->row_count * lines_of(plot) + 3 + names;
    own = own > USUAL_LINES ? own : USUAL_LINES;
    return own > LEGEND_SHARE * names ? own : LEGEND_SHARE * names;
}

/* ---- one line --------------------------------------------------------------- */

/* Column in the field, with a fraction; NaN: no place. */
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

/* Writes the words beyond `after`, or at the end of the field; leaves a number out rather than cut
 * it. */
static void put_words(Field *f, int y, double after, const char *text, bool known)
{
    int x = (int)ceil(after) + 1, width = utf8_columns(text);

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

/* A line from least to most with the mean as a stroke; draws are written over it. */
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

/* A span is at least one character; without colours the letter of its series. */
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

/* Its extent is all it shows. */
static bool is_shape(const PlotSeries *s)
{
    return s->mark == CURVE_BARS || s->mark == CURVE_SPANS;
}

/* Column of the name of the x axis. */
static int name_column(const Field *f)
{
    int length = utf8_columns(f->plot->x.name);

    return f->x + (f->w > length ? (f->w - length) / 2 : 0);
}

/* Says which rows have no line, left of the axis's name. */
static void put_rows_left(Field *f, int each)
{
    int  first = (f->h + each - 1) / each;
    Text text = { 0 };

    if (first >= f->plot->row_count)
        return;
    text_addf(&text, "%d more", f->plot->row_count - first);
    for (int r = first; r < f->plot->row_count; r++)
        text_addf(&text, "%s%s", r == first ? ": " : ", ", f->plot->rows[r]);
    cells_cut(f->out, f->y + f->h + 2, 0, name_column(f) - 1, text_str(&text), PLOT_INK_TEXT,
              f->utf8);
    text_free(&text);
}

static void put_row_series(Field *f, int each)
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

static double cells_width_of(const void *context, const char *text)
{
    (void)context;
    return utf8_columns(text);
}

/* Draws a plot with rows into f->out, from line `top` on. */
static void cells_rows(Field *f, int top)
{
    const Plot *plot = f->plot;
    int         most = (int)(NAMES_SHARE * f->out->width), each = lines_of(plot), widest = 0;

    for (int r = 0; r < plot->row_count; r++)
        widest = utf8_columns(plot->rows[r]) > widest ? utf8_columns(plot->rows[r]) : widest;
    widest = widest < most ? widest : most;
    f->x = widest + 2;
    f->y = top;
    f->w = f->out->width - f->x - 1;
    f->h = f->out->height - top - 3;
    each += f->h > plot->row_count * (each + 1) && each < 3;
    f->h = f->h < plot->row_count * each ? f->h : plot->row_count * each;
    f->axis = plot_rows_axis(plot, f->w, 2, cells_width_of, NULL);
    f->places.frame = (LabelBox){ f->x, f->y, f->w, f->h };
    cells_guides(f);
    put_row_series(f, each);
    cells_name_guides(f);
    put_names(f, widest, each);
    put_rows_left(f, each);
    for (int y = 0; y < f->h; y++)
        cells_put(f->out, f->y + y, f->x - 1, f->utf8 ? 0x2502 : '|', PLOT_INK_AXIS);
    cells_x_axis(f);
    cells_cut(f->out, f->y + f->h + 2, name_column(f), f->w, plot->x.name, PLOT_INK_TEXT, f->utf8);
}
