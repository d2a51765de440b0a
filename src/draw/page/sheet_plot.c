/* sheet_plot.c -- a plot on the canvas: curves, bands, marks, axes, legend; see sheet.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw/page/pens.h"

#define MARKED_POINTS 40 /* up to which each point has its mark */
#define KEY_LINES     6

/* Between points i and i + 1, as an area. */
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

/* A column of one pixel at a time, between two points. */
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

static void draw_series(const Pens *p, const PlotSeries *s, int series)
{
    double  width = 2 * p->s->frame, radius = sheet_points(p->s, 1.5);
    Rgb     rgb = pens_colour(p, s->hue);
    int64_t every = s->count <= MARKED_POINTS ? 1 : s->count / 8;
    bool    marks = s->mark == CURVE_POINTS || plot_named(p->plot) > 1 || s->count <= MARKED_POINTS;

    for (int64_t i = 0; i + 1 < s->count && s->mark != CURVE_POINTS; i++) {
        double x0 = pens_x(p, s->x[i]), y0 = pens_y(p, s->y[i]);
        double x1 = pens_x(p, s->x[i + 1]), y1 = pens_y(p, s->y[i + 1]);

        if (s->mark == CURVE_STEPS) {
            pens_line(p, x0, y0, x1, y0, width, rgb, 1);
            pens_line(p, x1, y0, x1, y1, width, rgb, 1);
        } else {
            pens_line(p, x0, y0, x1, y1, width, rgb, 1);
        }
    }
    if (s->mark == CURVE_POINTS)
        every = 1;
    for (int64_t i = every > 1 ? series * every / p->plot->count : 0; marks && i < s->count;
         i += every)
        pens_mark(p, s->hue, pens_x(p, s->x[i]), pens_y(p, s->y[i]), radius, rgb);
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
    const Plot       *made = sheet->figure->panels[panel].made;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            widest = canvas_text_width(sheet->canvas, "00.00k", FONT_SANS, s->tick);
    int               count = 0;

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

    return (int)ceil(s->tick + 1.4 * s->axis) + s->tick_length + s->space;
}

/* Words have each the room there is; numbers are never cut. */
static void fit_tick(const Pens *p, const PlotTick *tick, int count, char *text, size_t size)
{
    double room = (double)p->box.w / (count > 0 ? count : 1) - p->s->space;

    if (p->axis.words)
        sheet_fit(p->sheet->canvas, tick->text, p->s->tick, room, text, size);
    else
        snprintf(text, size, "%s", tick->text);
}

#define NAME_SMALLEST 0.8 /* of the usual size, before it is cut */

/* Below the field, inside the panel's column: smaller, then cut, where it is too long. */
static void draw_x_name(const Pens *p, double y)
{
    const char *name = p->plot->x.name;
    Canvas     *canvas = p->sheet->canvas;
    double      wide = canvas_text_width(canvas, name, FONT_SANS, p->s->axis), room = p->column.w;
    double      font = p->s->axis * fmax(NAME_SMALLEST, fmin(1, room / fmax(wide, 1))), middle;
    char        text[128];

    sheet_fit(canvas, name, font, room, text, sizeof(text));
    wide = canvas_text_width(canvas, text, FONT_SANS, font);
    middle = fmax(p->box.x + p->box.w / 2.0, p->column.x + wide / 2);
    canvas_text(canvas, fmin(middle, p->column.x + p->column.w - wide / 2), y, text,
                (CanvasText){ .align = ALIGN_CENTRE, .size = font, .rgb = p->s->muted });
}

void pens_x_axis(const Pens *p)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    double            bottom = p->box.y + p->box.h, end = 0;
    double each = 1.9 * canvas_text_width(p->sheet->canvas, "00.0k", FONT_SANS, s->tick);
    int    count = plot_ticks(&p->axis, (int)fmin(8, p->box.w / each), ticks);

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
        canvas_text(p->sheet->canvas, middle, bottom + s->tick_length + 1.1 * s->tick, text,
                    (CanvasText){ .align = ALIGN_CENTRE, .size = s->tick, .rgb = s->ink });
    }
    draw_x_name(p, bottom + s->tick_length + 1.2 * s->tick + 1.2 * s->axis);
}

static void draw_y_axis(const Pens *p, int panel)
{
    const SheetStyle *s = p->s;
    PlotTick          ticks[PLOT_TICKS_MOST];
    int               count = y_ticks(p->sheet, p->plot, p->box.h, ticks);

    for (int k = 0; k < count; k++) {
        double y = p->box.y + (1 - ticks[k].place) * p->box.h;

        pens_line(p, p->box.x, y, p->box.x + p->box.w, y, s->hair, s->rule, 1);
        pens_line(p, p->box.x - s->tick_length, y, p->box.x, y, s->frame, s->ink, 1);
        canvas_text(p->sheet->canvas, p->box.x - s->tick_length - s->space / 2.0,
                    y + 0.36 * s->tick, ticks[k].text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->tick, .rgb = s->ink });
    }
    sheet_upright(p->sheet, panel, p->plot->y.name);
}

/* ---- legend ----------------------------------------------------------------- */

static void key_sign(const Pens *p, const PlotSeries *s, double x, double middle)
{
    double wide = 1.6 * p->s->tick, half = 0.4 * p->s->tick;
    Rgb    rgb = pens_colour(p, s->hue);

    if (s->mark == CURVE_BARS || s->mark == CURVE_SPANS) {
        canvas_rect(p->sheet->canvas, x + wide / 2 - half, middle - half, 2 * half, 2 * half, rgb);
    } else if (p->plot->rows && s->low) {
        pens_line(p, x, middle, x + wide, middle, 2 * half, rgb, 0.22);
        pens_line(p, x + wide / 2, middle - half, x + wide / 2, middle + half, 2 * p->s->frame,
                  rgb, 1);
    } else {
        pens_line(p, x, middle, x + wide, middle, 2 * p->s->frame, rgb,
                  s->mark == CURVE_POINTS ? 0 : 1);
        pens_mark(p, s->hue, x + wide / 2, middle, sheet_points(p->s, 1.5), rgb);
    }
}

#define KEY_SIGN 2.2 /* room of a series' sign, in font sizes */

static double key_width(const Sheet *sheet, const PlotSeries *series)
{
    double font = sheet->style.tick;

    return KEY_SIGN * font + canvas_text_width(sheet->canvas, series->name, FONT_SANS, font);
}

/* The names stand above the field, unless one would leave the panel's column: then they have
 * all of it but what the axis' name takes, and `wraps` is set. */
static Box key_area(const Sheet *sheet, const Plot *plot, int panel, bool *wraps)
{
    Box field = sheet->layout.panels[panel].matrix, column = sheet->layout.panels[panel].caption;
    int name = sheet->layout.panels[panel].row_axis.w; /* of the axis */

    *wraps = false;
    for (int k = 0; k < plot->count; k++)
        *wraps = *wraps || (!plot->series[k].guide &&
                            field.x + key_width(sheet, &plot->series[k]) > column.x + column.w);
    column.x += name;
    column.w -= name;
    return *wraps ? column : field;
}

/* Lines of one name, its first around `middle`; drawn when pens is not NULL. */
static int key_name(const Sheet *sheet, const PlotSeries *series, double room, const Pens *pens,
                    double x, double middle)
{
    const SheetStyle *s = &sheet->style;
    Lines             lines;

    sheet_wrap(sheet->canvas, series->name, s->tick, room - KEY_SIGN * s->tick, &lines);
    if (pens)
        key_sign(pens, series, x, middle);
    for (int k = 0; pens && k < lines.count; k++)
        canvas_text(sheet->canvas, x + KEY_SIGN * s->tick, middle + (1.4 * k + 0.36) * s->tick,
                    lines.text[k], (CanvasText){ .size = s->tick, .rgb = s->ink });
    return lines.count > 0 ? lines.count : 1;
}

/* Lines the names take; drawn from y on when pens is not NULL. */
static int key_lines(const Sheet *sheet, const Plot *plot, int panel, const Pens *pens, int y)
{
    const SheetStyle *s = &sheet->style;
    bool              wraps;
    Box               area = key_area(sheet, plot, panel, &wraps);
    double            x = 0, endless = 1e6;
    int               lines = 1, own = 1;

    for (int k = 0; k < plot->count; k++) {
        double wide = key_width(sheet, &plot->series[k]);

        if (plot->series[k].guide)
            continue;
        if (x > 0 && x + wide > area.w) {
            if (lines >= KEY_LINES)
                return lines + own - 1;
            lines += own;
            x = 0;
        }
        own = key_name(sheet, &plot->series[k], wraps ? area.w : endless, pens, area.x + x,
                       y + (lines - 0.5) * 1.4 * s->tick);
        x += wide + 2.5 * s->space;
    }
    return lines + own - 1;
}

int sheet_plot_key(const Sheet *sheet, int panel)
{
    const Plot *plot = sheet->scene.count ? sheet->scene.plots[panel] : NULL;

    if (!plot || plot_named(plot) < 2)
        return 0;
    return (int)ceil(1.4 * sheet->style.tick * key_lines(sheet, plot, panel, NULL, 0)) +
           sheet->style.space;
}

static void draw_curves(Pens *p)
{
    const Plot *plot = p->plot;

    for (int k = 0; k < plot->count; k++)
        draw_band(p, &plot->series[k]);
    for (int k = 0; k < plot->count; k++)
        if (plot->series[k].mark == CURVE_BARS)
            draw_bars(p, &plot->series[k]);
    pens_take_points(p);
    pens_labels(p); /* beside their points; names of guides have all of their lines */
    pens_guides(p);
    for (int k = 0; k < plot->count; k++) {
        const PlotSeries *s = &plot->series[k];

        if (s->mark != CURVE_BARS && !s->guide)
            draw_series(p, s, k);
        if (s->low && s->whiskers)
            draw_whiskers(p, s);
    }
}

void sheet_plot(Sheet *sheet, int panel)
{
    const PanelBoxes *b = &sheet->layout.panels[panel];
    const Plot       *plot = sheet->scene.plots[panel];
    Pens              p = { .sheet = sheet, .plot = plot, .s = &sheet->style, .box = b->matrix,
                           .column = b->caption, .axis = plot->x };

    p.places.frame = (LabelBox){ b->matrix.x, b->matrix.y, b->matrix.w, b->matrix.h };
    if (plot->rows) {
        sheet_rows(&p);
    } else {
        pens_x_axis(&p);
        draw_y_axis(&p, panel);
        draw_curves(&p);
    }
    if (plot_named(plot) > 1)
        key_lines(sheet, plot, panel, &p, b->col_labels.y);
}
