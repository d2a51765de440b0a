/* sheet_pens.c -- strokes, marks and words of a plot on a page; see pens.h. */
#include <math.h>

#include "draw/page/pens.h"

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
