/* sheet_notes.c -- marked cells of a matrix on a page: a frame in two colours, so that it is seen
 * on every map, and the words in a box beside it. */
#include <math.h>

#include "draw/figure/scene.h"
#include "draw/page/sheet.h"

static void draw_ring(Sheet *sheet, double x, double y, double w, double h, double width, Rgb rgb)
{
    canvas_rect(sheet->canvas, x, y, w, width, rgb);
    canvas_rect(sheet->canvas, x, y + h - width, w, width, rgb);
    canvas_rect(sheet->canvas, x, y, width, h, rgb);
    canvas_rect(sheet->canvas, x + w - width, y, width, h, rgb);
}

/* Right of the frame, left where there is no room, else inside the matrix; never above its top. */
static void draw_words(Sheet *sheet, Box m, double x, double y, double w, double h,
                       const char *text)
{
    const SheetStyle *s = &sheet->style;
    double            font = s->tick, pad = s->space / 2.0;
    double            wide = canvas_text_width(sheet->canvas, text, FONT_SANS, font) + 2 * pad;
    double            high = 1.35 * font, left = x + w + pad, top = y + h / 2 - high / 2;

    if (left + wide > m.x + m.w)
        left = x - pad - wide;
    if (left < m.x) /* a whole row, or a word longer than its side: at the beginning, below */
        left = fmin(fmax(x + pad, m.x), fmax(m.x, m.x + m.w - wide));
    if (w >= 0.9 * m.w)
        top = y + h + pad;
    if (h >= 0.9 * m.h)
        top = m.y + pad;
    top = fmin(fmax(top, m.y), m.y + m.h - high);
    canvas_rect(sheet->canvas, left, top, wide, high, s->paper);
    draw_ring(sheet, left, top, wide, high, s->frame, s->ink);
    canvas_text(sheet->canvas, left + pad, top + font, text,
                (CanvasText){ .size = font, .rgb = s->ink });
}

void sheet_notes(Sheet *sheet, int k)
{
    const Panel *panel = &sheet->scene.panels[k];
    const Grid  *g = &sheet->scene.grids[k];
    Box          m = sheet->layout.panels[k].matrix;
    double       line = fmax(1, sheet_points(&sheet->style, 0.9));
    double       rows = (double)(g->region.row1 - g->region.row0);
    double       cols = (double)(g->region.col1 - g->region.col0);

    for (int i = 0; i < panel->note_count; i++) {
        Region r;
        double x, y, w, h;

        if (!note_region(&panel->notes[i], panel->row_order, panel->col_order, g->region, &r))
            continue;
        x = m.x + (double)(r.col0 - g->region.col0) / cols * m.w;
        y = m.y + (double)(r.row0 - g->region.row0) / rows * m.h;
        w = fmax((double)(r.col1 - r.col0) / cols * m.w, 2 * line);
        h = fmax((double)(r.row1 - r.row0) / rows * m.h, 2 * line);
        draw_ring(sheet, x - 2 * line, y - 2 * line, w + 4 * line, h + 4 * line, line,
                  (Rgb){ 0, 0, 0 });
        draw_ring(sheet, x - line, y - line, w + 2 * line, h + 2 * line, line,
                  (Rgb){ 255, 255, 255 });
        if (*panel->notes[i].text)
            draw_words(sheet, m, x - 2 * line, y - 2 * line, w + 4 * line, h + 4 * line,
                       panel->notes[i].text);
    }
}
