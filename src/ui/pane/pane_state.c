/* pane_state.c -- a pane as a value, and back: see pane.h. */
#include <stdio.h>
#include <string.h>

#include "ui/shell/explorer.h"

bool pane_take(const Pane *pane, PaneState *out, Error *err)
{
    *out = (PaneState){ .head = pane->head,
                        .round = pane->round,
                        .pool = pane->pool,
                        .scale = pane->scale,
                        .map = pane->map,
                        .reach = pane->reach,
                        .sorted = pane->sorted,
                        .differs = pane->differs,
                        .excludes = pane->excludes,
                        .excluded = pane->excludes ? pane->excluded : 0,
                        .lens = pane->lens };
    memcpy(out->view, pane->view, sizeof(out->view));
    memcpy(out->notes, pane->notes, sizeof(out->notes));
    return request_copy(&out->request, &pane->request, err);
}

void pane_look(Pane *pane, const PaneState *state)
{
    memcpy(pane->view, state->view, sizeof(pane->view));
    memcpy(pane->notes, state->notes, sizeof(pane->notes));
    pane->head = state->head;
    pane->round = state->round;
    pane->pool = state->pool;
    pane->scale = state->scale;
    pane->map = state->map;
    pane->reach = state->reach;
    pane->sorted = state->sorted;
    pane->differs = state->differs;
    pane->excludes = state->excludes;
    pane->excluded = state->excluded;
    pane->lens = state->lens;
}

void pane_rerun(Ui *ui, Pane *pane, PaneState *state)
{
    request_free(&pane->request);
    pane->request = state->request;
    state->request = REQUEST_INIT;
    pane_run(ui, pane);
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
