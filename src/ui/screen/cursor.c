/* cursor.c -- cursor, sight, search and mouse on the matrices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/screen/compare.h"
#include "ui/shell/actions.h"

Pane *seen_pane(Ui *ui)
{
    Pane *pane = compare_focus(ui);

    return pane && pane_view(pane) && pane->canvas.h ? pane : NULL;
}

/* ---- cursor ----------------------------------------------------------------- */

static bool points_are_rows(const Pane *pane)
{
    const View *view = pane_view(pane);
    ViewCurve   curve;

    return view_curve(view, &curve) && view->rank >= 2 && !curve.by_rows;
}

/* One step is a cell of the screen, so that the cursor moves when keys are pressed; in the
 * inspector, where each entry is a number, an entry. */
static void move(Ui *ui, int rows, int cols)
{
    Pane    *pane = seen_pane(ui);
    LensView v;

    if (!pane)
        return;
    v = lens_view(&pane->lens, &pane->shape);
    if (ui_has(ui, &inspect_layer))
        v.row.per = v.col.per = 1;
    if (points_are_rows(pane)) /* its x axis lies across */
        lens_move(&pane->lens, &pane->shape, cols, rows);
    else
        lens_move(&pane->lens, &pane->shape, (int64_t)lround(rows * v.row.per),
                  (int64_t)lround(cols * v.col.per));
    compare_link(ui);
}

static void jump(Ui *ui, int64_t q, int64_t k)
{
    Pane *pane = seen_pane(ui);

    if (!pane)
        return;
    lens_move(&pane->lens, &pane->shape, q - pane->lens.q, k - pane->lens.k);
    compare_link(ui);
}

void action_cell_left(Ui *ui)
{
    move(ui, 0, -1);
}
void action_cell_right(Ui *ui)
{
    move(ui, 0, 1);
}
void action_cell_up(Ui *ui)
{
    move(ui, -1, 0);
}
void action_cell_down(Ui *ui)
{
    move(ui, 1, 0);
}
void action_cell_left_ten(Ui *ui)
{
    move(ui, 0, -10);
}
void action_cell_right_ten(Ui *ui)
{
    move(ui, 0, 10);
}
void action_cell_up_ten(Ui *ui)
{
    move(ui, -10, 0);
}
void action_cell_down_ten(Ui *ui)
{
    move(ui, 10, 0);
}

static void half_screen(Ui *ui, int direction)
{
    Pane    *pane = seen_pane(ui);
    LensView v;

    if (!pane)
        return;
    v = lens_view(&pane->lens, &pane->shape);
    jump(ui, pane->lens.q + direction * ((v.row.last - v.row.first + 1) / 2), pane->lens.k);
}

void action_cell_page_up(Ui *ui)
{
    half_screen(ui, -1);
}
void action_cell_page_down(Ui *ui)
{
    half_screen(ui, 1);
}

static void to_edge(Ui *ui, int row, int col)
{
    Pane *pane = seen_pane(ui);

    if (pane)
        jump(ui,
             row < 0   ? 0
             : row > 0 ? pane->shape.rows - 1
                       : pane->lens.q,
             col < 0   ? 0
             : col > 0 ? pane->shape.cols - 1
                       : pane->lens.k);
}

void action_cell_row_start(Ui *ui)
{
    to_edge(ui, 0, -1);
}
void action_cell_row_end(Ui *ui)
{
    to_edge(ui, 0, 1);
}
void action_cell_first_row(Ui *ui)
{
    to_edge(ui, -1, 0);
}
void action_cell_last_row(Ui *ui)
{
    to_edge(ui, 1, 0);
}

void action_cell_diagonal(Ui *ui)
{
    Pane *pane = seen_pane(ui);
    const View *view = pane ? pane_view(pane) : NULL;

    if (!pane)
        return;
    if (pane->shape.rows != pane->shape.cols &&
        (strcmp(view->rows, "query") != 0 || strcmp(view->cols, "key") != 0))
        ui_hint(ui, "no diagonal here: rows are %ss, columns %ss", view->rows, view->cols);
    else
        jump(ui, pane->lens.q, pane->lens.q + pane->shape.cols - pane->shape.rows);
}

void go_to_cell(Ui *ui, Pane *pane, int64_t q, int64_t k)
{
    pane_point(pane, q, k);
    lens_move(&pane->lens, &pane->shape, 0, 0);
    compare_link(ui);
}

/* True, with a word: a curve has points, no pairs that are allowed or not. */
static bool is_curve(Ui *ui, const Pane *pane)
{
    ViewCurve curve;
    bool      is = view_curve(pane_view(pane), &curve);

    if (is)
        ui_hint(ui, "a curve has no masked cells, and all of it is in sight");
    return is;
}

static void next_allowed(Ui *ui, int direction)
{
    Pane   *pane = seen_pane(ui);
    int64_t q, k, best = -1;

    if (!pane || is_curve(ui, pane))
        return;
    pane_cursor(pane, &q, &k);
    if (!pane_row(ui, pane, q))
        return;
    for (int64_t c = 0; c < pane->row.count; c++) {
        int64_t key = pane->row.cells[c].key;

        if (direction > 0 ? key > k && best < 0 : key < k)
            best = key;
    }
    if (best < 0)
        ui_say(ui, ROLE_DIM, "no %s allowed key in row %lld", direction > 0 ? "later" : "earlier",
               (long long)q);
    else
        go_to_cell(ui, pane, q, best);
}

void action_cell_next(Ui *ui)
{
    next_allowed(ui, 1);
}
void action_cell_previous(Ui *ui)
{
    next_allowed(ui, -1);
}

static void next_edge(Ui *ui, int direction)
{
    Pane   *pane = seen_pane(ui);
    int64_t q, k, at;

    if (!pane || is_curve(ui, pane))
        return;
    pane_cursor(pane, &q, &k);
    if (!pane_row(ui, pane, q))
        return;
    at = row_edge(&pane->row, k, direction);
    if (at < 0)
        ui_say(ui, ROLE_DIM, "no edge %s in row %lld",
               direction > 0 ? "further on" : "before this", (long long)q);
    else
        go_to_cell(ui, pane, q, at);
}

void action_edge_next(Ui *ui)
{
    next_edge(ui, 1);
}
void action_edge_previous(Ui *ui)
{
    next_edge(ui, -1);
}

/* ---- sight ------------------------------------------------------------------ */

/* A zoom that is there already is no change to undo. */
static void zoom_change(Ui *ui, Pane *pane, Lens to)
{
    const Lens *from = &pane->lens;

    if (to.zoom == from->zoom &&
        (to.zoom == 0 || (to.row0 == from->row0 && to.col0 == from->col0))) {
        ui_hint(ui, "%s", to.zoom == 0 ? "the whole matrix is in sight"
                                       : "no other zoom that way");
        return;
    }
    history_note(ui);
    pane->lens = to;
    compare_link(ui);
}

static void zoom(Ui *ui, int direction)
{
    Pane *pane = seen_pane(ui);
    Lens  to;

    if (!pane || is_curve(ui, pane))
        return;
    to = pane->lens;
    lens_zoom(&to, &pane->shape, direction);
    zoom_change(ui, pane, to);
}

void action_zoom_in(Ui *ui)
{
    zoom(ui, 1);
}
void action_zoom_out(Ui *ui)
{
    zoom(ui, -1);
}

static void zoom_to(Ui *ui, int level)
{
    Pane *pane = seen_pane(ui);
    Lens  to;

    if (!pane || is_curve(ui, pane))
        return;
    to = pane->lens;
    lens_zoom_to(&to, &pane->shape, level);
    zoom_change(ui, pane, to);
}

void action_zoom_fit(Ui *ui)
{
    zoom_to(ui, 0);
}
void action_zoom_one(Ui *ui)
{
    zoom_to(ui, 1);
}

void action_centre(Ui *ui)
{
    Pane *pane = seen_pane(ui);
    Lens  before;

    if (!pane || is_curve(ui, pane))
        return;
    before = pane->lens;
    lens_centre(&pane->lens, &pane->shape);
    if (pane->lens.row0 == before.row0 && pane->lens.col0 == before.col0)
        ui_hint(ui, "the cursor is as near the middle as the matrix allows");
    compare_link(ui);
}

/* ---- search ----------------------------------------------------------------- */

static int64_t find_token(char *const *tokens, int64_t count, int64_t from, const char *text)
{
    for (int64_t i = 1; tokens && i <= count; i++) {
        int64_t at = (from + i) % count;

        if (strstr(tokens[at], text))
            return at;
    }
    return -1;
}

void compare_search(Ui *ui, const char *text)
{
    Compare     *c = &ui->compare;
    Pane        *pane = seen_pane(ui);
    bool         key = !strncmp(text, "k:", 2), query = !strncmp(text, "q:", 2);
    const char  *rest = key || query ? text + 2 : text;
    const Input *input = session_input(ui->session);
    int64_t      q, k, at;
    char        *end;

    if (!pane || !input)
        return;
    pane_cursor(pane, &q, &k);
    if (*rest)
        snprintf(c->sought, sizeof(c->sought), "%s", rest);
    rest = c->sought;
    at = strtoll(rest, &end, 10);
    if ((key || query) && !*end && end != rest) {
        int64_t most = (key ? pane->shape.cols : pane->shape.rows) - 1;

        if (at < 0 || at > most) {
            ui_say(ui, ROLE_WARN, "%s is outside 0..%lld", text, (long long)most);
            return;
        }
    } else {
        at = key ? find_token(input->k_tokens, input->m, k, rest)
                 : find_token(input->q_tokens, input->n, q, rest);
    }
    if (at < 0 || at >= (key ? pane->shape.cols : pane->shape.rows)) {
        ui_say(ui, ROLE_WARN, "'%s' not found%s", rest,
               input->q_tokens ? ""
                               : ": this input has no token labels (q:12 and k:5 go to numbers)");
        return;
    }
    go_to_cell(ui, pane, key ? q : at, key ? at : k);
}

/* ---- mouse ------------------------------------------------------------------ */

static bool inside(Area a, int y, int x)
{
    return y >= a.y && y < a.y + a.h && x >= a.x && x < a.x + a.w;
}

static Pane *pane_under(Ui *ui, const Event *event)
{
    Compare *c = &ui->compare;

    for (int i = 0; i < c->count; i++)
        if (c->panes[i].area.h && inside(c->panes[i].area, event->y, event->x)) {
            c->focus = i;
            return &c->panes[i];
        }
    return NULL;
}

static void point_at(Ui *ui, Pane *pane, const Event *event)
{
    Panel     panel;
    LensView  v = lens_view(&pane->lens, &pane->shape);
    GlyphSize glyph;
    int64_t   q, k;

    if (!pane_panel(ui, pane, &panel) || !inside(pane->canvas, event->y, event->x))
        return;
    glyph = glyphs_size(glyphs_for(ui->term, ui->glyphs, &panel));
    q = lens_entry(&v.row, (event->y - pane->canvas.y) * glyph.down);
    k = lens_entry(&v.col, (event->x - pane->canvas.x) / glyph.columns * glyph.across);
    if (q >= 0 && k >= 0)
        lens_move(&pane->lens, &pane->shape, q - pane->lens.q, k - pane->lens.k);
}

static void drag(Ui *ui, Pane *pane, const Event *event)
{
    Compare  *c = &ui->compare;
    Panel     panel;
    LensView  v;
    GlyphSize glyph;

    if (c->drag_y < 0 || !pane_panel(ui, pane, &panel))
        return;
    v = lens_view(&pane->lens, &pane->shape);
    glyph = glyphs_size(glyphs_for(ui->term, ui->glyphs, &panel));
    lens_pan(&pane->lens, &pane->shape,
             (int64_t)lround((c->drag_y - event->y) * glyph.down * v.row.per / v.row.size),
             (int64_t)lround((double)(c->drag_x - event->x) * glyph.across / glyph.columns *
                             v.col.per / v.col.size));
}

void compare_mouse(Ui *ui, const Event *event)
{
    Compare *c = &ui->compare;
    bool     held = event->kind == EVENT_DRAG || event->kind == EVENT_RELEASE;
    Pane    *pane = held ? compare_focus(ui) : pane_under(ui, event);

    if (!pane || !pane_view(pane))
        return;
    if (event->kind == EVENT_PRESS)
        point_at(ui, pane, event);
    if (event->kind == EVENT_DRAG)
        drag(ui, pane, event);
    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN) {
        point_at(ui, pane, event);
        lens_zoom(&pane->lens, &pane->shape, event->kind == EVENT_WHEEL_UP ? 1 : -1);
    }
    c->drag_y = event->kind == EVENT_RELEASE ? -1 : event->y;
    c->drag_x = event->x;
    compare_link(ui);
}
