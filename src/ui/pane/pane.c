/* pane.c -- what a pane looks at: its view, order, cursor and title; see pane.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/result/views.h"
#include "ui/pane/pane.h"
#include "ui/state/explorer.h"

/* ---- what is looked at ------------------------------------------------------ */

/* The view for the requested number of keys; NULL: not computed yet. */
static const View *known_missed(const Pane *pane)
{
    const Missed *missed = result_missed_known(pane->result, pane->request.keys);

    return missed ? missed_view(missed) : NULL;
}

static const View *named_view(const Pane *pane)
{
    const View *wanted =
        pane->result && pane->spec.view[0] ? run_view(pane->result->run, pane->spec.view) : NULL;

    if (!wanted && pane->result && !strcmp(pane->spec.view, REACH_VIEW))
        wanted = result_reach(pane->result, &pane->spec.reach, NULL);
    if (!wanted && pane->result && !strcmp(pane->spec.view, MISSED_VIEW))
        wanted = known_missed(pane);
    if (!wanted && pane->result && pane->spec.view[0])
        wanted = result_derived(pane->result, pane->spec.view, NULL);
    return wanted ? wanted : pane->result ? pane->default_view : NULL;
}

const View *pane_view(const Pane *pane)
{
    return pane->result && pane->pinned ? pane->pinned : named_view(pane);
}

bool pane_shows_missed(const Pane *pane)
{
    const View *view = pane_view(pane);

    return view && view->found;
}

bool pane_lacks_missed(const Pane *pane)
{
    return pane->result && !strcmp(pane->spec.view, MISSED_VIEW) && !pane_shows_missed(pane);
}

bool pane_shows_reach(const Pane *pane)
{
    const View *view = pane_view(pane);

    return view && view->kind == VIEW_HOPS;
}

const View *pane_numbers(const Pane *pane)
{
    const View *shown = pane_view(pane), *weights;

    if (!shown || shown->found || (shown->kind != VIEW_PATTERN && shown->kind != VIEW_COMPONENTS))
        return shown;
    weights = run_view(pane->result->run, "weights");
    return weights && view_rows(weights) == view_rows(shown) &&
                   view_cols(weights) == view_cols(shown)
               ? weights
               : shown;
}

static bool same_axis(const char *a, const char *b)
{
    bool tokens = !strcmp(a, "key") || !strcmp(a, "token");

    return !strcmp(a, b) || (tokens && (!strcmp(b, "key") || !strcmp(b, "token")));
}

bool views_share_rows(const View *a, const View *b)
{
    return view_rows(a) == view_rows(b) && same_axis(a->rows, b->rows);
}

bool views_share_cols(const View *a, const View *b)
{
    return view_cols(a) == view_cols(b) && same_axis(a->cols, b->cols);
}

int64_t pane_heads(const Pane *pane)
{
    const View *view = pane_view(pane);
    int64_t planes = view ? view_planes(view) : 1, heads = pane->result ? pane->result->run->h : 1;

    return planes % heads == 0 && planes >= heads && !(view && view->headless) ? heads : planes;
}

int64_t pane_rounds(const Pane *pane)
{
    const View *view = pane_view(pane);
    int64_t     heads = pane_heads(pane);

    return view && heads > 0 && view_planes(view) > heads ? view_planes(view) / heads : 1;
}

/* A view without heads of its own has one plane for all. */
int64_t pane_plane(const Pane *pane, const View *view)
{
    int64_t planes = view_planes(view), heads = pane->result->run->h;
    int64_t rounds = planes % heads == 0 && !view->headless ? planes / heads : 1;
    int64_t plane =
        planes == 1 ? 0
                    : pane->spec.head * rounds +
                          (pane_round(pane) < rounds ? pane_round(pane) : 0);

    return plane < planes ? plane : planes - 1;
}

static bool like_weights(const View *view)
{
    return view->kind == VIEW_WEIGHTS || view->kind == VIEW_SIGNED;
}

bool pane_differs(Ui *ui, const Pane *pane)
{
    const Compare *c = &ui->compare;
    const View    *view = pane_numbers(pane), *first;

    if ((!c->now.difference && !pane->differs) || pane == &c->panes[0] || pane->pinned || !view ||
        !c->panes[0].result)
        return false;
    first = pane_numbers(&c->panes[0]);
    return first && views_share_rows(first, view) && views_share_cols(first, view) &&
           (first->kind == view->kind || (like_weights(first) && like_weights(view))) &&
           view->kind != VIEW_PATTERN && view->kind != VIEW_COMPONENTS &&
           view->kind != VIEW_BUCKETS && view->kind != VIEW_SCHEDULE && view->kind != VIEW_HOPS;
}

static const int32_t *sorted_order(Pane *pane)
{
    const View *view = pane_view(pane);

    if (pane->order_head != pane->spec.head || pane->order_view != view) {
        pane->order_round = view ? result_order_round(pane->result, view) : 0;
        pane->order = result_sorted_order(pane->result, pane->spec.head, pane->order_round);
        pane->order_head = pane->spec.head;
        pane->order_view = view;
    }
    return pane->order;
}

/* The first slots of chunks in the order, found once. */
static void find_borders(Pane *pane, const int32_t *order)
{
    if (pane->borders_of == order)
        return;
    free(pane->borders);
    pane->borders = calloc((size_t)pane->result->run->n + 1, sizeof(*pane->borders));
    pane->borders_of = order;
    pane->border_count = pane->borders ? picture_borders(pane->result, pane->spec.head,
                                                         pane->order_round, order, pane->borders)
                                       : 0;
}

/* Order of the columns of a row: rows may be rounds. */
static const int32_t *order_of_row(const Pane *pane, const View *view, const int32_t *order,
                                   int64_t row)
{
    return order && result_sorts_by_row(pane->result, view)
               ? result_sorted_order(pane->result, pane->spec.head, row)
               : order;
}

bool pane_has_order(Pane *pane)
{
    const View *view = pane_view(pane);

    return view &&
           (result_sorts_rows(pane->result, view) || result_sorts_cols(pane->result, view)) &&
           sorted_order(pane) != NULL;
}

bool pane_is_sorted(Pane *pane)
{
    return pane->spec.sorted && pane_view(pane) && sorted_order(pane);
}

bool pane_excludes(const Pane *pane)
{
    const View *view = pane_view(pane);

    return pane->spec.excludes && view && !strcmp(view->cols, "key") &&
           pane->spec.excluded < view_cols(view);
}

static void set_labels(const Pane *pane, Panel *panel)
{
    const Input *input = pane->result->input;

    if (!strcmp(panel->view->rows, "query") && view_rows(panel->view) == input->n)
        panel->row_labels = input->q_tokens;
    if ((!strcmp(panel->view->cols, "key") || !strcmp(panel->view->cols, "token")) &&
        view_cols(panel->view) == input->m)
        panel->col_labels = input->k_tokens;
}

int64_t pane_round(const Pane *pane)
{
    return pane->spec.round ? pane->spec.round - 1 : 0;
}

Pane pane_new(void)
{
    Pane pane = { .spec = PANEL_SPEC_INIT, .order_head = -1 };

    pane.spec.head = 0;
    return pane;
}

void pane_set_looks(const Pane *pane, Panel *panel)
{
    if (pane->spec.pool >= 0)
        panel->pool = (Pool)pane->spec.pool;
    if (pane->spec.scale >= 0)
        panel->scale = (Scale)pane->spec.scale;
    panel->scale_given = pane->spec.scale >= 0;
    if (pane->spec.map >= 0 && panel->map != MAP_DIVERGING)
        panel->map = (ColourMap)pane->spec.map;
}

const Grid *pane_whole_grid(const Pane *pane, const Panel *panel)
{
    const Grid *g = &pane->drawing.grid;
    bool        whole = g->cells && pane->drawing.shown == panel->view && !g->region.row0 &&
                 !g->region.col0 && g->region.row1 == view_rows(panel->view) &&
                 g->region.col1 == view_cols(panel->view);

    return whole ? g : NULL;
}

/* A map with one end for values on one side, a logarithmic scale where they span decades.  The
 * whole view decides, so that colours stay while it is moved. */
static void choose_colours(Pane *pane, Panel *panel)
{
    const Grid *g = pane_whole_grid(pane, panel);

    if (g) {
        bool one = panel_has_one_side(panel, g->pool_lo[panel->pool], g->pool_hi[panel->pool]);

        pane->one_side = one ? panel->view : NULL;
        pane->decades = panel_spans_decades(panel, g) ? panel->view : NULL;
    }
    if (pane->one_side == panel->view && panel->map == MAP_DIVERGING && !panel->minus)
        panel->map = pane->spec.map >= 0 ? (ColourMap)pane->spec.map : MAP_VIRIDIS;
    if (pane->decades == panel->view && !panel->scale_given && !panel->minus &&
        panel->pool == POOL_MAX)
        panel->scale = SCALE_LOG;
}

bool pane_panel(Ui *ui, Pane *pane, Panel *panel)
{
    bool           differs = pane_differs(ui, pane);
    const View    *view = differs ? pane_numbers(pane) : pane_view(pane);
    const int32_t *order;
    Error          ignored = ERROR_INIT;

    if (!view)
        return false;
    panel_init(panel, view, view_components(view), pane_plane(pane, view), "");
    if (differs) {
        panel->minus = pane_numbers(&ui->compare.panes[0]);
        panel->components = NULL;
        panel->map = MAP_DIVERGING;
        panel->pool = POOL_MAX;
    }
    panel->causal = pane->result->run->causal && pane->result->run->n == pane->result->run->m;
    pane_set_looks(pane, panel);
    choose_colours(pane, panel);
    pane_wear_colours(pane, panel);
    order = pane->spec.sorted ? sorted_order(pane) : NULL;
    if (order) {
        picture_order_panel(pane->result, pane->spec.head, pane->order_round, panel);
        find_borders(pane, order);
        panel->slot_groups = pane->borders;
        panel->slot_group_count = pane->border_count;
    }
    panel->row_buckets = pane->buckets;
    /* What was found or missed keeps its colours: only the order of the tokens changes. */
    if (order && !pane->pinned && !view->found && result_sorts_rows(pane->result, view))
        panel->row_buckets = result_categories(pane->result, pane->spec.head, pane->order_round);
    panel->excludes = pane_excludes(pane);
    panel->excluded = pane->spec.excluded;
    set_labels(pane, panel);
    if (!panel->plot && !notes_parse(pane->spec.notes, panel->notes, &panel->note_count, &ignored))
        panel->note_count = 0;
    return true;
}

/* ---- cursor ----------------------------------------------------------------- */

void pane_cursor(const Pane *pane, int64_t *q, int64_t *k)
{
    const View    *view = pane_view(pane);
    const int32_t *order = pane->spec.sorted && pane->order_head == pane->spec.head &&
                                   pane->order_view == view ? pane->order : NULL;

    *q = pane->lens.q;
    *k = pane->lens.k;
    if (order && view && result_sorts_rows(pane->result, view))
        *q = order[*q];
    if (order && view && result_sorts_cols(pane->result, view))
        *k = order_of_row(pane, view, order, pane->lens.q)[*k];
}

static int64_t position_of(const int32_t *order, int64_t count, int64_t entry)
{
    for (int64_t i = 0; order && i < count; i++)
        if (order[i] == entry)
            return i;
    return entry;
}

void pane_point(Pane *pane, int64_t q, int64_t k)
{
    const View    *view = pane_view(pane);
    const int32_t *order = pane->spec.sorted && pane->result ? sorted_order(pane) : NULL;

    if (!view)
        return;
    pane->lens.q = order && result_sorts_rows(pane->result, view)
                       ? position_of(order, view_rows(view), q)
                       : q;
    pane->lens.k = order && result_sorts_cols(pane->result, view)
                       ? position_of(order_of_row(pane, view, order, q), view_cols(view), k)
                       : k;
}

static bool place_is(const Place *p, const View *view)
{
    return p->row && p->rows == view_rows(view) && p->cols == view_cols(view) &&
           same_axis(p->row, view->rows) && same_axis(p->col, view->cols);
}

/* Saves the zoom and cursor of the old view and restores those of the new one. */
static void change_place(Pane *pane, const View *from, const View *to)
{
    Place *kept = NULL, *was = NULL, *spare = &pane->places[0];

    if (views_share_rows(from, to) && views_share_cols(from, to))
        return;
    for (int i = 0; i < PLACES_MOST; i++) {
        Place *p = &pane->places[i];

        was = place_is(p, from) ? p : was;
        kept = place_is(p, to) ? p : kept;
        spare = p->row ? spare : p;
    }
    spare = was ? was : spare == kept ? &pane->places[1] : spare;
    *spare = (Place){ from->rows, from->cols, view_rows(from), view_cols(from), pane->lens };
    pane->lens = kept ? kept->lens
                      : (Lens){ .q = views_share_rows(from, to) ? pane->lens.q : 0,
                                .k = views_share_cols(from, to) ? pane->lens.k : 0 };
}

/* View `at` of those one can look at: the run's own, what was missed (once it is known),
 * reach, then what is derived. */
static const View *view_at(const Pane *pane, int at)
{
    const Run  *run = pane->result->run;
    const View *view = at < run->view_count ? &run->views[at] : NULL;
    ViewCurve   curve;

    if (at > run->view_count + 1)
        return result_derived_at(pane->result, at - run->view_count - 2);
    if (at == run->view_count)
        return missed_is_offered(run) ? known_missed(pane) : NULL;
    if (!view)
        return run_view(run, REACH_VIEW) ? NULL
                                         : result_reach(pane->result, &pane->spec.reach, NULL);
    return (view->rank < 2 && !view_curve(view, &curve)) || run_view(run, view->name) != view ||
                   view_rows(view) * view_cols(view) < 2
               ? NULL
               : view;
}

static int offered_count(const Pane *pane)
{
    return pane->result ? pane->result->run->view_count + 2 + DERIVED_LISTED : 0;
}

/* The view `missed` is offered before it is computed. */
static bool is_missed(const Pane *pane, int at)
{
    const Run *run = pane->result->run;

    return at == run->view_count && missed_is_offered(run);
}

const char *pane_offers(const Pane *pane, int at)
{
    const View *view;

    if (at >= offered_count(pane))
        return NULL;
    view = is_missed(pane, at) ? NULL : view_at(pane, at);
    return is_missed(pane, at) ? MISSED_VIEW : view ? view->name : "";
}

static void show_offered(Pane *pane, const View *now, int at)
{
    const Run  *run = pane->result->run;
    const View *view = is_missed(pane, at) ? run_view(run, "connectivity") : view_at(pane, at);

    if (!view) /* of the same shape */
        view = run_view(run, "weights");
    snprintf(pane->spec.view, sizeof(pane->spec.view), "%s", pane_offers(pane, at));
    change_place(pane, now ? now : view, view);
}

void pane_step_view(Pane *pane, int direction)
{
    const View *now = pane_view(pane);
    int         count = offered_count(pane), at = 0;

    for (int i = 0; now && i < count; i++)
        at = view_at(pane, i) == now ? i : at;
    for (int tries = 0; tries < count; tries++) {
        at = (at + direction + count) % count;
        if (*pane_offers(pane, at)) {
            show_offered(pane, now, at);
            return;
        }
    }
}

bool pane_take_view(Pane *pane, const char *name)
{
    for (int at = 0; *name && pane_offers(pane, at); at++)
        if (!strcmp(pane_offers(pane, at), name)) {
            show_offered(pane, pane_view(pane), at);
            return true;
        }
    return false;
}

/* The planes of a head are rounds. */
static bool pane_says_round(const Pane *pane)
{
    const View *view = pane_view(pane);

    return view && (view->kind == VIEW_BUCKETS || view->kind == VIEW_ORDER ||
                    view->kind == VIEW_MEMBERSHIP || view->kind == VIEW_COUNT ||
                    view->kind == VIEW_PERMUTATION);
}

void pane_name(const Pane *pane, Text *out)
{
    for (const Request *r = &pane->request; r; r = r->above)
        text_addf(out, "%s%s", r->mechanism, r->above ? " > " : "");
}

/* Parameters that distinguish panes of one mechanism: "(block=8)"; of the result shown. */
static void given_text(const Pane *pane, Text *out)
{
    const Request *r = pane->result ? &pane->result->request : &pane->request;

    for (int i = 0; i < r->given.count && !r->above; i++)
        text_addf(out, "%s%s=%s%s", i ? "," : "(", r->given.items[i].name,
                  r->given.items[i].text, i + 1 < r->given.count ? "" : ")");
}

bool panes_apart(const Ui *ui)
{
    for (int i = 1; i < ui->compare.count; i++)
        if (ui->compare.panes[i].request.ops != ui->compare.panes[0].request.ops)
            return true;
    return false;
}

const char *pane_place(const Pane *pane)
{
    const Request *r = &pane->request;

    return !r->ops ? "cpu" : strcmp(r->precision, "f32") ? r->precision : r->device;
}

/* tight 0: all; 1: without the parameters; 2: shorter words; 3: without the head, too; 4: nor
 * what the frame's lower edge and a lone pane need not say. */
static void title_text(Ui *ui, const Pane *pane, int number, int tight, Text *out)
{
    const View *view = pane_view(pane);
    bool        differs = pane_differs(ui, pane);

    if (pane->pinned) {
        text_add(out, pane->spec.sorted ? "sorted" : "by position");
    } else {
        if (tight < 4 || ui->compare.count > 1)
            text_addf(out, "%d ", number);
        pane_name(pane, out);
        if (!tight)
            given_text(pane, out);
    }
    if (strcmp(pane->request.position, "none") != 0 && !pane->pinned)
        text_addf(out, " +%s", pane->request.position);
    if (pane->request.fit && !pane->pinned && tight < 4)
        text_add(out, " fitted");
    if (pane->request.ops && !pane->pinned && tight < 2) {
        text_add(out, " on ");
        request_place(&pane->request, out);
    } else if (pane->request.ops && !pane->pinned && panes_apart(ui)) {
        text_addf(out, " %s", pane_place(pane));
    }
    if (view)
        text_addf(out, " \xc2\xb7 %s", differs ? pane_numbers(pane)->name : view->name);
    if (view && view->found)
        text_addf(out, tight < 2 ? ", %lld strongest keys" : ", %lld keys",
                  (long long)view->found->keys);
    if (view && !differs) {
        char words[64];

        derived_words(view, words, sizeof(words));
        if (*words)
            text_addf(out, " (%s)", words);
    }
    if (view && view->kind == VIEW_HOPS)
        text_addf(out, " %d%s%s%s", reach_view_depth(view), tight < 4 ? " layer" : "",
                  reach_view_depth(view) == 1 || tight > 3 ? "" : "s",
                  reach_view_strict(view) ? " exactly" : "");
    if (differs) /* the device takes the place of a word */
        text_add(out, tight < 4 || !panes_apart(ui) ? " \xe2\x88\x92 pane 1" : " \xe2\x88\x92 1");
    if (pane_heads(pane) > 1 && tight < 3)
        text_addf(out, " \xc2\xb7 h%lld", (long long)pane->spec.head);
    if (pane_rounds(pane) > 1)
        text_addf(out, " %s %lld/%lld", pane_says_round(pane) ? "round" : "plane",
                  (long long)min_i64(pane_round(pane) + 1, pane_rounds(pane)),
                  (long long)pane_rounds(pane));
    if (pane->spec.sorted && pane->order && !pane->pinned)
        text_add(out, " sorted");
    if (pane->job || (pane->result && !pane->drawing.settled))
        text_add(out, " \xe2\x80\xa6");
}

AxisNames axis_names(const View *view)
{
    bool      words = *view->rows == *view->cols && strcmp(view->rows, view->cols) != 0;
    AxisNames names;

    snprintf(names.rows, sizeof(names.rows), "%.*s", words ? 15 : 1, view->rows);
    snprintf(names.cols, sizeof(names.cols), "%.*s", words ? 15 : 1, view->cols);
    return names;
}

void pane_title(Ui *ui, const Pane *pane, int number, char *text, size_t size)
{
    Text out = { 0 };

    title_text(ui, pane, number, 0, &out);
    for (int tight = 1; tight < 5 && term_width(text_str(&out)) > pane->area.w - 6; tight++) {
        text_clear(&out); /* the view is more important */
        title_text(ui, pane, number, tight, &out);
    }
    snprintf(text, size, "%s", text_str(&out));
    text_free(&out);
}

/* Random mechanisms are measured over several seeds where that is quick. */
#define SEEDS       5
#define SEEDS_UP_TO 2048

/* ---- runs ------------------------------------------------------------------- */

void pane_run(Ui *ui, Pane *pane)
{
    Error err = ERROR_INIT;

    job_free(pane->job);
    pane->problem[0] = '\0';
    pane->ask = false;
    pane->request.measure = false;
    pane->request.missed = !strcmp(pane->spec.view, MISSED_VIEW);
    pane->request.repeat = 0;
    pane->job = session_submit(ui->session, &pane->request, &err);
    if (!pane->job)
        snprintf(pane->problem, sizeof(pane->problem), "%.500s", err.text);
}

void pane_measure(Ui *ui, Pane *pane)
{
    Error   err = ERROR_INIT;
    Request request = pane->request;

    job_free(pane->measuring);
    request.above = NULL; /* the layers above matter for reach only */
    request.measure = true;
    request.missed = false;
    request.repeat = 7;
    request.quality = request.per_head = true;
    /* The comparison with full attention costs n x n: of long inputs some rows are compared. */
    request.quality_rows = session_input(ui->session)->n > 8192 ? 256 : 0;
    request.seeds = session_input(ui->session)->n <= SEEDS_UP_TO ? SEEDS : 0;
    pane->measuring = session_submit(ui->session, &request, &err);
    if (!pane->measuring)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

/* The message without the mechanism's name, which the caller adds. */
static const char *without_name(const Pane *pane, const char *text)
{
    size_t length = strlen(pane->request.mechanism);

    return !strncmp(text, pane->request.mechanism, length) && !strncmp(text + length, ": ", 2)
               ? text + length + 2
               : text;
}

static void pane_fail(Ui *ui, Pane *pane, const char *text)
{
    snprintf(pane->problem, sizeof(pane->problem), "%.500s", text);
    ui_say(ui, ROLE_ERROR, "%s: %s", pane->request.mechanism, without_name(pane, text));
}

/* Shows a warning or a note once: a live re-run must not repeat it or hide the answer to a key.  A
 * lesson says itself what matters, and the inspector has the line. */
static void say_first(Ui *ui, Role role, const char *lines)
{
    char first[256];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(lines, "\n"), lines);
    if (first[0] && !strstr(text_str(&ui->log), first) && !ui->message[0] &&
        !lessons_docked(ui))
        ui_say(ui, role, "%s", first);
}

/* The run has no view of the requested name: report that, and use the name of the view shown. */
static void settle_view(Ui *ui, Pane *pane)
{
    const char *name = pane->spec.view;
    const View *view = pane_view(pane);
    Error       err = ERROR_INIT;

    if (!*name || !strcmp(name, MISSED_VIEW) || !view || view != pane->default_view ||
        !strcmp(name, view->name) || result_view(pane->result, name, &err) == view)
        return;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    pane->spec.view[0] = '\0';
}

static void tell_scripts(Ui *ui, const Pane *pane)
{
    char lines[160];

    snprintf(lines, sizeof(lines), "mechanism %s\npane %d\n", pane->request.mechanism,
             (int)(pane - ui->compare.panes) + 1);
    ui_event(ui, "run", lines);
}

static void accept_result(Ui *ui, Pane *pane, Result *result)
{
    bool    first = !pane->result, sorted = !first && pane_is_sorted(pane);
    int64_t rows = sorted ? view_rows(pane_view(pane)) : 0, q, k;

    if (sorted)
        pane_cursor(pane, &q, &k);
    result_release(pane->result);
    pane->result = result;
    pane->problem[0] = '\0';
    pane->row.owner = pane->marked.owner = NULL; /* the new result may have the old one's address */
    pane->order = pane->borders_of = NULL;
    pane->order_head = -1;
    pane->default_view = result_view(result, NULL, NULL);
    pane->spec.head = pane->spec.head < result->run->h ? pane->spec.head : 0;
    pane->unplaced = first && pane->default_view && !pane->lens.q && !pane->lens.k;
    if (pane->measured) {
        result_release(pane->measured);
        pane->measured = NULL;
    }
    if (first)
        settle_view(ui, pane);
    if (sorted && pane_view(pane) && view_rows(pane_view(pane)) == rows &&
        k < view_cols(pane_view(pane)))
        pane_point(pane, q, k); /* the same tokens, wherever the new order has them */
    say_first(ui, ROLE_WARN, text_str(&result->run->warnings));
    say_first(ui, ROLE_DIM, text_str(&result->run->notes));
    tell_scripts(ui, pane);
}

static bool poll_run(Ui *ui, Pane *pane)
{
    JobState state = pane->job ? job_state(pane->job) : JOB_WAITING;
    Result  *result;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result = state == JOB_DONE ? job_result(pane->job) : NULL;
    if (result && result->run->err.code == ERR_NONE) {
        accept_result(ui, pane, result);
    } else if (result) {
        pane_fail(ui, pane, result->run->err.text);
        result_release(result);
    } else {
        pane_fail(ui, pane, state == JOB_FAILED ? job_error(pane->job)->text : "cancelled");
    }
    job_free(pane->job);
    pane->job = NULL;
    return true;
}

static bool poll_measure(Ui *ui, Pane *pane)
{
    JobState state = pane->measuring ? job_state(pane->measuring) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result_release(pane->measured);
    pane->measured = job_result(pane->measuring);
    if (!pane->measured)
        ui_say(ui, ROLE_ERROR, "%s: not measured: %s", pane->request.mechanism,
               state == JOB_FAILED ? without_name(pane, job_error(pane->measuring)->text)
                                   : "cancelled");
    job_free(pane->measuring);
    pane->measuring = NULL;
    return true;
}

bool pane_poll(Ui *ui, Pane *pane)
{
    bool changed = poll_run(ui, pane);

    changed |= poll_measure(ui, pane);
    changed |= drawing_poll(&ui->draughtsman, &pane->drawing);
    changed |= side_poll(&ui->draughtsman, &pane->side);
    return changed;
}

void pane_close(Ui *ui, Pane *pane)
{
    drawing_clear(&ui->draughtsman, &pane->drawing);
    side_clear(&ui->draughtsman, &pane->side);
    job_free(pane->job);
    job_free(pane->measuring);
    result_release(pane->result);
    result_release(pane->measured);
    request_free(&pane->request);
    row_free(&pane->row);
    row_free(&pane->marked);
    free(pane->borders);
    *pane = (Pane){ 0 };
}

void pane_placed_name(const Ui *ui, int index, int room, char *text, size_t size)
{
    const Request *r = &ui->compare.panes[index].request;
    const char    *place = pane_place(&ui->compare.panes[index]);
    int            name = room - 3 - (int)strlen(place);

    if (!panes_apart(ui))
        snprintf(text, size, "%d %s", index + 1, r->mechanism);
    else if ((int)strlen(r->mechanism) <= name)
        snprintf(text, size, "%d %s %s", index + 1, r->mechanism, place);
    else
        snprintf(text, size, "%d %.*s. %s", index + 1, name - 1, r->mechanism, place);
}

int pane_marked(Ui *ui, const Pane *pane, int64_t *queries)
{
    const Marks *marks = &ui->compare.marks;
    const View  *view = pane_view(pane);
    int          count = 0;

    for (int k = 0; view && !strcmp(view->rows, "query") && k < marks->count; k++)
        if (marks->at[k] < view_rows(view))
            queries[count++] = marks->at[k];
    return count;
}

void request_take_place(Request *to, const Request *from)
{
    for (; to; to = to->above) {
        to->ops = from->ops;
        memcpy(to->device, from->device, sizeof(to->device));
        memcpy(to->precision, from->precision, sizeof(to->precision));
    }
}
