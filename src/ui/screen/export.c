/* export.c -- what is on the screen as a file: PNG, SVG or PDF, text for notes.
 *
 * The figure is the one that a command draws (see journal.h), and the file carries the
 * command, so that it can be made again.  The worker draws; the results are kept
 * until the file is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command/command.h"
#include "ui/screen/profile.h"
#include "ui/shell/actions.h"
#include "ui/state/journal.h"

struct ExportWork {
    Job               *job;
    Figure            *figure;
    Result            *results[PANES_MOST + 1]; /* retained */
    int                count, shown; /* those with a panel come first */
    PanelChoice        choices[PANES_MOST]; /* for the strips, which the worker finds */
    PictureOptions     options;
    char               path[512];
    Text               storage; /* of the metadata */
    const char *const *metadata;
    Threads           *threads; /* of the worker; borrowed */
};

static bool write_figure(void *context, const atomic_bool *cancel, Error *err)
{
    struct ExportWork *w = context;
    Text               bytes = { 0 };
    PngOptions         options = { .metadata = w->metadata };
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

static void work_free(struct ExportWork *w)
{
    job_free(w->job);
    figure_free(w->figure);
    for (int i = 0; i < w->count; i++)
        result_release(w->results[i]);
    text_free(&w->storage);
    free((void *)(uintptr_t)w->metadata);
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
    for (int i = 0; i < shot->count; i++) {
        w->choices[i].looks = NULL; /* the shot's; the panels have them */
        w->results[w->count++] = result_retain(shot->results[i]);
    }
    /* What is subtracted may be of a pane that is not shown. */
    if (shot->base)
        w->results[w->count++] = result_retain(shot->base);
    return true;
}

/* The panes, or the plots of the profile screen; *command says what draws them again. */
static bool take_panes(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    Shot shot;

    shot_take(ui, NULL, &shot);
    if (!shot.count)
        return error_set(err, ERR_DATA, "no pane shows a picture");
    if (!make_figure(w, &shot, err))
        return false;
    w->shown = shot.count;
    picture_command(ui->session, shot.choices, shot.count, &shot.options, command);
    journal_exporting(ui, text_str(command), w->path);
    return true;
}

static bool take_plots(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    PanelChoice    choices[PROFILE_CHOICES_MOST];
    PictureOptions options;
    const char    *problem;
    int            count = profile_choices(ui, choices, &options, &problem);

    if (!count)
        return error_set(err, ERR_DATA, "%s", problem);
    w->figure = picture_of_panels(choices, count, &options, err);
    if (!w->figure)
        return false;
    w->results[w->count++] = result_retain(choices[0].result);
    for (int i = 1; i < count && choices[i].joins; i++) /* the other plots are of the same */
        w->results[w->count++] = result_retain(choices[i].result);
    w->shown = w->count;
    picture_command(ui->session, choices, count, &options, command);
    journal_exporting(ui, text_str(command), w->path);
    return true;
}

/* Times over n are of no pane: the file tells of the command, and holds the times. */
static bool take_scaling(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    w->figure = scaling_figure(ui, command, err);
    if (w->figure)
        journal_command(ui, text_str(command));
    return w->figure != NULL;
}

static bool take_shown(Ui *ui, struct ExportWork *w, Text *command, Error *err)
{
    if (ui->screen != SCREEN_PROFILE)
        return take_panes(ui, w, command, err);
    return (ui->profiling.view == PROFILE_SCALING ? take_scaling : take_plots)(ui, w, command, err);
}

/* What can be known before a figure is drawn; one file at a time is written. */
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
    w->metadata = picture_metadata(w->figure, w->results, w->shown, text_str(&command), NULL,
                                   &w->storage);
    w->threads = ui->draughtsman.threads;
    w->job = session_submit_work(ui->draughtsman.session, write_figure, w, &err);
    text_free(&command);
    if (!w->job)
        goto fail;
    ui->export.work = w;
    ui_say(ui, ROLE_DIM, "writing %s\xe2\x80\xa6", path);
    return true;
fail:
    ui_say(ui, ROLE_ERROR, "not written: %s", err.text);
    text_free(&command);
    work_free(w);
    return false;
}

bool export_poll(Ui *ui)
{
    struct ExportWork *w = ui->export.work;
    JobState           state = w ? job_state(w->job) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    ui->export.work = NULL;
    journal_exported(ui, state == JOB_DONE);
    if (state == JOB_DONE)
        ui_say(ui, ROLE_GOOD, "written: %s", w->path);
    else
        ui_say(ui, ROLE_ERROR, "%s", state == JOB_FAILED ? job_error(w->job)->text : "not written");
    ui->export.problem[0] = '\0';
    if (state == JOB_FAILED) { /* the next dialogue goes on from here */
        snprintf(ui->export.problem, sizeof(ui->export.problem), "%s", job_error(w->job)->text);
        field_set(&ui->export.field, w->path);
    }
    work_free(w);
    return true;
}

bool export_cancel(Ui *ui)
{
    if (ui->export.work)
        job_cancel(ui->export.work->job);
    return ui->export.work != NULL;
}

void export_close(Ui *ui)
{
    if (!ui->export.work)
        return;
    job_cancel(ui->export.work->job);
    job_wait(ui->export.work->job);
    work_free(ui->export.work);
    ui->export.work = NULL;
}

/* ---- the dialogue ----------------------------------------------------------- */

static void export_draw(Ui *ui)
{
    Term *term = ui->term;
    int   width = term->cols - 8 < 72 ? term->cols - 8 : 72;
    Area  area = { term->rows / 2 - 4, (term->cols - width) / 2, 9, width };
    Area  foot = { area.y + 4, area.x + 2, 4, width - 4 };
    bool  there = access(ui->export.field.text, F_OK) == 0, wrong = ui->export.problem[0];

    term_fill(term, area, ' ', (Style){ 0 });
    term_frame(term, area, "Export what is on the screen", true, ui_style(ui, ROLE_FOCUS),
               ui_style(ui, ROLE_TITLE));
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

const Layer export_layer = {
    .mode = "EXPORT",
    .scope = IN_EXPORT,
    .draw = export_draw,
    .key = export_key,
    .leave = export_leave,
};

/* mechanism.png, or the first number that is free. */
static void suggest(const Ui *ui, char *path, size_t size)
{
    const Compare *c = &ui->compare;
    const char    *stem = c->count == 1 ? c->panes[0].request.mechanism : "compare";

    snprintf(path, size, "%s.png", stem);
    for (int i = 2; i < 1000 && access(path, F_OK) == 0; i++)
        snprintf(path, size, "%s-%d.png", stem, i);
}

void export_open(Ui *ui)
{
    char path[256];

    if (!ui->export.problem[0]) { /* else what was typed before is to be mended */
        suggest(ui, path, sizeof(path));
        field_set(&ui->export.field, path);
    }
    ui_push(ui, &export_layer);
}

/* Why nothing on the screen can be written; NULL: something can. */
static const char *nothing_shown(Ui *ui)
{
    PanelChoice    choices[PROFILE_CHOICES_MOST];
    PictureOptions options;
    const char    *problem = "nothing is measured yet: r measures";
    Shot           shot;

    if (ui->screen == SCREEN_PROFILE && ui->profiling.view == PROFILE_SCALING)
        return scaling_known(ui) ? NULL : problem;
    if (ui->screen == SCREEN_PROFILE)
        return profile_choices(ui, choices, &options, &problem) ? NULL : problem;
    shot_take(ui, NULL, &shot);
    return shot.count ? NULL : "no pane shows a picture yet";
}

void action_export(Ui *ui)
{
    const char *problem;

    if (!compare_focus(ui))
        ui_say(ui, ROLE_WARN, "no pane is open");
    else if (ui->export.work)
        ui_say(ui, ROLE_WARN, "a file is being written");
    else if ((problem = nothing_shown(ui)))
        ui_say(ui, ROLE_WARN, "%s", problem);
    else
        export_open(ui);
}

void action_export_write(Ui *ui)
{
    ui_pop(ui);
    if (export_start(ui, ui->export.field.text) || !ui->export.problem[0])
        return; /* another name would not help */
    ui->message[0] = '\0'; /* the dialogue says it, beside what was typed */
    ui_push(ui, &export_layer);
}

#define CLIPBOARD "sent to the terminal's clipboard (OSC 52)"

/* ---- the clipboard ---------------------------------------------------------- */

void action_copy_value(Ui *ui)
{
    Pane     *pane = compare_focus(ui);
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

/* A line too long for the screen, in the way a shell takes it. */
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

static bool command_of_plots(Ui *ui, Text *command, Error *err)
{
    PanelChoice    choices[PROFILE_CHOICES_MOST];
    PictureOptions options;
    const char    *problem;
    int            count;

    if (ui->profiling.view == PROFILE_SCALING) {
        Figure *figure = scaling_figure(ui, command, err);
        bool    ok = figure != NULL;

        figure_free(figure);
        return ok;
    }
    count = profile_choices(ui, choices, &options, &problem);
    if (!count)
        return error_set(err, ERR_DATA, "%s", problem);
    picture_command(ui->session, choices, count, &options, command);
    return true;
}

static void copy_plots(Ui *ui)
{
    Error err = ERROR_INIT;
    Text  command = { 0 };
    char  path[256];

    suggest(ui, path, sizeof(path));
    text_add(&command, "attnscope ");
    if (!command_of_plots(ui, &command, &err)) {
        ui_say(ui, ROLE_WARN, "%s", err.text);
        text_free(&command);
        return;
    }
    text_add(&command, " -o ");
    word_quote(&command, path);
    term_copy(ui->term, text_str(&command));
    show_sent(ui, text_str(&command));
    text_free(&command);
}

/* All panes in one figure. */
void action_copy_command(Ui *ui)
{
    Pane *pane = compare_focus(ui);
    Text  command = { 0 };
    char  path[256];
    Shot  shot;

    if (!pane)
        return;
    if (ui->screen == SCREEN_PROFILE) {
        copy_plots(ui);
        return;
    }
    shot_take(ui, ui->screen == SCREEN_COMPARE ? NULL : pane, &shot);
    if (!shot.count) {
        ui_say(ui, ROLE_WARN, "no pane shows a picture");
        return;
    }
    suggest(ui, path, sizeof(path));
    text_add(&command, "attnscope ");
    picture_command(ui->session, shot.choices, shot.count, &shot.options, &command);
    text_add(&command, " -o ");
    word_quote(&command, path);
    term_copy(ui->term, text_str(&command));
    show_sent(ui, text_str(&command));
    text_free(&command);
}
