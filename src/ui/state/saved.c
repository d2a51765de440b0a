/* saved.c -- between the screen and a state as a value; see saved.h. */
#include "ui/state/saved.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "ui/screen/compare.h"

void saved_init(Saved *saved)
{
    *saved = (Saved){ .choice = INPUT_CHOICE_DEFAULT, .defaults = REQUEST_INIT, .focus = 1 };
}

void saved_free(Saved *saved)
{
    for (int i = 0; i < saved->count; i++)
        request_free(&saved->panes[i].request);
    request_free(&saved->defaults);
    free(saved->spec);
    saved_init(saved);
}

/* ---- from the screen -------------------------------------------------------- */

static void take_screen(const Ui *ui, Saved *out)
{
    const Compare *c = &ui->compare;

    out->screen = (int)ui->screen;
    out->theme = (int)ui->theme;
    out->glyphs = (int)ui->glyphs;
    out->order = ui->browse.order;
    memcpy(out->filter, ui->browse.filter.text, sizeof(out->filter));
    memcpy(out->marked, ui->browse.marked, sizeof(out->marked));
    out->focus = c->focus + 1;
    out->linked = c->linked;
    out->alone = c->solo;
    out->difference = c->difference;
    out->labels = c->labels;
    out->strips = (int)c->strips;
    snprintf(out->layout, sizeof(out->layout), "%s", c->layout);
    out->effect = c->effect;
}

bool saved_take(const Ui *ui, Saved *out, Error *err)
{
    const char  *spec = session_input_spec(ui->session);
    const Input *input = session_input(ui->session);

    saved_init(out);
    take_screen(ui, out);
    out->choice = *session_choice(ui->session);
    if (spec && !(out->spec = strdup(spec)))
        return error_set(err, ERR_NOMEM, "not enough memory to save the session");
    if (input)
        memcpy(out->sha256, input->sha256, sizeof(out->sha256));
    if (!request_copy(&out->defaults, &ui->defaults, err))
        return false;
    for (int i = 0; i < ui->compare.count; i++, out->count++)
        if (!pane_take(&ui->compare.panes[i], &out->panes[i], err))
            return false;
    return true;
}

/* ---- back to the screen ----------------------------------------------------- */

/* It need not be read again when it is the one that is open. */
static bool load(Ui *ui, const char *spec, const InputChoice *choice, Error *err)
{
    const char        *now = session_input_spec(ui->session);
    const InputChoice *chosen = session_choice(ui->session);

    if (!spec || (now && !strcmp(now, spec) && chosen->layer == choice->layer &&
                  chosen->n == choice->n && chosen->d == choice->d &&
                  chosen->heads == choice->heads && chosen->seed == choice->seed))
        return true;
    return session_load(ui->session, spec, choice, err);
}

void saved_show_pane(Ui *ui, Pane *pane, PaneState *saved)
{
    bool same = request_same(&pane->request, &saved->request);

    pane_look(pane, saved);
    if (same)
        return;
    request_free(&pane->request);
    pane->request = saved->request;
    saved->request = REQUEST_INIT;
    pane->ask = false;
    compare_run(ui, pane);
}

static void show_pane(Ui *ui, PaneState *saved)
{
    Pane *pane = &ui->compare.panes[ui->compare.count++];

    *pane = (Pane){ .order_head = -1 };
    pane_look(pane, saved);
    saved->request.threads = ui->defaults.threads;
    saved->request.memory_limit = ui->defaults.memory_limit;
    pane_rerun(ui, pane, saved);
}

void saved_show_screen(Ui *ui, const Saved *saved)
{
    Compare *c = &ui->compare;

    ui->screen = (Screen)saved->screen;
    ui->theme = (Theme)saved->theme;
    ui->glyphs = (Glyphs)saved->glyphs;
    ui->browse.order = saved->order;
    field_set(&ui->browse.filter, saved->filter);
    memcpy(ui->browse.marked, saved->marked, sizeof(saved->marked));
    ui->defaults.causal = saved->defaults.causal;
    ui->defaults.seed = saved->defaults.seed;
    ui->defaults.ops = saved->defaults.ops;
    memcpy(ui->defaults.device, saved->defaults.device, sizeof(ui->defaults.device));
    memcpy(ui->defaults.precision, saved->defaults.precision, sizeof(ui->defaults.precision));
    c->focus = saved->focus <= c->count ? (int)saved->focus - 1 : 0;
    c->linked = saved->linked;
    c->solo = saved->alone && c->count > 1;
    c->difference = saved->difference && c->count > 1;
    c->labels = saved->labels;
    c->strips = (MarginKind)saved->strips;
    snprintf(c->layout, sizeof(c->layout), "%s", saved->layout);
    c->effect = saved->effect;
}

bool saved_show(Ui *ui, Saved *saved, const char *input, const InputChoice *choice, Error *err)
{
    const Input *now;

    history_note(ui);
    if (!load(ui, input ? input : saved->spec, choice ? choice : &saved->choice, err)) {
        history_drop(ui);
        return false;
    }
    compare_clear(ui);
    for (int i = 0; i < saved->count; i++)
        show_pane(ui, &saved->panes[i]);
    ui->layer_count = 0;
    saved_show_screen(ui, saved);
    now = session_input(ui->session);
    if (!input && saved->sha256[0] && now && strcmp(now->sha256, saved->sha256) != 0)
        ui_say(ui, ROLE_WARN, "%s is no longer what it was when the session was saved",
               now->name);
    return true;
}
