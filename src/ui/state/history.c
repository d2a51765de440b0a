/* history.c -- undo and redo: workspaces before and after, and what changed between two of them in
 * words; see workspace.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/state/explorer.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* ---- a change in words: what stands after it, and what stood before ------------------- */

/* What is there already, as of a linked pane, is not said twice. */
static void add_part(Text *out, const char *part)
{
    size_t      length = strlen(part);
    const char *at = out->length ? text_str(out) : NULL;

    for (; at && (at = strstr(at, part)); at++)
        if ((at == text_str(out) || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return;
    text_addf(out, "%s%s", out->length ? ", " : "", part);
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

    workspace_add_change(param->name, a, b, out);
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
    workspace_add_change("the pane", text_str(&before), text_str(&after), out);
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
        text_addf(out, "%s%s %s", out->length ? ", " : "", text_str(&name), what);
        text_free(&name);
    }
}

/* As chosen; what is not is the input's own. */
static void add_choice(const char *name, int64_t from, int64_t to, int64_t none, Text *out)
{
    char before[24] = "the input's own", after[24] = "the input's own";

    if (from != none)
        snprintf(before, sizeof(before), "%lld", (long long)from);
    if (to != none)
        snprintf(after, sizeof(after), "%lld", (long long)to);
    workspace_add_change(name, before, after, out);
}

static void add_input(const Workspace *from, const Workspace *to, Text *out)
{
    if (!from->spec || !to->spec)
        return;
    if (strcmp(from->spec, to->spec) != 0) {
        workspace_add_change("the input", from->spec, to->spec, out);
        return;
    }
    add_choice("layer", from->choice.layer, to->choice.layer, -1, out);
    add_choice("n", from->choice.n, to->choice.n, 0, out);
    add_choice("d", from->choice.d, to->choice.d, 0, out);
    add_choice("heads", from->choice.heads, to->choice.heads, 0, out);
    add_choice("seed of the input", (int64_t)from->choice.seed, (int64_t)to->choice.seed, -1, out);
}

/* Each change of one pane; they end with ")".  Linked panes change alike. */
static void add_parts(Text *out, const Text *parts)
{
    const char *at = parts->length ? text_str(parts) : "", *end;

    for (; *at; at = end) {
        Text part = { 0 };

        end = strstr(at, "), ");
        end = end ? end + 1 : at + strlen(at);
        text_add_bytes(&part, at, (size_t)(end - at));
        add_part(out, text_str(&part));
        text_free(&part);
        end += strspn(end, ", ");
    }
}

static void add_panes(const Workspace *from, const Workspace *to, Text *out)
{
    if (to->count != from->count) {
        add_extra(from, to, "is open again", out);
        add_extra(to, from, "is closed again", out);
        return;
    }
    for (int i = 0; i < to->count; i++) {
        Text one = { 0 };

        add_request(&from->panes[i].request, &to->panes[i].request, &one);
        workspace_pane_changes(&from->panes[i], &to->panes[i], &one);
        add_parts(out, &one);
        text_free(&one);
    }
}

static void add_arrangement(const Workspace *from, const Workspace *to, Text *out)
{
    const Arrangement *a = &from->arrangement, *b = &to->arrangement;

    if (a->linked != b->linked)
        add_part(out, b->linked ? "the panes are linked" : "each pane moves for itself");
    if (a->solo != b->solo)
        add_part(out, b->solo ? "one pane is alone" : "all panes are shown");
    if (a->difference != b->difference)
        add_part(out, b->difference ? "differences are shown" : "no differences are shown");
    if (from->marks.count != to->marks.count)
        add_choice("the number of marked rows", from->marks.count, to->marks.count, -1, out);
    else if (from->marks.summed != to->marks.summed)
        add_part(out, to->marks.summed ? "the marked rows are summed"
                                       : "the mean of the marked rows is shown");
}

/* "window is 9 again (was 7)". */
static void workspace_change(const Workspace *from, const Workspace *to, Text *out)
{
    if (from->arrangement.effect != to->arrangement.effect) { /* replaces all panes */
        add_part(out, to->arrangement.effect ? "the effect of a position is shown"
                                             : "the panes are back");
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

/* Says what stands now: "undone: window is 9 again (was 7)". */
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
        workspace_change(now, w, &change);
    push(to, now);
    ui->message[0] = '\0';
    restore(ui, w);
    ui->defaults.causal = w->defaults.causal;
    if (!ui->message[0]) /* nothing went wrong */
        ui_say(ui, ROLE_DIM, "%s%s%s", undo ? "undone" : "redone", change.length ? ": " : "",
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
