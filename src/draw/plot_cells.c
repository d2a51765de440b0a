/* plot_cells.c -- see plot_cells.h. */
#include "draw/plot_cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEGEND_LINES 2
#define FEW_POINTS   24 /* that get their letter among the dots */

typedef struct Field { /* where the curves are, in characters */
    const Plot *plot;
    PlotCells  *out;
    bool        utf8;
    int         x, y, w, h;
} Field;

static PlotCell *cell_at(PlotCells *c, int y, int x)
{
    return y >= 0 && x >= 0 && y < c->height && x < c->width ? &c->cells[y * c->width + x] : NULL;
}

static void put(PlotCells *c, int y, int x, uint32_t ch, int ink)
{
    PlotCell *cell = cell_at(c, y, x);

    if (cell)
        *cell = (PlotCell){ ch, ink };
}

/* ASCII, and the signs of units that names hold. */
static int put_text(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8)
{
    const unsigned char *s = (const unsigned char *)text;
    int                  used = 0;

    while (*s && used < room) {
        uint32_t ch = *s++;

        if (ch >= 0xC0) {
            int more = ch >= 0xE0 ? ch >= 0xF0 ? 3 : 2 : 1;

            for (ch &= 0x3Fu >> more; more > 0 && (*s & 0xC0) == 0x80; more--)
                ch = ch << 6 | (*s++ & 0x3F);
        }
        if (ch >= 128 && !utf8)
            ch = ch == 0xB7 || ch == 0x2212 ? '-' : '?';
        put(c, y, x + used++, ch, ink);
    }
    return used;
}

/* ---- dots ------------------------------------------------------------------- */

/* Braille: a bit for each dot of a character; ASCII: the letter of the series. */
static void put_dot(Field *f, int dot_y, int dot_x, int series)
{
    static const uint8_t bits[4][2] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
    int       across = f->utf8 ? 2 : 1, down = f->utf8 ? 4 : 1;
    PlotCell *cell;

    if (dot_x < 0 || dot_y < 0 || dot_x >= across * f->w || dot_y >= down * f->h)
        return;
    cell = cell_at(f->out, f->y + dot_y / down, f->x + dot_x / across);
    if (!cell)
        return;
    if (!f->utf8) {
        *cell = (PlotCell){ (uint32_t)plot_letter(series), series };
        return;
    }
    if (cell->ch < 0x2800 || cell->ch > 0x28FF)
        cell->ch = 0x2800;
    cell->ch |= bits[dot_y % 4][dot_x % 2];
    cell->ink = series;
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
static bool dot_of(const Field *f, double x, double y, int *dot_x, int *dot_y)
{
    double px = plot_place(&f->plot->x, x), py = plot_place(&f->plot->y, y);

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
        put_dot(f, steps ? y0 + (int)lround((double)k * (y1 - y0) / steps) : y0,
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
                    put(f->out, f->y + f->h - 1 - y, f->x + x,
                        f->utf8 ? eighths[part] : (uint32_t)plot_letter(series), series);
            }
    }
}

static void put_series(Field *f, const PlotSeries *s, int series)
{
    int  x0 = 0, y0 = 0, x, y;
    bool drawn = false;

    for (int64_t i = 0; i < s->count; i++) {
        if (!dot_of(f, s->x[i], s->y[i], &x, &y)) {
            drawn = false;
            continue;
        }
        if (!drawn || s->mark == CURVE_POINTS) {
            put_dot(f, y, x, series);
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

/* Letters on the points of a line, so that series differ without colours. */
static void put_letters(Field *f, const PlotSeries *s, int series)
{
    int64_t every = (s->count + 7) / 8;
    int     x, y;

    if (s->count <= FEW_POINTS && s->count * 3 <= f->w)
        every = 1;
    for (int64_t i = (series * every) / (f->plot->count ? f->plot->count : 1); i < s->count;
         i += every)
        if (dot_of(f, s->x[i], s->y[i], &x, &y))
            put(f->out, f->y + y / (f->utf8 ? 4 : 1), f->x + x / (f->utf8 ? 2 : 1),
                (uint32_t)plot_letter(series), series);
}

static void put_band(Field *f, const PlotSeries *s, int series)
{
    for (int64_t i = 0; s->low && i < s->count; i++) {
        int x, low, high;

        if (!dot_of(f, s->x[i], s->low[i], &x, &low) || !dot_of(f, s->x[i], s->high[i], &x, &high))
            continue;
        if (s->mark == CURVE_POINTS) /* nothing stands between them */
            put_line(f, x, low, x, high, series);
        put_dot(f, low, x, series);
        put_dot(f, high, x, series);
    }
}

/* ---- around ----------------------------------------------------------------- */

static void put_guides(Field *f)
{
    for (int k = 0; k < f->plot->guide_count; k++) {
        const PlotGuide *g = &f->plot->guides[k];
        double place = plot_place(g->vertical ? &f->plot->x : &f->plot->y, g->at);
        int    at, length = (int)strlen(g->name);

        if (isnan(place))
            continue;
        at = g->vertical ? (int)lround(place * (f->w - 1)) : (int)lround((1 - place) * (f->h - 1));
        for (int i = 0; i < (g->vertical ? f->h : f->w); i++)
            put(f->out, g->vertical ? f->y + i : f->y + at, g->vertical ? f->x + at : f->x + i,
                g->vertical ? (f->utf8 ? 0x250A : ':') : (f->utf8 ? 0x2504 : '-'), PLOT_INK_GUIDE);
        if (g->vertical)
            put_text(f->out, f->y, f->x + (at + 2 + length > f->w ? at - length - 1 : at + 2),
                     f->w, g->name, PLOT_INK_GUIDE, f->utf8);
        else
            put_text(f->out, f->y + at, f->x + f->w - length - 1, f->w, g->name, PLOT_INK_GUIDE,
                     f->utf8);
    }
}

/* Words have each the room there is, numbers are never cut. */
static int tick_width(const Field *f, PlotTick *tick, int count)
{
    int room = f->w / (count > 0 ? count : 1) - 1, width = (int)strlen(tick->text);

    if (!f->plot->x.words || width <= room || room < 3)
        return width;
    tick->text[room - 1] = '.';
    tick->text[room] = '\0';
    return room;
}

static void put_axes(Field *f, const PlotTick *ys, int y_count)
{
    PlotCells *c = f->out;
    PlotTick   xs[PLOT_TICKS_MOST];
    int        x_count = plot_ticks(&f->plot->x, f->w / 9, xs), free_x = 0;

    for (int y = 0; y < f->h; y++)
        put(c, f->y + y, f->x - 1, f->utf8 ? 0x2502 : '|', PLOT_INK_AXIS);
    for (int x = 0; x < f->w; x++)
        put(c, f->y + f->h, f->x + x, f->utf8 ? 0x2500 : '-', PLOT_INK_AXIS);
    put(c, f->y + f->h, f->x - 1, f->utf8 ? 0x2514 : '+', PLOT_INK_AXIS);
    for (int k = 0; k < y_count; k++) {
        int y = f->y + (int)lround((1 - ys[k].place) * (f->h - 1)), width = (int)strlen(ys[k].text);

        put_text(c, y, f->x - 1 - width, width, ys[k].text, PLOT_INK_TEXT, f->utf8);
        put(c, y, f->x - 1, f->utf8 ? 0x2524 : '+', PLOT_INK_AXIS);
    }
    for (int k = 0; k < x_count; k++) {
        int x = f->x + (int)lround(xs[k].place * (f->w - 1));
        int width = tick_width(f, &xs[k], x_count);
        int left = x - width / 2;

        left = left + width > c->width ? c->width - width : left < 0 ? 0 : left;
        if (left < free_x)
            continue;
        put(c, f->y + f->h, x, f->utf8 ? 0x252C : '+', PLOT_INK_AXIS);
        free_x = left + put_text(c, f->y + f->h + 1, left, width, xs[k].text, PLOT_INK_TEXT,
                                 f->utf8) + 1;
    }
}

/* Returns the lines it takes; draws when `draw`. */
static int legend(const Plot *plot, PlotCells *c, int top, bool utf8, bool draw)
{
    int x = 0, line = 0;

    for (int k = 0; plot->count > 1 && k < plot->count; k++) {
        int width = (int)strlen(plot->series[k].name) + 2;

        if (x && x + width > c->width) {
            x = 0;
            line++;
        }
        if (line == LEGEND_LINES)
            return line;
        if (draw) {
            put(c, top + line, x, (uint32_t)plot_letter(k), k);
            put_text(c, top + line, x + 2, c->width - x - 2, plot->series[k].name, PLOT_INK_TEXT,
                     utf8);
        }
        x += width + 2;
    }
    return plot->count > 1 ? line + 1 : 0;
}

static void draw_all(Field *f, const PlotTick *ys, int y_count)
{
    const Plot *plot = f->plot;

    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark == CURVE_BARS)
            put_bars(f, &plot->series[k], k);
    put_guides(f);
    for (int k = 0; k < plot->count; k++) {
        if (plot->series[k].mark == CURVE_BARS)
            continue;
        put_band(f, &plot->series[k], k);
        put_series(f, &plot->series[k], k);
    }
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark != CURVE_BARS &&
            (plot->count > 1 || plot->series[k].count <= 1 || plot->x.names))
            put_letters(f, &plot->series[k], k);
    put_axes(f, ys, y_count);
}

bool plot_cells(const Plot *plot, int width, int height, bool utf8, PlotCells *out, Error *err)
{
    Field    f = { .plot = plot, .out = out, .utf8 = utf8 };
    PlotTick ys[PLOT_TICKS_MOST];
    int      y_count, widest = 1, above, below;

    *out = (PlotCells){ .width = width < 12 ? 12 : width, .height = height < 4 ? 4 : height };
    out->cells = malloc((size_t)(out->width * out->height) * sizeof(*out->cells));
    if (!out->cells)
        return error_set(err, ERR_NOMEM, "a plot: out of memory");
    for (int i = 0; i < out->width * out->height; i++)
        out->cells[i] = (PlotCell){ ' ', PLOT_INK_NONE };
    above = legend(plot, out, 0, utf8, false);
    above = out->height >= above + 8 ? above + 1 : out->height >= 7 ? 1 : 0;
    below = out->height >= above + 6 ? 3 : 2;
    f.y = above;
    f.h = out->height - above - below;
    y_count = plot_ticks(&plot->y, f.h / 3 + 1, ys);
    for (int k = 0; k < y_count; k++)
        widest = (int)strlen(ys[k].text) > widest ? (int)strlen(ys[k].text) : widest;
    f.x = widest + 1;
    f.w = out->width - f.x - 1;
    draw_all(&f, ys, y_count);
    if (above > 1)
        legend(plot, out, 0, utf8, true);
    if (above)
        put_text(out, above - 1, 0, out->width, plot->y.name, PLOT_INK_TEXT, utf8);
    if (below == 3) {
        int length = (int)strlen(plot->x.name), left = f.w > length ? (f.w - length) / 2 : 0;

        put_text(out, out->height - 1, f.x + left, f.w, plot->x.name, PLOT_INK_TEXT, utf8);
    }
    return true;
}

void plot_cells_free(PlotCells *cells)
{
    free(cells->cells);
    *cells = (PlotCells){ 0 };
}
