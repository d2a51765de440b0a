/* rules.c -- the lines between cells and where groups of rows or columns begin; see sheet.h. */
#include <math.h>

#include "draw/figure/scene.h"
#include "draw/page/sheet.h"

bool sheet_shows_each(const Grid *g)
{
    return g->rows == g->region.row1 - g->region.row0 && g->cols == g->region.col1 - g->region.col0;
}

/* The panel may have lines between its cells. */
static bool has_rules(const Sheet *sheet, int k)
{
    const PanelBoxes *b = &sheet->layout.panels[k];

    return !sheet->scene.plots[k] && sheet_shows_each(&sheet->scene.grids[k]) &&
           b->cols <= SHEET_GRID_MOST && b->rows <= SHEET_GRID_MOST;
}

static bool tints_cells(const Sheet *sheet, int k)
{
    const Panel *panel = &sheet->scene.panels[k];

    return panel_style(panel) == STYLE_VALUE || panel->picture;
}

#define ALIKE 1.25 /* cells of panels that have lines together differ by less */

/* The narrowest cell of the panels that are alike: they have lines together. */
static double least_cell(const Sheet *sheet, int k)
{
    const PanelBoxes *own = &sheet->layout.panels[k];
    double            least = own->cell_w, width = (double)own->matrix.w / (double)own->cols;

    for (int i = 0; i < sheet->figure->count; i++) {
        const PanelBoxes *b = &sheet->layout.panels[i];

        if (has_rules(sheet, i) && tints_cells(sheet, i) == tints_cells(sheet, k) &&
            ALIKE * b->matrix.w / (double)b->cols > width)
            least = fmin(least, b->cell_w);
    }
    return least;
}

#define VALUE_CELL 4.5 /* points: readers draw a line of a PDF as wide as a pixel of the screen */

/* The narrowest cell with lines beside it. */
static double least_ruled(const Sheet *sheet, int k)
{
    double hair = sheet->style.hair;

    return tints_cells(sheet, k) ? fmax(10 * hair, sheet_points(&sheet->style, VALUE_CELL))
                                 : 5 * hair;
}

static void draw_rules(Sheet *sheet, int k)
{
    const SheetStyle *s = &sheet->style;
    const PanelBoxes *b = &sheet->layout.panels[k];
    Box               m = b->matrix;
    double            least = least_ruled(sheet, k), edge = s->hair / 2;
    double            cell = least_cell(sheet, k);
    double            alpha = cell < 10 * s->hair ? 0.5 : 1; /* weaker than the cells */

    if (!has_rules(sheet, k))
        return;
    for (int64_t c = 1; c < b->cols && cell >= least; c++) {
        double x = m.x + layout_cell(c, b->cols, m.w) - edge;

        canvas_line(sheet->canvas, x, m.y, x, m.y + m.h, s->hair, s->rule, alpha);
    }
    for (int64_t r = 1; r < b->rows && b->cell_h >= least; r++) {
        double y = m.y + layout_cell(r, b->rows, m.h) - edge;

        canvas_line(sheet->canvas, m.x, y, m.x + m.w, y, s->hair, s->rule, alpha);
    }
}

/* Lines where a group of rows or columns begins, unless they would hide the cells. */
static void draw_groups(Sheet *sheet, int k, bool rows)
{
    const Panel   *panel = &sheet->scene.panels[k];
    const Grid    *g = &sheet->scene.grids[k];
    const View    *view = panel->view;
    Box            m = sheet->layout.panels[k].matrix;
    bool           sorted = (rows ? panel->row_order : panel->col_order) != NULL;
    const int64_t *first = sorted ? panel->slot_groups : rows ? view->row_groups : view->col_groups;
    int64_t        count = sorted ? panel->slot_group_count
                           : rows ? view->row_group_count : view->col_group_count;
    int64_t        from = rows ? g->region.row0 : g->region.col0;
    int64_t        size = (rows ? g->region.row1 : g->region.col1) - from;
    int64_t        all = rows ? view_rows(view) : view_cols(view);
    double         extent = rows ? m.h : m.w, hair = sheet->style.hair;
    bool           strong = panel_style(panel) == STYLE_CATEGORY; /* visible among any colours */
    double         group = count ? extent / (double)size * (double)all / (double)count : 0;
    double         width = strong ? fmax(hair, fmin(group / 12, sheet_points(&sheet->style, 0.9)))
                                  : 2 * hair; /* thin: the cells are the content */

    if (!first || group < 8 * hair)
        return;
    for (int64_t c = 0; c < count; c++) {
        double at = floor((double)(first[c] - from) / (double)size * extent) - hair;

        if (first[c] <= from || first[c] >= from + size)
            continue;
        canvas_line(sheet->canvas, rows ? m.x : m.x + at, rows ? m.y + at : m.y,
                    rows ? m.x + m.w : m.x + at, rows ? m.y + at : m.y + m.h, width,
                    strong ? sheet->style.ink : sheet->style.muted, 1);
    }
}

void sheet_rules(Sheet *sheet, int panel)
{
    draw_rules(sheet, panel);
    draw_groups(sheet, panel, true);
    draw_groups(sheet, panel, false);
}
