/* compare.c -- the compare screen: tiles, what is linked. */
#include "ui/screen/compare.h"

#include <stdio.h>

#define DOCK_FROM  140 /* columns from which the right column is there */
#define DOCK_LEAST 32  /* its least width */
#define DOCK_MOST  72
#define STRIP_FROM 50 /* lines from which the bottom strip is there */

Pane *compare_focus(Ui *ui)
{
    Compare *c = &ui->compare;

    return c->count ? &c->panes[c->focus] : NULL;
}

/* ---- tiles ------------------------------------------------------------------ */

/* Square matrices leave room beside them: for what the cursor is on. */
static void dock_beside(Ui *ui, CompareRooms *r)
{
    Compare *c = &ui->compare;
    int      strips = 0, needed, spare;

    for (int i = 0; i < c->count; i++)
        strips = c->panes[i].beside.w > strips ? c->panes[i].beside.w : strips;
    needed = r->cols * (2 * (r->panes.h / r->rows - 4) + 9 + strips);
    spare = r->panes.w - needed;
    if (!r->dock.w && r->rows > 1)
        return; /* small tiles: better wide captions */
    for (int i = 0; i < c->count; i++)
        if (!c->panes[i].shape.even && c->panes[i].canvas.h)
            return;
    if (spare < (r->dock.w ? 1 : DOCK_LEAST))
        return;
    if (r->dock.w + spare > DOCK_MOST)
        spare = DOCK_MOST - r->dock.w;
    r->panes.w -= spare;
    r->dock = (Area){ r->panes.y, r->panes.x + r->panes.w, r->panes.h, r->dock.w + spare };
}

/* Lines and columns a matrix needs to be worth a tile, and what is around it. */
#define LEAST_ROWS 8
#define MATRIX_COLS 24
#define AROUND_ROWS 4
#define TILE_LEAST  24 /* columns of a tile; where two have not so many there is one */
#define AROUND_COLS 8

/* Side of the square matrix in each of so many tiles, in pixels; 0: not worth it. */
static int tile_side(const CompareRooms *r, int rows, int cols)
{
    int lines = r->panes.h / rows - AROUND_ROWS, columns = r->panes.w / cols - AROUND_COLS;

    if (lines < LEAST_ROWS || columns < MATRIX_COLS)
        return 0;
    return 2 * lines < columns ? 2 * lines : columns;
}

/* The usual arrangement, or another where that makes the matrices clearly larger; false: so
 * many do not fit. */
static bool arrange_tiles(CompareRooms *r, int count)
{
    int usual = count > 2 ? 2 : 1, best = 0;

    for (int k = 0; k <= count; k++) {
        int rows = k ? k : usual, cols = (count + rows - 1) / rows;
        int side = (rows - 1) * cols < count ? tile_side(r, rows, cols) : 0;

        if (4 * side <= 5 * best)
            continue;
        best = side;
        r->rows = rows;
        r->cols = cols;
        r->shown = count;
    }
    return best > 0;
}

/* As somebody wished, where each tile can hold a few characters. */
static bool lay_out_tiles(const Compare *c, CompareRooms *r)
{
    int rows, cols;

    if (sscanf(c->layout, "%dx%d", &rows, &cols) != 2 || c->count < 2 ||
        r->panes.w / cols < TILE_LEAST || r->panes.h / rows < AROUND_ROWS + 2)
        return false;
    r->rows = rows;
    r->cols = cols;
    r->shown = c->count < rows * cols ? c->count : rows * cols;
    return true;
}

/* As many tiles as fit, two at least where it is not too narrow. */
static void choose_tiles(const Compare *c, CompareRooms *r)
{
    int most = c->solo ? 1 : c->count;

    if (!c->solo && lay_out_tiles(c, r))
        return;
    r->rows = 1;
    r->cols = r->shown = most < 2 || r->panes.w < 2 * TILE_LEAST ? most > 0 : 2;
    while (most > 1 && !arrange_tiles(r, most))
        most--;
    r->cols = r->cols > 0 ? r->cols : 1;
}

CompareRooms compare_rooms(Ui *ui, Area area)
{
    CompareRooms r = { .panes = area };
    Compare     *c = &ui->compare;

    if (area.w >= DOCK_FROM) {
        r.dock = area;
        r.dock.w = area.w / 3 < 56 ? area.w / 3 : 56;
        r.dock.x = area.x + area.w - r.dock.w;
        r.panes.w -= r.dock.w;
    }
    if (ui->term->rows >= STRIP_FROM) {
        int height = 4 + c->count;

        r.strip = (Area){ area.y + area.h - height, area.x, height, area.w };
        r.panes.h -= height;
        r.dock.h -= r.dock.h ? height : 0;
    }
    r.panes.h -= 2;
    r.legend_y = r.panes.y + r.panes.h;
    r.dock.h -= r.dock.h ? 2 : 0;
    choose_tiles(c, &r);
    dock_beside(ui, &r);
    return r;
}

static Area tile_of(const CompareRooms *r, int index)
{
    int  row = index / r->cols, col = index % r->cols;
    Area p = r->panes, tile;

    tile.y = p.y + p.h * row / r->rows;
    tile.h = p.y + p.h * (row + 1) / r->rows - tile.y;
    tile.x = p.x + p.w * col / r->cols;
    tile.w = p.x + p.w * (col + 1) / r->cols - tile.x;
    return tile;
}

static void choose_first(Compare *c, const CompareRooms *r)
{
    if (c->focus < c->first || c->solo)
        c->first = c->focus;
    if (c->focus >= c->first + r->shown)
        c->first = c->focus - r->shown + 1;
    if (c->first + r->shown > c->count)
        c->first = c->count - r->shown;
    if (c->first < 0)
        c->first = 0;
}

void pane_want_drawing(Ui *ui, Pane *pane)
{
    Panel       panel;
    LensView    view;
    GridRequest request;
    Pane       *first = &ui->compare.panes[0];

    if (pane->canvas.h < 1 || pane->canvas.w < 1 || !pane_panel(ui, pane, &panel))
        return;
    view = lens_view(&pane->lens, &pane->shape);
    request = (GridRequest){
        .view = panel.view,
        .minus = panel.minus,
        .components = panel.components,
        .plane = panel.plane,
        .region = lens_region(&view),
        .rows = view.row.cells,
        .cols = view.col.cells,
        .row_order = panel.row_order,
        .col_order = panel.col_order,
        .excludes = panel.excludes,
        .excluded = panel.excluded,
    };
    drawing_want(&ui->draughtsman, &pane->drawing, &request, pane->result,
                 panel.minus ? first->result : NULL);
}

void compare_prepare(Ui *ui, Area area)
{
    Compare     *c = &ui->compare;
    CompareRooms r = compare_rooms(ui, area);

    choose_first(c, &r);
    for (int i = 0; i < c->count; i++) {
        Pane *pane = &c->panes[i];
        int   place = i - c->first;
        bool  shown = place >= 0 && place < r.shown;

        pane_lay_out(ui, pane, shown ? tile_of(&r, place) : (Area){ 0 });
        if (shown) {
            pane_want_drawing(ui, pane);
            strips_want(ui, pane);
        }
    }
}

/* ---- the screen ------------------------------------------------------------- */

static void draw_empty(Ui *ui, Area area)
{
    static const char text[] =
        "No pane is open.\n\nPress a to pick a mechanism, or 1 for the list: Enter opens one, "
        "Space marks several and c compares them.";

    term_paragraph(ui->term, (Area){ area.y + area.h / 3, area.x + 4, 6, area.w - 8 }, text,
                   ui_style(ui, ROLE_TEXT));
}

void compare_draw(Ui *ui, Area area)
{
    Compare     *c = &ui->compare;
    CompareRooms r = compare_rooms(ui, area);

    if (c->count == 0) {
        draw_empty(ui, area);
        return;
    }
    for (int i = 0; i < c->count; i++)
        if (c->panes[i].area.h)
            pane_draw(ui, &c->panes[i], i + 1, i == c->focus && !lessons_focused(ui));
    legend_draw(ui, r.legend_y, area.x + 1);
    compare_state(ui, (Area){ r.legend_y + 1, area.x, 1, area.w });
    if (r.dock.h)
        inspect_dock(ui, r.dock);
    if (r.strip.h)
        profile_bars(ui, r.strip, true);
}

/* ---- linked panes ----------------------------------------------------------- */

/* Cursor and sight of one pane for another, as far as their axes are the same. */
static bool follow(const Pane *from, Pane *to)
{
    const View *view = pane_view(from), *other = pane_view(to);
    bool        rows = view && other && views_share_rows(view, other);
    bool        cols = view && other && views_share_cols(view, other);
    int64_t     q, k;

    if (!rows && !cols)
        return false;
    pane_cursor(from, &q, &k);
    if (rows && cols)
        to->lens.zoom = from->lens.zoom;
    to->lens.row0 = rows ? from->lens.row0 : to->lens.row0;
    to->lens.col0 = cols ? from->lens.col0 : to->lens.col0;
    pane_point(to, rows ? q : to->lens.q, cols ? k : to->lens.k);
    return rows && cols;
}

void compare_link(Ui *ui)
{
    Compare    *c = &ui->compare;
    const Pane *from = compare_focus(ui);

    if (!from || !pane_view(from) || !c->linked)
        return;
    for (int i = 0; i < c->count; i++) {
        Pane *to = &c->panes[i];

        if (to == from || !pane_view(to))
            continue;
        follow(from, to);
    }
}

bool compare_adopt(Ui *ui, Pane *pane)
{
    Compare *c = &ui->compare;

    for (int i = 0; c->linked && i < c->count; i++)
        if (&c->panes[i] != pane && follow(&c->panes[i], pane))
            return true;
    return false;
}

bool compare_poll(Ui *ui)
{
    bool changed = false;

    for (int i = 0; i < ui->compare.count; i++)
        changed |= pane_poll(ui, &ui->compare.panes[i]);
    changed |= effect_poll(ui);
    return compare_align(ui) || changed;
}
