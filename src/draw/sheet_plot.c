/* sheet_plot.c -- a plot on the canvas: curves, bands, marks, axes, legend; see sheet.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/sheet.h"

#define MARKED_POINTS 40 /* up to which each point has its mark */
#define KEY_LINES     6

typedef struct Pens {
    Sheet            *sheet;
    const Plot       *plot;
    const SheetStyle *s;
    Box               box;
} Pens;

static double at_x(const Pens *p, double x)
{
    return p->box.x + plot_place(&p->plot->x, x) * p->box.w;
}

static double at_y(const Pens *p, double y)
{
    return p->box.y + (1 - plot_place(&p->plot->y, y)) * p->box.h;
}

static void line(const Pens *p, double x0, double y0, double x1, double y1, double width, Rgb rgb,
                 double alpha)
{
    if (isfinite(x0) && isfinite(y0) && isfinite(x1) && isfinite(y1))
        canvas_line(p->sheet->canvas, x0, y0, x1, y1, width, rgb, alpha);
}

/* Strokes of one series' mark, in units of its radius. */
static void draw_mark(const Pens *p, int shape, double x, double y, double r, Rgb rgb)
{
    static const double strokes[][4][4] = {
        { { -1, -1, 1, 1 }, { -1, 1, 1, -1 } },                                 /* cross */
        { { 0, -1.3, 1.2, 0.9 }, { 1.2, 0.9, -1.2, 0.9 }, { -1.2, 0.9, 0, -1.3 } },
        { { 0, -1.4, 1.4, 0 }, { 1.4, 0, 0, 1.4 }, { 0, 1.4, -1.4, 0 }, { -1.4, 0, 0, -1.4 } },
        { { -1.3, 0, 1.3, 0 }, { 0, -1.3, 0, 1.3 } },                           /* plus */
        { { -1.3, 0, 1.3, 0 } },
    };
    int count = (int)(sizeof(strokes) / sizeof(*strokes)) + 1;

    if (!isfinite(x) || !isfinite(y))
        return;
    if (shape % count == 0) {
        canvas_rect(p->sheet->canvas, x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r, rgb);
        return;
    }
    for (int k = 0; k < 4; k++) {
        const double *l = strokes[shape % count - 1][k];

        if (l[0] < 0 || l[0] > 0 || l[1] < 0 || l[1] > 0)
            line(p, x + l[0] * r, y + l[1] * r, x + l[2] * r, y + l[3] * r, 0.7 * r, rgb, 1);
    }
}

static Rgb colour_of(const Pens *p, int series)
{
    return plot_colour(series, p->s->dark);
}

/* Each point by itself, where nothing stands between them. */
static void draw_whiskers(const Pens *p, const PlotSeries *s, int series)
{
    for (int64_t i = 0; i < s->count; i++)
        line(p, at_x(p, s->x[i]), at_y(p, s->low[i]), at_x(p, s->x[i]), at_y(p, s->high[i]),
             2 * p->s->frame, colour_of(p, series), 0.6);
}

/* A column of one pixel at a time, between two points. */
static void draw_band(const Pens *p, const PlotSeries *s, int series)
{
    if (s->low && s->mark == CURVE_POINTS) {
        draw_whiskers(p, s, series);
        return;
    }
    for (int64_t i = 0; s->low && i + 1 < s->count; i++) {
        double x0 = at_x(p, s->x[i]), x1 = at_x(p, s->x[i + 1]);
        double lo0 = at_y(p, s->low[i]), lo1 = at_y(p, s->low[i + 1]);
        double hi0 = at_y(p, s->high[i]), hi1 = at_y(p, s->high[i + 1]);

        for (double x = floor(x0) + 0.5; isfinite(x1) && x < floor(x1); x++) {
            double t = x1 > x0 ? fmax(0, fmin(1, (x - x0) / (x1 - x0))) : 0;

            line(p, x, lo0 + t * (lo1 - lo0), x, hi0 + t * (hi1 - hi0), 1, colour_of(p, series),
                 0.22);
        }
    }
}

static void draw_bars(const Pens *p, const PlotSeries *s, int series)
{
    double step = s->count > 1 ? fabs(s->x[1] - s->x[0]) : 1;
    double zero = p->plot->y.log ? p->box.y + p->box.h : at_y(p, fmax(0, p->plot->y.lo));

    for (int64_t i = 0; i < s->count; i++) {
        double left = at_x(p, s->x[i] - 0.4 * step), right = at_x(p, s->x[i] + 0.4 * step);
        double top = at_y(p, s->y[i]);

        if (isfinite(top) && isfinite(left) && isfinite(right))
            canvas_rect(p->sheet->canvas, left, fmin(top, zero), fmax(right - left, 1),
                        fabs(zero - top), colour_of(p, series));
    }
}

static void draw_series(const Pens *p, const PlotSeries *s, int series)
{
    double  width = 2 * p->s->frame, radius = sheet_points(p->s, 1.5);
    Rgb     rgb = colour_of(p, series);
    int64_t every = s->count <= MARKED_POINTS ? 1 : s->count / 8;
    bool    marks = s->mark == CURVE_POINTS || p->plot->count > 1 || s->count <= MARKED_POINTS;

    for (int64_t i = 0; i + 1 < s->count && s->mark != CURVE_POINTS; i++) {
        double x0 = at_x(p, s->x[i]), y0 = at_y(p, s->y[i]);
        double x1 = at_x(p, s->x[i + 1]), y1 = at_y(p, s->y[i + 1]);

        if (s->mark == CURVE_STEPS) {
            line(p, x0, y0, x1, y0, width, rgb, 1);
            line(p, x1, y0, x1, y1, width, rgb, 1);
        } else {
            line(p, x0, y0, x1, y1, width, rgb, 1);
        }
    }
    if (s->mark == CURVE_POINTS)
        every = 1;
    for (int64_t i = every > 1 ? series * every / p->plot->count : 0; marks && i < s->count;
         i += every)
        draw_mark(p, plot_mark(series), at_x(p, s->x[i]), at_y(p, s->y[i]), radius, rgb);
}

static void draw_guides(const Pens *p)
{
    double dash = sheet_points(p->s, 2.5), font = p->s->tick;

    for (int k = 0; k < p->plot->guide_count; k++) {
        const PlotGuide *g = &p->plot->guides[k];
        double at = g->vertical ? at_x(p, g->at) : at_y(p, g->at), wide;
        double from = g->vertical ? p->box.y : p->box.x;
        double to = g->vertical ? p->box.y + p->box.h : p->box.x + p->box.w;

        for (double d = from; d < to; d += 2 * dash)
            if (g->vertical)
                line(p, at, d, at, fmin(d + dash, to), p->s->frame, p->s->muted, 1);
            else
                line(p, d, at, fmin(d + dash, to), at, p->s->frame, p->s->muted, 1);
        wide = canvas_text_width(p->sheet->canvas, g->name, FONT_SANS, font) + p->s->space;
        if (g->vertical) /* beside it, on the side where there is room */
            canvas_text(p->sheet->canvas, at + wide > p->box.x + p->box.w ? at - wide
                                                                          : at + p->s->space,
                        p->box.y + p->box.h - p->s->space - 1.3 * font * k, g->name,
                        (CanvasText){ .size = font, .rgb = p->s->muted });
        else
            canvas_text(p->sheet->canvas, p->box.x + p->box.w - wide,
                        at - p->s->space < p->box.y + font ? at + 1.2 * font : at - p->s->space,
                        g->name, (CanvasText){ .size = font, .rgb = p->s->muted });
    }
}

/* ---- axes ------------------------------------------------------------------- */

static int y_ticks(const Sheet *sheet, const Plot *plot, int height, PlotTick *ticks)
{
    double most = height / (2.6 * sheet->style.tick);

    return plot_ticks(&plot->y, most > 8 ? 8 : (int)most, ticks);
}

int sheet_plot_gutter(const Sheet *sheet, int panel)
{
    const SheetStyle *s = &sheet->style;
    const Plot       *plot = sheet->scene.count ? sheet->scene.plots[panel] : NULL;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            widest = canvas_text_width(sheet->canvas, "00.00k", FONT_SANS, s->tick);
    int               count = 0;

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

    return (int)ceil(s->tick + 1.4 * s->axis) + s->tick_length + s->space;
}

/* Words have each the room there is; numbers are never cut.  Returns the width. */
static double fit_tick(const Pens *p, PlotTick *tick, int count)
{
    double wide = canvas_text_width(p->sheet->canvas, tick->text, FONT_SANS, p->s->tick);
    double room = (double)p->box.w / (count > 0 ? count : 1) - p->s->space;
    size_t length = strlen(tick->text);

    while (p->plot->x.words && wide > room && length > 3) {
        tick->text[--length] = '\0';
        tick->text[length - 1] = '.';
        wide = canvas_text_width(p->sheet->canvas, tick->text, FONT_SANS, p->s->tick);
    }
    return wide;
}

static void draw_x_axis(const Pens *p)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            bottom = p->box.y + p->box.h, end = 0;
    double each = 1.9 * canvas_text_width(p->sheet->canvas, "00.0k", FONT_SANS, s->tick);
    int    count = plot_ticks(&p->plot->x, (int)fmin(8, p->box.w / each), ticks);

    for (int k = 0; k < count; k++) {
        double x = p->box.x + ticks[k].place * p->box.w;
        double wide = fit_tick(p, &ticks[k], count);

        if (x - wide / 2 < end)
            continue;
        end = x + wide / 2 + s->space;
        line(p, x, bottom, x, bottom + s->tick_length, s->frame, s->ink, 1);
        canvas_text(p->sheet->canvas, x, bottom + s->tick_length + 1.1 * s->tick, ticks[k].text,
                    (CanvasText){ .align = ALIGN_CENTRE, .size = s->tick, .rgb = s->ink });
    }
    canvas_text(p->sheet->canvas, p->box.x + p->box.w / 2.0,
                bottom + s->tick_length + 1.2 * s->tick + 1.2 * s->axis, p->plot->x.name,
                (CanvasText){ .align = ALIGN_CENTRE, .size = s->axis, .rgb = s->muted });
}

static void draw_y_axis(const Pens *p, double name_x)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    int               count = y_ticks(p->sheet, p->plot, p->box.h, ticks);

    for (int k = 0; k < count; k++) {
        double y = p->box.y + (1 - ticks[k].place) * p->box.h;

        line(p, p->box.x, y, p->box.x + p->box.w, y, s->hair, s->rule, 1);
        line(p, p->box.x - s->tick_length, y, p->box.x, y, s->frame, s->ink, 1);
        canvas_text(p->sheet->canvas, p->box.x - s->tick_length - s->space / 2.0,
                    y + 0.36 * s->tick, ticks[k].text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->tick, .rgb = s->ink });
    }
    canvas_text(p->sheet->canvas, name_x, p->box.y + p->box.h / 2.0, p->plot->y.name,
                (CanvasText){ .align = ALIGN_CENTRE, .size = s->axis, .upward = true,
                              .rgb = s->muted });
}

/* ---- legend ----------------------------------------------------------------- */

/* Lines the names take in `width`; drawn from y on when pens is not NULL. */
static int key_lines(const Sheet *sheet, const Plot *plot, double width, const Pens *pens, int y)
{
    const SheetStyle *s = &sheet->style;
    double            x = 0, sign = 2.2 * s->tick;
    int               lines = 1;

    for (int k = 0; k < plot->count; k++) {
        double wide = sign + canvas_text_width(sheet->canvas, plot->series[k].name, FONT_SANS,
                                               s->tick);
        double middle;

        if (x > 0 && x + wide > width) {
            if (lines == KEY_LINES)
                return lines;
            lines++;
            x = 0;
        }
        middle = y + (lines - 0.5) * 1.4 * s->tick;
        if (pens) {
            Rgb rgb = colour_of(pens, k);

            line(pens, pens->box.x + x, middle, pens->box.x + x + 1.6 * s->tick, middle,
                 2 * s->frame, rgb, plot->series[k].mark == CURVE_POINTS ? 0 : 1);
            draw_mark(pens, plot_mark(k), pens->box.x + x + 0.8 * s->tick, middle,
                      sheet_points(s, 1.5), rgb);
            canvas_text(sheet->canvas, pens->box.x + x + sign, middle + 0.36 * s->tick,
                        plot->series[k].name, (CanvasText){ .size = s->tick, .rgb = s->ink });
        }
        x += wide + 2.5 * s->space;
    }
    return lines;
}

int sheet_plot_key(const Sheet *sheet, int panel)
{
    const Plot *plot = sheet->scene.count ? sheet->scene.plots[panel] : NULL;

    if (!plot || plot->count < 2)
        return 0;
    return (int)ceil(1.4 * sheet->style.tick *
                     key_lines(sheet, plot, sheet->layout.panels[panel].matrix.w, NULL, 0)) +
           sheet->style.space;
}

void sheet_plot(Sheet *sheet, int panel)
{
    const PanelBoxes *b = &sheet->layout.panels[panel];
    const Plot       *plot = sheet->scene.plots[panel];
    Pens              p = { sheet, plot, &sheet->style, b->matrix };

    draw_y_axis(&p, b->row_axis.x + sheet->style.axis);
    draw_x_axis(&p);
    for (int k = 0; k < plot->count; k++)
        draw_band(&p, &plot->series[k], k);
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark == CURVE_BARS)
            draw_bars(&p, &plot->series[k], k);
    draw_guides(&p);
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark != CURVE_BARS)
            draw_series(&p, &plot->series[k], k);
    if (plot->count > 1)
        key_lines(sheet, plot, b->matrix.w, &p, b->col_labels.y);
}
