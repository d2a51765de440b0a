/* compare.c -- the compare screen: tiles, legend, what is linked. */
#include "ui/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* ---- legend ------------------------------------------------------- */

/* What a bit of a pane's picture means, unless an earlier one meant the same. */
static bool is_new_cause(const Ui *ui, int pane, const View *view, uint8_t bit)
{
    for (int i = 0; i < pane; i++) {
        const Pane *before = &ui->compare.panes[i];
        const View *other = before->area.h && before->drawing.causes ? pane_view(before) : NULL;

        for (int b = COMPONENT_WINDOW; other && b <= COMPONENT_LAST; b <<= 1)
            if (grid_causes(&before->drawing.grid) & b &&
                !strcmp(cause_name(other, (uint8_t)b), cause_name(view, bit)))
                return false;
    }
    return true;
}

static int legend_bit(Ui *ui, int y, int x, const View *view, uint8_t bit)
{
    Term *term = ui->term;
    Ink   ink = ink_of(cause_colour(view, bit), cause_256(view, bit));
    bool  letters = !term->utf8 || term->colours == TERM_MONO;

    term_char(term, y, x, letters ? (uint32_t)cause_letter(view, bit) : 0x25A0,
              (Style){ .fg = ink });
    return x + 4 + term_text(term, y, x + 2, 12, cause_name(view, bit), ui_style(ui, ROLE_TEXT));
}

static int legend_bits(Ui *ui, int y, int x)
{
    for (int i = 0; i < ui->compare.count; i++) {
        const Pane *pane = &ui->compare.panes[i];
        const View *view = pane->area.h && pane->drawing.causes ? pane_view(pane) : NULL;

        for (int bit = COMPONENT_WINDOW; view && bit <= COMPONENT_LAST; bit <<= 1)
            if (grid_causes(&pane->drawing.grid) & bit &&
                is_new_cause(ui, i, view, (uint8_t)bit))
                x = legend_bit(ui, y, x, view, (uint8_t)bit);
    }
    return x;
}

static int legend_list(Ui *ui, const LegendItem *items, int count, int y, int x)
{
    bool letters = !ui->term->utf8 || ui->term->colours == TERM_MONO;

    for (int k = 0; k < count; k++) {
        Ink ink = items[k].background ? INK_NONE : ink_of(items[k].rgb, items[k].index256);
        int width = term_width(items[k].text) < 12 ? term_width(items[k].text) : 12;

        if (x + 2 + width + (k + 1 < count ? 3 : 0) > ui->term->cols) { /* there are more */
            term_char(ui->term, y, x, 0x2026, ui_style(ui, ROLE_DIM));
            return x + 2;
        }

        term_char(ui->term, y, x,
                  letters               ? (uint32_t)items[k].ascii
                  : items[k].background ? 0x25A1
                                        : 0x25A0,
                  (Style){ .fg = ink });
        x += 2 + term_text(ui->term, y, x + 2, 12, items[k].text, ui_style(ui, ROLE_TEXT)) + 2;
    }
    return x;
}

/* Of all panes that show reach: a count has the same colour in all of them. */
static int legend_hops(Ui *ui, int y, int x)
{
    double     least = REACH_MOST, most = 0;
    bool       any = false, unreached = false;
    ColourMap  map = MAP_VIRIDIS;
    LegendItem items[32];
    int        count;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane       *pane = &ui->compare.panes[i];
        const Grid *g = &pane->drawing.grid;
        Panel       panel;

        if (!pane->area.h || !g->cells || pane->drawing.kind != VIEW_HOPS ||
            !pane_panel(ui, pane, &panel) || !panel_shows_hops(&panel))
            continue;
        any = true;
        map = panel.map;
        least = fmin(least, g->value_min);
        most = fmax(most, g->value_max);
        unreached |= g->count < (double)(g->region.row1 - g->region.row0) *
                                    (double)(g->region.col1 - g->region.col0);
    }
    count = any ? hops_legend(map, least, most, unreached, theme_dark(ui->theme), items, 32) : 0;
    return legend_list(ui, items, count, y, x);
}

/* Of a pane that shows who works on what. */
static int legend_schedule(Ui *ui, int y, int x)
{
    LegendItem items[4];
    bool       any = false;
    Panel      panel;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        any |= pane->area.h && pane->drawing.grid.cells && pane_panel(ui, pane, &panel) &&
               panel_shows_schedule(&panel);
    }
    return any ? legend_list(ui, items, schedule_legend(HUES_USUAL, items, 4), y, x) : x;
}

static bool colours_values(const Panel *panel)
{
    ViewKind kind = panel->view->kind;

    return panel->minus ||
           !(panel_shows_hops(panel) || panel->components || kind == VIEW_PATTERN ||
             kind == VIEW_COMPONENTS || kind == VIEW_BUCKETS || kind == VIEW_MEMBERSHIP ||
             kind == VIEW_SCHEDULE);
}

bool pane_range(const Panel *panel, const Grid *grid, double *lo, double *hi)
{
    if (!colours_values(panel))
        return false;
    *lo = grid->pool_lo[panel->pool];
    *hi = grid->pool_hi[panel->pool];
    panel_spread(panel, lo, hi);
    if (panel->hi > panel->lo) { /* fixed by the kind */
        *lo = panel->lo;
        *hi = panel->hi;
    }
    return true;
}

static int legend_values(Ui *ui, const Pane *pane, int y, int x)
{
    Panel          panel;
    double         lo, hi;
    int            length, digits;
    const uint8_t *ramp;
    ColourMap      map;

    if (!pane_panel(ui, compare_focus(ui), &panel) || !pane->drawing.grid.cells || panel.plot)
        return x;
    if (!pane_range(&panel, &pane->drawing.grid, &lo, &hi)) {
        if (panel.view->kind != VIEW_HOPS && panel.view->kind != VIEW_BUCKETS &&
            panel.view->kind != VIEW_MEMBERSHIP && panel.view->kind != VIEW_SCHEDULE &&
            pane->drawing.grid.rows <
            pane->drawing.grid.region.row1 - pane->drawing.grid.region.row0)
            x += term_text(ui->term, y, x, 40,
                           x + 38 < ui->term->cols ? "brighter: more of the cell is allowed"
                                                   : "brighter: more",
                           ui_style(ui, ROLE_DIM)) +
                 2;
        return x;
    }
    map = panel.minus ? MAP_DIVERGING : panel.map;
    ramp = colour_ramp_256(map, &length);
    digits = range_digits(lo, hi);
    x += term_textf(ui->term, y, x, 12, ui_style(ui, ROLE_DIM), "%.*g ", digits, lo);
    for (int i = 0; i < 12; i++) {
        double t = i / 11.0;
        Ink    ink = ink_of(colour_of_value(map, t), ramp[lround(t * (length - 1))]);

        if (ui->term->utf8 && ui->term->colours >= TERM_256)
            term_char(ui->term, y, x++, ' ', (Style){ .bg = ink });
        else if (i % 3 == 0)
            term_char(
                ui->term, y, x++,
                ui->term->utf8 ? (uint32_t[]){ 0x2591, 0x2592, 0x2593, 0x2588 }[i / 3]
                               : (uint32_t) ".-*@" [i / 3],
                (Style) { 0 });
    }
    x += term_textf(ui->term, y, x, 30, ui_style(ui, ROLE_DIM), " %.*g %s", digits, hi,
                    panel.scale == SCALE_LINEAR ? "" : scale_name(panel.scale));
    return x + 2;
}

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
    int          x;

    if (c->count == 0) {
        draw_empty(ui, area);
        return;
    }
    for (int i = 0; i < c->count; i++)
        if (c->panes[i].area.h)
            pane_draw(ui, &c->panes[i], i + 1, i == c->focus && !lessons_focused(ui));
    x = legend_bits(ui, r.legend_y, area.x + 1);
    x = legend_hops(ui, r.legend_y, x);
    x = legend_schedule(ui, r.legend_y, x);
    x = legend_loads(ui, r.legend_y, x);
    legend_values(ui, compare_focus(ui), r.legend_y, x);
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
