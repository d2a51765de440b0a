/* compare_actions.c -- what keys do to panes: views, scales, heads, and the panes themselves. */
#include <stdio.h>
#include <string.h>

#include "attn/run/position.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

/* ---- what is shown ---------------------------------------------------------- */

/* The pane shows another view: lay it out and describe it. */
static void view_changed(Ui *ui, Pane *pane)
{
    pane->spec.pool = pane->spec.scale = -1;
    pane_lay_out(ui, pane, pane->area); /* the next key may come before the next frame */
    panes_link(ui);
    if (pane_lacks_missed(pane) && !result_missed_soon(pane->result, pane->request.keys)) {
        pane_run(ui, pane);
        ui_say(ui, ROLE_DIM, "missed: looking for the strongest keys of exact attention");
    } else if (pane_shows_missed(pane)) {
        ui_say(ui, ROLE_DIM,
               "missed: strongest keys of exact attention, found by what, or missed; { } keys");
    } else if (pane_view(pane))
        ui_say(ui, ROLE_DIM, "%s: %s%s", pane_view(pane)->name,
               view_words(pane_view(pane)),
               pane_shows_reach(pane) ? "; { } layers" : "");
}

/* Unknown view name: suggests the nearest, or lists all. */
static void say_views(Ui *ui, const Pane *pane, const char *name)
{
    Meant nearest = { .wanted = name, .slips = 2 + (int)strlen(name) / 4 };
    Text  all = { 0 };

    for (int at = 0; pane_offers(pane, at); at++)
        if (*pane_offers(pane, at)) {
            text_addf(&all, " %s", pane_offers(pane, at));
            meant_offer(&nearest, pane_offers(pane, at));
        }
    if (!*name)
        ui_say(ui, ROLE_DIM, "views of %s:%s", pane->request.mechanism, text_str(&all));
    else if (nearest.name)
        ui_say(ui, ROLE_ERROR, "%s has no view '%s'; did you mean %s?", pane->request.mechanism,
               name, nearest.name);
    else
        ui_say(ui, ROLE_ERROR, "%s has no view '%s'; it has%s", pane->request.mechanism, name,
               text_str(&all));
    text_free(&all);
}

void compare_typed_view(Ui *ui, const char *name)
{
    Pane *pane = panes_focus(ui);

    if (!pane || !pane->result) {
        ui_say(ui, ROLE_ERROR, "no pane has views yet: the name of a mechanism opens one");
    } else if (pane_take_view(pane, name)) {
        ui->screen = SCREEN_COMPARE;
        view_changed(ui, pane);
    } else {
        say_views(ui, pane, name);
    }
}

/* A screen with plots of its own turns those. */
void view_next(Ui *ui, int by)
{
    const Screen *screen = ui->screens[ui->screen];
    Pane         *pane = panes_focus(ui);

    if (screen->turn) {
        screen->turn(ui, by);
    } else if (pane && pane->result) {
        pane_step_view(pane, by);
        view_changed(ui, pane);
    }
}

/* Refuses settings that a view ignores, so that the status line does not show them. */
void action_pool_next(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Panel panel;

    if (!pane || !pane_panel(ui, pane, &panel))
        return;
    if (panel.plot || panel_shows_categories(&panel)) {
        ui_hint(ui, panel.plot ? "a curve has no cells of many pairs"
                               : "a cell of many entries has the colour of most of them");
        return;
    }
    pane->spec.pool = ((int)panel.pool + 1) % POOL_COUNT;
    ui_say(ui, ROLE_DIM, "a cell of many pairs shows: %s", pool_name((Pool)pane->spec.pool));
}

void action_scale_next(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Panel panel;

    if (pane_has_scale(ui, pane) && pane_panel(ui, pane, &panel))
        pane_set_scale(ui, pane, ((int)panel.scale + 1) % SCALE_COUNT);
}

void action_colours(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Panel panel;
    int   map;

    if (!pane) {
        ui_hint(ui, "a colour map is of the panes, and none is open");
        return;
    }
    if (!pane_panel(ui, pane, &panel)) {
        ui_hint(ui, "a colour map is of a picture, and none is there yet");
        return;
    }
    map = ((int)panel.map + 1) % MAP_DIVERGING;
    for (int i = 0; i < ui->compare.count; i++)
        ui->compare.panes[i].spec.map = map;
    ui_say(ui, ROLE_DIM, "colour map: %s%s", colour_map_name((ColourMap)map),
           panel_shows_categories(&panel) ? "; categories keep their colours"
           : pane->drawing.causes         ? "; causes keep their colours"
                                          : "");
}

/* Linked panes exclude the same key. */
void action_exclude(Ui *ui)
{
    Pane   *pane = panes_focus(ui);
    int64_t q, k;
    bool    on;

    if (!pane || !pane_view(pane) || strcmp(pane_view(pane)->cols, "key") != 0) {
        ui_say(ui, ROLE_DIM, "only a key can be excluded: v takes a view of queries and keys");
        return;
    }
    pane_cursor(pane, &q, &k);
    on = !(pane_excludes(pane) && pane->spec.excluded == k);
    history_note(ui);
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *to = &ui->compare.panes[i];

        if (to != pane && !ui->compare.now.linked)
            continue;
        to->spec.excludes = on;
        to->spec.excluded = on ? k : 0;
    }
    if (on)
        ui_say(ui, ROLE_DIM, "key %lld counts in no colour range and no strip; X takes it back",
               (long long)k);
    else
        ui_say(ui, ROLE_DIM, "key %lld counts again", (long long)k);
}

void head_step(Ui *ui, int direction)
{
    Pane   *pane = panes_focus(ui);
    int64_t heads = pane && pane->result ? pane_heads(pane) : 0;

    if (heads < 1) {
        ui_say(ui, ROLE_DIM, "the pane has no result yet");
        return;
    }
    if (heads == 1) {
        ui_say(ui, ROLE_DIM, pane->result->run->h == 1 ? "the input has one head"
                                                       : "this view is the same for every head");
        return;
    }
    for (int i = 0; i < ui->compare.count; i++) {
        Pane *to = &ui->compare.panes[i];

        /* linked panes step together; those that show different heads go on doing so */
        if (to == pane || (ui->compare.now.linked && to->result && to->result->run->h == heads))
            to->spec.head = (to->spec.head + direction + heads) % heads;
    }
}

/* Changes the depth of reach within its limits. */
static void step_layers(Ui *ui, Pane *pane, int direction)
{
    int layers = reach_view_depth(pane_view(pane)) + direction;

    if (layers < 1 || layers > REACH_MOST) {
        ui_say(ui, ROLE_DIM, "reach takes 1 to %d layers", REACH_MOST);
        return;
    }
    pane->spec.reach.layers = layers;
    ui_say(ui, ROLE_DIM, "reach within %d layer%s", layers, layers == 1 ? "" : "s");
}

void action_residual(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    if (!pane || !pane_shows_reach(pane)) {
        ui_say(ui, ROLE_DIM, "residual connections belong to the view reach: v steps to it");
        return;
    }
    pane->spec.reach.strict = !pane->spec.reach.strict;
    ui_say(ui, ROLE_DIM, pane->spec.reach.strict
                             ? "no residual connections: walks of exactly so many layers"
                             : "with residual connections: a token keeps what it has");
}

/* Doubles or halves the number of strongest keys. */
static void step_keys(Ui *ui, Pane *pane, int direction)
{
    int64_t keys = pane->request.keys ? pane->request.keys : MISSED_USUAL;

    keys = direction > 0 ? 2 * keys : keys / 2;
    if (keys < 1 || keys > MISSED_MOST || (direction > 0 && keys >= 2 * pane->result->run->m)) {
        ui_say(
            ui, ROLE_DIM, "1 to %lld strongest keys",
            (long long)(pane->result->run->m < MISSED_MOST ? pane->result->run->m : MISSED_MOST));
        return;
    }
    pane->request.keys = (int)keys;
    if (pane_lacks_missed(pane) && !result_missed_soon(pane->result, pane->request.keys))
        pane_run(ui, pane);
    ui_say(ui, ROLE_DIM, "the %lld strongest keys", (long long)keys);
}

/* Rounds are planes of one view; iterations are views of the same kind. */
void round_change(Ui *ui, int direction)
{
    Pane       *pane = panes_focus(ui);
    const View *now = pane ? pane_view(pane) : NULL;
    int64_t     rounds = now ? pane_rounds(pane) : 0;
    const Run  *run = pane && pane->result ? pane->result->run : NULL;

    if (now && now->found) {
        step_keys(ui, pane, direction);
        return;
    }
    if (now && now->kind == VIEW_HOPS) {
        step_layers(ui, pane, direction);
        return;
    }
    if (rounds > 1) {
        pane->spec.round = 1 + (pane_round(pane) + direction + rounds) % rounds;
        return;
    }
    for (int at = now ? (int)(now - run->views) + direction : -1; at >= 0 && at < run->view_count;
         at += direction)
        if (run->views[at].kind == now->kind && view_rows(&run->views[at]) == view_rows(now) &&
            view_cols(&run->views[at]) == view_cols(now) &&
            run_view(run, run->views[at].name) == &run->views[at]) {
            snprintf(pane->spec.view, sizeof(pane->spec.view), "%s", run->views[at].name);
            return;
        }
    if (now)
        ui_say(ui, ROLE_DIM, "%s has no other round or iteration there", now->name);
}

void action_sorted(Ui *ui)
{
    Pane   *focus = panes_focus(ui), *pane = seen_pane(ui);
    Panel   panel;
    int64_t q, k;

    /* Whether there is an order shows with the result. */
    if (focus && focus->job && !pane_view(focus))
        focus->spec.sorted = !focus->spec.sorted;
    if (!pane)
        return;
    pane_cursor(pane, &q, &k);
    pane->spec.sorted = !pane->spec.sorted;
    if (pane->spec.sorted && (!pane_panel(ui, pane, &panel) || !pane->order)) {
        pane->spec.sorted = false;
        ui_say(ui, ROLE_DIM, "%s has no order of its own: it works in token order",
               pane->request.mechanism);
        return;
    }
    go_to_cell(ui, pane, q, k);
    ui_say(ui, ROLE_DIM, "tokens in %s order",
           pane->spec.sorted ? "the mechanism's own" : "their original");
}

void action_labels(Ui *ui)
{
    Compare     *c = &ui->compare;
    const Input *input = session_input(ui->session);

    c->look.labels = !c->look.labels;
    if (c->look.labels && input && !input->q_tokens)
        ui_say(ui, ROLE_DIM, "this input has no token labels");
}

void action_difference(Ui *ui)
{
    Compare *c = &ui->compare;

    if (c->count < 2) {
        ui_say(ui, ROLE_DIM, "a difference needs a second pane: a adds one");
        return;
    }
    history_note(ui);
    c->now.difference = !c->now.difference;
    if (c->now.difference && c->now.focus == 0)
        c->now.focus = 1;
    if (c->now.difference && !pane_differs(ui, panes_focus(ui))) {
        c->now.difference = false;
        ui_say(ui, ROLE_WARN,
               "no difference: this pane and pane 1 show other things; v steps the view");
    }
}

void action_link(Ui *ui)
{
    ui->compare.now.linked = !ui->compare.now.linked;
    panes_link(ui);
    ui_say(ui, ROLE_DIM, ui->compare.now.linked ? "panes linked" : "each pane for itself");
}

void action_strips_next(Ui *ui)
{
    strips_next(ui);
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].area.h)
            pane_lay_out(ui, &ui->compare.panes[i], ui->compare.panes[i].area);
}

/* ---- marked queries ----------------------------------------------------------- */

static void say_marks(Ui *ui)
{
    const Marks *marks = &ui->compare.marks;
    const Pane  *pane = panes_focus(ui);

    if (!marks->count)
        ui_say(ui, ROLE_DIM, "no query is marked");
    else if (pane && pane_shows_missed(pane))
        ui_say(ui, ROLE_DIM, "%d quer%s marked; what was found has no %s: v goes to weights",
               marks->count, marks->count == 1 ? "y" : "ies", marks->summed ? "sum" : "mean");
    else
        ui_say(ui, ROLE_DIM, "%d quer%s marked; %s %s is beside the matrix or behind Enter; # U",
               marks->count, marks->count == 1 ? "y" : "ies", marks->count == 1 ? "its" : "their",
               marks->count == 1 ? "row" : marks->summed ? "sum" : "mean");
}

void action_mark_query(Ui *ui)
{
    Pane   *pane = panes_focus(ui);
    int64_t q, k;

    if (!pane || !pane_view(pane) || strcmp(pane_view(pane)->rows, "query") != 0) {
        ui_say(ui, ROLE_DIM, "only queries can be marked: v takes a view of queries and keys");
        return;
    }
    pane_cursor(pane, &q, &k);
    history_note(ui);
    if (marks_toggle(&ui->compare.marks, q))
        say_marks(ui);
    else
        ui_say(ui, ROLE_WARN, "%d queries are marked; U unmarks all", MARGIN_QUERIES_MOST);
}

void action_marks_sum(Ui *ui)
{
    ui->compare.marks.summed = !ui->compare.marks.summed;
    ui->compare.marks.version++;
    say_marks(ui);
}

void action_marks_clear(Ui *ui)
{
    history_note(ui);
    marks_clear(&ui->compare.marks);
    say_marks(ui);
}

/* ---- panes ------------------------------------------------------------------ */

void focus_move(Ui *ui, int direction)
{
    Compare *c = &ui->compare;

    if (lessons_docked(ui) && lessons_passes(ui, direction))
        return;
    if (c->count < 2)
        ui_hint(ui, c->count ? "only one pane is open; a in 2 Compare adds another"
                             : "no pane is open");
    else
        c->now.focus = (c->now.focus + direction + c->count) % c->count;
}

void action_solo(Ui *ui)
{
    ui->compare.now.solo = !ui->compare.now.solo && ui->compare.count > 1;
    if (ui->compare.count < 2)
        ui_hint(ui, "only one pane is open; a adds another");
}

void action_pane_add(Ui *ui)
{
    ui->compare.adding = true;
    ui->help = (Help){ .palette = true };
    ui_push(ui, SCREEN_LIST);
}

void action_pane_close_it(Ui *ui)
{
    if (!ui->compare.count)
        return;
    history_note(ui);
    panes_close_one(ui, ui->compare.now.focus);
}

void action_rerun(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    if (!pane)
        return;
    pane_run(ui, pane);
    if (pane->job && pane->result && pane->result->run_ms < 300) /* slower ones are seen */
        ui_hint(ui, "%s runs again", pane->request.mechanism);
}

/* All panes move to the new device, so that they stay comparable. */
void action_device_next(Ui *ui)
{
    Compare *c = &ui->compare;
    Request  next = REQUEST_INIT;
    Text     place = { 0 };
    Error    err = ERROR_INIT;

    request_take_place(&next, c->count ? &c->panes[c->now.focus].request : &ui->defaults);
    if (!request_next_place(ui->session, &next, &err)) {
        ui_say(ui, ROLE_WARN, "%s", err.text);
        return;
    }
    if (c->count)
        history_note(ui);
    request_take_place(&ui->defaults, &next);
    for (int i = 0; i < c->count; i++) {
        request_take_place(&c->panes[i].request, &next);
        pane_run(ui, &c->panes[i]);
    }
    request_place(&ui->defaults, &place);
    ui_say(ui, ROLE_DIM, "runs on: %s%s%s", text_str(&place),
           request_gpu(&ui->defaults) ? ", " : "",
           request_gpu(&ui->defaults) ? request_gpu(&ui->defaults) : "");
    text_free(&place);
}

void action_reseed(Ui *ui)
{
    Pane *pane = panes_focus(ui);

    if (!pane)
        return;
    history_note(ui);
    pane->request.seed++;
    panes_run(ui, pane);
    ui_say(ui, ROLE_DIM, "seed %llu", (unsigned long long)pane->request.seed);
}

void action_parameters(Ui *ui)
{
    if (panes_focus(ui))
        ui_open(ui, SCREEN_PARAMS);
}

void action_undo(Ui *ui)
{
    if (!history_undo(ui))
        ui_say(ui, ROLE_DIM, "nothing to undo");
}

void action_redo(Ui *ui)
{
    if (!history_redo(ui))
        ui_say(ui, ROLE_DIM, "nothing to redo");
}

/* What a position does: panes without it and with it, their
 * difference, its bias; one request moves all of them. */

enum { PANE_WITHOUT, PANE_WITH, PANE_DIFFERENCE, PANE_BIAS };

/* The first position the mechanism takes, a bias before a change of q and k. */
static const Position *usual_position(const Mechanism *m)
{
    static const PositionClass order[] = { POSITION_BIAS, POSITION_INPUT };

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; position_at(i); i++)
            if (position_at(i)->class_ == order[k] && position_fits(position_at(i), m->positions))
                return position_at(i);
    return NULL;
}

/* Back to the one pane with the position. */
static void leave(Ui *ui)
{
    Compare *c = &ui->compare;
    int      kept = c->count > PANE_WITH ? PANE_WITH : 0;

    while (c->count > kept + 1)
        pane_close(ui, &c->panes[--c->count]);
    if (kept) {
        pane_close(ui, &c->panes[0]);
        c->panes[0] = c->panes[kept];
        c->panes[kept] = (Pane){ 0 };
        c->count = 1;
    }
    c->now.focus = c->first = 0;
    c->now.effect = false;
}

static bool choose_position(Ui *ui, Request *request)
{
    const Mechanism *m = mechanism_find(request->mechanism);
    const Position  *position = usual_position(m);

    if (strcmp(request->position, "none") != 0)
        return true;
    if (!position) {
        ui_say(ui, ROLE_WARN, "%s takes no position", m->id);
        return false;
    }
    snprintf(request->position, sizeof(request->position), "%s", position->id);
    ui_say(ui, ROLE_DIM, "%s; p chooses another position, P leaves", position->title);
    return true;
}

void action_position_effect(Ui *ui)
{
    Pane      *pane = panes_focus(ui);
    Error      err = ERROR_INIT;
    FigurePlan plan = { 0 };
    Request    request;
    int64_t    head = pane ? pane->spec.head : 0;

    if (!pane)
        return;
    if (ui->compare.now.effect) {
        history_note(ui);
        leave(ui);
        return;
    }
    if (!request_copy(&request, &pane->request, &err))
        return;
    if (choose_position(ui, &request)) {
        if (figure_plan_effect(&plan, &request, NULL, head, "", &err)) {
            history_note(ui);
            panes_open_plan(ui, &plan);
        } else {
            ui_say(ui, ROLE_ERROR, "%s", err.text);
        }
        figure_plan_free(&plan);
    }
    request_free(&request);
}
