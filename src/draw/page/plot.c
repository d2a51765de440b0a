/* plot.c -- a plot on the canvas: curves, rows, axes; see sheet.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page/sheet.h"

double pens_x(const Pens *p, double x)
{
    return p->box.x + plot_place(&p->axis, x) * p->box.w;
}

double pens_y(const Pens *p, double y)
{
    return p->box.y + (1 - plot_place(&p->plot->y, y)) * p->box.h;
}

void pens_line(const Pens *p, double x0, double y0, double x1, double y1, double width, Rgb rgb,
               double alpha)
{
    if (isfinite(x0) && isfinite(y0) && isfinite(x1) && isfinite(y1))
        canvas_line(p->sheet->canvas, x0, y0, x1, y1, width, rgb, alpha);
}

void pens_dashes(const Pens *p, double x0, double y0, double x1, double y1, Rgb rgb)
{
    double dash = sheet_points(p->s, 2.5), length = hypot(x1 - x0, y1 - y0);

    if (!(length > 0))
        return;
    for (double d = 0; d < length; d += 2 * dash) {
        double from = d / length, to = fmin((d + dash) / length, 1);

        pens_line(p, x0 + from * (x1 - x0), y0 + from * (y1 - y0), x0 + to * (x1 - x0),
                  y0 + to * (y1 - y0), p->s->frame, rgb, 1);
    }
}

void pens_mark(const Pens *p, int hue, double x, double y, double r, Rgb rgb)
{
    static const double strokes[][4][4] = {
        { { -1, -1, 1, 1 }, { -1, 1, 1, -1 } },                                 /* cross */
        { { 0, -1.3, 1.2, 0.9 }, { 1.2, 0.9, -1.2, 0.9 }, { -1.2, 0.9, 0, -1.3 } },
        { { 0, -1.4, 1.4, 0 }, { 1.4, 0, 0, 1.4 }, { 0, 1.4, -1.4, 0 }, { -1.4, 0, 0, -1.4 } },
        { { -1.3, 0, 1.3, 0 }, { 0, -1.3, 0, 1.3 } },                           /* plus */
        { { -1.3, 0, 1.3, 0 } },
    };
    int count = (int)(sizeof(strokes) / sizeof(*strokes)) + 1, shape = plot_mark(hue) % count;

    if (!isfinite(x) || !isfinite(y))
        return;
    if (shape == 0) {
        canvas_rect(p->sheet->canvas, x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, rgb);
        return;
    }
    for (int k = 0; k < 4; k++) {
        const double *l = strokes[shape - 1][k];

        if (l[0] < 0 || l[0] > 0 || l[1] < 0 || l[1] > 0)
            pens_line(p, x + l[0] * r, y + l[1] * r, x + l[2] * r, y + l[3] * r, 0.7 * r, rgb, 1);
    }
}

#define RING_SIDES 24

static void pens_ring(const Pens *p, double x, double y, double r, Rgb rgb)
{
    for (int k = 0; k < RING_SIDES; k++) {
        double from = 2 * M_PI * k / RING_SIDES, to = 2 * M_PI * (k + 1) / RING_SIDES;

        pens_line(p, x + r * cos(from), y + r * sin(from), x + r * cos(to), y + r * sin(to),
                  p->s->frame, rgb, 1);
    }
}

static void solid_outline(Canvas *canvas, int hue, double x, double y, double size, Rgb rgb)
{
    double half = 0.85 * size;
    double square[4][2] = { { x - half, y - half }, { x + half, y - half }, { x + half, y + half },
                            { x - half, y + half } };
    double diamond[4][2] = { { x, y - size }, { x + size, y }, { x, y + size }, { x - size, y } };
    double triangle[3][2] = { { x, y - size }, { x + size, y + size }, { x - size, y + size } };

    canvas_polygon(canvas, (const double(*)[2])(hue == 0   ? square
                                                : hue == 1 ? diamond
                                                           : triangle),
                   hue < 2 ? 4 : 3, rgb, 1);
}

void pens_solid(const Pens *p, int hue, double x, double y, double size, Rgb rgb)
{
    Canvas *canvas = p->sheet->canvas;

    if (!isfinite(x) || !isfinite(y))
        return;
    if (canvas_is_vector(canvas)) {
        solid_outline(canvas, hue, x, y, size, rgb);
        return;
    }
    x = round(x); /* on whole pixels: no seams between its rows */
    y = round(y);
    size = round(size);
    for (double dy = -size; dy <= size; dy += 1) {
        double half = floor(hue == 0   ? size * 0.85
                            : hue == 1 ? size - fabs(dy)
                                       : (size + dy) / 2);

        if (hue != 0 || fabs(dy) <= half)
            canvas_rect(canvas, x - half, y + dy, 2 * half + 1, 1, rgb);
    }
}

Rgb pens_colour(const Pens *p, int hue)
{
    if (hue < 0)
        return p->s->muted;
    return p->s->hues == HUES_PRINT ? plot_colour_printed(hue) : plot_colour(hue, p->s->dark);
}

double pens_width(const Pens *p, const char *text)
{
    return canvas_text_width(p->sheet->canvas, text, FONT_SANS, p->s->tick);
}

void pens_text(const Pens *p, double x, double y, const char *text, Rgb rgb)
{
    canvas_text(p->sheet->canvas, x, y, text, (CanvasText){ .size = p->s->tick, .rgb = rgb });
}

/* ---- curves ----------------------------------------------------------------- */

/* The band between points i and i + 1, as an area. */
static void fill_band(const Pens *p, const PlotSeries *s, int64_t i)
{
    double points[4][2] = { { pens_x(p, s->x[i]), pens_y(p, s->high[i]) },
                            { pens_x(p, s->x[i + 1]), pens_y(p, s->high[i + 1]) },
                            { pens_x(p, s->x[i + 1]), pens_y(p, s->low[i + 1]) },
                            { pens_x(p, s->x[i]), pens_y(p, s->low[i]) } };

    for (int k = 0; k < 4; k++)
        if (!isfinite(points[k][0]) || !isfinite(points[k][1]))
            return;
    canvas_polygon(p->sheet->canvas, points, 4, pens_colour(p, s->hue), 0.22);
}

/* The band in columns of one pixel. */
static void draw_band(const Pens *p, const PlotSeries *s)
{
    for (int64_t i = 0; s->low && !s->whiskers && i + 1 < s->count; i++) {
        double x0 = pens_x(p, s->x[i]), x1 = pens_x(p, s->x[i + 1]);
        double lo0 = pens_y(p, s->low[i]), lo1 = pens_y(p, s->low[i + 1]);
        double hi0 = pens_y(p, s->high[i]), hi1 = pens_y(p, s->high[i + 1]);

        if (canvas_is_vector(p->sheet->canvas)) {
            fill_band(p, s, i);
            continue;
        }
        for (double x = floor(x0) + 0.5; isfinite(x1) && x < floor(x1); x++) {
            double t = x1 > x0 ? fmax(0, fmin(1, (x - x0) / (x1 - x0))) : 0;

            pens_line(p, x, lo0 + t * (lo1 - lo0), x, hi0 + t * (hi1 - hi0), 1,
                      pens_colour(p, s->hue), 0.22);
        }
    }
}

static void draw_whiskers(const Pens *p, const PlotSeries *s)
{
    double end = sheet_points(p->s, 1.5);
    Rgb    rgb = pens_colour(p, s->hue);

    for (int64_t i = 0; i < s->count; i++) {
        double x = pens_x(p, s->x[i]), low = pens_y(p, s->low[i]), high = pens_y(p, s->high[i]);

        pens_line(p, x, low, x, high, p->s->frame, rgb, 1);
        pens_line(p, x - end, low, x + end, low, p->s->frame, rgb, 1);
        pens_line(p, x - end, high, x + end, high, p->s->frame, rgb, 1);
    }
}

static void draw_bars(const Pens *p, const PlotSeries *s)
{
    double step = s->count > 1 ? fabs(s->x[1] - s->x[0]) : 1;
    double zero = p->plot->y.log ? p->box.y + p->box.h : pens_y(p, fmax(0, p->plot->y.lo));

    for (int64_t i = 0; i < s->count; i++) {
        double left = pens_x(p, s->x[i] - 0.4 * step), right = pens_x(p, s->x[i] + 0.4 * step);
        double top = pens_y(p, s->y[i]);

        if (isfinite(top) && isfinite(left) && isfinite(right))
            canvas_rect(p->sheet->canvas, left, fmin(top, zero), fmax(right - left, 1),
                        fabs(zero - top), pens_colour(p, s->hue));
    }
}

/* The turns that curves on one line take: dashes of each, one after the other. */
typedef struct Turns {
    int    of, at;
    double dash, walked; /* along the curve */
} Turns;

/* The part of a line that is the curve's turn. */
static void turn_line(const Pens *p, Turns *turns, double x0, double y0, double x1, double y1,
                      Rgb rgb)
{
    double length = hypot(x1 - x0, y1 - y0), width = 2 * p->s->frame, from = turns->walked;

    if (turns->of < 2 || !isfinite(length)) {
        pens_line(p, x0, y0, x1, y1, width, rgb, 1);
        return;
    }
    turns->walked += length;
    for (double k = floor(from / turns->dash); length > 0 && k * turns->dash < turns->walked; k++) {
        double a = fmax(0, k * turns->dash - from) / length;
        double b = fmin(length, (k + 1) * turns->dash - from) / length;

        if ((int)fmod(k, turns->of) == turns->at)
            pens_line(p, x0 + a * (x1 - x0), y0 + a * (y1 - y0), x0 + b * (x1 - x0),
                      y0 + b * (y1 - y0), width, rgb, 1);
    }
}

static void draw_series(const Pens *p, const PlotSeries *s, int series)
{
    double  radius = sheet_points(p->s, 1.5);
    Turns   turns = { .dash = sheet_points(p->s, 6) };
    Rgb     rgb = pens_colour(p, s->hue);
    int64_t first, every = plot_marks(p->plot, series, &first);

    turns.of = plot_twins(p->plot, series, &turns.at);

    for (int64_t i = 0; i + 1 < s->count && s->mark != CURVE_POINTS; i++) {
        double x0 = pens_x(p, s->x[i]), y0 = pens_y(p, s->y[i]);
        double x1 = pens_x(p, s->x[i + 1]), y1 = pens_y(p, s->y[i + 1]);

        if (s->mark == CURVE_STEPS) {
            turn_line(p, &turns, x0, y0, x1, y0, rgb);
            turn_line(p, &turns, x1, y0, x1, y1, rgb);
        } else {
            turn_line(p, &turns, x0, y0, x1, y1, rgb);
        }
    }
    for (int64_t i = 0; plot_has_busy_signs(p->plot) && s->busy && i < s->count; i++)
        if (s->busy[i])
            pens_ring(p, pens_x(p, s->x[i]), pens_y(p, s->y[i]), 2.2 * radius, rgb);
    /* Where the last step ends nothing was counted. */
    for (int64_t i = first; every && i < s->count - (s->mark == CURVE_STEPS); i += every)
        pens_mark(p, s->hue, pens_x(p, s->x[i]), pens_y(p, s->y[i]), radius, rgb);
}

/* ---- axes ------------------------------------------------------------------- */

#define BYTES " (bytes)"

/* Ticks with their unit, which the axis' name then leaves out: "512 KiB" below "memory". */
static int unit_ticks(const PlotAxis *axis, int most, PlotTick *ticks)
{
    int  count = plot_ticks(axis, most, ticks);
    bool powers = false; /* all, if one would be */

    for (int k = 0; k < count && !axis->words && !axis->names; k++)
        powers = powers || strchr(ticks[k].text, 'e');
    for (int k = 0; k < count; k++) {
        if (powers)
            sheet_powers(ticks[k].text, sizeof(ticks->text));
        if (axis->twos)
            sheet_raise(ticks[k].text, sizeof(ticks->text));
        plot_unit(axis, ticks[k].text, sizeof(ticks->text));
        if (!axis->words)
            sheet_minus(ticks[k].text, sizeof(ticks->text));
    }
    return count;
}

static void axis_words(const PlotAxis *axis, char *text, size_t size)
{
    const char *unit = strstr(axis->name, BYTES);
    int         length = unit ? (int)(unit - axis->name) : (int)strlen(axis->name);

    snprintf(text, size, "%.*s%s", length, axis->name, unit ? unit + strlen(BYTES) : "");
}

static int y_ticks(const Sheet *sheet, const Plot *plot, int height, PlotTick *ticks)
{
    double most = height / (2.6 * sheet->style.tick);

    return unit_ticks(&plot->y, most > 8 ? 8 : (int)most, ticks);
}

static double sheet_rows_gutter(const Sheet *sheet, const Plot *plot);

int sheet_plot_gutter(const Sheet *sheet, int panel)
{
    const SheetStyle *s = &sheet->style;
    const Plot       *plot = sheet->scene.count ? sheet->scene.plots[panel] : NULL;
    const Plot       *made = sheet->figure->panels[panel].made;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            widest = canvas_text_width(sheet->canvas, "00.00k", FONT_SANS, s->tick);
    int               count = 0;

    if (s->hides & HIDE_TICKS)
        return s->tick_length;
    if (made && made->rows)
        return (int)ceil(sheet_rows_gutter(sheet, made)) + s->space;
    if (plot) {
        widest = 0;
        count = y_ticks(sheet, plot, sheet->layout.panels[panel].matrix.h, ticks);
    }
    for (int k = 0; k < count; k++)
        widest = fmax(widest, canvas_text_width(sheet->canvas, ticks[k].text, FONT_SANS, s->tick));
    return (int)ceil(widest) + s->tick_length + s->space / 2;
}

int sheet_plot_below(const Sheet *sheet)
{
    const SheetStyle *s = &sheet->style;

    return (int)ceil((s->hides & HIDE_TICKS ? 0 : s->tick) +
                     (s->hides & HIDE_AXES ? 0 : 1.4 * s->axis)) + s->tick_length + s->space;
}

/* Words share the width equally; numbers are never cut. */
static void fit_tick(const Pens *p, const PlotTick *tick, int count, char *text, size_t size)
{
    double room = p->box.w / (count > 0 ? count : 1) - p->s->space;

    if (p->axis.words)
        sheet_fit(p->sheet->canvas, tick->text, p->s->tick, room, text, size);
    else
        snprintf(text, size, "%s", tick->text);
}

#define NAME_SMALLEST 0.8 /* of the default size, before it is cut */

/* The x axis' name below the field, inside the panel's column: smaller, then cut, if it is too
 * long. */
static void draw_x_name(const Pens *p, double y)
{
    char        name[128];
    Canvas     *canvas = p->sheet->canvas;
    double      wide, room = p->column.w, font, middle;
    char        text[128];

    axis_words(&p->plot->x, name, sizeof(name));
    wide = canvas_text_width(canvas, name, FONT_SANS, p->s->axis);
    font = p->s->axis * fmax(NAME_SMALLEST, fmin(1, room / fmax(wide, 1)));
    sheet_fit(canvas, name, font, room, text, sizeof(text));
    wide = canvas_text_width(canvas, text, FONT_SANS, font);
    middle = fmax(p->box.x + p->box.w / 2.0, p->column.x + wide / 2);
    canvas_text(canvas, fmin(middle, p->column.x + p->column.w - wide / 2), y, text,
                (CanvasText){ .align = ALIGN_CENTRE, .size = font, .rgb = p->s->muted });
}

#define MINOR 0.5 /* length of a tick without a number, of one with */

static void minor_ticks(const Pens *p, bool along)
{
    double length = MINOR * p->s->tick_length, bottom = p->box.y + p->box.h;
    double places[PLOT_MINOR_MOST];
    int    count = plot_minor_ticks(along ? &p->axis : &p->plot->y, places);

    for (int k = 0; k < count; k++) {
        double x = p->box.x + places[k] * p->box.w, y = bottom - places[k] * p->box.h;

        if (along)
            pens_line(p, x, bottom, x, bottom + length, p->s->hair, p->s->ink, 1);
        else
            pens_line(p, p->box.x - length, y, p->box.x, y, p->s->hair, p->s->ink, 1);
    }
}

static void pens_x_axis(const Pens *p)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            bottom = p->box.y + p->box.h, end = 0;
    double each = 1.9 * canvas_text_width(p->sheet->canvas, "00.0k", FONT_SANS, s->tick);
    int    count = unit_ticks(&p->axis, (int)fmin(8, p->box.w / each), ticks);

    minor_ticks(p, true);
    for (int k = 0; k < count; k++) {
        double x = p->box.x + ticks[k].place * p->box.w, wide, middle;
        char   text[32];

        fit_tick(p, &ticks[k], count, text, sizeof(text));
        wide = pens_width(p, text);
        middle = fmin(x, p->sheet->width - s->space - wide / 2);
        if (middle - wide / 2 < end)
            continue;
        end = middle + wide / 2 + s->space;
        pens_line(p, x, bottom, x, bottom + s->tick_length, s->frame, s->ink, 1);
        if (s->hides & HIDE_TICKS)
            continue;
        canvas_text(p->sheet->canvas, middle, bottom + s->tick_length + 1.1 * s->tick, text,
                    (CanvasText){ .align = ALIGN_CENTRE, .size = s->tick, .rgb = s->ink });
    }
    if (!(s->hides & HIDE_AXES))
        draw_x_name(p, bottom + s->tick_length + (s->hides & HIDE_TICKS ? 0 : 1.2 * s->tick) +
                           1.2 * s->axis);
}

static void draw_y_axis(const Pens *p, int panel)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    int               count = y_ticks(p->sheet, p->plot, (int)p->box.h, ticks);
    char              name[128];

    axis_words(&p->plot->y, name, sizeof(name));
    minor_ticks(p, false);
    for (int k = 0; k < count; k++) {
        double y = p->box.y + (1 - ticks[k].place) * p->box.h;

        pens_line(p, p->box.x, y, p->box.x + p->box.w, y, s->hair, s->rule, 1);
        pens_line(p, p->box.x - s->tick_length, y, p->box.x, y, s->frame, s->ink, 1);
        if (s->hides & HIDE_TICKS)
            continue;
        canvas_text(p->sheet->canvas, p->box.x - s->tick_length - s->space / 2.0,
                    y + 0.36 * s->tick, ticks[k].text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->tick, .rgb = s->ink });
    }
    if (!(s->hides & HIDE_AXES))
        sheet_upright(p->sheet, panel, name);
}

/* ---- the whole plot ---------------------------------------------------------- */

static void draw_curves(Pens *p)
{
    const Plot *plot = p->plot;

    for (int k = 0; k < plot->count; k++)
        draw_band(p, &plot->series[k]);
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark == CURVE_BARS)
            draw_bars(p, &plot->series[k]);
    pens_take_points(p);
    pens_guides(p); /* before words, which make the paper behind them free */
    pens_name_roofs(p);
    pens_labels(p); /* first: a point has few places, a guide its whole line */
    pens_name_guides(p);
    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        if (s->mark != CURVE_BARS && !s->guide)
            draw_series(p, s, k);
        if (s->low && s->whiskers)
            draw_whiskers(p, s);
    }
}

static void sheet_rows(Pens *p);

void sheet_plot(Sheet *sheet, int panel)
{
    const PanelBoxes *b = &sheet->layout.panels[panel];
    const Plot       *plot = sheet->scene.plots[panel];
    LabelBox          box = { b->matrix.x, b->matrix.y, b->matrix.w, b->matrix.h };
    Pens              p = { .sheet = sheet, .plot = plot, .s = &sheet->style, .box = box,
                           .column = b->caption, .axis = plot->x, .places.frame = box };

    if (plot->rows) {
        sheet_rows(&p);
        sheet_frame(sheet, b->matrix, sheet->style.ink);
    } else {
        pens_x_axis(&p);
        draw_y_axis(&p, panel);
        sheet_frame(sheet, b->matrix, sheet->style.ink); /* first: marks on it stay whole */
        draw_curves(&p);
    }
    plot_key(&p, panel);
}

/* ---- rows: names, bars, whiskers, draws --------------------------------------- */

#define NAMES_SHARE 0.42 /* share of the width for names */
#define NAME_LINES  6    /* of a name that is wider, at most */
#define NAME_LINE   1.15 /* their distance, in font sizes */
#define BAR         0.62 /* of a row's height */

/* Breaks a row's name; a line of more than NAMES_SHARE has no room beside the field. */
static void wrap_name(const Sheet *sheet, const char *name, Lines *out)
{
    sheet_wrap(sheet->canvas, name, sheet->style.tick,
               ceil(NAMES_SHARE * sheet->width / sheet->cols), NAME_LINES, out);
}

static double sheet_rows_gutter(const Sheet *sheet, const Plot *plot)
{
    double widest = 0;
    Lines  lines;

    for (int r = 0; r < plot->row_count; r++) {
        wrap_name(sheet, plot->rows[r], &lines);
        for (int k = 0; k < lines.count; k++)
            widest = fmax(widest, canvas_text_width(sheet->canvas, lines.text[k], FONT_SANS,
                                                    sheet->style.tick));
    }
    return ceil(widest) + sheet->style.tick_length;
}

static int most_name_lines(const Sheet *sheet, const Plot *plot)
{
    int   most = 1;
    Lines lines;

    for (int r = 0; r < plot->row_count; r++) {
        wrap_name(sheet, plot->rows[r], &lines);
        most = lines.count > most ? lines.count : most;
    }
    return most;
}

#define BAR_LEAST 1.05 /* distance of bars whose words do not touch, in font sizes */

int sheet_rows_height(const Sheet *sheet, const Plot *plot)
{
    int    bars = plot_bars(plot) > 1 ? plot_bars(plot) : 1, lines = most_name_lines(sheet, plot);
    double usual = 1.1 + 1.4 * bars, least = BAR_LEAST * bars / BAR;

    if (lines > 1) /* names of two rows stand apart */
        least = fmax(least, NAME_LINE * lines + 0.5);
    return (int)ceil(plot->row_count * fmax(sheet->flat * usual, least) * sheet->style.tick);
}

/* ---- one row ---------------------------------------------------------------- */

static double middle_of(const Pens *p, double row)
{
    return p->box.y + (row + 0.5) * p->box.h / p->plot->row_count;
}

/* Writes words to the right of x; false: no room. */
static bool write_beside(const Pens *p, double x, double middle, const char *text, Rgb rgb)
{
    double wide = pens_width(p, text), gap = p->s->space;

    if (x + gap + wide > p->box.x + p->box.w)
        return false;
    pens_text(p, x + gap, middle + 0.36 * p->s->tick, text, rgb);
    return true;
}

static int luma(Rgb c)
{
    return 3 * c.r + 6 * c.g + c.b;
}

/* Writes words inside the end of the bar from `zero` to x with a gap on both sides; leaves them
 * out if they do not fit. */
static void write_inside(const Pens *p, double zero, double x, double middle, const char *text,
                         Rgb bar)
{
    double wide = pens_width(p, text), gap = p->s->space;
    bool   dark = abs(luma(bar) - luma(p->s->ink)) >
                abs(luma(bar) - luma(p->s->paper));

    if (zero + gap + wide + gap <= x)
        pens_text(p, x - gap - wide, middle + 0.36 * p->s->tick, text,
                  dark ? p->s->ink : p->s->paper);
}

static void draw_whisker(const Pens *p, double low, double high, double middle, double half)
{
    pens_line(p, low, middle, high, middle, p->s->frame, p->s->ink, 1);
    pens_line(p, low, middle - half, low, middle + half, p->s->frame, p->s->ink, 1);
    pens_line(p, high, middle - half, high, middle + half, p->s->frame, p->s->ink, 1);
}

static void draw_bar(const Pens *p, const PlotSeries *s, int64_t i, double middle, double high)
{
    double zero = pens_x(p, fmax(0, p->plot->x.lo)), end = pens_x(p, s->x[i]), after = end;
    double inside = end;

    if (isfinite(end))
        canvas_rect(p->sheet->canvas, fmin(zero, end), middle - high / 2, fabs(end - zero), high,
                    pens_colour(p, s->hue));
    if (isfinite(end) && s->low && isfinite(s->low[i]) && isfinite(s->high[i])) {
        draw_whisker(p, pens_x(p, s->low[i]), pens_x(p, s->high[i]), middle, 0.25 * high);
        after = fmax(after, pens_x(p, s->high[i]));
        inside = fmin(inside, pens_x(p, s->low[i]));
    }
    if (s->labels && s->labels[i][0] &&
        !write_beside(p, isfinite(after) ? after : zero, middle, s->labels[i],
                      isfinite(end) ? p->s->ink : p->s->muted))
        write_inside(p, zero, inside, middle, s->labels[i], pens_colour(p, s->hue));
}

/* A band, its mean as a stroke, and words beyond its end. */
static void draw_spread(const Pens *p, const PlotSeries *s, int64_t i, double middle, double high)
{
    double x = pens_x(p, s->x[i]), after = x;

    if (isfinite(x) && s->low && isfinite(s->low[i]) && isfinite(s->high[i])) {
        after = pens_x(p, s->high[i]);
        pens_line(p, pens_x(p, s->low[i]), middle, after, middle, high, pens_colour(p, s->hue),
                  0.22);
    }
    pens_line(p, x, middle - high / 2, x, middle + high / 2, 2 * p->s->frame,
              pens_colour(p, s->hue), 1);
    if (s->labels && s->labels[i][0])
        write_beside(p, isfinite(after) ? after + sheet_points(p->s, 1.5) : p->box.x,
                     middle, s->labels[i], isfinite(x) ? p->s->ink : p->s->muted);
}

/* A span is at least a hair wide. */
static void draw_span(const Pens *p, const PlotSeries *s, int64_t i, double middle, double high)
{
    double from = pens_x(p, s->low[i]), wide = pens_x(p, s->high[i]) - from;

    canvas_rect(p->sheet->canvas, from, middle - high / 2, fmax(wide, p->s->hair), high,
                pens_colour(p, s->hue));
}

static void draw_names(const Pens *p)
{
    double right = p->box.x - p->s->space - p->s->tick_length;
    Lines  lines;

    for (int r = 0; r < p->plot->row_count; r++) {
        wrap_name(p->sheet, p->plot->rows[r], &lines);
        for (int k = 0; k < lines.count; k++) {
            double off = NAME_LINE * (k - (lines.count - 1) / 2.0) + 0.36;

            canvas_text(p->sheet->canvas, right, middle_of(p, r) + off * p->s->tick, lines.text[k],
                        (CanvasText){ .align = ALIGN_RIGHT, .size = p->s->tick,
                                      .rgb = p->s->ink });
        }
    }
}

static void draw_grid(const Pens *p)
{
    PlotTick ticks[PLOT_TICKS_MOST];
    int      count = plot_ticks(&p->axis, 8, ticks);

    for (int k = 0; k < count; k++) {
        double x = p->box.x + ticks[k].place * p->box.w;

        pens_line(p, x, p->box.y, x, p->box.y + p->box.h, p->s->hair, p->s->rule, 1);
    }
}

static double words_width(const void *context, const char *text)
{
    return pens_width(context, text);
}

static void sheet_rows(Pens *p)
{
    double each = p->box.h / p->plot->row_count, radius = sheet_points(p->s, 1.3);
    int    bars = plot_bars(p->plot), at = 0;

    p->axis = plot_rows_axis(p->plot, p->box.w, 3 * p->s->space, words_width, p);
    draw_grid(p);
    pens_x_axis(p);
    if (!(p->s->hides & HIDE_TICKS))
        draw_names(p);
    pens_guides(p);
    pens_name_guides(p);
    for (int k = 0; k < p->plot->count; k++) {
        const PlotSeries *s = &p->plot->series[k];
        double            high = BAR * each / (s->mark == CURVE_BARS ? bars : 1);
        double            off = s->mark == CURVE_BARS ? (at - (bars - 1) / 2.0) * high : 0;

        for (int64_t i = 0; i < s->count; i++) {
            double middle = middle_of(p, s->y[i]) + off;

            if (s->mark == CURVE_BARS)
                draw_bar(p, s, i, middle, 0.92 * high);
            else if (s->mark == CURVE_SPANS)
                draw_span(p, s, i, middle, high);
            else if (s->low || s->labels)
                draw_spread(p, s, i, middle, high);
            else
                pens_mark(p, s->hue, pens_x(p, s->x[i]), middle, radius, pens_colour(p, s->hue));
        }
        at += s->mark == CURVE_BARS;
    }
}
