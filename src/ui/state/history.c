/* history.c -- see history.h. */
#include "ui/state/history.h"

#include <stdlib.h>
#include <string.h>

#include "ui/state/panes.h"

struct Snapshot {
    PaneState panes[PANES_MOST];
    int       count, focus;
    bool      difference, effect, linked, solo;
    Marks     marks;
    char     *spec; /* of the input; owned */
    InputChoice choice;
    Request   place; /* only where what is opened next runs */
};

static void snapshot_free(Snapshot *s)
{
    for (int i = 0; s && i < s->count; i++)
        request_free(&s->panes[i].request);
    if (s)
        free(s->spec);
    free(s);
}

static Snapshot *snapshot_take(const Ui *ui)
{
    const Compare *c = &ui->compare;
    Snapshot      *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->focus = c->focus;
    s->difference = c->difference;
    s->effect = c->effect;
    s->linked = c->linked;
    s->solo = c->solo;
    s->marks = c->marks;
    s->spec = session_input_spec(ui->session) ? strdup(session_input_spec(ui->session)) : NULL;
    s->choice = *session_choice(ui->session);
    request_take_place(&s->place, &ui->defaults);
    for (int i = 0; i < c->count; i++) {
        if (!pane_take(&c->panes[i], &s->panes[i], NULL)) {
            snapshot_free(s);
            return NULL;
        }
        s->count++;
    }
    return s;
}

/* True: another input was open since, and the old one is back. */
static bool restore_input(Ui *ui, const Snapshot *s)
{
    const InputChoice *now = session_choice(ui->session);
    Error              err = ERROR_INIT;

    if (!s->spec || (!strcmp(s->spec, session_input_spec(ui->session)) &&
                     now->layer == s->choice.layer && now->n == s->choice.n &&
                     now->d == s->choice.d && now->heads == s->choice.heads &&
                     now->seed == s->choice.seed))
        return false;
    if (session_load(ui->session, s->spec, &s->choice, &err))
        return true;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    return false;
}

static void restore_pane(Ui *ui, Pane *pane, PaneState *state, bool same_input)
{
    bool same = same_input && request_same(&pane->request, &state->request);

    pane_look(pane, state);
    pane_lay_out(ui, pane, pane->area); /* the next key may come before the next frame */
    if (!same)
        pane_rerun(ui, pane, state);
}

/* Panes that were closed come back; panes opened since go. */
static void snapshot_restore(Ui *ui, Snapshot *s)
{
    Compare *c = &ui->compare;
    bool     same_input = !restore_input(ui, s);

    while (c->count > s->count)
        pane_close(ui, &c->panes[--c->count]);
    while (c->count < s->count) {
        c->panes[c->count++] = pane_new();
    }
    for (int i = 0; i < s->count; i++)
        restore_pane(ui, &c->panes[i], &s->panes[i], same_input);
    c->focus = s->focus;
    c->difference = s->difference;
    c->effect = s->effect;
    c->linked = s->linked;
    c->solo = s->solo;
    request_take_place(&ui->defaults, &s->place);
    s->marks.version = c->marks.version + 1; /* rows read since are of others */
    c->marks = s->marks;
}

static void push(Snapshot **list, int *count, Snapshot *s)
{
    if (!s)
        return;
    if (*count == HISTORY_MOST) {
        snapshot_free(list[0]);
        memmove(list, list + 1, (HISTORY_MOST - 1) * sizeof(*list));
        --*count;
    }
    list[(*count)++] = s;
}

static void forget(Snapshot **list, int *count)
{
    while (*count > 0)
        snapshot_free(list[--*count]);
}

void history_note(Ui *ui)
{
    push(ui->history.past, &ui->history.past_count, snapshot_take(ui));
    forget(ui->history.future, &ui->history.future_count);
}

void history_drop(Ui *ui)
{
    if (ui->history.past_count > 0)
        snapshot_free(ui->history.past[--ui->history.past_count]);
}

static bool go(Ui *ui, Snapshot **from, int *from_count, Snapshot **to, int *to_count)
{
    Snapshot *s;

    if (*from_count == 0)
        return false;
    push(to, to_count, snapshot_take(ui));
    s = from[--*from_count];
    snapshot_restore(ui, s);
    snapshot_free(s);
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
    forget(ui->history.past, &ui->history.past_count);
    forget(ui->history.future, &ui->history.future_count);
}
