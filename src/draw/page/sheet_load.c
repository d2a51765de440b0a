/* sheet_load.c -- bars beside a matrix: how much falls on each column or row, what found no
 * place, and the line both are held against; and the marks in its cells. */
#include <math.h>
#include <stdio.h>

#include "draw/page/sheet.h"

static const ViewLoad *load_of(const Panel *panel, bool rows)
{
    return panel->minus || panel->picture || panel->margin ? NULL
           : rows                                          ? panel->view->row_load
                                                           : panel->view->load;
}

/* The numbers that are drawn instead; NULL: none. */
static const double *numbers_of(const Panel *panel, bool rows)
{
    return !panel->margin || panel->picture ? NULL
           : rows                           ? panel->margin->row
                                            : panel->margin->col;
}

int sheet_load_extent(const Sheet *sheet, int panel, bool rows)
{
    const Panel *p = &sheet->figure->panels[panel];

    return load_of(p, rows) || numbers_of(p, rows)
               ? (int)ceil(sheet_points(&sheet->style, rows ? 30 : 26)) : 0;
}

/* Bar of a displayed column or row. */
static int64_t bar_at(const Panel *panel, bool rows, int64_t at, int64_t *over)
{
    const int32_t *order = rows ? panel->row_order : panel->col_order;

    return view_load(load_of(panel, rows), panel->plane, order ? order[at] : at, over);
}

typedef struct Bars {
    Sheet       *sheet;
    const Panel *panel;
    bool         rows;
    Box          box;  /* without the space before it */
    int64_t      from, count; /* displayed entries */
    double       most;
} Bars;

/* A part from value `lo` to `hi` of the bar of entries [first, last). */
static void draw_part(const Bars *b, int64_t first, int64_t last, double lo, double hi, Rgb rgb)
{
    double extent = b->rows ? b->box.h : b->box.w, across = b->rows ? b->box.w : b->box.h;
    double start = extent * (double)first / (double)b->count;
    double size = extent * (double)(last - first) / (double)b->count;
    double gap = size >= 6 ? fmax(1, 0.12 * size) : 0;
    double from = across * lo / b->most, to = across * hi / b->most;

    if (b->rows)
        canvas_rect(b->sheet->canvas, b->box.x + from, b->box.y + start + gap, to - from,
                    size - 2 * gap, rgb);
    else
        canvas_rect(b->sheet->canvas, b->box.x + start + gap, b->box.y + from, size - 2 * gap,
                    to - from, rgb);
}

/* Entries that share a pixel. */
static int64_t entries_each(const Bars *b)
{
    return (int64_t)ceil((double)b->count / fmax(b->rows ? b->box.h : b->box.w, 1));
}

/* Those that share a pixel are one bar: their mean. */
static void draw_numbers(const Bars *b, const double *numbers)
{
    const int32_t *order = b->rows ? b->panel->row_order : b->panel->col_order;
    Bars           bars = *b; /* whole pixels each where entries share them */

    bars.count = entries_each(b) > 1 ? (b->rows ? b->box.h : b->box.w) : b->count;
    for (int64_t at = 0; at < bars.count; at++) {
        int64_t first = b->from + at * b->count / bars.count;
        int64_t last = b->from + (at + 1) * b->count / bars.count;
        double  value = margin_mean(numbers, order, first, last);

        if (!isnan(value))
            draw_part(&bars, at, at + 1, 0, fmin(fabs(value), b->most),
                      value < 0 ? lost_colour_in(b->sheet->style.hues) : colour_load());
    }
}

/* Entries that share a pixel are one bar: the largest. */
static void draw_bars(const Bars *b)
{
    int64_t each = entries_each(b);

    for (int64_t first = 0; first < b->count; first += each) {
        int64_t last = first + each < b->count ? first + each : b->count, used = 0, over = 0;

        for (int64_t at = first; at < last; at++) {
            int64_t more, own = bar_at(b->panel, b->rows, b->from + at, &more);

            if (own + more > used + over) {
                used = own;
                over = more;
            }
        }
        draw_part(b, first, last, 0, (double)used, colour_load());
        if (over)
            draw_part(b, first, last, (double)used, (double)(used + over),
                      lost_colour_in(b->sheet->style.hues));
    }
}

static void draw_limit(const Bars *b, const ViewLoad *load)
{
    const SheetStyle *s = &b->sheet->style;
    double            at = (b->rows ? b->box.w : b->box.h) * (double)load->limit / b->most;
    char              text[64];

    if (!load->limit)
        return;
    snprintf(text, sizeof(text), "%s %lld", load->limit_name, (long long)load->limit);
    if (b->rows) {
        canvas_line(b->sheet->canvas, b->box.x + at, b->box.y, b->box.x + at, b->box.y + b->box.h,
                    s->frame, s->ink, 1);
        return;
    }
    canvas_line(b->sheet->canvas, b->box.x, b->box.y + at, b->box.x + b->box.w, b->box.y + at,
                s->frame, s->ink, 1);
    canvas_text(b->sheet->canvas, b->box.x + b->box.w + s->space, b->box.y + at + 0.36 * s->small,
                text, (CanvasText){ .size = s->small, .rgb = s->ink });
}

/* What the longest bar is. */
static double most_of(const Bars *b, const ViewLoad *load)
{
    const int32_t *order = b->rows ? b->panel->row_order : b->panel->col_order;
    double         most = load ? (double)load->limit : 0;

    if (!load)
        return margin_most(b->panel->margin, b->rows, order, b->from, b->from + b->count,
                           entries_each(b));
    for (int64_t at = 0; at < b->count; at++) {
        int64_t over, used = bar_at(b->panel, b->rows, b->from + at, &over);

        most = fmax(most, (double)(used + over));
    }
    return fmax(most, 1);
}

void sheet_load(Sheet *sheet, int k, bool rows)
{
    const Panel      *panel = &sheet->scene.panels[k];
    const ViewLoad   *load = load_of(panel, rows);
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *p = &sheet->layout.panels[k];
    Region            r = sheet->scene.grids[k].region;
    Bars b = { .sheet = sheet, .panel = panel, .rows = rows, .box = rows ? p->row_load : p->load,
               .from = rows ? r.row0 : r.col0,
               .count = rows ? r.row1 - r.row0 : r.col1 - r.col0 };
    char text[64];

    if ((!load && !numbers_of(panel, rows)) || !b.count)
        return;
    b.box.x += rows ? 2 * s->space : 0;
    b.box.w -= rows ? 2 * s->space : 0;
    b.box.y += rows ? 0 : 2 * s->space;
    b.box.h -= rows ? 0 : 2 * s->space;
    b.most = most_of(&b, load);
    if (load) {
        draw_bars(&b);
        draw_limit(&b, load);
    } else {
        draw_numbers(&b, numbers_of(panel, rows));
    }
    snprintf(text, sizeof(text), load ? "%.0f" : "%.3g", b.most);
    if (rows)
        canvas_text(sheet->canvas, b.box.x + b.box.w, b.box.y - s->space, text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->small, .rgb = s->muted });
    else if (!load || !load->limit)
        canvas_text(sheet->canvas, b.box.x - s->space, b.box.y + b.box.h, text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->small, .rgb = s->muted });
}

/* ---- marks -------------------------------------------------------------------- */

static void draw_cross(Sheet *sheet, double x, double y, double w, double h, double width)
{
    Rgb rgb = { 255, 255, 255 };

    canvas_line(sheet->canvas, x + 0.2 * w, y + 0.2 * h, x + 0.8 * w, y + 0.8 * h, width, rgb, 1);
    canvas_line(sheet->canvas, x + 0.2 * w, y + 0.8 * h, x + 0.8 * w, y + 0.2 * h, width, rgb, 1);
}

static void draw_ring(Sheet *sheet, double x, double y, double w, double h, double width)
{
    Rgb rgb = lost_colour_in(sheet->style.hues);

    canvas_rect(sheet->canvas, x, y, w, width, rgb);
    canvas_rect(sheet->canvas, x, y + h - width, w, width, rgb);
    canvas_rect(sheet->canvas, x, y, width, h, rgb);
    canvas_rect(sheet->canvas, x + w - width, y, width, h, rgb);
}

void sheet_marks(Sheet *sheet, int k)
{
    const Grid       *g = &sheet->scene.grids[k];
    const PanelBoxes *b = &sheet->layout.panels[k];
    const ViewMarks  *marks = sheet->scene.panels[k].view->marks;
    double            width = fmax(1, fmin(b->cell_w, b->cell_h) / 8.0);

    if (!marks || sheet->scene.panels[k].minus || b->cell_w < 5 || b->cell_h < 5)
        return;
    for (int64_t at = 0; at < g->rows * g->cols; at++) {
        double x = b->matrix.x + (double)(at % g->cols) * b->cell_w;
        double y = b->matrix.y + (double)(at / g->cols) * b->cell_h;

        if (g->cells[at].marked)
            (marks->chosen ? draw_ring : draw_cross)(sheet, x, y, b->cell_w, b->cell_h, width);
    }
}
