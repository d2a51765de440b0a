/* panes.c -- see panes.h. */
#include "ui/state/panes.h"

#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/plan.h"
#include "app/study/budget.h"

Pane *seen_pane(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    return pane && pane_view(pane) && pane->canvas.h ? pane : NULL;
}

/* ---- linked panes ----------------------------------------------------------- */

/* Copies cursor and zoom to another pane, along the axes that both share. */
static bool follow_cursor(const Pane *from, Pane *to)
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

void panes_link(Ui *ui)
{
    Compare    *c = &ui->compare;
    const Pane *from = panes_focus(ui);

    if (!from || !pane_view(from) || !c->now.linked)
        return;
    for (int i = 0; i < c->count; i++) {
        Pane *to = &c->panes[i];

        if (to == from || !pane_view(to))
            continue;
        follow_cursor(from, to);
    }
}

static bool is_seen(const Pane *pane)
{
    return pane->area.h && pane->canvas.h && pane_view(pane);
}

static bool see_alike(const Pane *a, const Pane *b)
{
    return is_seen(b) && views_share_rows(pane_view(a), pane_view(b)) &&
           views_share_cols(pane_view(a), pane_view(b));
}

/* The pixels that the smallest of those linked with a pane has; false: they are as before. */
static bool set_near(Compare *c, Pane *pane)
{
    LensShape *s = &pane->shape, was = *s;

    s->near_height = s->near_width = 0;
    for (int i = 0; c->now.linked && !c->now.solo && is_seen(pane) && i < c->count; i++) {
        const LensShape *other = &c->panes[i].shape;
        int              height = other->height, width = other->width / other->tall * s->tall;

        if (!see_alike(pane, &c->panes[i]))
            continue;
        s->near_height = s->near_height ? (int)min_i64(s->near_height, height) : height;
        s->near_width = s->near_width ? (int)min_i64(s->near_width, width) : width;
    }
    return s->near_height != was.near_height || s->near_width != was.near_width;
}

void panes_see_one_region(Ui *ui)
{
    bool changed = false;

    for (int i = 0; i < ui->compare.count; i++)
        changed |= set_near(&ui->compare, &ui->compare.panes[i]);
    if (changed)
        panes_link(ui);
}

static bool panes_adopt(Ui *ui, Pane *pane)
{
    Compare *c = &ui->compare;

    for (int i = 0; c->now.linked && i < c->count; i++)
        if (&c->panes[i] != pane && follow_cursor(&c->panes[i], pane))
            return true;
    return false;
}

void go_to_cell(Ui *ui, Pane *pane, int64_t q, int64_t k)
{
    pane_point(pane, q, k);
    lens_move(&pane->lens, &pane->shape, 0, 0);
    panes_link(ui);
}

/* ---- opening ---------------------------------------------------------------- */

/* As the list opens it; *note: what was chosen for this input, or nothing. */
static bool open_plain(Ui *ui, const Mechanism *m, Request *request, Text *note, Error *err)
{
    const Input *input = session_input(ui->session);

    if (!request_copy(request, &ui->defaults, err) ||
        !request_first_look(ui->session, request, m, err) ||
        (input && !size_follow(ui->session, request, note, err)))
        return false;
    if (input && !note->length && m->sketch && request->given.count)
        text_addf(note, "%s opened with %s, as n is %lld: p changes it", m->id, m->sketch,
                  (long long)input->n);
    return true;
}

static bool open_text(Ui *ui, const char *text, Request *request, Text *note, Error *err)
{
    const Mechanism *m = mechanism_find(text);

    return m ? open_plain(ui, m, request, note, err)
             : request_copy(request, &ui->defaults, err) &&
                   request_parse(ui->session, request, text, err);
}

/* A pane for the request, which it takes over; it is run. */
static Pane *open_request(Ui *ui, Request request, const PanelSpec *spec)
{
    Compare *c = &ui->compare;
    Pane    *pane = &c->panes[c->count++];

    *pane = pane_new();
    pane->request = request;
    pane->spec = *spec;
    pane->spec.minus_view[0] = '\0'; /* a difference is to pane 1 */
    pane->spec.ranged = false;       /* the colours span what is shown */
    if (spec->head < 0)
        pane->spec.head = c->now.linked && c->count > 1 ? c->panes[c->now.focus].spec.head : 0;
    c->now.focus = c->count - 1;
    if (request_lacks_parameter(&request))
        pane->ask = true; /* a run would fail */
    else
        pane_run(ui, pane);
    return pane;
}

Pane *panes_open_request(Ui *ui, Request *request)
{
    if (ui->compare.count < PANES_MOST)
        return open_request(ui, *request, &PANEL_SPEC_INIT);
    ui_say(ui, ROLE_WARN, "%d panes are open: x closes one", PANES_MOST);
    request_free(request);
    return NULL;
}

static Pane *open_word(Ui *ui, const PanelWord *word, Error *err)
{
    Request   request = { 0 };
    PanelSpec spec = word->spec;
    Text      note = { 0 };
    Pane     *pane = NULL;

    spec.sorted = false; /* O sorts a pane */
    if (open_text(ui, word->mechanism, &request, &note, err) &&
        view_name_check(mechanism_find(request.mechanism), spec.view, err))
        pane = open_request(ui, request, &spec);
    else
        request_free(&request);
    if (pane && note.length)
        ui_say(ui, ROLE_DIM, "%s", text_str(&note));
    text_free(&note);
    return pane;
}

Pane *panes_open(Ui *ui, const char *text)
{
    PanelWord word = { 0 };
    Error     err = ERROR_INIT;
    Pane     *pane = NULL;

    if (ui->compare.count == PANES_MOST) {
        ui_say(ui, ROLE_WARN, "%d panes are open: x closes one", PANES_MOST);
        return NULL;
    }
    if (panel_word_parse(text, &word, &err)) {
        if (word.minus)
            error_set(&err, ERR_USAGE, "a difference here is to pane 1: d shows it");
        else if (word.spec.head == HEADS_ALL)
            error_set(&err, ERR_USAGE, "a pane shows one head: A shows all of them, small");
        else
            pane = open_word(ui, &word, &err);
        panel_word_free(&word);
    }
    if (!pane)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    ui->compare.now.effect = false;
    return pane;
}

Pane *panes_pick(Ui *ui, const Mechanism *m)
{
    Request request = { 0 };
    Error   err = ERROR_INIT;
    Text    note = { 0 };
    Pane   *pane = NULL;

    if (open_plain(ui, m, &request, &note, &err))
        pane = panes_open_request(ui, &request);
    else
        request_free(&request);
    if (err.code != ERR_NONE)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    else if (pane && note.length)
        ui_say(ui, ROLE_DIM, "%s", text_str(&note));
    text_free(&note);
    ui->compare.now.effect = false;
    return pane;
}

void panes_open_plan(Ui *ui, FigurePlan *plan)
{
    Compare *c = &ui->compare;

    panes_clear(ui);
    c->now.effect = plan->effect;
    for (int i = 0; i < plan->count && c->count < PANES_MOST; i++) {
        PlannedPanel *planned = &plan->panels[i];
        PanelSpec     spec = planned->spec;
        bool          every = strchr(spec.view, '*') != NULL;
        Pane         *pane;

        if (every && planned->maybe)
            continue;
        planned->request.threads = ui->defaults.threads;
        planned->request.memory_limit = ui->defaults.memory_limit;
        if (every)
            spec.view[0] = '\0';
        pane = open_request(ui, planned->request, &spec);
        planned->request = REQUEST_INIT;
        pane->differs = planned->differs && request_same(&planned->minus, &c->panes[0].request);
    }
    c->now.focus = plan->effect && c->count > 1; /* the pane with the position: p changes it */
    ui->screen = SCREEN_COMPARE;
}

/* Moves the cursor to the query of --span; false: there is none. */
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

/* The head of --head; panels that name one of their own keep it. */
static void show_head(Ui *ui, const Call *call, const FigurePlan *plan)
{
    int64_t head = -1;
    Error   ignored = ERROR_INIT;

    if (!call->values[OPT_HEAD] || !call_int(call, OPT_HEAD, 0, 1 << 20, &head, &ignored))
        return;
    for (int i = 0; i < ui->compare.count && i < plan->count; i++)
        if (plan->panels[i].spec.head < 0)
            ui->compare.panes[i].spec.head = head;
}

void panes_open_preset(Ui *ui, const char *name)
{
    const Preset *preset;
    PresetCall    made = { 0 };
    FigurePlan    plan = { 0 };
    Error         err = ERROR_INIT;
    char          part[40] = "";

    if (preset_parse(name, &preset, &err) && preset_call(preset, NULL, &made, &err)) {
        history_note(ui);
        if (call_load_input(ui->session, &made.call, &err) &&
            figure_plan_make(ui->session, &made.call, &plan, &err)) {
            panes_open_plan(ui, &plan);
            show_head(ui, &made.call, &plan);
            if (plan.count > PANES_MOST)
                snprintf(part, sizeof(part), "the first %d of %d; ", PANES_MOST, plan.count);
            ui_say(ui, ROLE_DIM, "%s", preset->help);
            ui_say(ui, ROLE_DIM, "%s (%s); %s%su goes back", preset->title, preset->source, part,
                   point_at_span(ui, made.call.values[OPT_SPAN]) ? "I shows it on the image, "
                                                                 : "");
        }
    }
    if (err.code != ERR_NONE)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    figure_plan_free(&plan);
    preset_call_free(&made);
}

void panes_ask(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    if (pane && pane->ask)
        ui_open(ui, SCREEN_PARAMS);
}

/* ---- closing ---------------------------------------------------------------- */

void panes_clear(Ui *ui)
{
    Compare *c = &ui->compare;

    while (c->count > 0)
        pane_close(ui, &c->panes[--c->count]);
    c->now.focus = c->first = 0;
    c->now.solo = c->now.difference = c->align = c->now.effect = false;
}

/* ---- views that can be compared ---------------------------------------------- */

/* Connectivity that allows every cell, or the whole causal triangle, shows nothing. */
static bool connectivity_is_partial(const Run *run)
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

        if (pane->result && !pane->spec.view[0] && run_view(pane->result->run, name))
            snprintf(pane->spec.view, sizeof(pane->spec.view), "%s", name);
    }
}

static bool panes_align(Ui *ui)
{
    Compare *c = &ui->compare;
    bool     partial = true;

    if (!c->align)
        return false;
    for (int i = 0; i < c->count; i++) {
        if (c->panes[i].job)
            return false;
        partial &= !c->panes[i].result || connectivity_is_partial(c->panes[i].result->run);
    }
    c->align = false;
    show_all(c, partial ? "connectivity" : "weights");
    return true;
}

/* ---- one request for all ------------------------------------------------------- */

enum { PANE_WITHOUT, PANE_WITH, PANE_DIFFERENCE, PANE_BIAS };

/* Copies the position and its parameters from another request. */
static bool put_position(Request *request, const Request *from)
{
    snprintf(request->position, sizeof(request->position), "%s", from->position);
    for (int i = 0; i < from->given.count; i++) {
        const Assignment *item = &from->given.items[i];

        if (strncmp(item->name, "pos_", 4) != 0)
            continue;
        if (item->tensor.data ? !assignments_set_tensor(&request->given, item->name, item->tensor,
                                                        item->text, NULL)
                              : !assignments_set(&request->given, item->name, item->text, NULL))
            return false;
    }
    return true;
}

static void give_request(Ui *ui, Pane *pane, const Request *request)
{
    Request copy;

    if (request_same(&pane->request, request) || !request_copy(&copy, request, NULL))
        return;
    request_free(&pane->request);
    pane->request = copy;
    pane_run(ui, pane);
}

static void follow_position(Ui *ui, const Pane *changed)
{
    Compare *c = &ui->compare;
    Request  with, without;
    bool     bare = changed == &c->panes[PANE_WITHOUT] && c->count > PANE_WITH &&
                !strcmp(changed->request.position, "none");

    if (!request_copy(&with, &changed->request, NULL))
        return;
    if ((!bare || put_position(&with, &c->panes[PANE_WITH].request)) &&
        request_without_position(&with, &without, NULL)) {
        for (int i = 0; i < c->count; i++)
            give_request(ui, &c->panes[i], i == PANE_WITHOUT ? &without : &with);
        request_free(&without);
    }
    request_free(&with);
}

void panes_run(Ui *ui, Pane *pane)
{
    pane_run(ui, pane);
    if (ui->compare.now.effect)
        follow_position(ui, pane);
}

static bool poll_effect(Ui *ui)
{
    Compare   *c = &ui->compare;
    Pane      *pane = &c->panes[PANE_BIAS];
    const Run *run =
        c->now.effect && c->count > PANE_BIAS && pane->result ? pane->result->run : NULL;
    const Mechanism *m = run ? run->mechanism : NULL; /* it outlives the pane */

    if (!run || !run->spec.position || run_view(run, "bias"))
        return false;
    pane_close(ui, pane);
    c->count--;
    c->now.focus = c->now.focus < c->count ? c->now.focus : 0;
    ui_say(ui, ROLE_DIM, "%s has no one bias to show: each of its steps uses the position",
           m->id);
    return true;
}

/* First cursor of a pane: that of the linked panes, else the middle, where the diagonal has
 * allowed cells. */
static void place_cursor(Ui *ui, Pane *pane)
{
    pane->unplaced = false;
    if (panes_adopt(ui, pane))
        return;
    pane->lens.q = view_rows(pane->default_view) / 2;
    pane->lens.k = view_cols(pane->default_view) / 2;
}

bool panes_poll(Ui *ui)
{
    bool changed = false;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        changed |= pane_poll(ui, pane);
        if (pane->unplaced)
            place_cursor(ui, pane);
    }
    changed |= poll_effect(ui);
    return panes_align(ui) || changed;
}

/* ---- keys that work only with what is in the focused pane ----------------------- */

bool pane_hint(Ui *ui, const Action *action)
{
    Pane *pane = panes_focus(ui);

    if (!strcmp(action->id, "sorted"))
        return pane && pane_has_order(pane);
    if (!strcmp(action->id, "round_next"))
        return pane && pane_shows_reach(pane);
    if (!strcmp(action->id, "head_next"))
        return pane && pane->result && pane_heads(pane) > 1;
    if (!strcmp(action->id, "overview"))
        return session_input(ui->session)->layers > 1 ||
               (pane && pane->result && pane_heads(pane) > 1);
    if (!strcmp(action->id, "next_pane") || !strcmp(action->id, "difference"))
        return ui->compare.count > 1;
    if (!strcmp(action->id, "span"))
        return pane && pane->result && picture_width(pane->result) > 0;
    return true;
}

void panes_close_one(Ui *ui, int at)
{
    Compare *c = &ui->compare;

    pane_close(ui, &c->panes[at]);
    memmove(&c->panes[at], &c->panes[at + 1], (size_t)(c->count - at - 1) * sizeof(*c->panes));
    c->count--;
    c->panes[c->count] = (Pane){ 0 };
    c->now.focus = at < c->count ? at : c->count ? c->count - 1 : 0;
    c->now.solo = c->now.solo && c->count > 1;
    c->now.difference = c->now.difference && c->count > 1;
    c->now.effect = false;
}
