/* command_work.c -- a command of the program, or a study of the panes, that runs in the explorer.
 *
 * It runs on the worker in a session of its own on the same input, so a long one does not hold up
 * the screen; its progress stands in the message line, its result opens as a text.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/call.h"
#include "app/command/command.h"
#include "ui/shell/pane_study.h"
#include "ui/shell/shell.h"
#include "ui/state/journal.h"

struct CommandWork {
    Job        *job;
    Text        out, storage;
    char        line[512];
    PaneStudy  *study; /* owned; of the open panes, instead of a command; NULL: a command */
    char       *spec; /* of the input; NULL: none */
    InputChoice choice;
    const char *words[CALL_MAX_WORDS]; /* in storage */
    int         count, columns;
    pthread_mutex_t lock; /* guards progress, which the worker writes */
    char        progress[160]; /* "": none yet */
    char        shown[160];    /* the progress last drawn */
    bool        cancelled;
};

static void take_progress(void *context, const char *text)
{
    struct CommandWork *w = context;

    pthread_mutex_lock(&w->lock);
    snprintf(w->progress, sizeof(w->progress), "%s", text);
    pthread_mutex_unlock(&w->lock);
}

/* False: nothing new. */
static bool progress_changed(struct CommandWork *w)
{
    bool fresh;

    pthread_mutex_lock(&w->lock);
    fresh = strcmp(w->shown, w->progress) != 0;
    snprintf(w->shown, sizeof(w->shown), "%s", w->progress);
    pthread_mutex_unlock(&w->lock);
    return fresh;
}

bool command_progress(const Ui *ui, char *text, size_t size)
{
    const struct CommandWork *w = ui->command.work;

    if (w)
        snprintf(text, size, "%s%.120s%s", *w->shown ? "" : "running: ",
                 *w->shown ? w->shown : w->line, w->cancelled ? "" : "   Ctrl-C cancels");
    return w != NULL;
}

static bool run_command(void *context, const atomic_bool *cancel, Error *err)
{
    struct CommandWork *w = context;
    Session            *s = session_new(err);
    bool                ok = s != NULL;

    if (ok) {
        session_on_stop(s, cancel, NULL);
        session_on_progress(s, take_progress, w);
    }
    if (ok && w->spec)
        ok = session_load(s, w->spec, &w->choice, err);
    if (ok && atomic_load(cancel))
        ok = error_set(err, ERR_CANCELLED, "cancelled");
    if (ok && w->study)
        ok = pane_study_run(w->study, s, w->columns, err);
    else if (ok) /* the pager shows characters, no colours */
        ok = command_run(s, w->words, w->count, READER_PAGER, w->columns, &w->out, err);
    session_free(s);
    return ok;
}

static void command_work_free(struct CommandWork *w)
{
    job_free(w->job);
    pane_study_free(w->study);
    text_free(&w->out);
    text_free(&w->storage);
    pthread_mutex_destroy(&w->lock);
    free(w->spec);
    free(w);
}

static bool add_setting(const Call *call, OptionId id, const char *value, Text *line)
{
    bool takes = !call->values[id] && command_takes(call->command, option_at(id));

    if (takes)
        text_addf(line, " --%s%s%s", option_at(id)->flag, value ? " " : "", value ? value : "");
    return takes;
}

/* The line with the explorer's causal, device and precision, which hold for its panes.  What the
 * line says itself stays; another input or a preset has its own. */
static void with_settings(const Ui *ui, const char *typed, Text *line)
{
    const Request *as = &ui->defaults;
    const char    *words[CALL_MAX_WORDS];
    Text           storage = { 0 };
    Error          ignored = ERROR_INIT;
    Call           call;
    int            count = 0;

    text_add(line, typed);
    if (call_split(typed, words, CALL_MAX_WORDS, &count, &storage, &ignored) &&
        call_parse(&call, words, count, &ignored) && !call.values[OPT_INPUT] &&
        !call.values[OPT_PRESET]) {
        if (as->causal >= 0 && !call.values[OPT_CAUSAL] && !call.values[OPT_NOCAUSAL])
            add_setting(&call, as->causal ? OPT_CAUSAL : OPT_NOCAUSAL, NULL, line);
        if (as->ops && add_setting(&call, OPT_DEVICE, as->device, line) && *as->precision)
            add_setting(&call, OPT_PRECISION, as->precision, line);
    }
    text_free(&storage);
}

/* Takes over the study.  n: of the input; 0: as it is. */
static void start_work(Ui *ui, const char *line, PaneStudy *study, int64_t n)
{
    struct CommandWork *w = calloc(1, sizeof(*w));
    Error               err = ERROR_INIT;
    const char         *spec = session_input_spec(ui->session);

    if (!w || ui->command.work) {
        ui_say(ui, ROLE_WARN, w ? "a command is running: Ctrl-C cancels it"
                                : "not enough memory for a command");
        pane_study_free(study);
        free(w);
        return;
    }
    pthread_mutex_init(&w->lock, NULL);
    w->study = study;
    snprintf(w->line, sizeof(w->line), "%s", line);
    w->columns = ui->term->cols - 5;
    w->spec = spec ? strdup(spec) : NULL;
    w->choice = *session_choice(ui->session);
    w->choice.n = n ? n : w->choice.n;
    if (call_split(line, w->words, CALL_MAX_WORDS, &w->count, &w->storage, &err))
        w->job = session_submit_work(ui->draughtsman.session, run_command, w, &err);
    if (!w->job) {
        ui_say(ui, ROLE_ERROR, "%s", err.text);
        command_work_free(w);
        return;
    }
    ui->command.work = w;
    ui_say(ui, ROLE_DIM, "running: %s", line);
    ui->message[0] = '\0'; /* the log keeps it; the line has room for the progress */
}

/* "window(window=9,position=rope)": as in the words of a figure's panels. */
static void add_pane_word(const Request *r, Text *line)
{
    Text   word = { 0 }, more = { 0 };
    size_t length;

    request_text(r, &word);
    if (strcmp(r->position, "none") != 0)
        text_addf(&more, ",position=%s", r->position);
    if (r->seed)
        text_addf(&more, ",seed=%llu", (unsigned long long)r->seed);
    length = word.length;
    if (!more.length || r->above)
        text_addf(line, " '%s'", text_str(&word));
    else if (length && text_str(&word)[length - 1] == ')')
        text_addf(line, " '%.*s%s)'", (int)length - 1, text_str(&word), text_str(&more));
    else
        text_addf(line, " '%s(%s)'", text_str(&word), text_str(&more) + 1);
    text_free(&word);
    text_free(&more);
}

/* A command that compares mechanisms and names none takes those of the panes. */
static void add_panes(const Ui *ui, const char *typed, Text *line)
{
    bool bare = !strcmp(typed, "roofline") || !strcmp(typed, "compare");

    text_add(line, typed);
    for (int i = 0; bare && i < ui->compare.count; i++)
        add_pane_word(&ui->compare.panes[i].request, line);
}

void command_start(Ui *ui, const char *typed)
{
    Text line = { 0 }, whole = { 0 }, bare = { 0 };
    int  length = (int)strlen(typed);

    while (length && typed[length - 1] == ' ') /* completion leaves one */
        length--;
    text_addf(&bare, "%.*s", length, typed);
    add_panes(ui, text_str(&bare), &whole);
    text_free(&bare);
    with_settings(ui, text_str(&whole), &line);
    text_free(&whole);
    start_work(ui, text_str(&line), NULL, 0);
    text_free(&line);
}

void command_study(Ui *ui, const char *line, StudyKind kind, const Budget *budget, int64_t n)
{
    Error      err = ERROR_INIT;
    PaneStudy *study = pane_study_new(ui, kind, budget, &err);

    if (study)
        start_work(ui, line, study, n);
    else
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

/* A sweep says, too, how to go on. */
static void say_cancelled(Ui *ui, const struct CommandWork *w)
{
    const char *why = job_error(w->job)->text;
    bool        more = *why && strcmp(why, "cancelled") != 0;

    ui_say(ui, ROLE_WARN, "cancelled: %s%s%s", w->line, more ? ": " : "", more ? why : "");
}

bool command_poll(Ui *ui)
{
    struct CommandWork *w = ui->command.work;
    JobState            state = w ? job_state(w->job) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return w && progress_changed(w);
    ui->command.work = NULL;
    ui->message[0] = '\0';
    if (state == JOB_DONE && !w->study)
        journal_command(ui, w->line);
    if (w->cancelled && (w->study || state != JOB_DONE))
        say_cancelled(ui, w);
    else if (state == JOB_DONE && w->cancelled)
        ui_say(ui, ROLE_GOOD, "done before it could be cancelled: %s", w->line);
    else if (state == JOB_DONE && w->study)
        pane_study_show(ui, w->study);
    else if (state == JOB_DONE && w->out.length)
        pager_open(ui, w->line, text_str(&w->out), false);
    else if (state == JOB_DONE)
        ui_say(ui, ROLE_GOOD, "done: %s", w->line);
    else
        ui_say(ui, ROLE_ERROR, "%s", job_error(w->job)->text);
    command_work_free(w);
    return true;
}

bool command_cancel(Ui *ui)
{
    struct CommandWork *w = ui->command.work;

    if (w) {
        job_cancel(w->job);
        w->cancelled = true;
    }
    return w != NULL;
}

bool command_runs(const Ui *ui)
{
    return ui->command.work != NULL;
}

void command_end(Ui *ui)
{
    if (!ui->command.work)
        return;
    job_cancel(ui->command.work->job);
    command_work_free(ui->command.work);
    ui->command.work = NULL;
}
