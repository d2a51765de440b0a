/* history.c -- undo and redo: workspaces before and after, and what changed between two of them in
 * words; see workspace.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/state/explorer.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* ---- a change in words --------------------------------------------------------- */

static void add_separator(Text *out)
{
    if (out->length)
        text_add(out, ", ");
}

static void add_part(Text *out, const char *part)
{
    add_separator(out);
    text_add(out, part);
}

/* "window 7 -> 9" */
static void add_change(Text *out, const char *name, const char *from, const char *to)
{
    add_separator(out);
    text_addf(out, "%s%s%s -> %s", name, *name ? " " : "", from, to);
}

/* As it would be written; where it is left out, the default. */
static const char *value_of(const Request *request, const Param *param, Text *storage)
{
    const Assignment *given = assignments_find(&request->given, param->name);

    if (given)
        return given->text ? given->text : "a tensor";
    params_print(param, NULL, storage);
    return storage->length ? text_str(storage) : "its default";
}

static void add_parameter(const Request *from, const Request *to, const Param *param, Text *out)
{
    Text        before = { 0 }, after = { 0 };
    const char *a = value_of(from, param, &before), *b = value_of(to, param, &after);

    if (strcmp(a, b) != 0)
        add_change(out, param->name, a, b);
    text_free(&before);
    text_free(&after);
}

/* Another mechanism, or a stack: whole. */
static void add_request(const Request *from, const Request *to, Text *out)
{
    const Mechanism *m = mechanism_find(to->mechanism);
    Text             before = { 0 }, after = { 0 };

    if (m && !strcmp(from->mechanism, to->mechanism) && !from->above && !to->above) {
        for (const Param *p = m->params; p && p->name; p++)
            add_parameter(from, to, p, out);
        return;
    }
    request_text(from, &before);
    request_text(to, &after);
    if (strcmp(text_str(&before), text_str(&after)) != 0)
        add_change(out, "", text_str(&before), text_str(&after));
    text_free(&before);
    text_free(&after);
}

/* The panes of `more` that have no equal in `few`, each of which is taken once. */
static void add_extra(const Workspace *few, const Workspace *more, const char *what, Text *out)
{
    int next = 0;

    for (int i = 0; i < more->count; i++) {
        Text name = { 0 };

        if (next < few->count && request_same(&few->panes[next].request, &more->panes[i].request)) {
            next++;
            continue;
        }
        request_text(&more->panes[i].request, &name);
        add_separator(out);
        text_addf(out, "%s %s", text_str(&name), what);
        text_free(&name);
    }
}

/* As chosen; what is not is the input's own. */
static void add_choice(const char *name, int64_t from, int64_t to, int64_t none, Text *out)
{
    char before[24] = "its own", after[24] = "its own";

    if (from == to)
        return;
    if (from != none)
        snprintf(before, sizeof(before), "%lld", (long long)from);
    if (to != none)
        snprintf(after, sizeof(after), "%lld", (long long)to);
    add_change(out, name, before, after);
}

static void add_input(const Workspace *from, const Workspace *to, Text *out)
{
    if (!from->spec || !to->spec)
        return;
    if (strcmp(from->spec, to->spec) != 0) {
        add_change(out, "input", from->spec, to->spec);
        return;
    }
    add_choice("layer", from->choice.layer, to->choice.layer, -1, out);
    add_choice("n", from->choice.n, to->choice.n, 0, out);
    add_choice("d", from->choice.d, to->choice.d, 0, out);
    add_choice("heads", from->choice.heads, to->choice.heads, 0, out);
    add_choice("seed of the input", (int64_t)from->choice.seed, (int64_t)to->choice.seed, -1, out);
}

static void add_panes(const Workspace *from, const Workspace *to, Text *out)
{
    if (to->count != from->count) {
        add_extra(from, to, "opened", out);
        add_extra(to, from, "closed", out);
        return;
    }
    for (int i = 0; i < to->count; i++) {
        Text one = { 0 };

        add_request(&from->panes[i].request, &to->panes[i].request, &one);
        workspace_pane_changes(&from->panes[i], &to->panes[i], &one);
        if (one.length && !strstr(text_str(out), text_str(&one))) /* linked panes change alike */
            add_part(out, text_str(&one));
        text_free(&one);
    }
}

static void add_arrangement(const Workspace *from, const Workspace *to, Text *out)
{
    const Arrangement *a = &from->arrangement, *b = &to->arrangement;

    if (a->linked != b->linked)
        add_part(out, b->linked ? "panes linked" : "panes unlinked");
    if (a->solo != b->solo)
        add_part(out, b->solo ? "one pane alone" : "all panes shown");
    if (a->difference != b->difference)
        add_part(out, b->difference ? "difference to pane 1" : "difference ended");
    if (from->marks.count != to->marks.count)
        add_choice("marked rows", from->marks.count, to->marks.count, -1, out);
    else if (from->marks.summed != to->marks.summed)
        add_part(out, to->marks.summed ? "rows summed" : "mean of the rows");
}

/* "window 7 -> 9". */
static void workspace_change(const Workspace *from, const Workspace *to, Text *out)
{
    if (from->arrangement.effect != to->arrangement.effect) { /* replaces all panes */
        add_part(out, to->arrangement.effect ? "the effect of a position is shown"
                                             : "the effect of a position was left");
        return;
    }
    add_input(from, to, out);
    add_panes(from, to, out);
    add_arrangement(from, to, out);
}

/* ---- undo and redo ----------------------------------------------------------- */

static void discard(Workspace *w)
{
    if (w)
        workspace_free(w);
    free(w);
}

static Workspace *take_workspace(const Ui *ui)
{
    Workspace *w = calloc(1, sizeof(*w));

    if (w && workspace_take(ui, w, NULL))
        return w;
    discard(w);
    return NULL;
}

/* Loads the workspace's input; true: another one was open. */
static bool restore_input(Ui *ui, const Workspace *w)
{
    Error err = ERROR_INIT;

    if (!w->spec || input_is_open(ui, w->spec, &w->choice))
        return false;
    if (session_load(ui->session, w->spec, &w->choice, &err))
        return true;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    return false;
}

/* Where tiles change, the next frame lays out: the old tile would move the lens. */
static void restore_pane(Ui *ui, Pane *pane, PaneState *state, bool same_input, bool same_tiles)
{
    bool same = same_input && request_same(&pane->request, &state->request);

    pane_look(pane, state);
    if (!same_tiles)
        pane->area = (Area){ 0 };
    pane_lay_out(ui, pane, pane->area); /* a key may arrive before the next frame */
    if (!same)
        pane_rerun(ui, pane, state);
}

/* Panes that were closed come back; panes opened since go. */
static void restore(Ui *ui, Workspace *w)
{
    Compare *c = &ui->compare;
    bool     same_input = !restore_input(ui, w);
    bool     same_tiles = c->count == w->count && c->now.solo == w->arrangement.solo;
    int      version = c->marks.version;

    while (c->count > w->count)
        pane_close(ui, &c->panes[--c->count]);
    while (c->count < w->count)
        c->panes[c->count++] = pane_new();
    for (int i = 0; i < w->count; i++)
        restore_pane(ui, &c->panes[i], &w->panes[i], same_input, same_tiles);
    c->now = w->arrangement;
    c->marks = w->marks;
    c->marks.version = version + 1; /* cached rows belong to other marks */
    request_take_place(&ui->defaults, &w->defaults);
}

static void push(WorkspaceStack *stack, Workspace *w)
{
    if (!w)
        return;
    if (stack->count == HISTORY_MOST) {
        discard(stack->items[0]);
        memmove(stack->items, stack->items + 1, (HISTORY_MOST - 1) * sizeof(*stack->items));
        stack->count--;
    }
    stack->items[stack->count++] = w;
}

static void discard_all(WorkspaceStack *stack)
{
    while (stack->count > 0)
        discard(stack->items[--stack->count]);
}

void history_note(Ui *ui)
{
    push(&ui->history.past, take_workspace(ui));
    discard_all(&ui->history.future);
}

void history_drop(Ui *ui)
{
    if (ui->history.past.count > 0)
        discard(ui->history.past.items[--ui->history.past.count]);
}

/* Says what the change was, in its own direction: "undone: window 7 -> 9". */
static bool go(Ui *ui, WorkspaceStack *from, WorkspaceStack *to)
{
    bool       undo = from == &ui->history.past;
    Workspace *now, *w;
    Text       change = { 0 };

    if (from->count == 0)
        return false;
    now = take_workspace(ui);
    w = from->items[--from->count];
    if (now)
        workspace_change(undo ? w : now, undo ? now : w, &change);
    push(to, now);
    ui->message[0] = '\0';
    restore(ui, w);
    if (!ui->message[0]) /* nothing went wrong */
        ui_say(ui, ROLE_DIM, "%s%s%s", undo ? "undone" : "done again", change.length ? ": " : "",
               text_str(&change));
    text_free(&change);
    discard(w);
    return true;
}

bool history_undo(Ui *ui)
{
    return go(ui, &ui->history.past, &ui->history.future);
}

bool history_redo(Ui *ui)
{
    return go(ui, &ui->history.future, &ui->history.past);
}

void history_clear(Ui *ui)
{
    discard_all(&ui->history.past);
    discard_all(&ui->history.future);
}
