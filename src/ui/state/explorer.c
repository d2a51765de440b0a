/* explorer.c -- what every screen may ask of the explorer: the message line, what is open over
 * the screen, and room; see explorer.h. */
#include "ui/state/explorer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double ui_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void ui_event(Ui *ui, const char *event, const char *lines)
{
    if (ui->on_event)
        ui->on_event(ui, event, lines);
}

Style ui_style(const Ui *ui, Role role)
{
    return theme_style(ui->term->colours == TERM_MONO ? THEME_MONO : ui->theme, role);
}

void ui_frame(Ui *ui, Area area, const char *title, bool focused)
{
    term_frame(ui->term, area, title, focused, ui_style(ui, focused ? ROLE_FOCUS : ROLE_FRAME),
               ui_style(ui, ROLE_TITLE));
}

void ui_window(Ui *ui, Area area, const char *title)
{
    term_fill(ui->term, area, ' ', (Style){ 0 });
    ui_frame(ui, area, title, true);
}

void ui_more(Ui *ui, int y, int x, int above, int below)
{
    Style dim = ui_style(ui, ROLE_DIM);

    if (above > 0 && below > 0)
        term_textf(ui->term, y, x, 32, dim, " %d more above, %d below ", above, below);
    else if (above > 0 || below > 0)
        term_textf(ui->term, y, x, 32, dim, " %d more %s ", above > 0 ? above : below,
                   above > 0 ? "above" : "below");
}

int64_t ui_round(int64_t at, int64_t by, int64_t count)
{
    return ((at + by) % count + count) % count;
}

int ui_scroll(int top, int line, int room)
{
    return line < top ? line : line >= top + room ? line - room + 1 : top;
}

/* ---- words ------------------------------------------------------------------- */

#define LOG_MOST 200000 /* bytes; then the older half goes */

static void forget_older(Text *log)
{
    const char *half = log->data + log->length / 2, *line = strchr(half, '\n');
    size_t      kept = line ? log->length - (size_t)(line + 1 - log->data) : 0;

    memmove(log->data, log->data + log->length - kept, kept);
    log->data[kept] = '\0';
    log->length = kept;
}

static void add_to_log(Ui *ui)
{
    time_t    now = time(NULL);
    struct tm parts;
    char      when[16] = "";

    if (localtime_r(&now, &parts))
        strftime(when, sizeof(when), "%H:%M:%S  ", &parts);
    if (ui->log.length > LOG_MOST)
        forget_older(&ui->log);
    text_addf(&ui->log, "%s%s%s\n", when,
              ui->message_role == ROLE_ERROR  ? "error: "
              : ui->message_role == ROLE_WARN ? "note: "
                                              : "",
              ui->message);
}

static void put_message(Ui *ui, Role role, const char *fmt, va_list args)
{
    vsnprintf(ui->message, sizeof(ui->message), fmt, args);
    ui->message_role = role;
    ui->dirty = true;
}

void ui_say(Ui *ui, Role role, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put_message(ui, role, fmt, args);
    va_end(args);
    add_to_log(ui);
}

void ui_hint(Ui *ui, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put_message(ui, ROLE_DIM, fmt, args);
    va_end(args);
}

/* The run under way; NULL: none. */
const Job *ui_running_job(const Ui *ui, const Pane **which)
{
    for (int i = 0; i < ui->compare.count; i++) {
        const Pane *pane = &ui->compare.panes[i];
        const Job  *job = pane->job ? pane->job : pane->measuring;

        if (job && job_state(job) == JOB_RUNNING) {
            *which = pane;
            return job;
        }
    }
    return NULL;
}

int ui_progress(const Ui *ui, char *text, size_t size)
{
    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->progress && ui->screens[i]->progress(ui, text, size))
            return i;
    return -1;
}

bool ui_line_taken(const Ui *ui)
{
    const Pane *pane;
    char        progress[160];

    return ui_has(ui, SCREEN_TEXT) || ui_has(ui, SCREEN_LIST) || ui->message[0] ||
           ui_running_job(ui, &pane) || ui_progress(ui, progress, sizeof(progress)) >= 0;
}

/* ---- screens and overlays ---------------------------------------------------- */

const char *screen_word(ScreenId id)
{
    static const char *const words[] = {
#define SCREEN(NAME, name) #name,
#include "ui/screen/screens.def"
    };

    return words[id];
}

void ui_push(Ui *ui, ScreenId id)
{
    if (ui->overlay_count < OVERLAYS_MOST)
        ui->overlays[ui->overlay_count++] = id;
}

void ui_open(Ui *ui, ScreenId id)
{
    const Screen *s = ui->screens[id];

    if (!s->open || s->open(ui))
        ui_push(ui, id);
}

void ui_pop(Ui *ui)
{
    if (ui->overlay_count)
        ui->overlay_count--;
}

bool ui_has(const Ui *ui, ScreenId overlay)
{
    for (int i = 0; i < ui->overlay_count; i++)
        if (ui->overlays[i] == overlay)
            return true;
    return false;
}

const Screen *ui_below(const Ui *ui)
{
    return ui->screens[lessons_focused(ui) ? SCREEN_LESSON : ui->screen];
}

const Screen *ui_front(const Ui *ui)
{
    return ui->overlay_count ? ui->screens[ui->overlays[ui->overlay_count - 1]] : ui_below(ui);
}

static unsigned scope_of(const Ui *ui, const Screen *s)
{
    return s->scope_now ? s->scope_now(ui) : s->scope;
}

unsigned ui_screen_scope(const Ui *ui)
{
    return scope_of(ui, ui_below(ui));
}

unsigned ui_scope(const Ui *ui)
{
    return scope_of(ui, ui_front(ui));
}

bool ui_job_runs(const Ui *ui)
{
    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->runs && ui->screens[i]->runs(ui))
            return true;
    return false;
}

bool ui_take(Ui *ui, Pane *pane)
{
    for (int i = 0; i < SCREEN_COUNT; i++)
        if (ui->screens[i]->take && ui->screens[i]->take(ui, pane))
            return true;
    return false;
}

void ui_prompt(Ui *ui, const char *text)
{
    ui_open(ui, SCREEN_PROMPT);
    field_set(&ui->prompt.field, text);
}

Pane *panes_focus(Ui *ui)
{
    Compare *c = &ui->compare;

    return c->count ? &c->panes[c->now.focus] : NULL;
}

/* ---- room -------------------------------------------------------------------- */

Area ui_area(const Ui *ui)
{
    int  left = lessons_docked(ui) ? lesson_width(ui) : 0;
    Area area = ui_whole(ui);

    return (Area){ area.y, left, area.h - console_height(ui), area.w - left };
}

Area ui_whole(const Ui *ui)
{
    return (Area){ 1, 0, ui->term->rows - 2 - message_lines(ui), ui->term->cols };
}

int message_lines(const Ui *ui)
{
    Area     area = { 0, 0, MESSAGE_LINES, ui->term->cols - 2 };
    unsigned scope = ui_scope(ui);

    if (scope & TYPED_AT_BOTTOM)
        return scope & (IN_PROMPT | IN_ASK) && ui->prompt.choices[0] ? 2 : 1;
    if (term_width(ui->message) <= area.w)
        return 1;
    return term_paragraph(NULL, area, ui->message, (Style){ 0 });
}

int console_height(const Ui *ui)
{
    int third = ui->term->rows / 3;

    return ui_has(ui, SCREEN_CONSOLE) ? third < 6 ? 6 : third : 0;
}

#define DOCK_NARROW 44

#define DOCK_WIDE   60
#define DOCK_WIDE_FROM 140 /* columns of the terminal */

#define BOTH_FROM   76 /* columns from which the panes do not need the words' room */

int lesson_width(const Ui *ui)
{
    int cols = ui->term->cols;

    if (cols < BOTH_FROM)
        return ui->lessons.focused || ui_has(ui, SCREEN_PARAMS) ? cols * 3 / 5 : 0;
    return cols < DOCK_WIDE_FROM ? DOCK_NARROW : DOCK_WIDE;
}

bool lessons_docked(const Ui *ui)
{
    return ui->lessons.running && ui->screen != SCREEN_BROWSE && ui->screen != SCREEN_LESSONS;
}

bool lessons_focused(const Ui *ui)
{
    return lessons_docked(ui) && (ui->lessons.focused || !ui->compare.count);
}

bool lessons_passes(Ui *ui, int direction)
{
    Lessons *l = &ui->lessons;
    Compare *c = &ui->compare;
    int      last = direction > 0 ? c->count - 1 : 0;

    if (l->focused) {
        l->focused = false;
        c->now.focus = direction > 0 || !c->count ? 0 : c->count - 1;
        return true;
    }
    l->focused = c->now.focus == last || !c->count;
    return l->focused;
}
