/* compare.c -- the compare screen: panes in tiles; cursor, sight, search and mouse on their
 * matrices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/text/unicode.h"
#include "ui/shell/actions.h"
#include "ui/state/panes.h"

static void choose_first(Compare *c, const PaneRooms *r)
{
    if (c->now.focus < c->first || c->now.solo)
        c->first = c->now.focus;
    if (c->now.focus >= c->first + r->shown)
        c->first = c->now.focus - r->shown + 1;
    if (c->first + r->shown > c->count)
        c->first = c->count - r->shown;
    if (c->first < 0)
        c->first = 0;
}

static void compare_prepare(Ui *ui, Area area)
{
    Compare  *c = &ui->compare;
    PaneRooms r = panes_rooms(ui, area);

    choose_first(c, &r);
    for (int i = 0; i < c->count; i++) {
        Pane *pane = &c->panes[i];
        int   place = i - c->first;
        bool  shown = place >= 0 && place < r.shown;

        pane_lay_out(ui, pane, shown ? tile_of(&r, place) : (Area){ 0 });
    }
    panes_see_one_region(ui);
    for (int i = c->first; i < c->count && i < c->first + r.shown; i++) {
        pane_want_drawing(ui, &c->panes[i]);
        strips_want(ui, &c->panes[i]);
    }
}

/* ---- the line below the panes: what of the matrices is seen, and how ---------- */

static void zoom_text(const LensView *v, char *text, size_t size)
{
    if (v->row.per > 1 || v->col.per > 1)
        snprintf(text, size, "1:%.4g", fmax(v->row.per, v->col.per));
    else
        snprintf(text, size, "%.3g:1", (double)v->row.span / (double)v->row.cells);
}

/* Layer and head, and how many there are where the line is long enough. */
static void describe_place(const Ui *ui, const Pane *pane, Text *out)
{
    const Input *input = pane->result->input;
    int64_t      heads = pane_heads(pane);

    if ((input->layers > 1 || input->layer) && ui->term->cols < 100) {
        text_addf(out, " \xe2\x94\x82 L%lld", (long long)input->layer);
        if (heads > 1)
            text_addf(out, " h%lld", (long long)pane->spec.head);
        return;
    }
    if (input->layers > 1)
        text_addf(out, " \xe2\x94\x82 layer %lld (of %lld%s%lld)", (long long)input->layer,
                  (long long)input_layer_number(input, 0), input->held ? ".." : "-",
                  (long long)input_layer_number(input, input->layers - 1));
    if (heads > 1)
        text_addf(out, " \xe2\x94\x82 head %lld (of 0-%lld)", (long long)pane->spec.head,
                  (long long)heads - 1);
}

/* The pane's number where not all panes are visible, and whether they are linked. */
static void describe_panes(const Ui *ui, Text *out)
{
    const Compare *c = &ui->compare;
    bool           some =
        c->first > 0 || (!c->now.solo && c->count > 2 && c->panes[c->count - 1].area.h == 0);

    if (some)
        text_addf(out, "pane %d of %d (Tab) \xe2\x94\x82 ", c->now.focus + 1, c->count);
    if (c->count > 1 && !c->now.linked)
        text_add(out, "each its own \xe2\x94\x82 ");
    else if (c->count > 1 && (!some || ui->term->cols >= 100))
        text_add(out, "linked \xe2\x94\x82 ");
}

/* How the entries of a cell are pooled; categories by majority. */
static const char *pool_words(const Panel *panel)
{
    return panel_shows_categories(panel) ? "majority" : pool_name(panel->pool);
}

/* tight: without what the axes show. */
static void describe_pane(Ui *ui, Pane *pane, const Panel *panel, bool tight, Text *out)
{
    const Compare *c = &ui->compare;
    LensView       v = lens_view(&pane->lens, &pane->shape);
    AxisNames      names = axis_names(panel->view);
    int64_t        row = panel_first(panel, true), col = panel_first(panel, false);
    char           zoom[32];

    zoom_text(&v, zoom, sizeof(zoom));
    describe_panes(ui, out);
    if (panel->plot)
        text_add(out, tight ? "a curve" : "a curve: left and right move along it");
    else
        text_addf(out, "zoom %s", zoom);
    if (!panel->plot && !tight)
        text_addf(out, " \xe2\x94\x82 %s %lld-%lld  %s %lld-%lld", names.rows,
                  (long long)(v.row.first + row), (long long)(v.row.last - 1 + row), names.cols,
                  (long long)(v.col.first + col), (long long)(v.col.last - 1 + col));
    if (c->marks.count)
        text_addf(out, " \xe2\x94\x82 %d marked", c->marks.count);
    if (pane_excludes(pane))
        text_addf(out, " \xe2\x94\x82 key %lld excluded", (long long)pane->spec.excluded);
    describe_place(ui, pane, out);
    if (!panel->plot)
        text_addf(out, " \xe2\x94\x82 %s", pool_words(panel));
    if (!panel->plot && !panel_shows_categories(panel) && !panel_shows_hops(panel) &&
        panel->scale != SCALE_LINEAR)
        text_addf(out, " \xe2\x94\x82 %s", scale_name(panel->scale));
    if (pane_is_sorted(pane))
        text_add(out, " \xe2\x94\x82 sorted");
    strips_describe(ui, pane, out);
    if (c->count > 1 && c->now.solo)
        text_add(out, " \xe2\x94\x82 alone (o)");
}

static void state_draw(Ui *ui, Area line)
{
    Compare *c = &ui->compare;
    Pane    *pane = panes_focus(ui);
    Panel    panel;
    Text     out = { 0 };

    if (!pane)
        return;
    if (!pane_panel(ui, pane, &panel)) {
        term_textf(ui->term, line.y, line.x + 1, line.w - 2, ui_style(ui, ROLE_DIM),
                   "pane %d of %d%s", c->now.focus + 1, c->count,
                   pane->job && pane->spec.sorted
                       ? " \xe2\x94\x82 sorted, where the mechanism has an order of its own"
                       : "");
        return;
    }
    describe_pane(ui, pane, &panel, false, &out);
    if (term_width(text_str(&out)) > line.w - 2) {
        text_clear(&out);
        describe_pane(ui, pane, &panel, true, &out);
    }
    term_text(ui->term, line.y, line.x + 1, line.w - 2, text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&out);
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

static void compare_draw(Ui *ui, Area area)
{
    Compare  *c = &ui->compare;
    PaneRooms r = panes_rooms(ui, area);

    if (c->count == 0) {
        draw_empty(ui, area);
        return;
    }
    panes_share_colours(ui);
    for (int i = 0; i < c->count; i++)
        if (c->panes[i].area.h)
            pane_draw(ui, &c->panes[i], i + 1, i == c->now.focus && !lessons_focused(ui));
    legend_draw(ui, r.legend_y, area.x + 1);
    state_draw(ui, (Area){ r.legend_y + 1, area.x, 1, area.w });
    if (r.dock.h)
        inspect_dock(ui, r.dock);
}

/* ---- cursor ----------------------------------------------------------------- */

static bool points_are_rows(const Pane *pane)
{
    const View *view = pane_view(pane);
    ViewCurve   curve;

    return view_curve(view, &curve) && view->rank >= 2 && !curve.by_rows;
}

/* Moves the cursor; where it stands at an end, says so. */
static void go_by(Ui *ui, Pane *pane, int64_t rows, int64_t cols)
{
    const View *view = pane_view(pane);
    int64_t     q = pane->lens.q, k = pane->lens.k;

    lens_move(&pane->lens, &pane->shape, rows, cols);
    if (pane->lens.q != q || pane->lens.k != k)
        return;
    if (!rows == !cols)
        ui_hint(ui, "the cursor stands there");
    else
        ui_hint(ui, "this is the %s %s", rows > 0 || cols > 0 ? "last" : "first",
                rows ? view->rows : view->cols);
}

/* One step is a cell of the screen, so that the cursor moves when keys are pressed; in the
 * inspector, where each entry is a number, an entry. */
static void move_cursor(Ui *ui, int rows, int cols)
{
    Pane    *pane = seen_pane(ui);
    LensView v;

    if (!pane)
        return;
    v = lens_view(&pane->lens, &pane->shape);
    if (ui_has(ui, SCREEN_INSPECT))
        v.row.per = v.col.per = 1;
    if (points_are_rows(pane)) /* the x axis is horizontal */
        go_by(ui, pane, cols, rows);
    else
        go_by(ui, pane, (int64_t)lround(rows * v.row.per), (int64_t)lround(cols * v.col.per));
    panes_link(ui);
}

static void jump(Ui *ui, int64_t q, int64_t k)
{
    Pane *pane = seen_pane(ui);

    if (!pane)
        return;
    go_by(ui, pane, q - pane->lens.q, k - pane->lens.k);
    panes_link(ui);
}

void cell_rows(Ui *ui, int by)
{
    move_cursor(ui, by, 0);
}

void cell_columns(Ui *ui, int by)
{
    move_cursor(ui, 0, by);
}

void cell_page(Ui *ui, int direction)
{
    Pane    *pane = seen_pane(ui);
    LensView v;

    if (!pane)
        return;
    v = lens_view(&pane->lens, &pane->shape);
    jump(ui, pane->lens.q + direction * ((v.row.last - v.row.first + 1) / 2), pane->lens.k);
}

/* side: -1 the first query, 1 the last. */
void cell_row_edge(Ui *ui, int side)
{
    Pane *pane = seen_pane(ui);

    if (pane)
        jump(ui, side < 0 ? 0 : pane->shape.rows - 1, pane->lens.k);
}

/* side: -1 the first key, 1 the last. */
void cell_column_edge(Ui *ui, int side)
{
    Pane *pane = seen_pane(ui);

    if (pane)
        jump(ui, pane->lens.q, side < 0 ? 0 : pane->shape.cols - 1);
}

void action_cell_diagonal(Ui *ui)
{
    Pane       *pane = seen_pane(ui);
    const View *view = pane ? pane_view(pane) : NULL;

    if (!pane)
        return;
    if (pane->shape.rows != pane->shape.cols &&
        (strcmp(view->rows, "query") != 0 || strcmp(view->cols, "key") != 0))
        ui_hint(ui, "no diagonal here: rows are %ss, columns %ss", view->rows, view->cols);
    else
        jump(ui, pane->lens.q, pane->lens.q + pane->shape.cols - pane->shape.rows);
}

/* True, with a hint: a curve has no allowed or masked pairs. */
static bool is_curve(Ui *ui, const Pane *pane)
{
    ViewCurve curve;
    bool      is = view_curve(pane_view(pane), &curve);

    if (is)
        ui_hint(ui, "a curve has no masked cells, and all of it is in sight");
    return is;
}

static bool seek_again(Ui *ui, int way); /* false: nothing is sought */

/* As in other programs, n repeats a search; without one it goes along the row. */
void cell_allowed(Ui *ui, int direction)
{
    Pane   *pane = seen_pane(ui);
    int64_t q, k, best = -1;

    if (seek_again(ui, direction))
        return;
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

void cell_edge(Ui *ui, int direction)
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
        ui_say(ui, ROLE_DIM, "no edge %s in row %lld", direction > 0 ? "further on" : "before this",
               (long long)q);
    else
        go_to_cell(ui, pane, q, at);
}

/* ---- sight ------------------------------------------------------------------ */

/* An unchanged zoom is not recorded for undo. */
static void zoom_change(Ui *ui, Pane *pane, Lens to)
{
    const Lens *from = &pane->lens;

    if (to.zoom == from->zoom &&
        (to.zoom == 0 || (to.row0 == from->row0 && to.col0 == from->col0))) {
        ui_hint(ui, "%s", to.zoom == 0 ? "the whole matrix is in sight" : "no other zoom that way");
        return;
    }
    history_note(ui);
    pane->lens = to;
    panes_link(ui);
}

static void zoom_by(Ui *ui, void (*change)(Lens *lens, const LensShape *shape, int amount),
                    int amount)
{
    Pane *pane = seen_pane(ui);
    Lens  to;

    if (!pane || is_curve(ui, pane))
        return;
    to = pane->lens;
    change(&to, &pane->shape, amount);
    zoom_change(ui, pane, to);
}

void zoom_step(Ui *ui, int direction)
{
    zoom_by(ui, lens_zoom, direction);
}

void zoom_set(Ui *ui, int level)
{
    zoom_by(ui, lens_zoom_to, level);
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
    panes_link(ui);
}

/* ---- search ----------------------------------------------------------------- */

/* A label's text, with a blank for the marks that tokens of a model have for blanks. */
static void add_plain(const char *label, Text *out)
{
    while (*label) {
        size_t blank = utf8_token_blank(label);

        text_add_bytes(out, blank ? " " : label, 1);
        label += blank ? blank : 1;
    }
}

/* The next token from `from` that way which begins words that reach over several tokens; -1: none.
 */
static int64_t find_words(char *const *tokens, int64_t count, int64_t from, int way,
                          const char *text, const char *between)
{
    for (int64_t i = 1; i <= count; i++) {
        int64_t at = ui_round(from, way * i, count), end = at;
        size_t  first;
        Text    words = { 0 };
        char   *found;

        add_plain(tokens[at], &words);
        first = words.length;
        while (++end < count && words.length < first + strlen(text)) {
            text_add(&words, between);
            add_plain(tokens[end], &words);
        }
        found = strstr(text_str(&words), text);
        if (found && (size_t)(found - text_str(&words)) >= first)
            found = NULL; /* it begins in a later token */
        text_free(&words);
        if (found)
            return at;
    }
    return -1;
}

/* In one token, else over several, of pieces or of words. */
static int64_t find_token(char *const *tokens, int64_t count, int64_t from, int way,
                          const char *text)
{
    int64_t at;

    for (int64_t i = 1; tokens && i <= count; i++) {
        at = ui_round(from, way * i, count);
        if (strstr(tokens[at], text))
            return at;
    }
    at = tokens ? find_words(tokens, count, from, way, text, "") : -1;
    return tokens && at < 0 ? find_words(tokens, count, from, way, text, " ") : at;
}

/* "50:34", "50 34", "q:50 k:34" or "k:34 q:50": a pair of numbers; false: something else. */
static bool is_pair(const char *text, int64_t *q, int64_t *k)
{
    long long a, b;
    int       end = 0;

    if ((sscanf(text, " %lld : %lld %n", &a, &b, &end) == 2 && !text[end]) ||
        (sscanf(text, " q:%lld%*[ ,]k:%lld %n", &a, &b, &end) == 2 && !text[end]) ||
        (sscanf(text, " k:%lld%*[ ,]q:%lld %n", &b, &a, &end) == 2 && !text[end])) {
        *q = a;
        *k = b;
        return true;
    }
    return false;
}

static void go_to_pair(Ui *ui, Pane *pane, int64_t q, int64_t k)
{
    long long rows = (long long)pane->shape.rows, cols = (long long)pane->shape.cols;

    if (q < 0 || q >= rows || k < 0 || k >= cols)
        ui_say(ui, ROLE_WARN, "q:%lld k:%lld is outside of q 0..%lld, k 0..%lld", (long long)q,
               (long long)k, rows - 1, cols - 1);
    else
        go_to_cell(ui, pane, q, k);
}

/* "12" after q: or k:; false: it is no number. */
static bool go_to_line(Ui *ui, Pane *pane, bool key, const char *text)
{
    int64_t most = (key ? pane->shape.cols : pane->shape.rows) - 1, q, k, at;
    char   *end;

    at = strtoll(text, &end, 10);
    if (*end || end == text)
        return false;
    pane_cursor(pane, &q, &k);
    if (at < 0 || at > most)
        ui_say(ui, ROLE_WARN, "%c:%s is outside 0..%lld", key ? 'k' : 'q', text, (long long)most);
    else
        go_to_cell(ui, pane, key ? q : at, key ? at : k);
    return true;
}

/* To the next token, that way, of what was sought; false with a message. */
static bool seek(Ui *ui, Pane *pane, int way)
{
    const Compare *c = &ui->compare;
    const Input   *input = session_input(ui->session);
    bool           key = c->seeks_keys;
    int64_t        q, k, at;

    pane_cursor(pane, &q, &k);
    at = key ? find_token(input->k_tokens, input->m, k, way, c->sought)
             : find_token(input->q_tokens, input->n, q, way, c->sought);
    if (at < 0 || at >= (key ? pane->shape.cols : pane->shape.rows)) {
        ui_say(ui, ROLE_WARN, "'%s' not found%s", c->sought,
               input->q_tokens ? "; Esc ends the search"
                               : ": this input has no token labels (q:12, k:5, 12:5 are numbers)");
        return false;
    }
    go_to_cell(ui, pane, key ? q : at, key ? at : k);
    return true;
}

static bool seek_again(Ui *ui, int way)
{
    Pane *pane = seen_pane(ui);

    if (!ui->compare.sought[0] || !pane || !session_input(ui->session))
        return false;
    seek(ui, pane, way);
    return true;
}

/* Nothing is sought any more. */
static void end_search(Ui *ui)
{
    ui->compare.sought[0] = '\0';
}

static void compare_search(Ui *ui, const char *text)
{
    Compare    *c = &ui->compare;
    Pane       *pane = seen_pane(ui);
    bool        key = !strncmp(text, "k:", 2), marked = key || !strncmp(text, "q:", 2);
    const char *rest = marked ? text + 2 : text;
    int64_t     q, k;

    if (!pane || !session_input(ui->session))
        return;
    if (is_pair(text, &q, &k)) {
        go_to_pair(ui, pane, q, k);
    } else if (!marked || !go_to_line(ui, pane, key, rest)) {
        if (*rest) {
            snprintf(c->sought, sizeof(c->sought), "%s", rest);
            c->seeks_keys = key;
        }
        if (!c->sought[0])
            ui_hint(ui, "/ finds a token, q:12 or :query 12 a query, k:5 a key, 12:5 a cell");
        else if (seek(ui, pane, 1))
            ui_hint(ui, "'%s': n goes to the next, N to the one before; Esc ends it", c->sought);
        else if (!session_input(ui->session)->q_tokens)
            end_search(ui); /* no text is ever found here */
    }
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
            c->now.focus = i;
            return &c->panes[i];
        }
    return NULL;
}

static void point_under(Ui *ui, Pane *pane, const Event *event)
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

static void compare_mouse(Ui *ui, const Event *event)
{
    Compare *c = &ui->compare;
    bool     held = event->kind == EVENT_DRAG || event->kind == EVENT_RELEASE;
    Pane    *pane = held ? panes_focus(ui) : pane_under(ui, event);

    if (!pane || !pane_view(pane))
        return;
    if (event->kind == EVENT_PRESS)
        point_under(ui, pane, event);
    if (event->kind == EVENT_DRAG)
        drag(ui, pane, event);
    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN) {
        point_under(ui, pane, event);
        lens_zoom(&pane->lens, &pane->shape, event->kind == EVENT_WHEEL_UP ? 1 : -1);
    }
    c->drag_y = event->kind == EVENT_RELEASE ? -1 : event->y;
    c->drag_x = event->x;
    panes_link(ui);
}

/* ---- work ------------------------------------------------------------------- */

static unsigned compare_scope(const Ui *ui)
{
    return ui->compare.count ? IN_COMPARE : IN_EMPTY;
}

static bool compare_line(Ui *ui, int y)
{
    inspect_line(ui, y);
    return true;
}

static bool compare_pending(const Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].area.h && drawing_pending(&ui->compare.panes[i].drawing))
            return true;
    return false;
}

static bool compare_runs(const Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].job || ui->compare.panes[i].measuring)
            return true;
    return false;
}

/* Only asks the worker to cancel; the next poll takes the ended jobs. */
static bool compare_cancel(Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        if (pane->job)
            job_cancel(pane->job);
        if (pane->measuring)
            job_cancel(pane->measuring);
    }
    return compare_runs(ui);
}

const Screen screen_compare = {
    .tab = "2 Compare",
    .mode = "VIEW",
    .scope = IN_COMPARE,
    .scope_now = compare_scope,
    .draw = compare_draw,
    .hint = pane_hint,
    .press = compare_mouse,
    .find = compare_search,
    .clear = end_search,
    .line = compare_line,
    .prepare = compare_prepare,
    .pending = compare_pending,
    .poll = panes_poll,
    .runs = compare_runs,
    .cancel = compare_cancel,
    .end = panes_clear,
};
