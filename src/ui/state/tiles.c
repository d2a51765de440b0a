/* tiles.c -- where the panes and the inspector stand on the compare screen.
 *
 * Rows and columns of tiles, and the inspector's side, are chosen by the scale they give: by how
 * many characters an entry of the matrices gets. The inspector takes what the tiles leave, up to
 * what its text needs. It never changes its place when the cursor moves.
 */
#include <stdio.h>
#include <string.h>

#include "ui/pane/costs.h"
#include "ui/state/panes.h"

#define DOCK_FROM  140 /* columns from which the inspector stands beside or below the panes */
#define DOCK_LEAST 32  /* its least width beside them */
#define DOCK_MOST  96
#define DOCK_BELOW 10 /* its least height below them, */
#define DOCK_TIGHT 8  /* and where that lets each entry have a half line of its own */
#define BELOW_FROM 60 /* its least width there */

/* Lines and columns a matrix needs to be worth a tile, and what is around it. */
#define LEAST_ROWS  8
#define MATRIX_COLS 24
#define AROUND_ROWS 4
#define TILE_LEAST  24 /* columns of a tile; where two have not so many there is one */
#define AROUND_COLS 8

/* Another arrangement than the usual one must be larger by this. */
#define CLEARLY 1.2

/* The most rows and columns of the panes' matrices, or of the input's. */
static void largest_matrix(Ui *ui, int64_t *rows, int64_t *cols)
{
    const Input *input = session_input(ui->session);

    *rows = *cols = 0;
    for (int i = 0; i < ui->compare.count; i++) {
        const LensShape *shape = &ui->compare.panes[i].shape;

        if (!shape->even)
            continue;
        *rows = shape->rows > *rows ? shape->rows : *rows;
        *cols = shape->cols > *cols ? shape->cols : *cols;
    }
    if (!*rows && input) {
        *rows = input->n;
        *cols = input->m;
    }
    *rows = *rows > 0 ? *rows : 1;
    *cols = *cols > 0 ? *cols : 1;
}

/* Characters that the matrix of each tile has. */
static Area tile_canvas(const Ui *ui, Area panes, int rows, int cols)
{
    return (Area){ .h = panes.h / rows - AROUND_ROWS - pane_cost_lines(ui, ui->compare.panes),
                   .w = panes.w / cols - AROUND_COLS };
}

/* Half lines of an entry in such a matrix. */
static double canvas_scale(Ui *ui, Area canvas)
{
    int64_t high, wide;
    double  down, across;

    largest_matrix(ui, &high, &wide);
    down = lens_fit(high, canvas.h > 0 ? 2 * canvas.h : 1);
    across = lens_fit(wide, canvas.w > 0 ? canvas.w : 1);
    return down < across ? down : across;
}

/* In each of so many tiles; 0: they are not worth it. */
static double tile_scale(Ui *ui, Area panes, int rows, int cols)
{
    Area canvas = tile_canvas(ui, panes, rows, cols);

    return canvas.h < LEAST_ROWS || canvas.w < MATRIX_COLS ? 0 : canvas_scale(ui, canvas);
}

/* The area that the panes have where the inspector has the least it needs. */
static Area beside_dock(const PaneRooms *r, Area all, DockSide side)
{
    if (side == DOCK_RIGHT)
        all.w -= r->least < all.w / 3 ? r->least : all.w / 3;
    if (side == DOCK_UNDER)
        all.h -= r->below;
    return all;
}

/* Lines of an inspector below so many tiles. */
static int lines_below(Ui *ui, PaneRooms r, Area all, int rows, int cols)
{
    r.below = DOCK_BELOW;
    if (tile_scale(ui, beside_dock(&r, all, DOCK_UNDER), rows, cols) >= 1)
        return DOCK_BELOW;
    r.below = DOCK_TIGHT;
    return tile_scale(ui, beside_dock(&r, all, DOCK_UNDER), rows, cols) >= 1 ? DOCK_TIGHT
                                                                            : DOCK_BELOW;
}

/* Whether the inspector may stand there. */
static bool dock_fits(Area all, DockSide side)
{
    if (side == DOCK_RIGHT)
        return all.w >= DOCK_FROM;
    return side == DOCK_UNDER ? all.w >= DOCK_FROM && all.h > 2 * DOCK_BELOW : all.w < DOCK_FROM;
}

/* The usual arrangement, or one with clearly larger matrices; false: so many do not fit. */
static bool arrange_tiles(Ui *ui, PaneRooms *r, Area all, int count)
{
    int    usual = count > 2 ? 2 : 1;
    double best = 0;

    for (int side = 0; side < DOCK_SIDES; side++)
        for (int k = 0; dock_fits(all, (DockSide)side) && k <= count; k++) {
            int       rows = k ? k : usual, cols = (count + rows - 1) / rows;
            PaneRooms tried = *r;
            Area      panes;
            double    scale;

            tried.below = lines_below(ui, *r, all, rows, cols);
            panes = beside_dock(&tried, all, (DockSide)side);
            scale = (rows - 1) * cols < count ? tile_scale(ui, panes, rows, cols) : 0;
            if (!(scale > best * CLEARLY))
                continue;
            best = scale;
            r->below = tried.below;
            r->rows = rows;
            r->cols = cols;
            r->shown = count;
            r->side = (DockSide)side;
        }
    return best > 0;
}

/* The chosen layout, if each tile has room for a few characters. */
static bool lay_out_tiles(Ui *ui, PaneRooms *r, Area all)
{
    const Compare *c = &ui->compare;
    int            rows, cols;
    double         best = -1;

    if (sscanf(c->look.layout, "%dx%d", &rows, &cols) != 2 || c->count < 2)
        return false;
    for (int side = 0; side < DOCK_SIDES; side++) {
        Area   panes = beside_dock(r, all, (DockSide)side);
        double scale = tile_scale(ui, panes, rows, cols);

        if (!dock_fits(all, (DockSide)side) || panes.w / cols < TILE_LEAST ||
            panes.h / rows < AROUND_ROWS + 2 || !(scale > best * CLEARLY))
            continue;
        best = scale;
        r->side = (DockSide)side;
        r->rows = rows;
        r->cols = cols;
        r->shown = c->count < rows * cols ? c->count : rows * cols;
    }
    return best >= 0;
}

/* As many tiles as fit, two at least where it is not too narrow. */
static void choose_tiles(Ui *ui, PaneRooms *r, Area all)
{
    const Compare *c = &ui->compare;
    int            most = c->now.solo ? 1 : c->count;

    r->side = dock_fits(all, DOCK_RIGHT) ? DOCK_RIGHT : DOCK_NONE;
    if (!c->now.solo && lay_out_tiles(ui, r, all))
        return;
    r->rows = 1;
    r->cols = r->shown = most < 2 || all.w < 2 * TILE_LEAST ? most > 0 : 2;
    while (most > 1 && !arrange_tiles(ui, r, all, most))
        most--;
    if (most == 1)
        arrange_tiles(ui, r, all, 1);
    r->cols = r->cols > 0 ? r->cols : 1;
}

/* Room that the tiles do not need: their matrices keep their sides. */
static void tiles_spare(Ui *ui, const PaneRooms *r, int *lines, int *columns)
{
    const Compare *c = &ui->compare;
    Area           strips = { 0 };
    double         scale = canvas_scale(ui, tile_canvas(ui, r->panes, r->rows, r->cols));
    int64_t        high, wide;
    bool           even = true;

    *lines = *columns = 0;
    for (int i = 0; i < c->count; i++) {
        const Pane *pane = &c->panes[i];

        even &= pane->shape.even || !pane->canvas.h;
        high = pane->beside.h + pane->loads.h;
        wide = pane->beside.w + pane->loads.w;
        strips.h = high > strips.h ? (int)high : strips.h;
        strips.w = wide > strips.w ? (int)wide : strips.w;
    }
    if (!even)
        return;
    largest_matrix(ui, &high, &wide);
    *lines = r->panes.h - r->rows * ((int)(scale * (double)high + 1.99) / 2 + AROUND_ROWS +
                                     pane_cost_lines(ui, c->panes) + strips.h);
    *columns =
        r->panes.w - r->cols * ((int)(scale * (double)wide + 0.99) + AROUND_COLS + 1 + strips.w);
    *lines = *lines > 0 ? *lines : 0;
    *columns = *columns > 0 ? *columns : 0;
}

static void dock_right(PaneRooms *r, int wanted, int spare)
{
    int width = r->dock.w + spare < wanted ? r->dock.w + spare : wanted;

    width = width > DOCK_MOST ? DOCK_MOST : width;
    if (width > r->dock.w) {
        r->dock.x -= width - r->dock.w;
        r->panes.w -= width - r->dock.w;
        r->dock.w = width;
    }
}

/* The inspector takes from the tiles what their matrices leave free. */
static void dock_grows(Ui *ui, PaneRooms *r)
{
    int lines, columns, wanted = r->wanted;

    tiles_spare(ui, r, &lines, &columns);
    if (r->side == DOCK_RIGHT) {
        dock_right(r, wanted, columns);
    } else if (r->side == DOCK_NONE && columns >= DOCK_LEAST && r->rows == 1) {
        /* with small tiles, wide captions are more useful */
        r->dock = (Area){ r->panes.y, r->panes.x + r->panes.w, r->panes.h, 0 };
        dock_right(r, wanted > DOCK_LEAST ? wanted : DOCK_LEAST, columns);
    } else if (r->side == DOCK_UNDER || (lines >= DOCK_BELOW && r->panes.w >= BELOW_FROM)) {
        r->panes.h -= lines;
        r->dock = (Area){ r->panes.y + r->panes.h, r->panes.x, r->dock.h + lines, r->panes.w };
        r->side = DOCK_UNDER;
    }
}

PaneRooms panes_rooms(Ui *ui, Area area)
{
    PaneRooms r = { .panes = area, .below = DOCK_BELOW };

    r.least = inspect_columns(ui, &r.wanted);
    r.legend_y = area.y + area.h - 2;
    area.h -= 2;
    choose_tiles(ui, &r, area);
    r.panes = beside_dock(&r, area, r.side);
    if (r.side == DOCK_RIGHT)
        r.dock = (Area){ area.y, area.x + r.panes.w, area.h, area.w - r.panes.w };
    if (r.side == DOCK_UNDER)
        r.dock = (Area){ area.y + r.panes.h, area.x, area.h - r.panes.h, area.w };
    if (ui->compare.count)
        dock_grows(ui, &r);
    return r;
}

Area tile_of(const PaneRooms *r, int index)
{
    int  row = index / r->cols, col = index % r->cols;
    Area p = r->panes, tile;

    tile.y = p.y + p.h * row / r->rows;
    tile.h = p.y + p.h * (row + 1) / r->rows - tile.y;
    tile.x = p.x + p.w * col / r->cols;
    tile.w = p.x + p.w * (col + 1) / r->cols - tile.x;
    return tile;
}

/* Beside the pane that is edited, or in the right column. */
Area params_area(Ui *ui)
{
    const Params *p = &ui->params;
    const Pane   *pane = p->pane < ui->compare.count ? &ui->compare.panes[p->pane] : NULL;
    Area          all = ui_area(ui);
    PaneRooms     rooms = panes_rooms(ui, all);

    if (rooms.dock.h && rooms.side != DOCK_UNDER)
        return rooms.dock;
    if (lessons_docked(ui)) /* beside the picture, which changes, and below the task */
        return ui->lessons.form_area(ui, (Area){ all.y, 0, all.h, lesson_width(ui) });
    all.h -= 2;
    all.w = all.w / 2 > 60 ? 60 : all.w / 2;
    if (!pane || pane->area.x < ui->term->cols / 3)
        all.x = ui->term->cols - all.w;
    return all;
}
