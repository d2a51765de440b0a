/* compare_open.c -- panes come and go: opened by name, in views that can be compared, closed. */
#include <stdio.h>
#include <string.h>

#include "ui/compare.h"

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

Pane *compare_open_request(Ui *ui, Request *request)
{
    Compare *c = &ui->compare;
    Pane    *pane;

    if (c->count == PANES_MOST) {
        ui_say(ui, ROLE_WARN, "%d panes are open: x closes one", PANES_MOST);
        request_free(request);
        return NULL;
    }
    pane = &c->panes[c->count++];
    *pane = (Pane){ .request = *request, .pool = -1, .scale = -1, .map = -1, .order_head = -1 };
    c->focus = c->count - 1;
    if (lacks_text(request))
        pane->ask = true; /* instead of a run that must fail */
    else
        pane_run(ui, pane);
    return pane;
}

Pane *compare_open(Ui *ui, const char *mechanism)
{
    Error   err = ERROR_INIT;
    Request request = { 0 };

    if (request_copy(&request, &ui->defaults, &err) &&
        request_open(ui, &request, mechanism, &err))
        return compare_open_request(ui, &request);
    request_free(&request);
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    return NULL;
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
    c->solo = c->difference = c->align = false;
}

void compare_close(Ui *ui)
{
    compare_clear(ui);
}
