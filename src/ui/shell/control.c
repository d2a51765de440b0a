/* control.c -- what a script does with the explorer; see shell.h.
 *
 * A script does what a user does: typed lines, actions, keys, and settings as in a saved
 * session. The docked console is closed meanwhile, so that it does not take the keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/plan.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"

/* ---- the console does not take a script's keys ------------------------------ */

static bool set_aside(Ui *ui)
{
    for (int i = 0; i < ui->overlay_count; i++)
        if (ui->overlays[i] == SCREEN_CONSOLE) {
            memmove(&ui->overlays[i], &ui->overlays[i + 1],
                    (size_t)(ui->overlay_count - i - 1) * sizeof(*ui->overlays));
            ui->overlay_count--;
            return true;
        }
    return false;
}

/* The console goes below overlays opened meanwhile. */
static void bring_back(Ui *ui, bool was_there)
{
    if (!was_there || ui->overlay_count == OVERLAYS_MOST)
        return;
    memmove(&ui->overlays[1], &ui->overlays[0],
            (size_t)ui->overlay_count * sizeof(*ui->overlays));
    ui->overlays[0] = SCREEN_CONSOLE;
    ui->overlay_count++;
}

/* Turns an error message on the screen into an error. */
static bool nothing_refused(Ui *ui, Error *err)
{
    return !ui->message[0] || ui->message_role != ROLE_ERROR ||
           error_set(err, ERR_UNSUPPORTED, "%s", ui->message);
}

/* ---- what a user does ------------------------------------------------------- */

static const char *control_input(void *context, InputChoice *choice)
{
    Ui *ui = context;

    *choice = *session_choice(ui->session);
    return session_input_spec(ui->session);
}

static bool control_enter(void *context, const char *line, Error *err)
{
    Ui  *ui = context;
    bool console = set_aside(ui);

    ui->message[0] = '\0';
    command_enter(ui, line);
    bring_back(ui, console);
    ui->dirty = true;
    return nothing_refused(ui, err);
}

static bool control_act(void *context, const char *id, Error *err)
{
    Ui           *ui = context;
    const Action *action = action_find(id);
    bool          console;

    if (!action)
        return error_set(err, ERR_USAGE, "there is no action '%.60s'; Ctrl-P lists them", id);
    console = set_aside(ui);
    ui->message[0] = '\0';
    if (action->scope & ui_scope(ui))
        action_run(ui, action);
    else
        error_set(err, ERR_UNSUPPORTED, "the action %s does nothing here", id);
    bring_back(ui, console);
    ui->dirty = true;
    return err->code == ERR_NONE && nothing_refused(ui, err);
}

static bool control_press(void *context, const char *keys, Error *err)
{
    Ui  *ui = context;
    bool console = set_aside(ui), ok = true;

    while (ok && *(keys += strspn(keys, " "))) {
        size_t   length = strcspn(keys, " ");
        uint32_t key = key_parse(keys, length);

        ok = key || error_set(err, ERR_USAGE, "'%.*s' is no key; as in the list of keys: j, Up, "
                              "C-p, S-Tab", (int)(length < 40 ? length : 40), keys);
        if (ok)
            explorer_key(ui, key);
        keys += length;
    }
    bring_back(ui, console);
    ui->dirty = true;
    return ok;
}

static void control_say(void *context, const char *text)
{
    ui_say(context, ROLE_TEXT, "%s", text);
    ((Ui *)context)->dirty = true;
}

static bool control_busy(void *context)
{
    Ui *ui = context;

    return ui->dirty || ui_job_runs(ui);
}

static void control_leave(void *context)
{
    ((Ui *)context)->quit = true;
}

/* Alone, as a layer, or as the attention inside of one. */
static bool runs_mechanism(const Request *r, const Mechanism *wanted)
{
    for (; r; r = r->above) {
        const Mechanism *m = mechanism_find(r->mechanism);

        if (m == wanted || (m && mechanism_inner(m, &r->given) == wanted))
            return true;
    }
    return false;
}

static void control_redefined(void *context, const char *id)
{
    Ui              *ui = context;
    const Mechanism *m = mechanism_find(id);

    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->forget)
            ui->screens[i]->forget(ui, m);
    for (int i = 0; i < ui->compare.count; i++)
        if (runs_mechanism(&ui->compare.panes[i].request, m))
            pane_run(ui, &ui->compare.panes[i]);
    ui->dirty = true;
}

static bool control_ask(void *context, const char *question, Error *err)
{
    Ui *ui = context;

    if (ui_has(ui, SCREEN_ASK))
        return error_set(err, ERR_UNSUPPORTED, "another question is open");
    ui_open(ui, SCREEN_ASK);
    snprintf(ui->prompt.choices, sizeof(ui->prompt.choices), "%s", question);
    ui->dirty = true;
    return true;
}

static bool control_write(void *context, const char *path, Error *err)
{
    Ui *ui = context;

    ui->message[0] = '\0';
    export_start(ui, path);
    ui->export.problem[0] = '\0'; /* the dialogue must not show the script's error */
    ui->dirty = true;
    return nothing_refused(ui, err);
}

static bool control_map(void *context, const char *where, const char *key, const char *action,
                      int function, Error *err)
{
    return console_map(context, where, key, action, function, err);
}

static bool control_command(void *context, const char *name, const char *help, int function,
                            Error *err)
{
    return console_command(context, name, help, function, err);
}

/* ---- settings --------------------------------------------------------------- */

static bool set_step(Ui *ui, const char *value, Error *err)
{
    char *end;
    long  at = strtol(value, &end, 10);
    Step  step;

    if (end == value || *end || at < 0 || at > 100000)
        return error_set(err, ERR_PARAM, "step: expected a stage from 0, got '%.40s'", value);
    ui->screen = SCREEN_STEP;
    if (!stepping_now(ui, &step))
        return error_set(err, ERR_PARAM, "step: nothing has run here yet; ui.wait() waits for it");
    if (at >= step.count)
        return error_set(err, ERR_PARAM, "step: the last stage is %d, got %ld", step.count - 1,
                         at);
    step_go(ui, (int)at);
    return true;
}

static bool set_playing(Ui *ui, const char *value, Error *err)
{
    Step step;

    ui->stepping.playing = false;
    if (strcmp(value, "yes") != 0)
        return true;
    ui->screen = SCREEN_STEP;
    if (!stepping_now(ui, &step))
        return error_set(err, ERR_PARAM, "playing: nothing has run here yet; ui.wait() waits for "
                         "it");
    stepping_start(ui, &step);
    return true;
}

static bool set_pace(Ui *ui, const char *value, Error *err)
{
    char  *end;
    double seconds = strtod(value, &end);

    if (end == value || *end || !(seconds >= 0.01 && seconds <= 3600))
        return error_set(err, ERR_PARAM, "pace: expected seconds a stage from 0.01 to 3600, got "
                         "'%.40s'", value);
    ui->stepping.pace = seconds;
    return true;
}

static bool set_other(Ui *ui, const char *name, const char *value, Error *err)
{
    Workspace saved;
    bool  ok = workspace_take(ui, &saved, err) && workspace_set(&saved, name, value, err);

    if (ok)
        workspace_show_screen(ui, &saved);
    workspace_free(&saved);
    return ok;
}

static bool control_set(void *context, const char *name, const char *value, Error *err)
{
    Ui  *ui = context;
    bool ok = true;

    ui->dirty = true;
    if (!strcmp(name, "step"))
        ok = set_step(ui, value, err);
    else if (!strcmp(name, "playing"))
        ok = set_playing(ui, value, err);
    else if (!strcmp(name, "pace"))
        ok = set_pace(ui, value, err);
    else
        ok = set_other(ui, name, value, err);
    return ok;
}

static bool control_get(void *context, Text *out, Error *err)
{
    Ui   *ui = context;
    Workspace saved;
    bool  ok = workspace_take(ui, &saved, err);

    if (ok) {
        text_addf(out, "linked %s\nplaying %s\nstep %d\n", ui->compare.now.linked ? "yes" : "no",
                  ui->stepping.playing ? "yes" : "no", ui->stepping.at);
        workspace_write_fields(&saved, out);
    }
    workspace_free(&saved);
    return ok;
}

/* ---- panes ------------------------------------------------------------------ */

static Pane *pane_at(Ui *ui, int number, Error *err)
{
    if (number >= 1 && number <= ui->compare.count)
        return &ui->compare.panes[number - 1];
    error_set(err, ERR_UNSUPPORTED, "there is no pane %d: %d %s open", number, ui->compare.count,
              ui->compare.count == 1 ? "is" : "are");
    return NULL;
}

static int control_panes(void *context, int *focus)
{
    Ui *ui = context;

    *focus = ui->compare.count ? ui->compare.now.focus + 1 : 0;
    return ui->compare.count;
}

static int control_pane_open(void *context, const char *text, Error *err)
{
    Ui *ui = context;

    ui->message[0] = '\0';
    history_note(ui);
    if (!panes_open(ui, text)) {
        history_drop(ui);
        nothing_refused(ui, err);
        if (err->code == ERR_NONE)
            error_set(err, ERR_UNSUPPORTED, "%s", ui->message);
        return 0;
    }
    ui->screen = SCREEN_COMPARE;
    ui->dirty = true;
    return ui->compare.count;
}

static bool control_pane_close(void *context, int number, Error *err)
{
    Ui *ui = context;

    if (!pane_at(ui, number, err))
        return false;
    ui->compare.now.focus = number - 1;
    ui->dirty = true;
    history_note(ui);
    panes_close_one(ui, ui->compare.now.focus);
    return true;
}

/* A setting of the pane, its mechanism, or else a parameter. */
static bool set_in_pane(Ui *ui, PaneState *pane, const char *name, const char *value, Error *err)
{
    Text text = { 0 };
    bool ok;

    if (!strcmp(name, "mechanism") && mechanism_find(value))
        return request_example(ui->session, &pane->request, mechanism_find(value), err);
    if (!strcmp(name, "mechanism"))
        return request_parse(ui->session, &pane->request, value, err);
    if (workspace_pane_has(name))
        return workspace_set_pane(pane, name, value, err);
    text_addf(&text, "%s=%s", name, value);
    ok = text_ok(&text) ? request_set(ui->session, &pane->request, text_str(&text), err)
                        : error_set(err, ERR_NOMEM, "not enough memory for a parameter");
    text_free(&text);
    return ok;
}

static bool is_named(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* Applies device and precision if they were set; a pane that moves to the CPU drops the precision
 * it had on a GPU. */
static bool settle_place(Ui *ui, Request *request, const char *const *names, int count, Error *err)
{
    bool precision = is_named(names, count, "precision"), device = is_named(names, count, "device");

    if (!precision && !device)
        return true;
    if (!precision && !strcmp(request->device, "cpu"))
        request->precision[0] = '\0';
    return request_device(ui->session, request, request->device, request->precision, err);
}

static bool control_pane_set(void *context, int number, const char *const *names,
                           const char *const *values, int count, Error *err)
{
    Ui       *ui = context;
    Pane     *pane = pane_at(ui, number, err);
    PaneState saved = { .request = REQUEST_INIT };
    bool      ok = pane && pane_take(pane, &saved, err);

    for (int pass = 0; ok && pass < 2; pass++) /* a mechanism before its parameters */
        for (int i = 0; ok && i < count; i++)
            if (!strcmp(names[i], "mechanism") == !pass)
                ok = set_in_pane(ui, &saved, names[i], values[i], err);
    ok = ok && settle_place(ui, &saved.request, names, count, err);
    if (ok && is_named(names, count, "view"))
        ok = view_name_check(mechanism_find(saved.request.mechanism), saved.spec.view, err);
    if (ok && workspace_check_request(&saved.request, err)) {
        history_note(ui);
        workspace_show_pane(ui, pane, &saved);
        ui->compare.now.focus = number - 1;
        panes_link(ui);
    }
    request_free(&saved.request);
    ui->dirty = true;
    return err->code == ERR_NONE;
}

static bool control_pane_get(void *context, int number, Text *out, Error *err)
{
    Ui         *ui = context;
    Pane       *pane = pane_at(ui, number, err);
    PaneState   saved = { .request = REQUEST_INIT };
    const View *view;
    int64_t     q = 0, k = 0;

    if (!pane || !pane_take(pane, &saved, err)) {
        request_free(&saved.request);
        return false;
    }
    view = pane_view(pane);
    text_add(out, "mechanism ");
    request_text(&pane->request, out);
    text_addf(out, "\nrunning %s\nheads %lld\n", pane->job ? "yes" : "no",
              (long long)pane_heads(pane));
    if (pane->problem[0])
        text_addf(out, "problem %s\n", pane->problem);
    workspace_write_pane(&saved, "", out);
    if (view) {
        pane_cursor(pane, &q, &k);
        text_addf(out, "view %s\nhead %lld\nquery %lld\nkey %lld\n", view->name,
                  (long long)pane->spec.head, (long long)q, (long long)k);
    }
    request_free(&saved.request);
    return true;
}

static bool control_pane_zoom(void *context, int number, const Region *region, Error *err)
{
    Ui   *ui = context;
    Pane *pane = pane_at(ui, number, err);

    if (!pane)
        return false;
    if (!pane->shape.rows)
        return error_set(err, ERR_UNSUPPORTED, "pane %d is not on the screen yet: ui.wait() first",
                         number);
    history_note(ui);
    pane->lens.zoom = 0;
    if (region)
        lens_show(&pane->lens, &pane->shape, *region);
    ui->compare.now.focus = number - 1;
    panes_link(ui);
    ui->dirty = true;
    return true;
}

static bool control_mark(void *context, const int64_t *queries, int count, Error *err)
{
    Ui    *ui = context;
    Marks *marks = &ui->compare.marks;

    history_note(ui);
    marks_clear(marks);
    for (int i = 0; i < count; i++)
        if (!marks_has(marks, queries[i]) && !marks_toggle(marks, queries[i]))
            return error_set(err, ERR_UNSUPPORTED, "at most %d queries can be marked",
                             MARGIN_QUERIES_MOST);
    ui->dirty = true;
    return true;
}

void control_fill(Ui *ui, Control *control)
{
    *control = (Control){
        .ui = ui,
        .input = control_input,
        .enter = control_enter,
        .act = control_act,
        .press = control_press,
        .say = control_say,
        .busy = control_busy,
        .set = control_set,
        .get = control_get,
        .panes = control_panes,
        .pane_open = control_pane_open,
        .pane_close = control_pane_close,
        .pane_set = control_pane_set,
        .pane_get = control_pane_get,
        .pane_zoom = control_pane_zoom,
        .mark = control_mark,
        .map = control_map,
        .command = control_command,
        .redefined = control_redefined,
        .ask = control_ask,
        .write = control_write,
        .leave = control_leave,
    };
}
