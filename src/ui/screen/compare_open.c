/* compare_open.c -- panes come and go: opened by name, in views that can be compared, closed. */
#include <stdio.h>
#include <string.h>

#include "app/command/command.h"
#include "app/figure/plan.h"
#include "ui/screen/compare.h"

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
