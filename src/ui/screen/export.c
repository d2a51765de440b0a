/* export.c -- what is on the screen as a file: PNG, SVG or PDF, text for notes.
 *
 * The figure is the one that a command draws (see ui/state/journal.h), and the file carries the
 * command, so that it can be made again.  The worker draws; the results are kept
 * until the file is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "ui/shell/actions.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"
#include "ui/state/panes.h"

struct ExportWork {
    Job               *job;
    Figure            *figure;
    Result            *results[PANES_MOST + 1]; /* retained */
    int                count, shown; /* those with a panel come first */
    int                panes; /* of how many panes these are; 0: of all, or of no panes */
    PanelChoice        choices[PANES_MOST]; /* for the strips, which the worker finds */
    PictureOptions     options;
    char               path[512];
    Metadata           metadata;
    Threads           *threads; /* of the worker; borrowed */
};

static bool write_file(void *context, const atomic_bool *cancel, Error *err)
{
    struct ExportWork *w = context;
    Text               bytes = { 0 };
    PngOptions         options = { .metadata = metadata_list(&w->metadata) };
    FigureFormat       format;
    bool               ok;

    w->figure->threads = w->threads;
    if (w->options.strips.kind &&
        !picture_strips(w->figure, w->choices, w->figure->count, &w->options, cancel, err))
        return false;
    ok = figure_format(w->path, &options, &format, err) &&
         figure_file(w->figure, format, &options, &bytes, err);
    if (ok && atomic_load(cancel))
        ok = error_set(err, ERR_CANCELLED, "not written");
    ok = ok && (text_ok(&bytes) ? file_write(w->path, bytes.data, bytes.length, err)
                                : error_set(err, ERR_NOMEM, "%s: out of memory", w->path));
    text_free(&bytes);
    return ok;
}

static void export_work_free(struct ExportWork *w)
{
    job_free(w->job);
    figure_free(w->figure);
    for (int i = 0; i < w->count; i++)
        result_release(w->results[i]);
    metadata_free(&w->metadata);
    free(w);
}

/* ---- the file ----------------------------------------------------------------- */

static bool make_figure(struct ExportWork *w, const Shot *shot, Error *err)
{
    PictureOptions options = shot->options;

    options.strips.kind = MARGIN_NONE;
    w->figure = picture_of_panels(shot->choices, shot->count, &options, err);
    if (!w->figure)
        return false;
    w->options = shot->options;
    memcpy(w->choices, shot->choices, sizeof(w->choices));
    for (int i = 0; i < shot->count; i++)
        w->results[w->count++] = result_retain(shot->choices[i].result);
    /* The baseline of a difference may belong to a hidden pane. */
    if (shot->base)
        w->results[w->count++] = result_retain(shot->base);
    return true;
}

/* The command that draws the screen says what it reads. */
static bool spares_input(Ui *ui, const char *command, const char *path, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Text        storage = { 0 };
    Call        call;
    Error       ignored = ERROR_INIT;
    int         count = 0;
    bool        ok = true;

    if (call_split(command, words, CALL_MAX_WORDS, &count, &storage, &ignored) &&
        call_parse(&call, words, count, &ignored))
        ok = call_spares(&call, path, err);
    text_free(&storage);
    if (!ok)
        snprintf(ui->export.problem, sizeof(ui->export.problem), "%s", err->text);
    return ok;
}

/* The panes; *command says what draws them again. */
static bool take_panes(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    Shot shot;

    shot_take(ui, NULL, &shot);
    if (!shot.count)
        return error_set(err, ERR_DATA, "no pane shows a picture");
    if (!make_figure(w, &shot, err))
        return false;
    w->shown = shot.count;
    w->panes = shot.count < ui->compare.count ? ui->compare.count : 0;
    picture_command(ui->session, shot.choices, shot.count, &shot.options, command);
    if (!spares_input(ui, text_str(command), w->path, err))
        return false;
    journal_exporting(ui, text_str(command), w->path);
    return true;
}

static void screen_figure_free(ScreenFigure *f)
{
    figure_free(f->figure);
    text_free(&f->command);
}

/* A screen's own figure, such as time over n; the file holds its command and its numbers. */
static bool take_screen_figure(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    ScreenFigure f = { .count = 0 };
    bool         ok = ui->screens[ui->screen]->figure(ui, &f, err);

    if (ok && f.count)
        f.figure = picture_of_panels(f.choices, f.count, &f.options, err);
    if (ok && f.figure) {
        w->figure = f.figure;
        f.figure = NULL;
        for (int i = 0; i < f.count && (i == 0 || f.choices[i].joins); i++)
            w->results[w->count++] = result_retain(f.choices[i].result); /* others are the same */
        w->shown = w->count;
        text_add(command, text_str(&f.command));
        ok = spares_input(ui, text_str(command), w->path, err);
        if (ok && f.count)
            journal_exporting(ui, text_str(command), w->path);
        else if (ok)
            journal_command(ui, text_str(command));
    }
    screen_figure_free(&f);
    return ok && w->figure;
}

static bool take_shown(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    return (ui->screens[ui->screen]->figure ? take_screen_figure : take_panes)(ui, w, command, err);
}

/* Checks that need no figure; only one file is written at a time. */
static bool check_path(const Ui *ui, const char *path, Error *err)
{
    PngOptions   options = { 0 };
    FigureFormat format;

    if (!*path)
        return error_set(err, ERR_USAGE, "a file's name is needed, such as picture.png");
    if (ui->export.work)
        return error_set(err, ERR_USAGE, "%s is still being written: wait for it, or Ctrl-C",
                         ui->export.work->path);
    if (!strcmp(path, "-"))
        return error_set(err, ERR_USAGE, "- is no file: the screen is here; a name is needed");
    return file_place(path, err) && figure_format(path, &options, &format, err);
}

bool export_start(Ui *ui, const char *path)
{
    struct ExportWork *w = calloc(1, sizeof(*w));
    Error              err = ERROR_INIT;
    Text               command = { 0 };

    if (!w)
        return false;
    snprintf(w->path, sizeof(w->path), "%s", path);
    if (!check_path(ui, path, &err)) {
        snprintf(ui->export.problem, sizeof(ui->export.problem), "%s", err.text);
        goto fail;
    }
    if (!take_shown(ui, w, &command, &err))
        goto fail;
    text_add(&command, " -o ");
    word_quote(&command, path);
    picture_metadata(w->figure, w->results, w->shown, text_str(&command), NULL, &w->metadata);
    w->threads = ui->draughtsman.threads;
    w->job = session_submit_work(ui->draughtsman.session, write_file, w, &err);
    text_free(&command);
    if (!w->job)
        goto fail;
    ui->export.work = w;
    ui_say(ui, ROLE_DIM, "writing %s\xe2\x80\xa6", path);
    return true;
fail:
    ui_say(ui, ROLE_ERROR, "not written: %s", err.text);
    text_free(&command);
    export_work_free(w);
    return false;
}

static void tell_scripts(Ui *ui, const char *path)
{
    Text lines = { 0 };

    text_addf(&lines, "path %s\n", path);
    ui_event(ui, "figure", text_str(&lines));
    text_free(&lines);
}

static bool export_poll(Ui *ui)
{
    struct ExportWork *w = ui->export.work;
    JobState           state = w ? job_state(w->job) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    ui->export.work = NULL;
    journal_exported(ui, state == JOB_DONE);
    if (state == JOB_DONE && w->panes)
        ui_say(ui, ROLE_GOOD, "written: %s, the %d of %d panes on the screen", w->path, w->shown,
               w->panes);
    else if (state == JOB_DONE)
        ui_say(ui, ROLE_GOOD, "written: %s", w->path);
    else
        ui_say(ui, ROLE_ERROR, "%s", state == JOB_FAILED ? job_error(w->job)->text : "not written");
    ui->export.problem[0] = '\0';
    if (state == JOB_DONE)
        tell_scripts(ui, w->path);
    if (state == JOB_FAILED) { /* the next dialogue starts with this name */
        snprintf(ui->export.problem, sizeof(ui->export.problem), "%s", job_error(w->job)->text);
        field_set(&ui->export.field, w->path);
    }
    export_work_free(w);
    return true;
}

static bool export_cancel(Ui *ui)
{
    if (ui->export.work)
        job_cancel(ui->export.work->job);
    return ui->export.work != NULL;
}

static void export_end(Ui *ui)
{
    if (!ui->export.work)
        return;
    job_cancel(ui->export.work->job);
    job_wait(ui->export.work->job);
    export_work_free(ui->export.work);
    ui->export.work = NULL;
}

/* ---- the dialogue ----------------------------------------------------------- */

static void export_draw(Ui *ui, Area all)
{
    Term *term = ui->term;
    int   width = term->cols - 8 < 72 ? term->cols - 8 : 72;
    Area  area = { term->rows / 2 - 4, (term->cols - width) / 2, 9, width };
    Area  foot = { area.y + 4, area.x + 2, 4, width - 4 };
    bool  there = access(ui->export.field.text, F_OK) == 0, wrong = ui->export.problem[0];

    (void)all;
    ui_window(ui, area, "Export what is on the screen");
    term_text(term, area.y + 2, area.x + 2, 6, "file", ui_style(ui, ROLE_KEY));
    field_draw(&ui->export.field, term, area.y + 2, area.x + 8, width - 11,
               ui_style(ui, ROLE_FIELD));
    term_paragraph(term, foot,
                   wrong   ? ui->export.problem
                   : there ? "This file is there and will be replaced."
                           : ".png .svg .pdf: figure   .txt .ans: text",
                   ui_style(ui, wrong ? ROLE_ERROR : there ? ROLE_WARN : ROLE_DIM));
}

static bool export_key(Ui *ui, uint32_t key)
{
    if (!field_key(&ui->export.field, key))
        return false;
    ui->export.problem[0] = '\0';
    return true;
}

static void export_leave(Ui *ui)
{
    ui->export.problem[0] = '\0';
}

/* mechanism.png, or mechanism-2.png if that exists. */
static void suggest(const Ui *ui, char *path, size_t size)
{
    const Compare *c = &ui->compare;
    const char    *stem = c->count == 1 ? c->panes[0].request.mechanism : "compare";

    snprintf(path, size, "%s.png", stem);
    for (int i = 2; i < 1000 && access(path, F_OK) == 0; i++)
        snprintf(path, size, "%s-%d.png", stem, i);
}

static bool export_open(Ui *ui)
{
    char path[256];

    if (!ui->export.problem[0]) { /* otherwise keep what was typed, to be corrected */
        suggest(ui, path, sizeof(path));
        field_set(&ui->export.field, path);
    }
    return true;
}

static bool export_runs(const Ui *ui)
{
    return ui->export.work != NULL;
}

/* False, with the reason: nothing on the screen can be written. */
static bool something_shown(Ui *ui, Error *err)
{
    ScreenFigure f = { .count = 0 };
    Shot         shot;
    bool         ok;

    if (ui->screens[ui->screen]->figure) {
        ok = ui->screens[ui->screen]->figure(ui, &f, err);
        screen_figure_free(&f);
        return ok;
    }
    shot_take(ui, NULL, &shot);
    return shot.count || error_set(err, ERR_DATA, "no pane shows a picture yet");
}

void action_export(Ui *ui)
{
    Error err = ERROR_INIT;

    if (!panes_focus(ui))
        ui_say(ui, ROLE_WARN, "no pane is open");
    else if (ui->export.work)
        ui_say(ui, ROLE_WARN, "a file is being written");
    else if (!something_shown(ui, &err))
        ui_say(ui, ROLE_WARN, "%s", err.text);
    else
        ui_open(ui, SCREEN_EXPORT);
}

static void export_write(Ui *ui)
{
    ui_pop(ui);
    if (export_start(ui, ui->export.field.text) || !ui->export.problem[0])
        return; /* another name would not help */
    ui->message[0] = '\0'; /* the dialogue shows the error */
    ui_push(ui, SCREEN_EXPORT);
}

static const Action own[] = {
    { "export_write", "Enter", IN_EXPORT, "write", "write the file", .run = export_write },
};

const Screen screen_export = {
    .mode = "EXPORT",
    .scope = IN_EXPORT,
    .draw = export_draw,
    .key = export_key,
    .open = export_open,
    .close = export_leave,
    .poll = export_poll,
    .runs = export_runs,
    .cancel = export_cancel,
    .end = export_end,
    SCREEN_ACTIONS(own),
};

#define CLIPBOARD "sent to the terminal's clipboard (OSC 52)"

/* ---- the clipboard ---------------------------------------------------------- */

void action_copy_value(Ui *ui)
{
    Pane     *pane = panes_focus(ui);
    int64_t   q, k;
    CellFacts f;
    char      value[32] = "masked";

    if (!pane || !pane_view(pane))
        return;
    pane_cursor(pane, &q, &k);
    f = cell_facts(ui, pane, q, k);
    if (f.allowed)
        snprintf(value, sizeof(value), "%.9g", f.number ? f.value : 1.0);
    term_copy(ui->term, value);
    ui_say(ui, ROLE_GOOD, CLIPBOARD ": %s", value);
}

/* Breaks a long command line with backslashes, as a shell reads it. */
static void break_line(const char *line, Text *out)
{
    for (const char *at = line; *at; at++)
        if (!strncmp(at, " --", 3))
            text_add(out, " \\\n   ");
        else
            text_add_bytes(out, at, 1);
    text_add(out, "\n");
}

static void show_sent(Ui *ui, const char *command)
{
    Text lines = { 0 };

    ui_say(ui, ROLE_GOOD, CLIPBOARD ": %s", command);
    if (term_width(ui->message) > ui->term->cols - 2) {
        break_line(command, &lines);
        ui->message[0] = '\0';
        pager_open(ui, CLIPBOARD, text_str(&lines), false);
    }
    text_free(&lines);
}

static void copy_line(Ui *ui, const char *figure)
{
    Text command = { 0 };
    char path[256];

    suggest(ui, path, sizeof(path));
    text_addf(&command, "attnscope %s -o ", figure);
    word_quote(&command, path);
    term_copy(ui->term, text_str(&command));
    show_sent(ui, text_str(&command));
    text_free(&command);
}

static void copy_screen(Ui *ui)
{
    ScreenFigure f = { .count = 0 };
    Error        err = ERROR_INIT;

    if (ui->screens[ui->screen]->figure(ui, &f, &err))
        copy_line(ui, text_str(&f.command));
    else
        ui_say(ui, ROLE_WARN, "%s", err.text);
    screen_figure_free(&f);
}

/* All panes in one figure. */
void action_copy_command(Ui *ui)
{
    Pane *pane = panes_focus(ui);
    Text  command = { 0 };
    Shot  shot;

    if (!pane)
        return;
    if (ui->screens[ui->screen]->figure) {
        copy_screen(ui);
        return;
    }
    shot_take(ui, ui->screen == SCREEN_COMPARE ? NULL : pane, &shot);
    if (!shot.count) {
        ui_say(ui, ROLE_WARN, "no pane shows a picture");
        return;
    }
    picture_command(ui->session, shot.choices, shot.count, &shot.options, &command);
    copy_line(ui, text_str(&command));
    text_free(&command);
}
