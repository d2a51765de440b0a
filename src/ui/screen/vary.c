/* vary.c -- one parameter of a pane at several values, run in the background.
 *
 * The points are jobs of the session, one after the other and only while nothing else
 * waits, so panes stay live; each is on the screen as soon as it is there.  Panes beside the
 * focused one are lines of the same plots.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"
#include "ui/state/workspace.h"
#include "ui/term/term.h"

#define USUAL_GOAL ((StudyGoal){ .quantity = STUDY_MASS, .bound = 0.95 })

static bool is_open(const Varying *v)
{
    return v->study.count > 0;
}

static void drop_sweep(Varying *v)
{
    study_free(&v->study);
    *v = (Varying){ .study = { .count = 0 } };
}

static void vary_end(Ui *ui)
{
    drop_sweep(&ui->varying);
}

static bool  vary_poll(Ui *ui);
static double value_now(Ui *ui);

/* The pane of the study; NULL: it was closed, or shows another mechanism. */
static Pane *vary_pane(Ui *ui)
{
    const Varying *v = &ui->varying;
    Pane          *pane = v->pane < ui->compare.count ? &ui->compare.panes[v->pane] : NULL;

    return pane && !strcmp(pane->request.mechanism, v->study.lines[v->main].request.mechanism)
               ? pane
               : NULL;
}

/* Cursor to a point. */
static void choose_point(Varying *v, int point)
{
    int order[AXIS_MOST];

    study_order(&v->study, order);
    for (int i = 0; i < v->study.axis.count; i++)
        if (order[i] == point)
            v->cursor = i;
}

/* ---- beginning -------------------------------------------------------------- */

static bool add_panes(Ui *ui, Varying *v, const Pane *first, Error *err)
{
    if (!study_add(&v->study, &first->request, err))
        return false;
    v->main = v->study.count - 1;
    for (int i = 0; i < ui->compare.count; i++) {
        const Request *request = &ui->compare.panes[i].request;
        bool           there = false;

        for (int k = 0; k < v->study.count; k++)
            there = there || request_same(&v->study.lines[k].request, request);
        if (!there && !request_same(request, &first->request) && !request->above &&
            !study_add(&v->study, request, err))
            return false;
    }
    return true;
}

/* At least one value is valid; otherwise the error of the first. */
static bool any_value(Ui *ui, const Varying *v, Error *err)
{
    Request request;

    for (int i = 0; i < v->study.axis.count; i++) {
        Error own = ERROR_INIT;

        if (study_request(&v->study, ui->session, v->main, i, &request, &own)) {
            bool can = workspace_check_request(&request, &own);

            request_free(&request);
            if (can)
                return true;
        }
        if (i == 0)
            *err = own;
    }
    return false;
}

static bool begin_sweep(Ui *ui, Pane *pane, const char *range, Error *err)
{
    Varying *v = &ui->varying;

    if (pane->request.above)
        return error_set(err, ERR_USAGE, "a stack of layers has no one parameter to vary");
    if (!study_open(&v->study, range, &pane->request, err))
        return false;
    if (!study_varies(&pane->request, v->study.axis.name))
        return error_set(err, ERR_PARAM, "%s has no parameter %s", pane->request.mechanism,
                         v->study.axis.name);
    v->pane = (int)(pane - ui->compare.panes);
    v->input = session_input(ui->session);
    v->cost = STUDY_FLOPS;
    if (!add_panes(ui, v, pane, err) || !any_value(ui, v, err))
        return false;
    for (int i = 0; i < v->study.axis.count; i++)
        if (study_x(&v->study, i) == value_now(ui))
            choose_point(v, i);
    return true;
}

/* goal: the value to find; NULL: only the plots. On failure the previous sweep stays. */
static bool start(Ui *ui, Pane *pane, const char *range, const StudyGoal *goal)
{
    Varying *v = &ui->varying, before = *v;
    Error    err = ERROR_INIT;

    if (!pane) {
        ui_say(ui, ROLE_WARN, "no pane is open");
        return false;
    }
    *v = (Varying){ .study = { .count = 0 } };
    if (!begin_sweep(ui, pane, range, &err)) {
        drop_sweep(v);
        *v = before;
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        return false;
    }
    drop_sweep(&before);
    v->seeks = goal != NULL;
    v->goal = goal ? *goal : USUAL_GOAL;
    v->loss = goal ? goal->quantity : STUDY_ERROR;
    if (!ui_has(ui, SCREEN_VARY))
        ui_push(ui, SCREEN_VARY);
    vary_poll(ui);
    return true;
}

void vary_enter(Ui *ui, const char *range)
{
    start(ui, panes_focus(ui), range, NULL);
}

void vary_enter_goal(Ui *ui, const char *line)
{
    StudyGoal goal = USUAL_GOAL;
    Error     err = ERROR_INIT;
    char      text[512], *share;

    snprintf(text, sizeof(text), "%s", line);
    share = strrchr(text, ' ');
    if (share && !goal_parse(share + 1, &goal, &err)) {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        return;
    }
    text[strcspn(text, " ")] = '\0';
    start(ui, panes_focus(ui), text, &goal);
}

static bool vary_param(Ui *ui, int at, const Param *param, bool seek)
{
    Pane             *pane = at < ui->compare.count ? &ui->compare.panes[at] : NULL;
    const Assignment *given = pane ? assignments_find(&pane->request.given, param->name) : NULL;
    const Input      *input = session_input(ui->session);
    StudyGoal         goal = USUAL_GOAL;
    Text              range = { 0 }, now = { 0 };
    bool              ok;

    if (given && given->text)
        text_add(&now, given->text);
    else
        params_print(param, NULL, &now);
    ok = axis_usual(param, text_str(&now), input ? input->n : 1, seek, &range);
    if (ok) {
        ok = start(ui, pane, text_str(&range), seek ? &goal : NULL);
        ui->varying.closes_in = ok && seek;
    } else {
        ui_say(ui, ROLE_DIM, "%s has no usual range; :vary %s=VALUES names one", param->name,
               param->name);
    }
    text_free(&range);
    text_free(&now);
    return ok;
}

/* The first parameter that is a number: what most mechanisms are tuned by. */
static const Param *first_number(const Pane *pane)
{
    const Mechanism *m = mechanism_find(pane->request.mechanism);

    for (const Param *p = m->params; p && p->name; p++)
        if (p->type == PARAM_TYPE_INT)
            return p;
    return NULL;
}

void vary_first(Ui *ui, int seek)
{
    Pane        *pane = panes_focus(ui);
    const Param *param = pane ? first_number(pane) : NULL;

    if (!pane)
        ui_say(ui, ROLE_WARN, "no pane is open");
    else if (!param)
        ui_say(ui, ROLE_DIM, "%s has no number to vary; :vary NAME=VALUES names a parameter",
               pane->request.mechanism);
    else
        vary_param(ui, ui->compare.now.focus, param, seek);
}

/* The sweep belongs to this pane and input. */
static bool is_of(Ui *ui, const Pane *pane)
{
    const Varying *v = &ui->varying;

    return pane && is_open(v) && v->pane == ui->compare.now.focus &&
           v->input == session_input(ui->session) &&
           !strcmp(v->study.lines[v->main].request.mechanism, pane->request.mechanism);
}

void action_vary(Ui *ui)
{
    if (is_of(ui, panes_focus(ui)))
        ui_push(ui, SCREEN_VARY);
    else
        vary_first(ui, false);
}

/* ---- running ---------------------------------------------------------------- */

static void set_value(Ui *ui, int point)
{
    Varying    *v = &ui->varying;
    Pane       *pane = vary_pane(ui);
    Error       err = ERROR_INIT;
    const char *value = v->study.axis.values[point];
    char        assignment[320];

    if (!pane) {
        ui_say(ui, ROLE_WARN, "the pane of %s is closed", v->study.lines[v->main].name);
        return;
    }
    snprintf(assignment, sizeof(assignment), "%s=%s", v->study.axis.name, value);
    history_note(ui);
    if (!request_set(ui->session, &pane->request, assignment, &err)) {
        history_drop(ui);
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        return;
    }
    panes_run(ui, pane);
    ui_say(ui, ROLE_GOOD, "%s; u undoes", assignment);
}

static void answer(Ui *ui)
{
    Varying *v = &ui->varying;
    int      at = study_smallest(&v->study, v->main, &v->goal);
    Text     text = { 0 };

    v->seeks = false;
    study_answer(&v->study, v->main, &v->goal, &text);
    if (at >= 0) {
        choose_point(v, at);
        set_value(ui, at);
    }
    ui_say(ui, at >= 0 ? ROLE_GOOD : ROLE_WARN, "%s%s", text_str(&text),
           at >= 0 ? "; u undoes" : "");
    text_free(&text);
}

/* Adds a value between the last that fails and the first that passes; true: it runs next. */
static bool closes_in(Ui *ui)
{
    Varying *v = &ui->varying;
    Error    ignored = ERROR_INIT;

    v->reported = !study_refine(&v->study, v->main, &v->goal, &ignored);
    return !v->reported;
}

static void finish(Ui *ui)
{
    Varying *v = &ui->varying;

    v->reported = true;
    if (v->seeks && v->closes_in && closes_in(ui))
        return;
    if (v->seeks)
        answer(ui);
    else if (!ui_has(ui, SCREEN_VARY))
        ui_say(ui, ROLE_GOOD, "%s over %s is there: Ctrl-V in its pane shows it",
               v->study.lines[v->main].name, v->study.axis.name);
}

static bool vary_poll(Ui *ui)
{
    Varying *v = &ui->varying;
    JobState state = v->study.job ? job_state(v->study.job) : JOB_DONE;
    bool     changed = false;

    if (!is_open(v) || state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    if (v->study.job) {
        v->stopped = !study_end(&v->study) || v->stopped;
        changed = true;
    }
    if (v->input != session_input(ui->session))
        v->stopped = true;
    if (!v->stopped && !v->study.job && !session_busy(ui->session))
        study_begin(&v->study, ui->session);
    if (!v->stopped && !v->reported && !v->study.job && !study_next(&v->study)) {
        finish(ui);
        changed = true;
        if (!v->reported)
            vary_poll(ui);
    }
    return changed;
}

static bool vary_cancel(Ui *ui)
{
    Varying *v = &ui->varying;
    bool     runs = is_open(v) && !v->stopped && study_next(&v->study);

    if (!runs)
        return false;
    if (v->study.job)
        job_cancel(v->study.job);
    else
        v->stopped = true;
    v->seeks = false;
    return true;
}

/* "features: 3 of 6, performer at 64   Ctrl-C cancels"; false: nothing runs. */
static bool vary_progress(const Ui *ui, char *text, size_t size)
{
    const Varying   *v = &ui->varying;
    const StudyLine *line = &v->study.lines[v->study.line];
    int              all, done = is_open(v) ? study_done(&v->study, &all) : 0;
    char             point[160];

    if (!is_open(v) || !v->study.job)
        return false;
    snprintf(point, sizeof(point), "%s: %d of %d, %s%s%s", v->study.axis.name, done + 1, all,
             line->name, line->fixed ? "" : " at ",
             line->fixed ? "" : v->study.axis.values[v->study.point]);
    snprintf(text, size, "%s   %s", point,
             ui_has(ui, SCREEN_VARY) ? "Esc stops" : "Ctrl-C cancels");
    return true;
}

/* ---- actions ---------------------------------------------------------------- */

static void vary_set(Ui *ui)
{
    int order[AXIS_MOST];

    if (!is_open(&ui->varying))
        return;
    study_order(&ui->varying.study, order);
    set_value(ui, order[ui->varying.cursor]);
    ui_pop(ui);
}

static void vary_smallest(Ui *ui)
{
    Varying *v = &ui->varying;

    v->goal = USUAL_GOAL;
    v->seeks = true;
    v->loss = STUDY_MASS;
    v->closes_in = true;
    v->stopped = v->reported = false;
    vary_poll(ui);
}

/* Drawing: loss and cost beside each other, and the numbers at the cursor. */

#define STACKED_BELOW 72 /* columns; a narrower screen shows the plots above each other */

/* The parameter's value in the pane, as it is written. */
static void write_now(const Pane *pane, const char *name, Text *out)
{
    const Mechanism  *m = mechanism_find(pane->request.mechanism);
    const Assignment *given = assignments_find(&pane->request.given, name);
    const Param      *param = m ? mechanism_param(m, &pane->request.given, name) : NULL;

    if (given)
        text_add(out, given->text);
    else if (!strcmp(name, "position"))
        text_add(out, pane->request.position);
    else if (param)
        params_print(param, NULL, out);
}

static double value_now(Ui *ui)
{
    const Varying *v = &ui->varying;
    const Axis    *vary = &v->study.axis;
    const Pane    *pane = vary_pane(ui);
    Text           now = { 0 };
    double         place = (double)NAN;
    char          *end;

    if (!pane)
        return place;
    write_now(pane, vary->name, &now);
    if (!v->study.words && now.length) {
        place = strtod(text_str(&now), &end);
        place = *end ? (double)NAN : place;
    }
    for (int i = 0; i < vary->count; i++)
        if (!strcmp(vary->values[i], text_str(&now)))
            place = study_x(&v->study, i);
    text_free(&now);
    return place;
}

static void draw_sweep_plot(Ui *ui, StudyQuantity quantity, double now, int cursor, Area area)
{
    Varying     *v = &ui->varying;
    StudyLook    look = { .quantities = { quantity }, .count = 1, .now = now, .cursor = cursor,
                          .unsigned_names = true };
    StudyPicture picture;
    Error        err = ERROR_INIT;
    Plot        *plot;

    if (v->goal.quantity == quantity && (v->seeks || quantity == STUDY_MASS))
        look.goal = &v->goal;
    if (!study_picture(&v->study, &look, &picture, &err)) {
        bool        rest = study_next(&v->study);
        const char *text = !rest        ? err.text
                           : v->stopped ? "stopped: nothing to plot yet"
                                        : "running\xe2\x80\xa6";

        term_paragraph(ui->term, (Area){ area.y + 1, area.x, area.h - 1, area.w }, text,
                       ui_style(ui, rest && !v->stopped ? ROLE_DIM : ROLE_WARN));
        return;
    }
    plot = panel_plot(&picture.figure->panels[0], &err);
    if (plot)
        plot_draw(ui, plot, area);
    plot_free(plot);
    study_picture_free(&picture);
}

/* "features=64: error 0.92, mass n/a, FLOPs 6.6 M" */
static void draw_numbers(Ui *ui, int point, Area area)
{
    static const struct {
        const char   *name;
        StudyQuantity quantity;
    } shown[] = { { "error", STUDY_ERROR }, { "mass", STUDY_MASS },     { "TV", STUDY_VARIATION },
                  { "FLOPs", STUDY_FLOPS }, { "time", STUDY_TIME }, { "memory", STUDY_MEMORY } };
    Varying          *v = &ui->varying;
    const StudyPoint *p = study_at(&v->study, v->main, point);
    int               x = area.x;
    char              text[32];

    x += term_textf(ui->term, area.y, x, area.w, ui_style(ui, ROLE_KEY), "%s=%s",
                    v->study.axis.name, v->study.axis.values[point]) + 2;
    if (p->problem[0]) {
        term_text(ui->term, area.y, x, area.x + area.w - x, p->problem, ui_style(ui, ROLE_ERROR));
        return;
    }
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown) && x < area.x + area.w - 8; i++) {
        if (!p->value[shown[i].quantity].valid)
            continue;
        x += term_textf(ui->term, area.y, x, area.x + area.w - x, ui_style(ui, ROLE_TEXT), "%s %s",
                        shown[i].name, quantity_text(shown[i].quantity,
                                                     p->value[shown[i].quantity], text,
                                                     sizeof(text))) + 2;
    }
    if (!p->done)
        term_text(ui->term, area.y, x, area.x + area.w - x, "not run yet", ui_style(ui, ROLE_DIM));
}

static void draw_plots(Ui *ui, Area inside)
{
    Varying *v = &ui->varying;
    int      order[AXIS_MOST];
    double   now = value_now(ui);
    Area     left = { inside.y, inside.x, inside.h - 2, (inside.w - 2) / 2 }, right = left;

    study_order(&v->study, order);
    if (inside.w < STACKED_BELOW) {
        left = (Area){ inside.y, inside.x, (inside.h - 2) / 2, inside.w };
        right = (Area){ left.y + left.h, left.x, left.h, left.w };
    } else {
        right.x += left.w + 2;
    }
    draw_sweep_plot(ui, v->loss, now, order[v->cursor], left);
    draw_sweep_plot(ui, v->cost, now, order[v->cursor], right);
    draw_numbers(ui, order[v->cursor], (Area){ inside.y + inside.h - 1, inside.x, 1, inside.w });
}

static void vary_draw(Ui *ui, Area screen)
{
    Varying *v = &ui->varying;
    Area     area = ui_whole(ui);
    char     title[200];

    (void)screen;
    if (!v->study.count)
        return;
    snprintf(title, sizeof(title), "approximation beside cost: %s over %s",
             v->study.lines[v->main].name, v->study.axis.name);
    ui_window(ui, area, title);
    draw_plots(ui, (Area){ area.y + 1, area.x + 2, area.h - 2, area.w - 4 });
}

/* Esc first stops what runs, then closes. */
static bool vary_key(Ui *ui, uint32_t key)
{
    if (key != K_ESCAPE || !vary_cancel(ui))
        return false;
    ui_say(ui, ROLE_WARN, "stopped; Esc closes");
    return true;
}

static void move_point(Ui *ui, int by)
{
    Varying *v = &ui->varying;
    int      to = v->cursor + by;

    if (v->study.count > 0 && to >= 0 && to < v->study.axis.count)
        v->cursor = to;
}

static void vary_loss(Ui *ui)
{
    StudyQuantity *loss = &ui->varying.loss;

    *loss = *loss == STUDY_ERROR ? STUDY_MASS : *loss == STUDY_MASS ? STUDY_VARIATION : STUDY_ERROR;
}

/* Measured costs need new runs. */
static void vary_cost(Ui *ui)
{
    Varying *v = &ui->varying;

    v->cost = v->cost == STUDY_FLOPS ? STUDY_TIME : v->cost == STUDY_TIME ? STUDY_MEMORY
                                                                           : STUDY_FLOPS;
    if (!quantity_is_measured(v->cost) || v->study.measure)
        return;
    v->study.measure = true;
    for (int i = 0; i < v->study.count; i++)
        for (int p = 0; p < study_points(&v->study, i); p++)
            v->study.lines[i].points[p].done = false;
    v->stopped = v->reported = false;
    vary_poll(ui);
}

static void vary_export(Ui *ui)
{
    Varying  *v = &ui->varying;
    StudyLook look = { .quantities = { v->loss, v->cost }, .count = 2 };
    Text      line = { 0 };

    if (v->study.count <= 0)
        return;
    study_command(&v->study, ui->session, &look, &line);
    text_addf(&line, " -o %s-%s.png", v->study.lines[v->main].request.mechanism,
              v->study.axis.name);
    ui_prompt(ui, text_str(&line));
    text_free(&line);
}

/* The sweep that starts here opens the overlay itself. */
static bool vary_open(Ui *ui)
{
    Varying     *v = &ui->varying;
    const Param *param = v->wanted;

    v->wanted = NULL;
    if (param)
        vary_param(ui, v->wanted_of, param, v->wanted_seeks);
    return !param;
}

static bool vary_runs(const Ui *ui)
{
    return ui->varying.study.job != NULL;
}

static const Action own[] = {
    { "vary_left", "h Left", IN_VARY, "=arrows move", "value to the left",
      .run_with = move_point, .value = -1 },
    { "vary_right", "l Right", IN_VARY, "", "value to the right",
      .run_with = move_point, .value = 1 },
    { "vary_set", "Enter", IN_VARY, "set",
      "set the parameter to this value and close; u undoes it", .run = vary_set },
    { "vary_smallest", "S", IN_VARY, "keep 95 %",
      "set the smallest value that keeps 95 % of the mass; between the values of a list, too",
      .run = vary_smallest },
    { "vary_loss", "m", IN_VARY, "loss",
      "left plot: output error, mass kept, total variation", .run = vary_loss },
    { "vary_cost", "c", IN_VARY, "cost",
      "right plot: FLOPs, time, own memory (the last two are measured)", .run = vary_cost },
    { "vary_export", "e", IN_VARY, "export",
      "the command that writes these plots as a figure, to be run", .run = vary_export },
};

const Screen screen_vary = {
    .mode = "VARY",
    .scope = IN_VARY,
    .draw = vary_draw,
    .key = vary_key,
    .open = vary_open,
    .escape = "stop, close",
    .poll = vary_poll,
    .runs = vary_runs,
    .cancel = vary_cancel,
    .progress = vary_progress,
    .end = vary_end,
    SCREEN_ACTIONS(own),
};
