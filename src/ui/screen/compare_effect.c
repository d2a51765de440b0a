/* compare_effect.c -- what a position does: panes without it and with it, their
 * difference, its bias; one request moves all of them. */
#include <stdio.h>
#include <string.h>

#include "ui/screen/compare.h"
#include "ui/shell/actions.h"

enum { PANE_WITHOUT, PANE_WITH, PANE_DIFFERENCE, PANE_BIAS };

/* The first position the mechanism takes, a bias before a change of q and k. */
static const Position *usual_position(const Mechanism *m)
{
    static const PositionClass order[] = { POSITION_BIAS, POSITION_INPUT };

    for (int k = 0; k < 2; k++)
        for (size_t i = 0; position_at(i); i++)
            if (position_at(i)->class_ == order[k] && (m->positions & order[k]))
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
    c->focus = c->first = 0;
    c->effect = false;
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
    Pane      *pane = compare_focus(ui);
    Error      err = ERROR_INIT;
    FigurePlan plan = { 0 };
    Request    request;
    int64_t    head = pane ? pane->head : 0;

    if (!pane)
        return;
    if (ui->compare.effect) {
        history_note(ui);
        leave(ui);
        return;
    }
    if (!request_copy(&request, &pane->request, &err))
        return;
    if (choose_position(ui, &request)) {
        if (figure_plan_effect(&plan, &request, NULL, head, "", &err)) {
            history_note(ui);
            compare_open_plan(ui, &plan);
        } else {
            ui_say(ui, ROLE_ERROR, "%s", err.text);
        }
        figure_plan_free(&plan);
    }
    request_free(&request);
}

/* ---- one request for all ------------------------------------------------------- */

/* The request of a pane without the position, with that of another. */
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

static void follow(Ui *ui, const Pane *changed)
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

void compare_run(Ui *ui, Pane *pane)
{
    pane_run(ui, pane);
    if (ui->compare.effect)
        follow(ui, pane);
}

bool effect_poll(Ui *ui)
{
    Compare   *c = &ui->compare;
    Pane      *pane = &c->panes[PANE_BIAS];
    const Run *run = c->effect && c->count > PANE_BIAS && pane->result ? pane->result->run : NULL;

    if (!run || !run->spec.position || run_view(run, "bias"))
        return false;
    pane_close(ui, pane);
    c->count--;
    c->focus = c->focus < c->count ? c->focus : 0;
    ui_say(ui, ROLE_DIM, "%s has no one bias to show: each of its steps uses the position",
           run->mechanism->id);
    return true;
}
