/* explorer.c -- the loop: events, finished jobs, one frame; and the actions of all screens. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/shell/explorer.h"

#include "ui/screen/profile.h"
#include "ui/shell/actions.h"
#include "ui/shell/console.h"
#include "ui/state/journal.h"
#include "ui/term/term.h"

#define FIRST_ANSWER 12 /* ms a frame waits for a drawing that comes at once */

double ui_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

Style ui_style(const Ui *ui, Role role)
{
    return theme_style(ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme, role);
}

/* ---- layers ----------------------------------------------------------------- */

void ui_push(Ui *ui, const Layer *layer)
{
    int most = sizeof(ui->layers) / sizeof(*ui->layers);

    if (ui->layer_count < most)
        ui->layers[ui->layer_count++] = layer;
}

void ui_pop(Ui *ui)
{
    if (ui->layer_count)
        ui->layer_count--;
}

bool ui_has(const Ui *ui, const Layer *layer)
{
    for (int i = 0; i < ui->layer_count; i++)
        if (ui->layers[i] == layer)
            return true;
    return false;
}

unsigned ui_screen_scope(const Ui *ui)
{
    if (lessons_focused(ui))
        return IN_LESSON;
    switch (ui->screen) {
    case SCREEN_LESSONS: return IN_LESSONS;
    case SCREEN_BROWSE: return ui->browse.filtering ? IN_FILTER : IN_BROWSE;
    case SCREEN_COMPARE: return ui->compare.count ? IN_COMPARE : IN_EMPTY;
    case SCREEN_STEP: return ui->compare.count ? IN_STEP : IN_EMPTY;
    default: return IN_PROFILE;
    }
}

unsigned ui_scope(const Ui *ui)
{
    return ui->layer_count ? ui->layers[ui->layer_count - 1]->scope : ui_screen_scope(ui);
}

bool ui_job_runs(const Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].job || ui->compare.panes[i].measuring)
            return true;
    return ui->command.work || ui->export.work || ui->varying.job || ui->profiling.work ||
           scaling_runs(ui);
}

/* ---- a frame ---------------------------------------------------------------- */

Area ui_area(const Ui *ui)
{
    int left = lessons_docked(ui) ? lesson_width(ui) : 0;

    return (Area){ 1, left, ui->term->rows - 3 - console_height(ui), ui->term->cols - left };
}

#define CANCELLING "cancelling\xe2\x80\xa6"

static bool poll_jobs(Ui *ui)
{
    bool changed = compare_poll(ui);

    changed |= step_poll(ui);
    changed |= profile_poll(ui);
    changed |= browse_poll(ui);
    changed |= command_poll(ui);
    changed |= export_poll(ui);
    changed |= vary_poll(ui);
    changed |= overview_poll(ui);
    changed |= lesson_poll(ui);
    draughtsman_sweep(&ui->draughtsman);
    if (changed && !strcmp(ui->message, CANCELLING) && !ui_job_runs(ui))
        ui_say(ui, ROLE_DIM, "cancelled; what is there stays");
    return changed;
}

static bool first_answers_pending(const Ui *ui)
{
    for (int i = 0; i < ui->compare.count; i++)
        if (ui->compare.panes[i].area.h && drawing_pending(&ui->compare.panes[i].drawing))
            return true;
    return ui->screen == SCREEN_STEP && step_pending(ui);
}

static void drain(int fd)
{
    char bytes[64];

    while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

/* Most drawings are done in a few milliseconds: better one frame with them than
 * two, the first with a stretched old picture. */
static void wait_for_answers(Ui *ui)
{
    double until = ui_now() + FIRST_ANSWER / 1000.0;

    while (first_answers_pending(ui) && ui_now() < until) {
        struct timespec pause = { .tv_nsec = 500000 };

        nanosleep(&pause, NULL);
        compare_poll(ui);
        step_poll(ui);
    }
}

static void prepare(Ui *ui, Area area)
{
    if (ui->screen == SCREEN_COMPARE)
        compare_prepare(ui, area);
    else
        step_prepare(ui, area);
}

static void draw_screen(Ui *ui, Area area)
{
    switch (ui->screen) {
    case SCREEN_BROWSE: browse_draw(ui, area); break;
    case SCREEN_COMPARE: compare_draw(ui, area); break;
    case SCREEN_STEP: step_draw(ui, area); break;
    case SCREEN_LESSONS: lessons_draw(ui, area); break;
    default: profile_draw(ui, area);
    }
}

static void draw(Ui *ui)
{
    Area area = ui_area(ui), dock = { area.y, 0, area.h, area.x };

    if ((ui->screen == SCREEN_COMPARE || ui->screen == SCREEN_STEP) && ui->term->rows > 8 &&
        area.w) {
        prepare(ui, area);
        wait_for_answers(ui);
        prepare(ui, area); /* results may have come meanwhile */
    }
    term_clear(ui->term, (Style){ 0 });
    if (status_draw(ui)) {
        if (area.w)
            draw_screen(ui, area);
        if (dock.w)
            lesson_draw(ui, dock);
        for (int i = 0; i < ui->layer_count; i++)
            ui->layers[i]->draw(ui);
        status_draw_long(ui);
    }
    term_flush(ui->term);
    ui->dirty = false;
}

/* ---- events ----------------------------------------------------------------- */

/* Where nothing can be shown nothing is done blindly: what the screen offers, and no more. */
static void key_unseen(Ui *ui, uint32_t key)
{
    if (key == 'q' || key == 'Q')
        ui->quit = true;
    else if (key == K_CONTROL('C') || key == K_CONTROL('Z') || key == K_CONTROL('L'))
        action_of_key(IN_ALL, key)->run(ui);
}

void explorer_key(Ui *ui, uint32_t key)
{
    const Layer  *top = ui->layer_count ? ui->layers[ui->layer_count - 1] : NULL;
    const Action *action;

    if (top ? top->key && top->key(ui, key)
            : lessons_focused(ui) ? lessons_key(ui, key)
                                  : ui->screen == SCREEN_BROWSE && browse_key(ui, key))
        return;
    ui->message[0] = '\0';
    if (console_key(ui, key))
        return;
    action = action_of_key(ui_scope(ui), key);
    if (action)
        action->run(ui);
    else
        action_say_none(ui, key);
}

static void handle_key(Ui *ui, uint32_t key)
{
    if (status_fits(ui))
        explorer_key(ui, key);
    else
        key_unseen(ui, key);
}

/* A click on a tab or on the words of a key does what they say; false: none is there. */
static bool press_words(Ui *ui, const Event *event)
{
    for (int i = 0; event->kind == EVENT_PRESS && i < ui->hit_count; i++) {
        const Hit *hit = &ui->hits[i];

        if (event->y == hit->y && event->x >= hit->x && event->x < hit->x + hit->width) {
            hit->action->run(ui);
            return true;
        }
    }
    return false;
}

static void mouse_on_layer(Ui *ui, const Event *event)
{
    const Layer *top = ui->layers[ui->layer_count - 1];

    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN)
        explorer_key(ui, event->kind == EVENT_WHEEL_UP ? K_ARROW_UP : K_ARROW_DOWN);
    else if (event->kind == EVENT_PRESS && top->press)
        top->press(ui, event);
}

static void handle_mouse(Ui *ui, const Event *event)
{
    if (event->button == 2 || !status_fits(ui))
        return;
    if (event->kind == EVENT_PRESS)
        ui->message[0] = '\0';
    if (press_words(ui, event))
        return;
    if (event->kind == EVENT_PRESS && !ui->layer_count && lessons_docked(ui))
        ui->lessons.focused = event->x < lesson_width(ui);
    if (ui->layer_count)
        mouse_on_layer(ui, event);
    else if (ui->screen == SCREEN_COMPARE)
        compare_mouse(ui, event);
    else if (ui->screen == SCREEN_BROWSE)
        browse_press(ui, event);
}

static void handle(Ui *ui, const Event *event)
{
    ui->dirty = true;
    switch (event->kind) {
    case EVENT_KEY: handle_key(ui, event->key); break;
    case EVENT_RESIZE: break;
    case EVENT_SUSPEND: term_suspend(ui->term); break;
    case EVENT_END:
        ui->signal = signals_ending();
        ui->quit = true;
        break;
    default: handle_mouse(ui, event);
    }
}

/* All that was typed counts before a frame is drawn, so the screen never lags behind. */
static void drain_events(Ui *ui)
{
    Event event;

    for (int i = 0; i < 256 && !ui->quit && term_event(ui->term, &event); i++)
        handle(ui, &event);
}

double deadline_earlier(double a, double b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

/* Seconds until something is due, whoever it is for; < 0: nothing is. */
static double next_deadline(Ui *ui)
{
    double deadline = deadline_earlier(params_deadline(ui), step_deadline(ui));

    deadline = deadline_earlier(deadline, overview_deadline(ui));
    if (deadline < 0 && ui_job_runs(ui)) {
        deadline = 0.25; /* the stage of a run is shown as it changes */
        ui->dirty = true;
    }
    return deadline_earlier(deadline, console_deadline(ui));
}

void explorer_loop(Ui *ui)
{
    ui->dirty = true;
    while (!ui->quit) {
        int    fds[4];
        double deadline;
        bool   again; /* scripts changed something */

        journal_tick(ui); /* what has stood until the next key */
        drain_events(ui);
        params_tick(ui);
        ui->dirty |= poll_jobs(ui);
        if (ui->quit)
            break;
        if (ui->dirty)
            draw(ui);
        journal_tick(ui);
        again = console_tick(ui);
        if (ui->quit)
            break;
        deadline = next_deadline(ui);
        if (again) {
            ui->dirty = true;
            deadline = 0;
        }
        fds[0] = session_wake_fd(ui->session);
        fds[1] = session_wake_fd(ui->draughtsman.session);
        fds[2] = ui->browse.side ? session_wake_fd(ui->browse.side) : -1;
        fds[3] = lesson_wake_fd(ui);
        term_wait(ui->term, fds, 4, deadline < 0 ? -1 : (int)(deadline * 1000) + 1);
        for (int i = 0; i < 4; i++)
            drain(fds[i]);
    }
}

/* ---- actions of all screens ------------------------------------------------- */

void action_close(Ui *ui)
{
    const Layer *top = ui->layer_count ? ui->layers[ui->layer_count - 1] : NULL;

    if (!top) {
        if (ui->screen == SCREEN_BROWSE)
            browse_show_all(ui);
        ui->compare.solo = false;
        return;
    }
    ui_pop(ui);
    if (top->leave)
        top->leave(ui);
}

static void confirm_draw(Ui *ui)
{
    Term *term = ui->term;
    Area  area = { term->rows / 2 - 2, term->cols / 2 - 22, 5, 44 };

    term_fill(term, area, ' ', (Style){ 0 });
    term_frame(term, area, "Quit", true, ui_style(ui, ROLE_FOCUS), ui_style(ui, ROLE_TITLE));
    term_text(term, area.y + 2, area.x + 3, 38, "A job is running. Quit anyway? y/n",
              ui_style(ui, ROLE_WARN));
}

const Layer confirm_layer = { .mode = "QUIT", .scope = IN_CONFIRM, .draw = confirm_draw };

void action_confirm_yes(Ui *ui)
{
    ui->quit = true;
}

void action_confirm_no(Ui *ui)
{
    ui_pop(ui);
}

void action_leave(Ui *ui)
{
    if (ui->layer_count) {
        action_close(ui);
    } else if (lessons_focused(ui)) {
        lessons_leave_said(ui);
    } else if (ui->screen != SCREEN_BROWSE) {
        if (ui->screen == SCREEN_LESSONS)
            lessons_leave(ui);
        ui->screen = SCREEN_BROWSE;
    } else if (ui_job_runs(ui)) {
        ui_push(ui, &confirm_layer);
    } else {
        ui->quit = true;
    }
}

void action_quit_now(Ui *ui)
{
    ui->quit = true;
}

/* Cancelling is the worker's business; what it frees is taken by the next poll. */
void action_cancel(Ui *ui)
{
    bool any = false, script;

    for (int i = 0; i < ui->compare.count; i++) {
        Pane *pane = &ui->compare.panes[i];

        if (pane->job)
            job_cancel(pane->job);
        if (pane->measuring)
            job_cancel(pane->measuring);
        any |= pane->job || pane->measuring;
    }
    any |= command_cancel(ui);
    any |= export_cancel(ui);
    any |= vary_cancel(ui);
    any |= scaling_cancel(ui);
    script = console_stop(ui);
    if (any)
        ui_say(ui, ROLE_WARN, CANCELLING);
    else if (script)
        ui_say(ui, ROLE_WARN, "the script was stopped");
    else
        ui_say(ui, ROLE_DIM, "nothing runs; q leaves");
}

void action_redraw(Ui *ui)
{
    term_redraw(ui->term);
}

void action_suspend(Ui *ui)
{
    term_suspend(ui->term);
}

/* What lies over the screen closes; parameters keep what was set, as by Enter. */
static void go_to(Ui *ui, Screen screen)
{
    while (ui->layer_count) {
        const Layer *top = ui->layers[ui->layer_count - 1];

        if (top == &params_layer)
            action_param_apply(ui);
        if (ui->layer_count && ui->layers[ui->layer_count - 1] == top)
            action_close(ui);
    }
    ui->screen = screen;
}

void action_screen_browse(Ui *ui)
{
    go_to(ui, SCREEN_BROWSE);
}
void action_to_list(Ui *ui)
{
    go_to(ui, SCREEN_BROWSE);
}
void action_screen_compare(Ui *ui)
{
    go_to(ui, SCREEN_COMPARE);
}
void action_screen_step(Ui *ui)
{
    go_to(ui, SCREEN_STEP);
}
void action_screen_profile(Ui *ui)
{
    go_to(ui, SCREEN_PROFILE);
}

void say_glyphs(Ui *ui)
{
    if (!ui->term->utf8)
        ui_say(ui, ROLE_DIM, "this locale shows ASCII only (--utf8 insists)");
    else
        ui_say(ui, ROLE_DIM, "matrix as %s", glyphs_name(ui->glyphs));
}

void action_glyphs(Ui *ui)
{
    ui->glyphs = (ui->glyphs + 1) % GLYPHS_COUNT;
    say_glyphs(ui);
}

void action_theme(Ui *ui)
{
    ui->theme = (ui->theme + 1) % THEME_COUNT;
    ui_say(ui, ROLE_DIM, "theme: %s", theme_name(ui->theme));
}

void action_mouse(Ui *ui)
{
    term_mouse(ui->term, !ui->term->mouse);
    ui_say(ui, ROLE_DIM,
           ui->term->mouse ? "mouse: on (Shift+drag selects text)" : "mouse: left to the terminal");
}
