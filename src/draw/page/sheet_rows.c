/* sheet_rows.c -- a plot with rows on a page: names, lying bars, whiskers, draws; see plot.h. */
#include <math.h>
#include <stdlib.h>

#include "draw/page/pens.h"

#define NAMES_SHARE 0.42 /* of the room that names take at most */
#define BAR         0.62 /* of a row's height */

static int bars_of(const Plot *plot)
{
    int count = 0;

    for (int k = 0; k < plot->count; k++)
        count += plot->series[k].mark == CURVE_BARS;
    return count;
}

double sheet_rows_gutter(const Sheet *sheet, const Plot *plot)
{
    double widest = 0, most = NAMES_SHARE * sheet->width / sheet->cols;

    for (int r = 0; r < plot->row_count; r++)
        widest = fmax(widest, canvas_text_width(sheet->canvas, plot->rows[r], FONT_SANS,
                                                sheet->style.tick));
    return ceil(fmin(widest, most)) + sheet->style.tick_length;
}

int sheet_rows_height(const Sheet *sheet, const Plot *plot)
{
    int bars = bars_of(plot);

    return (int)ceil(plot->row_count * (1.1 + 1.4 * (bars > 1 ? bars : 1)) * sheet->style.tick);
}

/* ---- one row ---------------------------------------------------------------- */

static double middle_of(const Pens *p, double row)
{
    return p->box.y + (row + 0.5) * p->box.h / p->plot->row_count;
}

/* Words to the right of x; false: there is no room. */
static bool write_beside(const Pens *p, double x, double middle, const char *text, Rgb rgb)
{
    double wide = pens_width(p, text), gap = p->s->space;

    if (x + gap + wide > p->box.x + p->box.w)
        return false;
    pens_text(p, x + gap, middle + 0.36 * p->s->tick, text, rgb);
    return true;
}

static int brightness(Rgb c)
{
    return 3 * c.r + 6 * c.g + c.b;
}

/* The second choice: at the end of the bar from `zero` to x, a gap from both; left out where it
 * does not hold them. */
static void write_inside(const Pens *p, double zero, double x, double middle, const char *text,
                         Rgb bar)
{
    double wide = pens_width(p, text), gap = p->s->space;
    bool   dark = abs(brightness(bar) - brightness(p->s->ink)) >
                abs(brightness(bar) - brightness(p->s->paper));

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

/* A band with the mean as a stroke; its words beyond the largest. */
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

/* As wide as a hair at least. */
static void draw_span(const Pens *p, const PlotSeries *s, int64_t i, double middle, double high)
{
    double from = pens_x(p, s->low[i]), wide = pens_x(p, s->high[i]) - from;

    canvas_rect(p->sheet->canvas, from, middle - high / 2, fmax(wide, p->s->hair), high,
                pens_colour(p, s->hue));
}

static void draw_names(const Pens *p, const Box *gutter)
{
    char name[PLOT_ROW + 4];

    for (int r = 0; r < p->plot->row_count; r++) {
        double room = gutter->w - p->s->space - p->s->tick_length;

        sheet_fit(p->sheet->canvas, p->plot->rows[r], p->s->tick, room, name, sizeof(name));
        canvas_text(p->sheet->canvas, p->box.x - p->s->space - p->s->tick_length,
                    middle_of(p, r) + 0.36 * p->s->tick, name,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = p->s->tick, .rgb = p->s->ink });
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

static double width_of(const void *context, const char *text)
{
    return pens_width(context, text);
}

void sheet_rows(Pens *p)
{
    double each = p->box.h / (double)p->plot->row_count, radius = sheet_points(p->s, 1.3);
    int    bars = bars_of(p->plot), at = 0;
    Box    gutter = { .w = (int)sheet_rows_gutter(p->sheet, p->plot) + p->s->space };

    p->axis = plot_rows_axis(p->plot, p->box.w, 3 * p->s->space, width_of, p);
    draw_grid(p);
    pens_x_axis(p);
    draw_names(p, &gutter);
    pens_guides(p);
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
