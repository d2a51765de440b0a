/* loop.c -- the event loop: events, finished jobs, one frame; and the actions of all screens. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ui/screen/browse.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"
#include "ui/state/panes.h"

#define FIRST_ANSWER 12 /* ms a frame waits for a drawing that comes at once */

/* ---- a frame ---------------------------------------------------------------- */

#define CANCELLING "cancelling\xe2\x80\xa6"

static bool poll_jobs(Ui *ui)
{
    bool changed = false;

    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->poll)
            changed |= ui->screens[i]->poll(ui);
    draughtsman_sweep(&ui->draughtsman);
    if (changed && !strcmp(ui->message, CANCELLING) && !ui_job_runs(ui))
        ui_say(ui, ROLE_DIM, "cancelled; what is there stays");
    return changed;
}

static bool first_answers_pending(const Ui *ui)
{
    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->pending && ui->screens[i]->pending(ui))
            return true;
    return false;
}

static void drain(int fd)
{
    char bytes[64];

    while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
        ;
}

/* Most drawings take a few milliseconds: waiting for them avoids a frame with a stretched old
 * picture. */
static void wait_for_answers(Ui *ui)
{
    double until = ui_now() + FIRST_ANSWER / 1000.0;

    while (first_answers_pending(ui) && ui_now() < until) {
        struct timespec pause = { .tv_nsec = 500000 };

        nanosleep(&pause, NULL);
        for (int i = 0; i < SCREEN_COUNT; i++)
            if (ui->screens[i]->pending)
                ui->screens[i]->poll(ui);
    }
}

static void draw(Ui *ui)
{
    const Screen *screen = ui->screens[ui->screen];
    Area          area = ui_area(ui), dock = { area.y, 0, area.h, area.x };

    if (screen->prepare && ui->term->rows > 8 && area.w) {
        screen->prepare(ui, area);
        wait_for_answers(ui);
        screen->prepare(ui, area); /* results may have come meanwhile */
    }
    term_clear(ui->term, (Style){ 0 });
    if (status_draw(ui)) {
        if (area.w && !console_hides(ui))
            screen->draw(ui, area);
        if (dock.w && !console_hides(ui))
            ui->screens[SCREEN_LESSON]->draw(ui, dock);
        for (int i = 0; i < ui->overlay_count; i++)
            ui->screens[ui->overlays[i]]->draw(ui, area);
        status_draw_long(ui);
    }
    term_flush(ui->term);
    ui->dirty = false;
}

/* ---- events ----------------------------------------------------------------- */

/* The terminal is too small to draw: only the keys that its message offers work. */
static void key_unseen(Ui *ui, uint32_t key)
{
    if (key == 'q' || key == 'Q')
        ui->quit = true;
    else if (key == K_CONTROL('C') || key == K_CONTROL('Z') || key == K_CONTROL('L'))
        action_run(ui, action_of_key(IN_ALL, key));
}

void explorer_key(Ui *ui, uint32_t key)
{
    const Screen *front = ui_front(ui);
    const Action *action;

    if (front->key && front->key(ui, key))
        return;
    ui->message[0] = '\0';
    if (console_key(ui, key))
        return;
    action = action_of_key(ui_scope(ui), key);
    if (action)
        action_run(ui, action);
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

/* A click on a tab or on the words of a key runs its action; false: none is there. */
static bool press_words(Ui *ui, const Event *event)
{
    for (int i = 0; event->kind == EVENT_PRESS && i < ui->hit_count; i++) {
        const Hit *hit = &ui->hits[i];

        if (event->y == hit->y && event->x >= hit->x && event->x < hit->x + hit->width) {
            action_run(ui, hit->action);
            return true;
        }
    }
    return false;
}

static void mouse_on_overlay(Ui *ui, const Event *event)
{
    const Screen *front = ui_front(ui);

    if (event->kind == EVENT_WHEEL_UP || event->kind == EVENT_WHEEL_DOWN)
        explorer_key(ui, event->kind == EVENT_WHEEL_UP ? K_ARROW_UP : K_ARROW_DOWN);
    else if (event->kind == EVENT_PRESS && front->press)
        front->press(ui, event);
}

static void handle_mouse(Ui *ui, const Event *event)
{
    if (event->button == 2 || !status_fits(ui))
        return;
    if (event->kind == EVENT_PRESS)
        ui->message[0] = '\0';
    if (press_words(ui, event))
        return;
    if (event->kind == EVENT_PRESS && !ui->overlay_count && lessons_docked(ui))
        ui->lessons.focused = event->x < lesson_width(ui);
    if (ui->overlay_count)
        mouse_on_overlay(ui, event);
    else if (ui->screens[ui->screen]->press)
        ui->screens[ui->screen]->press(ui, event);
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

/* Handles all pending keys before a frame is drawn, so that the screen never lags. */
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

/* Seconds until the earliest deadline of all screens; < 0: none. */
static double next_deadline(Ui *ui)
{
    double deadline = -1;

    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->deadline)
            deadline = deadline_earlier(deadline, ui->screens[i]->deadline(ui));
    if (deadline < 0 && ui_job_runs(ui)) {
        deadline = 0.25; /* the stage of a run is shown as it changes */
        ui->dirty = true;
    }
    return deadline_earlier(deadline, console_deadline(ui));
}

/* Sleeps until an event, a finished job or the deadline. */
static void sleep_until(Ui *ui, double deadline)
{
    int fds[SCREEN_COUNT + 2] = { session_wake_fd(ui->session),
                                  session_wake_fd(ui->draughtsman.session) };
    int count = 2;

    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->wake_fd)
            fds[count++] = ui->screens[i]->wake_fd(ui);
    term_wait(ui->term, fds, count, deadline < 0 ? -1 : (int)(deadline * 1000) + 1);
    for (int i = 0; i < count; i++)
        drain(fds[i]);
}

void explorer_loop(Ui *ui)
{
    ui->dirty = true;
    while (!ui->quit) {
        double deadline;
        bool   again; /* scripts changed something */

        journal_tick(ui); /* records what stood before the next key */
        drain_events(ui);
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
        sleep_until(ui, deadline);
    }
}

/* ---- actions of all screens ------------------------------------------------- */

void action_close(Ui *ui)
{
    const Screen *front = ui_front(ui);

    if (!ui->overlay_count) {
        if (ui->screens[ui->screen]->clear)
            ui->screens[ui->screen]->clear(ui);
        ui->compare.now.solo = false;
        return;
    }
    ui_pop(ui);
    if (front->close)
        front->close(ui);
}

static void confirm_draw(Ui *ui, Area all)
{
    Term *term = ui->term;
    Area  area = { term->rows / 2 - 2, term->cols / 2 - 22, 5, 44 };

    (void)all;
    ui_window(ui, area, "Quit");
    term_text(term, area.y + 2, area.x + 3, 38, "A job is running. Quit anyway? y/n",
              ui_style(ui, ROLE_WARN));
}

static const Action own[] = {
    { "confirm_yes", "y Enter", IN_CONFIRM, "yes", "yes", .run = action_quit_now },
    { "confirm_no", "n", IN_CONFIRM, "no", "no", .run = ui_pop },
};

const Screen screen_confirm = { .mode = "QUIT", .scope = IN_CONFIRM, .draw = confirm_draw,
                                SCREEN_ACTIONS(own) };

void ui_ask_to_quit(Ui *ui)
{
    if (ui_job_runs(ui))
        ui_push(ui, SCREEN_CONFIRM);
    else
        ui->quit = true;
}

void action_leave(Ui *ui)
{
    const Screen *below = ui_below(ui);

    if (ui->overlay_count) {
        action_close(ui);
    } else if (model_takes_back(ui)) {
        return;
    } else if (ui->screen != SCREEN_BROWSE) {
        if (below->close)
            below->close(ui);
        else
            ui->screen = SCREEN_BROWSE;
    } else {
        ui_ask_to_quit(ui);
    }
}

void action_quit_now(Ui *ui)
{
    ui->quit = true;
}

/* What is refined keeps its sample. */
static bool stop_drawings(Ui *ui)
{
    bool any = false;

    for (int i = 0; i < ui->compare.count; i++)
        any |= drawing_stop(&ui->draughtsman, &ui->compare.panes[i].drawing);
    return any;
}

/* Only asks the workers to cancel; the next poll takes the ended jobs. */
void action_cancel(Ui *ui)
{
    bool any = false, script;

    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->cancel)
            any |= ui->screens[i]->cancel(ui);
    script = console_stop(ui);
    if (any)
        ui_say(ui, ROLE_WARN, CANCELLING);
    else if (script)
        ui_say(ui, ROLE_WARN, "the script was stopped");
    else if (stop_drawings(ui))
        ui_say(ui, ROLE_DIM, "sampling stopped; the picture stays as it is");
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

/* Closes all overlays; the parameter editor applies its values, as Enter does. */
void screen_go(Ui *ui, int screen)
{
    bool asks = false; /* an opened mechanism asks for a parameter first */

    while (ui->overlay_count) {
        const Screen *front = ui_front(ui);

        if (front->keep)
            front->keep(ui);
        if (ui->overlay_count && ui_front(ui) == front)
            action_close(ui);
    }
    if (ui->screen == SCREEN_BROWSE && !ui->compare.count &&
        (screen == SCREEN_COMPARE || screen == SCREEN_STEP || screen == SCREEN_PROFILE)) {
        browse_open_chosen(ui);
        asks = panes_focus(ui) && panes_focus(ui)->ask;
    }
    if (!asks)
        ui->screen = (ScreenId)screen;
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
