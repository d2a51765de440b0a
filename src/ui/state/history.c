/* history.c -- see history.h. */
#include "ui/state/history.h"

#include <stdlib.h>
#include <string.h>

#include "ui/state/panes.h"
#include "ui/state/workspace.h"

static void discard(Workspace *w)
{
    if (w)
        workspace_free(w);
    free(w);
}

static Workspace *take(const Ui *ui)
{
    Workspace *w = calloc(1, sizeof(*w));

    if (w && workspace_take(ui, w, NULL))
        return w;
    discard(w);
    return NULL;
}

/* True: another input was open since, and the old one is back. */
static bool restore_input(Ui *ui, const Workspace *w)
{
    Error err = ERROR_INIT;

    if (!w->spec || workspace_input_is_open(ui, w->spec, &w->choice))
        return false;
    if (session_load(ui->session, w->spec, &w->choice, &err))
        return true;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    return false;
}

static void restore_pane(Ui *ui, Pane *pane, PaneState *state, bool same_input)
{
    bool same = same_input && request_same(&pane->request, &state->request);

    pane_look(pane, state);
    pane_lay_out(ui, pane, pane->area); /* a key may arrive before the next frame */
    if (!same)
        pane_rerun(ui, pane, state);
}

/* Panes that were closed come back; panes opened since go. */
static void restore(Ui *ui, Workspace *w)
{
    Compare *c = &ui->compare;
    bool     same_input = !restore_input(ui, w);
    int      version = c->marks.version;

    while (c->count > w->count)
        pane_close(ui, &c->panes[--c->count]);
    while (c->count < w->count)
        c->panes[c->count++] = pane_new();
    for (int i = 0; i < w->count; i++)
        restore_pane(ui, &c->panes[i], &w->panes[i], same_input);
    c->now = w->arrangement;
    c->marks = w->marks;
    c->marks.version = version + 1; /* cached rows belong to other marks */
    request_take_place(&ui->defaults, &w->defaults);
}

static void push(Workspace **list, int *count, Workspace *s)
{
    if (!s)
        return;
    if (*count == HISTORY_MOST) {
        discard(list[0]);
        memmove(list, list + 1, (HISTORY_MOST - 1) * sizeof(*list));
        --*count;
    }
    list[(*count)++] = s;
}

static void discard_all(Workspace **list, int *count)
{
    while (*count > 0)
        discard(list[--*count]);
}

void history_note(Ui *ui)
{
    push(ui->history.past, &ui->history.past_count, take(ui));
    discard_all(ui->history.future, &ui->history.future_count);
}

void history_drop(Ui *ui)
{
    if (ui->history.past_count > 0)
        discard(ui->history.past[--ui->history.past_count]);
}

static bool go(Ui *ui, Workspace **from, int *from_count, Workspace **to, int *to_count)
{
    Workspace *s;

    if (*from_count == 0)
        return false;
    push(to, to_count, take(ui));
    s = from[--*from_count];
    restore(ui, s);
    discard(s);
    return true;
}

bool history_undo(Ui *ui)
{
    History *h = &ui->history;

    return go(ui, h->past, &h->past_count, h->future, &h->future_count);
}

bool history_redo(Ui *ui)
{
    History *h = &ui->history;

    return go(ui, h->future, &h->future_count, h->past, &h->past_count);
}

void history_clear(Ui *ui)
{
    discard_all(ui->history.past, &ui->history.past_count);
    discard_all(ui->history.future, &ui->history.future_count);
}
