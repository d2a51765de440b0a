/* status.c -- the first line, the message line and the line of keys. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/program.h"
#include "core/text.h"
#include "core/utf8.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"
#include "ui/term/term.h"

#define LEAST_ROWS 16
#define LEAST_COLS 60
#define LONG_RUN   3 /* seconds after which the elapsed time is shown */
#define TABS_FROM  70  /* columns from which all tabs have names; below, digits and the lit one */
#define NAME_FROM  100 /* columns from which the first line has the program's name */

static void add_hit(Ui *ui, int y, int x, int width, const Action *action)
{
    if (action && ui->hit_count < HITS_MOST)
        ui->hits[ui->hit_count++] = (Hit){ .y = y, .x = x, .width = width, .action = action };
}

/* The screen whose tab is lit: a lesson that has the keys is the lessons' though it shows panes. */
static ScreenId tab_lit(const Ui *ui)
{
    return lessons_focused(ui) ? SCREEN_LESSONS : ui->screen;
}

static int draw_tabs(Ui *ui)
{
    Term    *term = ui->term;
    int      x = 1, gap = term->cols >= NAME_FROM ? 2 : 1;
    ScreenId lit = tab_lit(ui);

    if (term->cols >= NAME_FROM)
        x += term_text(term, 0, x, 12, "attnscope", ui_style(ui, ROLE_TITLE)) + 2;
    for (size_t i = 0; i < SCREEN_COUNT; i++) {
        int  width, room = i == lit || term->cols >= TABS_FROM ? 20 : 1;
        char action[32], name[32];

        if (!ui->screens[i]->tab)
            continue;
        snprintf(name, sizeof(name), "%.*s", room, ui->screens[i]->tab);
        width = term_text(term, 0, x, room, name,
                          ui_style(ui, i == lit ? ROLE_TAB : ROLE_BAR));
        snprintf(action, sizeof(action), "screen_%s", screen_word((ScreenId)i));
        add_hit(ui, 0, x, width, action_find(action));
        x += width + gap;
    }
    return x;
}

/* Fields of the input in the first line, by importance: narrow terminals drop the last ones. */
typedef enum InputField { FIELD_N, FIELD_PLACE, FIELD_NAME, FIELD_M, FIELD_CAUSAL, FIELD_D,
                          FIELD_HEADS, FIELD_COUNT } InputField;

/* whole: with `synthetic:`, the generator's arguments and the file's ending. */
static void add_input_name(const Input *input, bool whole, Text *out)
{
    const char *scheme = strchr(input->name, ':');
    bool        made = !strncmp(input->name, "synthetic:", 10);
    bool        shipped = !strncmp(input->name, "sample:", 7);
    const char *name = (made || shipped) && !whole ? scheme + 1 : input_short_name(input);

    text_addf(out, "%.*s", (int)strcspn(name, whole ? "" : ".("), name);
}

/* How panes are run; "on" or "off" where :causal says otherwise than the input. */
static void add_causality(int chosen, bool input, Text *out)
{
    if (chosen >= 0 && chosen != input)
        text_add(out, chosen ? "causal on" : "causal off");
    else if (input)
        text_add(out, "causal");
}

static void add_input_field(const Ui *ui, const Input *input, InputField field, bool whole,
                            Text *out)
{
    const Compare *c = &ui->compare;
    const Request *request = c->count ? &c->panes[c->now.focus].request : &ui->defaults;

    switch (field) {
    case FIELD_N: text_addf(out, "n=%lld", (long long)input->n); break;
    case FIELD_NAME: add_input_name(input, whole, out); break;
    case FIELD_PLACE: /* the CPU is not mentioned */
        if (request->ops)
            request_place(request, out);
        break;
    case FIELD_M:
        if (input->m != input->n)
            text_addf(out, "m=%lld", (long long)input->m);
        break;
    case FIELD_CAUSAL: add_causality(ui->defaults.causal, input->causal == 1, out); break;
    case FIELD_D: text_addf(out, "d=%lld", (long long)input->d); break;
    default:
        if (input->heads > 1)
            text_addf(out, "h=%lld", (long long)input->heads);
        if (input_kv_heads(input) < input->heads)
            text_addf(out, " kv=%lld", (long long)input_kv_heads(input));
    }
}

/* The `count` most important fields, in the order in which they are read. */
static void describe_input(const Ui *ui, const Input *input, int count, bool whole, Text *out)
{
    static const InputField order[] = { FIELD_PLACE, FIELD_NAME, FIELD_N, FIELD_M, FIELD_D,
                                        FIELD_HEADS, FIELD_CAUSAL };

    text_clear(out);
    for (int i = 0; i < FIELD_COUNT; i++) {
        Text field = { 0 };

        if ((int)order[i] < count)
            add_input_field(ui, input, order[i], whole, &field);
        if (field.length)
            text_addf(out, "%s%s", !out->length                                   ? ""
                                   : order[i] == FIELD_N || order[i] == FIELD_NAME ? "  "
                                                                                   : " ",
                      text_str(&field));
        text_free(&field);
    }
}

#define NAME_LEAST 4 /* columns of a name that is cut */

/* "induc… n=96": the name cut to the room beside device and length, one blank between them; false:
 * there is no room for a name. */
static bool cut_name(const Ui *ui, const Input *input, int room, Text *out)
{
    const char *cut = "", *end;
    Text        name = { 0 }, rest = { 0 };
    int         columns;

    add_input_name(input, false, &name);
    describe_input(ui, input, FIELD_NAME, false, &rest);
    columns = room - term_width(text_str(&rest)) - 1;
    end = text_str(&name) + name.length;
    if (term_width(text_str(&name)) > columns) {
        cut = ui->term->utf8 ? "\xe2\x80\xa6" : "~";
        end = text_str(&name);
        for (int i = 0; i < columns - 1 && *end; i++)
            utf8_next(&end);
    }
    if (columns >= NAME_LEAST) {
        text_clear(out);
        text_addf(out, "%.*s%s %s", (int)(end - text_str(&name)), text_str(&name), cut,
                  text_str(&rest));
    }
    text_free(&name);
    text_free(&rest);
    return columns >= NAME_LEAST;
}

/* As much as there is room for: all; with a shorter name; with fewer fields, down to the device,
 * the name and the length; with the name cut; without the name. */
static void fit_input(const Ui *ui, int room, Text *out)
{
    const Input *input = session_input(ui->session);

    if (!input)
        return;
    describe_input(ui, input, FIELD_COUNT, true, out);
    for (int count = FIELD_COUNT; count > FIELD_NAME && term_width(text_str(out)) > room; count--)
        describe_input(ui, input, count, false, out);
    if (term_width(text_str(out)) > room && cut_name(ui, input, room, out))
        return;
    for (int count = FIELD_NAME; count > 0 && term_width(text_str(out)) > room; count--)
        describe_input(ui, input, count, false, out);
    if (term_width(text_str(out)) > room)
        text_clear(out);
}

/* Where the device does not fit beside the length, it alone. */
static void device_alone(const Ui *ui, int room, Text *out)
{
    Text         place = { 0 };
    const Input *input = session_input(ui->session);

    if (input)
        add_input_field(ui, input, FIELD_PLACE, false, &place);
    if (place.length && !strstr(text_str(out), text_str(&place)) &&
        term_width(text_str(&place)) <= room) {
        text_clear(out);
        text_add(out, text_str(&place));
    }
    text_free(&place);
}

/* What :causal changed is in sight on any width: the name makes way, then the length. */
static void causality_first(const Ui *ui, int room, Text *out)
{
    static const InputField kept[] = { FIELD_PLACE, FIELD_N, FIELD_CAUSAL };
    const Input            *input = session_input(ui->session);
    int                     chosen = ui->defaults.causal;

    if (!input || chosen < 0 || chosen == (input->causal == 1) || strstr(text_str(out), "causal"))
        return;
    for (int without = -1; without < 2; without++) { /* the length, then the device */
        Text words = { 0 };

        for (int i = 0; i < 3; i++) {
            Text field = { 0 };

            if (!(without >= 0 && kept[i] == FIELD_N) && !(without == 1 && !i))
                add_input_field(ui, input, kept[i], false, &field);
            if (field.length)
                text_addf(&words, "%s%s", words.length ? " " : "", text_str(&field));
            text_free(&field);
        }
        if (term_width(text_str(&words)) <= room) {
            text_clear(out);
            text_add(out, text_str(&words));
            text_free(&words);
            return;
        }
        text_free(&words);
    }
}

static void draw_first_line(Ui *ui)
{
    Term *term = ui->term;
    Text  input = { 0 };
    char  mode[24];
    int   left = draw_tabs(ui), width, mode_x;

    snprintf(mode, sizeof(mode), "%s[%s]", journal_records(ui) ? "REC " : "", ui_front(ui)->mode);
    if (left + (int)strlen(mode) > term->cols && journal_records(ui))
        snprintf(mode, sizeof(mode), "[REC]"); /* the tabs show the screen as well */
    mode_x = term->cols - (int)strlen(mode) - 1;
    term_text(term, 0, mode_x, 20, mode, ui_style(ui, ROLE_TITLE));
    if (!model_subject(ui, mode_x - left - 2, &input)) {
        fit_input(ui, mode_x - left - 2, &input);
        device_alone(ui, mode_x - left - 2, &input);
        causality_first(ui, mode_x - left - 2, &input);
    }
    width = term_width(text_str(&input));
    term_text(term, 0, mode_x - width - 2, width, text_str(&input), ui_style(ui, ROLE_BAR));
    text_free(&input);
}

/* Columns the words of an action take, with the blanks after them. */
static int hint_width(const Action *action, char *key, size_t size)
{
    if (action->words[0] == '=') {
        key[0] = '\0';
        return term_width(action->words + 1) + 2;
    }
    key_label(key_parse(action->keys, strcspn(action->keys, " ")), key, size);
    return term_width(key) + 1 + term_width(action->words) + 2;
}

static const char *escape_words(const Ui *ui)
{
    const Screen *front = ui_front(ui);

    if (ui->overlay_count)
        return front->escape ? front->escape : "close";
    return ui_scope(ui) == IN_FILTER ? "clear" : NULL;
}

static bool hint_applies(Ui *ui, const Action *action)
{
    const Screen *front = ui_front(ui);

    return !front->hint || front->hint(ui, action);
}

/* Keys that always fit: the way to help and out, and what the front screen cannot do without. */
static bool hint_stays(Ui *ui, const Action *action)
{
    const Screen *front = ui_front(ui);

    return !strcmp(action->id, "help") || !strcmp(action->id, "leave") ||
           (front->needs && front->needs(ui, action));
}

static bool hint_listed(Ui *ui, const Action *action)
{
    return action->scope & ui_scope(ui) && action->words[0] && hint_applies(ui, action);
}

/* Columns of the keys that always fit. */
static int hints_reserved(Ui *ui)
{
    const Action *action;
    char          key[32];
    int           width = 0;

    if (!(action_find("help")->scope & ui_scope(ui)))
        return 0;
    for (size_t i = 0; (action = action_at(i)); i++)
        if (hint_stays(ui, action) && hint_listed(ui, action))
            width += hint_width(action, key, sizeof(key));
    return width;
}

static void draw_last_line(Ui *ui)
{
    Term         *term = ui->term;
    unsigned      scope = ui_scope(ui);
    int           y = term->rows - 1, x = 1, reserve = hints_reserved(ui);
    char          key[32];
    const char   *escape = escape_words(ui);
    const Action *action, *leave = action_find("leave");

    for (size_t i = 0; (action = action_at(i)); i++) {
        bool last = hint_stays(ui, action);
        int  width = hint_width(action, key, sizeof(key));

        if (!hint_listed(ui, action) ||
            x + width - 1 > term->cols - (last ? 0 : reserve))
            continue;
        if (key[0]) {
            add_hit(ui, y, x, width - 2, action);
            x += term_text(term, y, x, 24, key, ui_style(ui, ROLE_KEY)) + 1;
            x += term_text(term, y, x, 40, action->words, ui_style(ui, ROLE_TEXT)) + 2;
        } else {
            x += term_text(term, y, x, 40, action->words + 1, ui_style(ui, ROLE_TEXT)) + 2;
        }
        if (last)
            reserve -= width;
    }
    if (escape && x + 10 < term->cols && !(leave->scope & scope)) {
        add_hit(ui, y, x, 4 + term_width(escape), action_find("close"));
        x += term_text(term, y, x, 4, "Esc", ui_style(ui, ROLE_KEY)) + 1;
        term_text(term, y, x, term->cols - x, escape, ui_style(ui, ROLE_TEXT));
    }
}

#define BAR_CELLS 16

/* ", ######.......... 38 %" where the share is known. */
static void share_text(const Ui *ui, Number share, char *text, size_t size)
{
    const char *full = ui->term->utf8 ? "\xe2\x96\x88" : "#";
    const char *rest = ui->term->utf8 ? "\xe2\x96\x91" : ".";
    size_t      at = 0;

    text[0] = '\0';
    if (!share.valid)
        return;
    for (int c = 0; c < BAR_CELLS && at < size; c++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", c ? "" : ", ",
                               c < BAR_CELLS * share.value ? full : rest);
    if (at < size)
        snprintf(text + at, size - at, " %.0f %%", floor(100 * share.value));
}

/* "running reformer: combine, 5 s, ########........ 53 %   Ctrl-C cancels" */
static void running_text(const Ui *ui, const Pane *pane, const Job *job, char *text, size_t size)
{
    const char *stage = pane->job ? job_stage(job) : "measuring";
    double      seconds = job_seconds(job);
    char        since[32] = "", share[96] = "";

    if (seconds >= LONG_RUN) {
        snprintf(since, sizeof(since), ", ");
        format_seconds(floor(seconds), since + 2, sizeof(since) - 2);
        share_text(ui, job_share(job), share, sizeof(share));
    }
    snprintf(text, size, "running %s%s%s%s%s   Ctrl-C cancels", pane->request.mechanism,
             *stage ? ": " : "", stage, since, share);
}

/* Of what runs; false: nothing does. */
static bool progress_text(const Ui *ui, char *text, size_t size)
{
    const Pane *pane = NULL;
    const Job  *job = ui_running_job(ui, &pane);

    if (job)
        running_text(ui, pane, job, text, size);
    return job || ui_progress(ui, text, size) >= 0;
}

#define PROGRESS_GAP 3 /* columns between a message and what runs */

/* A script's own messages take the place of its line. */
static bool shown_with_message(const Ui *ui)
{
    const Pane *pane;
    char        ignored[256];

    return ui_running_job(ui, &pane) ||
           ui_progress(ui, ignored, sizeof(ignored)) != SCREEN_CONSOLE;
}

/* Message and progress have room in one line. */
static bool fits_beside(const Ui *ui, const char *progress)
{
    return message_lines(ui) == 1 && term_width(ui->message) + PROGRESS_GAP +
                                             term_width(progress) <= ui->term->cols - 2;
}

/* Whose line it is: a window that hides the screen has its own, or none. */
static const Screen *line_screen(const Ui *ui)
{
    static const ScreenId windows[] = { SCREEN_TEXT, SCREEN_LIST, SCREEN_VARY };

    for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++)
        if (ui_has(ui, windows[i]))
            return ui->screens[windows[i]];
    return ui->screens[ui->screen];
}

static void draw_message(Ui *ui)
{
    Term *term = ui->term;
    int   y = term->rows - 2;
    char  progress[256];
    bool  runs = progress_text(ui, progress, sizeof(progress));

    if (lessons_docked(ui) && ui_has(ui, SCREEN_PARAMS) &&
        ui->screens[SCREEN_LESSON]->line(ui, y))
        return;
    if (ui->message[0]) {
        if (message_lines(ui) == 1)
            term_text(term, y, 1, term->cols - 2, ui->message, ui_style(ui, ui->message_role));
        if (runs && shown_with_message(ui) && fits_beside(ui, progress))
            term_text(term, y, term->cols - 1 - term_width(progress), term_width(progress),
                      progress, ui_style(ui, ROLE_WARN));
        return;
    }
    if (runs)
        term_text(term, y, 1, term->cols - 2, progress, ui_style(ui, ROLE_WARN));
    else if (line_screen(ui)->line)
        line_screen(ui)->line(ui, y);
}

#define SLOW_RUN 0.5 /* seconds after which a run is worth a row of the picture */

/* Above a message that leaves no room beside it. */
static void draw_progress_above(Ui *ui, int lines)
{
    Term       *term = ui->term;
    Area        row = { term->rows - 2 - lines, 0, 1, term->cols };
    const Pane *pane;
    const Job  *job = ui_running_job(ui, &pane);
    char        progress[256];

    if (!ui->message[0] || (job && job_seconds(job) < SLOW_RUN) ||
        !progress_text(ui, progress, sizeof(progress)) || !shown_with_message(ui) ||
        fits_beside(ui, progress))
        return;
    term_fill(term, row, ' ', (Style){ 0 });
    term_text(term, row.y, 1, term->cols - 2, progress, ui_style(ui, ROLE_WARN));
}

void status_draw_long(Ui *ui)
{
    Term       *term = ui->term;
    int         lines = message_lines(ui);
    Area        area = { term->rows - 1 - lines, 1, lines, term->cols - 2 };
    const char *cut = term->utf8 ? " \xe2\x80\xa6 (! shows all)" : " ... (! shows all)";
    Style       style = ui_style(ui, ui->message_role);

    if (ui_scope(ui) & TYPED_AT_BOTTOM)
        return;
    draw_progress_above(ui, lines);
    if (lines < 2)
        return;
    term_paragraph(term, area, ui->message, style);
    area.h++;
    if (term_paragraph(NULL, area, ui->message, style) > lines)
        term_text(term, term->rows - 2, 1 + area.w - term_width(cut), area.w, cut, style);
}

/* Wrapped, because often the width is too small. */
static void draw_too_small(Ui *ui)
{
    Term *term = ui->term;
    char  text[96];

    snprintf(text, sizeof(text), "Terminal too small: %dx%d, needs %dx%d. q quits.", term->cols,
             term->rows, LEAST_COLS, LEAST_ROWS);
    term_paragraph(term, (Area){ term->rows / 3, 0, term->rows - term->rows / 3, term->cols }, text,
                   ui_style(ui, ROLE_WARN));
}

bool status_fits(const Ui *ui)
{
    return ui->term->rows >= LEAST_ROWS && ui->term->cols >= LEAST_COLS;
}

bool status_draw(Ui *ui)
{
    Term *term = ui->term;

    ui->hit_count = 0;
    if (!status_fits(ui)) {
        term_clear(term, (Style){ 0 });
        draw_too_small(ui);
        return false;
    }
    draw_first_line(ui);
    draw_message(ui);
    draw_last_line(ui);
    return true;
}

/* ---- messages that are kept ---------------------------------------------------- */

#define KEPT "messages.log"

static bool append(const char *path, const Text *text, Error *err)
{
    int   place = place_append(path, err);
    FILE *file = place >= 0 ? fdopen(place, "ab") : NULL;
    bool  ok;

    if (!file && place >= 0) {
        close(place);
        error_set(err, ERR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    }
    if (!file)
        return false;
    ok = fwrite(text->data, 1, text->length, file) == text->length;
    ok = fclose(file) == 0 && ok;
    return ok || error_set(err, ERR_FILE, "%s: writing failed: %s", path, strerror(errno));
}

bool messages_keep(Ui *ui, Error *err)
{
    time_t    now = time(NULL);
    struct tm parts;
    char      day[32] = "";
    Text      path = { 0 }, text = { 0 };
    bool      ok;

    if (!ui->keep_messages || !ui->log.length)
        return true;
    if (localtime_r(&now, &parts))
        strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &parts);
    text_addf(&text, "-- attnscope " ATTNSCOPE_VERSION ", left %s\n%s", day, text_str(&ui->log));
    ok = place_state(KEPT, &path, err) && place_make_folders(text_str(&path), err) &&
         (text_ok(&text) || error_set(err, ERR_NOMEM, "not enough memory")) &&
         append(text_str(&path), &text, err);
    text_free(&path);
    text_free(&text);
    return ok;
}

/* ---- messages on the screen -------------------------------------------------- */

void action_messages(Ui *ui)
{
    pager_open(ui, "Messages", ui->log.length ? text_str(&ui->log) : "no messages yet\n", true);
}

void warnings_typed(Ui *ui, const char *rest)
{
    Text all = { 0 }, line = { 0 };

    (void)rest;
    for (int i = 0; i < ui->compare.count; i++) {
        const Result *result = ui->compare.panes[i].result;
        const char   *lines = result ? text_str(&result->run->warnings) : "";

        while (result && result_warning(result, &lines, &line))
            text_addf(&all, "%s%d  %s\n", all.length ? "\n" : "", i + 1, text_str(&line));
    }
    if (all.length)
        pager_open_prose(ui, "Warnings of the panes", text_str(&all));
    else
        ui_say(ui, ROLE_DIM, ui->compare.count ? "no pane warns" : "no pane is open");
    text_free(&all);
    text_free(&line);
}

void messages_typed(Ui *ui, const char *rest)
{
    Error err = ERROR_INIT;

    if (!strcmp(rest, "keep") || !strcmp(rest, "drop")) {
        ui->keep_messages = *rest == 'k';
        ui_say(ui, ROLE_DIM, ui->keep_messages ? "messages go to the state folder on leaving"
                                               : "messages are dropped on leaving");
    } else if (file_write(rest, text_str(&ui->log), ui->log.length, &err)) {
        ui_say(ui, ROLE_GOOD, "written: %s", rest);
    } else {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    }
}
