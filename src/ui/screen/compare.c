/* compare.c -- the compare screen: tiles, what is linked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/plan.h"
#include "ui/screen/compare.h"

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

/* The line below the panes: what of the matrices is seen, and how. */

static void zoom_text(const LensView *v, char *text, size_t size)
{
    if (v->row.per > 1 || v->col.per > 1)
        snprintf(text, size, "1:%.4g", fmax(v->row.per, v->col.per));
    else
        snprintf(text, size, "%d:1", v->row.size);
}

/* Layer and head, and how many there are where the line is long enough. */
static void describe_place(const Ui *ui, const Pane *pane, Text *out)
{
    const Input *input = pane->result->input;
    int64_t      heads = pane_heads(pane);

    if ((input->layers > 1 || input->layer) && ui->term->cols < 100) {
        text_addf(out, " \xe2\x94\x82 L%lld", (long long)input->layer);
        if (heads > 1)
            text_addf(out, " h%lld", (long long)pane->head);
        return;
    }
    if (input->layers > 1)
        text_addf(out, " \xe2\x94\x82 layer %lld (of %lld%s%lld)", (long long)input->layer,
                  (long long)input_layer_number(input, 0), input->held ? ".." : "-",
                  (long long)input_layer_number(input, input->layers - 1));
    if (heads > 1)
        text_addf(out, " \xe2\x94\x82 head %lld (of 0-%lld)", (long long)pane->head,
                  (long long)heads - 1);
}

/* Which of the panes this is where not all are seen; whether they move together. */
static void describe_panes(const Ui *ui, Text *out)
{
    const Compare *c = &ui->compare;
    bool           some = c->first > 0 ||
                (!c->solo && c->count > 2 && c->panes[c->count - 1].area.h == 0);

    if (some)
        text_addf(out, "pane %d of %d (Tab) \xe2\x94\x82 ", c->focus + 1, c->count);
    if (c->count > 1 && !c->linked)
        text_add(out, "each its own \xe2\x94\x82 ");
    else if (c->count > 1 && (!some || ui->term->cols >= 100))
        text_add(out, "linked \xe2\x94\x82 ");
}

/* What stands for the entries of a cell: of categories the one that most of them have. */
static const char *pool_words(const Panel *panel)
{
    return panel_shows_categories(panel) ? "majority" : pool_name(panel->pool);
}

/* tight: without what the axes say. */
static void describe(Ui *ui, Pane *pane, const Panel *panel, bool tight, Text *out)
{
    const Compare *c = &ui->compare;
    LensView       v = lens_view(&pane->lens, &pane->shape);
    char           zoom[32];

    zoom_text(&v, zoom, sizeof(zoom));
    describe_panes(ui, out);
    if (panel->plot)
        text_add(out, tight ? "a curve" : "a curve: left and right move along it");
    else
        text_addf(out, "zoom %s", zoom);
    if (!panel->plot && !tight)
        text_addf(out, " \xe2\x94\x82 %c %lld-%lld  %c %lld-%lld", panel->view->rows[0],
                  (long long)v.row.first, (long long)v.row.last - 1, panel->view->cols[0],
                  (long long)v.col.first, (long long)v.col.last - 1);
    if (c->marks.count)
        text_addf(out, " \xe2\x94\x82 %d marked", c->marks.count);
    if (pane_excludes(pane))
        text_addf(out, " \xe2\x94\x82 key %lld excluded", (long long)pane->excluded);
    describe_place(ui, pane, out);
    if (!panel->plot)
        text_addf(out, " \xe2\x94\x82 %s", pool_words(panel));
    if (!panel->plot && !panel_shows_categories(panel) && !panel_shows_hops(panel) &&
        panel->scale != SCALE_LINEAR)
        text_addf(out, " \xe2\x94\x82 %s", scale_name(panel->scale));
    if (pane->sorted)
        text_add(out, " \xe2\x94\x82 sorted");
    strips_describe(ui, pane, out);
    if (c->count > 1 && c->solo)
        text_add(out, " \xe2\x94\x82 alone (o)");
}

void compare_state(Ui *ui, Area line)
{
    Compare *c = &ui->compare;
    Pane    *pane = compare_focus(ui);
    Panel    panel;
    Text     out = { 0 };

    if (!pane)
        return;
    if (!pane_panel(ui, pane, &panel)) {
        term_textf(ui->term, line.y, line.x + 1, line.w - 2, ui_style(ui, ROLE_DIM),
                   "pane %d of %d", c->focus + 1, c->count);
        return;
    }
    describe(ui, pane, &panel, false, &out);
    if (term_width(text_str(&out)) > line.w - 2) {
        text_clear(&out);
        describe(ui, pane, &panel, true, &out);
    }
    term_text(ui->term, line.y, line.x + 1, line.w - 2, text_str(&out), ui_style(ui, ROLE_DIM));
    text_free(&out);
}

/* Panes come and go: opened by name, in views that can be compared, closed. */

/* ---- opening ---------------------------------------------------------------- */

/* A parameter without a default that must be typed. */
static bool lacks_text(const Request *request)
{
    const Mechanism *m = mechanism_find(request->mechanism);

    for (const Param *p = m->params; p->name; p++)
        if (p->type == PARAM_TYPE_TEXT && !p->optional &&
            !assignments_find(&request->given, p->name))
            return true;
    return false;
}

/* A bare id opens as one first meets the mechanism: with its example where it
 * has one. */
static bool request_open(Ui *ui, Request *request, const char *text, Error *err)
{
    const Mechanism *m = mechanism_find(text);

    return m ? request_example(ui->session, request, m, err)
             : request_parse(ui->session, request, text, err);
}

/* A pane for the request, which it takes over; it is run. */
static Pane *open_request(Ui *ui, Request request, const char *view, int64_t head)
{
    Compare *c = &ui->compare;
    Pane    *pane = &c->panes[c->count++];

    *pane = (Pane){ .request = request, .pool = -1, .scale = -1, .map = -1, .order_head = -1 };
    snprintf(pane->view, sizeof(pane->view), "%s", view);
    if (head >= 0)
        pane->head = head;
    else if (c->linked && c->count > 1)
        pane->head = c->panes[c->focus].head;
    c->focus = c->count - 1;
    if (lacks_text(&request))
        pane->ask = true; /* instead of a run that must fail */
    else
        pane_run(ui, pane);
    return pane;
}

Pane *compare_open_request(Ui *ui, Request *request)
{
    if (ui->compare.count < PANES_MOST)
        return open_request(ui, *request, "", -1);
    ui_say(ui, ROLE_WARN, "%d panes are open: x closes one", PANES_MOST);
    request_free(request);
    return NULL;
}

static Pane *open_side(Ui *ui, const PanelSide *side, Error *err)
{
    Request request = { 0 };

    if (request_copy(&request, &ui->defaults, err) &&
        request_open(ui, &request, side->mechanism, err) &&
        view_name_check(mechanism_find(request.mechanism), side->view, err))
        return open_request(ui, request, side->view, side->head);
    request_free(&request);
    return NULL;
}

Pane *compare_open(Ui *ui, const char *text)
{
    PanelWord word = { 0 };
    Error     err = ERROR_INIT;
    Pane     *pane = NULL;

    if (ui->compare.count == PANES_MOST) {
        ui_say(ui, ROLE_WARN, "%d panes are open: x closes one", PANES_MOST);
        return NULL;
    }
    if (panel_word_parse(text, &word, &err)) {
        if (word.minus.mechanism)
            error_set(&err, ERR_USAGE, "a difference here is to pane 1: d shows it");
        else if (word.shown.head == HEADS_ALL)
            error_set(&err, ERR_USAGE, "a pane shows one head: A shows all of them, small");
        else
            pane = open_side(ui, &word.shown, &err);
        if (pane)
            pane_wear(pane, &word.looks);
        panel_word_free(&word);
    }
    if (!pane)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    ui->compare.effect = false;
    return pane;
}

Pane *compare_pick(Ui *ui, const Mechanism *m)
{
    Request request = { 0 };
    Error   err = ERROR_INIT;
    Pane   *pane = NULL;

    if (request_copy(&request, &ui->defaults, &err) &&
        request_first_look(ui->session, &request, m, &err))
        pane = compare_open_request(ui, &request);
    else
        request_free(&request);
    if (err.code != ERR_NONE)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    else if (pane && m->sketch && pane->request.given.count)
        ui_say(ui, ROLE_DIM, "%s opened with %s, as n is %lld: p changes it", m->id, m->sketch,
               (long long)session_input(ui->session)->n);
    ui->compare.effect = false;
    return pane;
}

void compare_open_plan(Ui *ui, FigurePlan *plan)
{
    Compare *c = &ui->compare;

    compare_clear(ui);
    c->effect = plan->effect;
    for (int i = 0; i < plan->count && c->count < PANES_MOST; i++) {
        PlannedPanel *planned = &plan->panels[i];
        bool          every = strchr(planned->view, '*') != NULL;
        Pane         *pane;

        if (every && planned->maybe)
            continue;
        planned->request.threads = ui->defaults.threads;
        planned->request.memory_limit = ui->defaults.memory_limit;
        pane = open_request(ui, planned->request, every ? "" : planned->view, planned->head);
        planned->request = REQUEST_INIT;
        pane->sorted = planned->sorted;
        pane_wear(pane, &planned->looks);
        pane->differs = planned->differs && request_same(&planned->minus, &c->panes[0].request);
    }
    c->focus = plan->effect && c->count > 1; /* the pane with the position: p changes it */
    ui->screen = SCREEN_COMPARE;
}

/* The query whose picture is asked for gets the cursor; false: none is. */
static bool point_at_span(Ui *ui, const char *span)
{
    int64_t   width = session_input(ui->session)->width;
    long long row = 0, col = 0;
    int       parts = span ? sscanf(span, "%lld,%lld", &row, &col) : 0;

    for (int i = 0; parts > 0 && i < ui->compare.count; i++)
        ui->compare.panes[i].lens.q = ui->compare.panes[i].lens.k =
            parts == 2 ? row * width + col : row;
    return parts > 0;
}

void compare_open_preset(Ui *ui, const char *name)
{
    const Preset *preset;
    PresetCall    made = { 0 };
    FigurePlan    plan = { 0 };
    Error         err = ERROR_INIT;

    if (preset_parse(name, &preset, &err) && preset_call(preset, NULL, &made, &err)) {
        history_note(ui);
        if (call_load_input(ui->session, &made.call, &err) &&
            figure_plan_make(ui->session, &made.call, &plan, &err)) {
            compare_open_plan(ui, &plan);
            ui_say(ui, ROLE_DIM, "%s", preset->help);
            ui_say(ui, ROLE_DIM, "%s (%s); %su goes back", preset->title, preset->source,
                   point_at_span(ui, made.call.values[OPT_SPAN]) ? "I shows it on the image, "
                                                                 : "");
        }
    }
    if (err.code != ERR_NONE)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    figure_plan_free(&plan);
    preset_call_free(&made);
}

void compare_ask(Ui *ui)
{
    Pane *pane = compare_focus(ui);

    if (pane && pane->ask)
        params_open(ui);
}

/* ---- views that can be compared ---------------------------------------------- */

/* A set of all cells, or of all in the causal triangle, is no picture. */
static bool connectivity_tells(const Run *run)
{
    const View *view = run_view(run, "connectivity");
    double      n = (double)run->n, m = (double)run->m, cells;
    double      all = run->causal && m >= n ? n * m - n * (n - 1) / 2 : n * m;

    if (!view || !view->support)
        return false;
    cells = (double)pattern_count(view->support) / (double)pattern_heads(view->support);
    return cells < all;
}

static void show_all(Compare *c, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        Pane *pane = &c->panes[i];

        if (pane->result && !pane->view[0] && run_view(pane->result->run, name))
            snprintf(pane->view, sizeof(pane->view), "%s", name);
    }
}

bool compare_align(Ui *ui)
{
    Compare *c = &ui->compare;
    bool     tells = true;

    if (!c->align)
        return false;
    for (int i = 0; i < c->count; i++) {
        if (c->panes[i].job)
            return false;
        tells = tells && (!c->panes[i].result || connectivity_tells(c->panes[i].result->run));
    }
    c->align = false;
    show_all(c, tells ? "connectivity" : "weights");
    return true;
}

/* ---- closing ---------------------------------------------------------------- */

void compare_clear(Ui *ui)
{
    Compare *c = &ui->compare;

    while (c->count > 0)
        pane_close(ui, &c->panes[--c->count]);
    c->focus = c->first = 0;
    c->solo = c->difference = c->align = c->effect = false;
}

void compare_close(Ui *ui)
{
    compare_clear(ui);
}
