/* matrix.c -- a panel on the canvas: its matrix, axes, bars, marks and notes; see sheet.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/figure/scene.h"
#include "draw/page/sheet.h"

static double clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* Centres the text on `middle` inside the box; cuts it if it is longer. */
static void draw_heading(Sheet *sheet, const char *text, double font, Rgb rgb, Box box,
                         double middle)
{
    char   fitted[320];
    double width;

    if (!*text || box.h == 0)
        return;
    sheet_fit(sheet->canvas, text, font, box.w, fitted, sizeof(fitted));
    width = canvas_text_width(sheet->canvas, fitted, FONT_SANS, font);
    canvas_text(sheet->canvas, clamp(middle - width / 2, box.x, box.x + box.w - width),
                box.y + font, fitted, (CanvasText){ .size = font, .rgb = rgb });
}

/* Draws lines from `above` pixels below the top of the box; all move as far as the widest must to
 * stay inside. */
static void draw_lines(Sheet *sheet, const Lines *lines, double font, Rgb rgb, Box box, int above,
                       double middle)
{
    double half = 0;

    for (int k = 0; k < lines->count; k++)
        half = fmax(half, canvas_text_width(sheet->canvas, lines->text[k], FONT_SANS, font) / 2);
    middle = clamp(middle, box.x + half, box.x + box.w - half);
    for (int k = 0; k < lines->count && box.h; k++)
        draw_heading(sheet, lines->text[k], font, rgb,
                     (Box){ box.x, box.y + above + (int)(k * SHEET_LINE * font), box.w, box.h },
                     middle);
}

/* ---- the matrix ------------------------------------------------------------- */

static void draw_matrix_cells(Sheet *sheet, int k, Rgb *cells, uint8_t *skip)
{
    const PanelBoxes *b = &sheet->layout.panels[k];
    const Grid       *g = &sheet->scene.grids[k];

    for (int64_t r = 0; r < g->rows; r++)
        for (int64_t c = 0; c < g->cols; c++) {
            Paint paint = panel_paint(&sheet->scene.panels[k], g, r, c, PAGE_LEVELS,
                                      sheet->style.dark);

            cells[r * g->cols + c] = paint.rgb;
            /* Plain background is the page, which may be transparent. */
            skip[r * g->cols + c] = paint.background &&
                                    (paint.rgb.r == 255 || paint.rgb.r == 0);
        }
    canvas_image(sheet->canvas, b->matrix.x, b->matrix.y, cells, skip, g->cols, g->rows,
                 b->matrix.w, b->matrix.h);
}

/* Dots in the cells that also hold a rarer cause. */
static void draw_dots(Sheet *sheet, int k)
{
    const PanelBoxes *b = &sheet->layout.panels[k];
    const Grid       *g = &sheet->scene.grids[k];
    int               w = (b->cell_w + 1) / 3, h = (b->cell_h + 1) / 3;

    for (int64_t at = 0; w > 0 && h > 0 && at < g->rows * g->cols; at++) {
        Box   cell = layout_box(b, at);
        Paint paint;

        if (!g->cells[at].rare)
            continue;
        paint = panel_paint(&sheet->scene.panels[k], g, at / g->cols, at % g->cols, PAGE_LEVELS,
                            sheet->style.dark);
        if (paint.dotted)
            canvas_rect(sheet->canvas, cell.x + (cell.w - w) / 2, cell.y + (cell.h - h) / 2, w, h,
                        paint.dot);
    }
}

static void draw_matrix(Sheet *sheet, int k)
{
    const Grid *g = &sheet->scene.grids[k];
    Rgb        *cells = malloc((size_t)(g->rows * g->cols) * sizeof(*cells));
    uint8_t    *skip = malloc((size_t)(g->rows * g->cols));

    if (cells && skip)
        draw_matrix_cells(sheet, k, cells, skip);
    free(cells);
    free(skip);
}

void sheet_frame(Sheet *sheet, Box m, Rgb rgb)
{
    double w = sheet->style.frame;

    canvas_rect(sheet->canvas, m.x - w, m.y - w, m.w + 2 * w, w, rgb);
    canvas_rect(sheet->canvas, m.x - w, m.y + m.h, m.w + 2 * w, w, rgb);
    canvas_rect(sheet->canvas, m.x - w, m.y, w, m.h, rgb);
    canvas_rect(sheet->canvas, m.x + m.w, m.y, w, m.h, rgb);
}

/* Writes a category's number into its cell: twelve hues repeat, numbers do not. */
static void draw_categories(Sheet *sheet, int k)
{
    const Panel      *panel = &sheet->scene.panels[k];
    const Grid       *g = &sheet->scene.grids[k];
    const PanelBoxes *b = &sheet->layout.panels[k];
    double            font = fmin(sheet->style.tick, 0.62 * b->cell_h);
    bool              schedule = panel_shows_schedule(panel);
    char              text[16];

    snprintf(text, sizeof(text), "%.0f", g->value_max);
    font *= fmin(1, 0.7 * b->cell_w / canvas_text_width(sheet->canvas, text, FONT_SANS, font));
    if ((panel->view->kind != VIEW_BUCKETS && !schedule) || panel->minus || !sheet_shows_each(g) ||
        font < sheet_points(&sheet->style, 4.4)) /* unreadable */
        return;
    for (int64_t at = 0; at < g->rows * g->cols; at++) {
        Box cell = layout_box(b, at);
        Rgb rgb = panel_category_colour(panel, g->cells[at].category);

        if (!g->cells[at].any)
            continue;
        snprintf(text, sizeof(text), "%d", g->cells[at].category / (schedule ? 2 : 1));
        if (panel->view->categories)
            snprintf(text, sizeof(text), "%c", category_letter(panel->view, g->cells[at].category));
        canvas_text(sheet->canvas, cell.x + 0.5 * cell.w, cell.y + 0.5 * cell.h + 0.36 * font, text,
                    (CanvasText){ .align = ALIGN_CENTRE, .size = font,
                                  .rgb = colour_ink_on(rgb) });
    }
}

/* ---- axes ------------------------------------------------------------------- */

/* Middle of entry `at` along an axis of n entries, in pixels from its start. */
static double entry_middle(int64_t at, int64_t n, int extent)
{
    return ((double)at + 0.5) / (double)n * extent;
}

static void draw_row_label(Sheet *sheet, int k, int64_t at, double font)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];
    bool              tokens = sheet->panels[k].row_tokens;
    double y = b->matrix.y + entry_middle(at, sheet->needs[k].rows, b->matrix.h);
    int    away = s->tick_length + s->space / 2;
    char   text[256], fitted[256];

    sheet_label(sheet, k, true, at, text, sizeof(text));
    sheet_fit(sheet->canvas, text, font, b->row_labels.w - away + 1, fitted, sizeof(fitted));
    canvas_text(sheet->canvas, b->matrix.x - away, y + 0.36 * font, fitted,
                (CanvasText){ .align = ALIGN_RIGHT, .size = font, .rgb = s->ink });
    if (!tokens)
        canvas_line(sheet->canvas, b->matrix.x - s->tick_length, y, b->matrix.x, y, s->frame,
                    s->ink, 1);
}

static void draw_col_label(Sheet *sheet, int k, int64_t at, double font)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];
    bool              tokens = sheet->panels[k].col_tokens;
    double x = b->matrix.x + entry_middle(at, sheet->needs[k].cols, b->matrix.w);
    double y = b->matrix.y - s->tick_length - s->space / 2.0;
    char   text[256], fitted[256];

    sheet_label(sheet, k, false, at, text, sizeof(text));
    if (!tokens) { /* at the edge of the page a number moves instead of being cut */
        double half = canvas_text_width(sheet->canvas, text, FONT_SANS, font) / 2;

        canvas_text(sheet->canvas, fmin(x, sheet->layout.width - half - 1), y, text,
                    (CanvasText){ .align = ALIGN_CENTRE, .size = font, .rgb = s->ink });
        canvas_line(sheet->canvas, x, b->matrix.y - s->tick_length, x, b->matrix.y, s->frame,
                    s->ink, 1);
        return;
    }
    sheet_fit(sheet->canvas, text, font, b->col_labels.h - s->tick_length - s->space / 2 + 1,
              fitted, sizeof(fitted));
    canvas_text(sheet->canvas, x + 0.36 * font, y, fitted,
                (CanvasText){ .size = font, .upward = true, .rgb = s->ink });
}

static int ticks_most(Sheet *sheet, int64_t n, int extent, bool rows)
{
    char   widest[32];
    double font = sheet->style.tick, each = (n <= 8 ? 1.3 : 2.2) * font;

    snprintf(widest, sizeof(widest), "%lld", (long long)n);
    if (!rows)
        each = 1.7 * canvas_text_width(sheet->canvas, widest, FONT_SANS, font);
    return (int)clamp(extent / each, 1, 8);
}

/* Axes of a figure that has one with steps of powers of two all have such steps: 66 entries beside
 * 64 have the same numbers. */
static bool has_halved_axis(const Sheet *sheet)
{
    for (int k = 0; k < sheet->figure->count; k++)
        if (!sheet->figure->panels[k].plot && sheet->needs[k].rows % LAYOUT_HALVED == 0 &&
            sheet->needs[k].cols % LAYOUT_HALVED == 0)
            return true;
    return false;
}

static void draw_axis(Sheet *sheet, int k, bool rows)
{
    const PanelBoxes *b = &sheet->layout.panels[k];
    int64_t           n = rows ? sheet->needs[k].rows : sheet->needs[k].cols, step = 1;
    bool   tokens = rows ? sheet->panels[k].row_tokens : sheet->panels[k].col_tokens;
    int    cell = rows ? b->cell_h : b->cell_w, extent = rows ? b->matrix.h : b->matrix.w;
    double font = sheet->style.tick;

    if (tokens)
        font = fmin(font, TOKEN_SHARE * cell);
    else
        step = layout_tick_step(n, ticks_most(sheet, n, extent, rows),
                                has_halved_axis(sheet));
    for (int64_t at = 0; at < n; at += step) {
        if (rows)
            draw_row_label(sheet, k, at, font);
        else
            draw_col_label(sheet, k, at, font);
    }
}

#define UPRIGHT_LEAST 0.75 /* smallest share of the default size on one line */
#define UPRIGHT_TWO   0.6  /* on two lines, in the room of a default one */
#define UPRIGHT_STEP  0.9

static void draw_upright(Sheet *sheet, const char *text, double size, double x, double middle)
{
    canvas_text(sheet->canvas, x, middle, text,
                (CanvasText){ .align = ALIGN_CENTRE, .size = size, .upward = true,
                              .rgb = sheet->style.muted });
}

/* Two lines, in the largest size that gives only two. */
static void draw_upright_pair(Sheet *sheet, const char *name, double x, double room, double middle)
{
    double size = UPRIGHT_TWO * sheet->style.axis;
    Lines  lines;

    sheet_wrap(sheet->canvas, name, size, room, WRAP_LINES, &lines);
    while (lines.count > 2) {
        size *= UPRIGHT_STEP;
        sheet_wrap(sheet->canvas, name, size, room, WRAP_LINES, &lines);
    }
    for (int k = 0; k < lines.count; k++)
        draw_upright(sheet, lines.text[k], size,
                     x + 0.1 * sheet->style.axis - (lines.count - 1 - k) * 1.15 * size, middle);
}

void sheet_upright(Sheet *sheet, int panel, const char *name)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[panel];
    double            size = s->axis, x = b->row_axis.x + s->axis;
    double            wide = canvas_text_width(sheet->canvas, name, FONT_SANS, size);
    double            low = b->matrix.y + b->matrix.h + s->axis, room = b->matrix.h + 2 * s->axis;

    if (wide * UPRIGHT_LEAST > room) /* only the title is above the name */
        room = fmax(room, low - (b->title.y + b->title.h));
    if (wide > room)
        size *= fmax(room / wide, UPRIGHT_LEAST);
    if (wide * UPRIGHT_LEAST > room)
        draw_upright_pair(sheet, name, x, room, low - room / 2);
    else
        draw_upright(sheet, name, size, x,
                     fmin(b->matrix.y + b->matrix.h / 2.0, low - wide * size / s->axis / 2));
}

static void draw_axis_names(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];
    const Panel      *panel = &sheet->figure->panels[k];
    char              name[80];

    if (b->col_axis.h) {
        snprintf(name, sizeof(name), "%s%s", panel->view->cols,
                 panel->col_order ? " (reordered)" : "");
        draw_heading(sheet, name, s->axis, s->muted, b->col_axis, b->matrix.x + b->matrix.w / 2.0);
    }
    if (b->row_axis.w) {
        snprintf(name, sizeof(name), "%s%s", panel->view->rows,
                 panel->row_order ? " (reordered)" : "");
        sheet_upright(sheet, k, name);
    }
}

static void sheet_load(Sheet *sheet, int k, bool rows);
static void sheet_notes(Sheet *sheet, int k);
static void sheet_marks(Sheet *sheet, int k);

/* What stands beside the cells of a bare panel. */
static void draw_bare(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];

    sheet_frame(sheet, b->matrix, s->rule);
    canvas_text(sheet->canvas, b->row_labels.x + b->row_labels.w - s->space / 2.0,
                b->matrix.y + b->matrix.h / 2.0 + 0.36 * s->tick, sheet->figure->panels[k].side,
                (CanvasText){ .align = ALIGN_RIGHT, .size = s->tick, .rgb = s->ink });
    if (b->bar.w)
        sheet_bar(sheet, k);
}

static void draw_panel(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];
    double            middle = b->matrix.x + b->matrix.w / 2.0;

    draw_lines(sheet, &sheet->panels[k].title, sheet->title_font, s->ink, b->title, 0, middle);
    if (sheet->scene.plots[k]) {
        sheet_plot(sheet, k);
        draw_lines(sheet, &sheet->panels[k].caption, s->small, s->muted, b->caption,
                   sheet_plot_below(sheet) + s->space, middle);
        return;
    }
    draw_matrix(sheet, k);
    draw_dots(sheet, k);
    if (sheet->figure->panels[k].bare) {
        draw_bare(sheet, k);
        return;
    }
    sheet_hatch(sheet, k);
    sheet_rules(sheet, k);
    sheet_frame(sheet, b->matrix, s->ink);
    draw_categories(sheet, k);
    sheet_marks(sheet, k);
    sheet_notes(sheet, k);
    sheet_load(sheet, k, false);
    sheet_load(sheet, k, true);
    if (!(s->hides & HIDE_TICKS)) {
        draw_axis(sheet, k, true);
        draw_axis(sheet, k, false);
    }
    draw_axis_names(sheet, k);
    if (b->bar.w)
        sheet_bar(sheet, k);
    draw_lines(sheet, &sheet->panels[k].caption, s->small, s->muted, b->caption,
               s->space, middle);
}

void sheet_draw(Sheet *sheet)
{
    const SheetStyle *s = &sheet->style;
    const Layout     *l = &sheet->layout;
    double            middle = l->width / 2.0;

    draw_lines(sheet, &sheet->title, s->head, s->ink, l->title, 0, middle);
    for (int k = 0; k < sheet->figure->count; k++)
        draw_panel(sheet, k);
    sheet_legend(sheet, l->footer.x, l->footer.y, l->footer.w, true);
    draw_lines(sheet, &sheet->caption, s->legend, s->ink, l->caption, s->space, middle);
}

/* ---- bars and marks --------------------------------------------------------- */

static const ViewLoad *load_of(const Panel *panel, bool rows)
{
    return panel->minus || panel->picture || panel->margin ? NULL
           : rows                                          ? panel->view->row_load
                                                           : panel->view->load;
}

/* The margin's numbers, drawn instead; NULL: none. */
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

/* The load of a displayed column or row. */
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

/* Draws the part of a bar from value `lo` to `hi`, of entries [first, last). */
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

/* Number of entries that share a pixel. */
static int64_t entries_each(const Bars *b)
{
    return (int64_t)ceil((double)b->count / fmax(b->rows ? b->box.h : b->box.w, 1));
}

/* Entries that share a pixel are one bar: their mean. */
static void draw_margin_bars(const Bars *b, const double *numbers)
{
    const int32_t *order = b->rows ? b->panel->row_order : b->panel->col_order;
    Bars           bars = *b; /* whole pixels where entries share them */

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
static void draw_load_bars(const Bars *b)
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

/* Value of the longest bar. */
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

static void sheet_load(Sheet *sheet, int k, bool rows)
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
        draw_load_bars(&b);
        draw_limit(&b, load);
    } else {
        draw_margin_bars(&b, numbers_of(panel, rows));
    }
    if (s->hides & HIDE_TICKS)
        return;
    snprintf(text, sizeof(text), load ? "%.0f" : "%.3g", b.most);
    if (rows)
        canvas_text(sheet->canvas, b.box.x + b.box.w, b.box.y - s->space, text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->small, .rgb = s->muted });
    else if (!load || !load->limit)
        canvas_text(sheet->canvas, b.box.x - s->space, b.box.y + b.box.h, text,
                    (CanvasText){ .align = ALIGN_RIGHT, .size = s->small, .rgb = s->muted });
}

/* ---- marks -------------------------------------------------------------------- */

void sheet_cross(Sheet *sheet, double x, double y, double w, double h, double width)
{
    Rgb rgb = { 255, 255, 255 };

    canvas_line(sheet->canvas, x + 0.2 * w, y + 0.2 * h, x + 0.8 * w, y + 0.8 * h, width, rgb, 1);
    canvas_line(sheet->canvas, x + 0.2 * w, y + 0.8 * h, x + 0.8 * w, y + 0.2 * h, width, rgb, 1);
}

/* A frame inside the edges of the box. */
static void draw_box(Sheet *sheet, double x, double y, double w, double h, double width, Rgb rgb)
{
    canvas_rect(sheet->canvas, x, y, w, width, rgb);
    canvas_rect(sheet->canvas, x, y + h - width, w, width, rgb);
    canvas_rect(sheet->canvas, x, y, width, h, rgb);
    canvas_rect(sheet->canvas, x + w - width, y, width, h, rgb);
}

void sheet_ring(Sheet *sheet, double x, double y, double w, double h, double width)
{
    draw_box(sheet, x, y, w, h, width, chosen_colour_in(sheet->style.hues));
}

#define LEAST_CROSS 5 /* pixels of a cell; without a cross its colour still says that it is lost */

static bool has_marks(const Sheet *sheet, int k)
{
    const PanelBoxes *b = &sheet->layout.panels[k];
    const Panel      *panel = &sheet->scene.panels[k];

    return !panel->plot && panel->view->marks && !panel->minus &&
           (panel->view->marks->chosen || (b->cell_w >= LEAST_CROSS && b->cell_h >= LEAST_CROSS));
}

bool sheet_has_crosses(const Sheet *sheet)
{
    for (int k = 0; k < sheet->scene.count; k++)
        if (has_marks(sheet, k) && !sheet->scene.panels[k].view->marks->chosen)
            return true;
    return false;
}

/* Crosses and rings in the marked cells.  Nothing else shows a ring: it is drawn however small. */
static void sheet_marks(Sheet *sheet, int k)
{
    const Grid       *g = &sheet->scene.grids[k];
    const PanelBoxes *b = &sheet->layout.panels[k];
    double            width = fmax(1, fmin(b->cell_w, b->cell_h) / 8.0);
    const ViewMarks  *marks;

    if (!has_marks(sheet, k))
        return;
    marks = sheet->scene.panels[k].view->marks;
    for (int64_t at = 0; at < g->rows * g->cols; at++) {
        Box cell = layout_box(b, at);

        if (g->cells[at].marked)
            (marks->chosen ? sheet_ring : sheet_cross)(sheet, cell.x, cell.y, cell.w, cell.h,
                                                       width);
    }
}

/* Notes: a frame in two colours, visible on every map, and the words in a box beside it. */

/* Writes the words right of the frame, left if there is no room, else inside the matrix; never
 * above its top. */
static void draw_words(Sheet *sheet, Box m, double x, double y, double w, double h,
                       const char *text)
{
    const SheetStyle *s = &sheet->style;
    double            font = s->tick, pad = s->space / 2.0;
    double            wide = canvas_text_width(sheet->canvas, text, FONT_SANS, font) + 2 * pad;
    double            high = 1.35 * font, left = x + w + pad, top = y + h / 2 - high / 2;

    if (left + wide > m.x + m.w)
        left = x - pad - wide;
    if (left < m.x) /* a whole row, or words longer than the side: at the beginning, below */
        left = fmin(fmax(x + pad, m.x), fmax(m.x, m.x + m.w - wide));
    if (w >= 0.9 * m.w)
        top = y + h + pad;
    if (h >= 0.9 * m.h)
        top = m.y + pad;
    top = fmin(fmax(top, m.y), m.y + m.h - high);
    canvas_rect(sheet->canvas, left, top, wide, high, s->paper);
    draw_box(sheet, left, top, wide, high, s->frame, s->ink);
    canvas_text(sheet->canvas, left + pad, top + font, text,
                (CanvasText){ .size = font, .rgb = s->ink });
}

static void sheet_notes(Sheet *sheet, int k)
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
        draw_box(sheet, x - 2 * line, y - 2 * line, w + 4 * line, h + 4 * line, line,
                 (Rgb){ 0, 0, 0 });
        draw_box(sheet, x - line, y - line, w + 2 * line, h + 2 * line, line,
                 (Rgb){ 255, 255, 255 });
        if (*panel->notes[i].text)
            draw_words(sheet, m, x - 2 * line, y - 2 * line, w + 4 * line, h + 4 * line,
                       panel->notes[i].text);
    }
}
