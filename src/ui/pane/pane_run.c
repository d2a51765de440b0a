/* pane_run.c -- a pane's runs and measurements come and go; see pane.h. */
#include <stdio.h>
#include <string.h>

#include "ui/shell/explorer.h"

/* A measurement of what draws is over several seeds, where that is quick. */
#define SEEDS       5
#define SEEDS_UP_TO 2048

/* ---- runs ------------------------------------------------------------------- */

void pane_run(Ui *ui, Pane *pane)
{
    Error err = ERROR_INIT;

    job_free(pane->job);
    pane->problem[0] = '\0';
    pane->ask = false;
    pane->request.measure = false;
    pane->request.missed = !strcmp(pane->view, MISSED_VIEW);
    pane->request.repeat = 0;
    pane->job = session_submit(ui->session, &pane->request, &err);
    if (!pane->job)
        snprintf(pane->problem, sizeof(pane->problem), "%.500s", err.text);
}

void pane_measure(Ui *ui, Pane *pane)
{
    Error   err = ERROR_INIT;
    Request request = pane->request;

    job_free(pane->measuring);
    request.above = NULL; /* the layers above are there for reach alone */
    request.measure = true;
    request.missed = false;
    request.repeat = 7;
    /* The comparison with full attention costs n x n: not for long inputs. */
    request.quality = session_input(ui->session)->n <= 8192;
    request.seeds = session_input(ui->session)->n <= SEEDS_UP_TO ? SEEDS : 0;
    pane->measuring = session_submit(ui->session, &request, &err);
    if (!pane->measuring)
        ui_say(ui, ROLE_ERROR, "%s", err.text);
}

/* The mechanism is named once. */
static const char *without_name(const Pane *pane, const char *text)
{
    size_t length = strlen(pane->request.mechanism);

    return !strncmp(text, pane->request.mechanism, length) && !strncmp(text + length, ": ", 2)
               ? text + length + 2
               : text;
}

static void fail(Ui *ui, Pane *pane, const char *text)
{
    snprintf(pane->problem, sizeof(pane->problem), "%.500s", text);
    ui_say(ui, ROLE_ERROR, "%s: %s", pane->request.mechanism, without_name(pane, text));
}

/* Once each: a live re-run must not repeat it, nor hide an answer to the last key. */
static void say_warning(Ui *ui, const char *lines)
{
    char first[256];

    snprintf(first, sizeof(first), "%.*s", (int)strcspn(lines, "\n"), lines);
    if (first[0] && !strstr(text_str(&ui->log), first) && !ui->message[0])
        ui_say(ui, ROLE_WARN, "%s", first);
}

/* A name that only the run could judge is not there: what is shown instead goes by its own. */
static void settle_view(Ui *ui, Pane *pane)
{
    const View *view = pane_view(pane);
    Error       err = ERROR_INIT;

    if (!pane->view[0] || !strcmp(pane->view, MISSED_VIEW) || !view || view != pane->telling ||
        !strcmp(pane->view, view->name) || result_view(pane->result, pane->view, &err) == view)
        return;
    ui_say(ui, ROLE_ERROR, "%s", err.text);
    pane->view[0] = '\0';
}

static void accept_result(Ui *ui, Pane *pane, Result *result)
{
    const char *warnings = text_str(&result->run->warnings);

    bool first = !pane->result;

    result_release(pane->result);
    pane->result = result;
    pane->problem[0] = '\0';
    pane->row.owner = pane->marked.owner = NULL; /* a new run may stand where the old one stood */
    pane->order = NULL;
    pane->order_head = -1;
    pane->telling = result_view(result, NULL, NULL);
    pane->head = pane->head < result->run->h ? pane->head : 0;
    if (first && pane->telling && !pane->lens.q && !pane->lens.k && !compare_adopt(ui, pane)) {
        pane->lens.q = view_rows(pane->telling) / 2; /* on the diagonal something is allowed */
        pane->lens.k = view_cols(pane->telling) / 2;
    }
    if (pane->measured) {
        result_release(pane->measured);
        pane->measured = NULL;
    }
    if (first)
        settle_view(ui, pane);
    say_warning(ui, warnings);
}

static bool poll_run(Ui *ui, Pane *pane)
{
    JobState state = pane->job ? job_state(pane->job) : JOB_WAITING;
    Result  *result;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result = state == JOB_DONE ? job_result(pane->job) : NULL;
    if (result && result->run->err.code == ERR_NONE) {
        accept_result(ui, pane, result);
    } else if (result) {
        fail(ui, pane, result->run->err.text);
        result_release(result);
    } else {
        fail(ui, pane, state == JOB_FAILED ? job_error(pane->job)->text : "cancelled");
    }
    job_free(pane->job);
    pane->job = NULL;
    return true;
}

static bool poll_measure(Ui *ui, Pane *pane)
{
    JobState state = pane->measuring ? job_state(pane->measuring) : JOB_WAITING;

    if (state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    result_release(pane->measured);
    pane->measured = job_result(pane->measuring);
    if (!pane->measured)
        ui_say(ui, ROLE_ERROR, "%s: not measured: %s", pane->request.mechanism,
               state == JOB_FAILED ? without_name(pane, job_error(pane->measuring)->text)
                                   : "cancelled");
    job_free(pane->measuring);
    pane->measuring = NULL;
    return true;
}

bool pane_poll(Ui *ui, Pane *pane)
{
    bool changed = poll_run(ui, pane);

    changed |= poll_measure(ui, pane);
    changed |= drawing_poll(&ui->draughtsman, &pane->drawing);
    changed |= side_poll(&ui->draughtsman, &pane->side);
    return changed;
}

void pane_close(Ui *ui, Pane *pane)
{
    drawing_clear(&ui->draughtsman, &pane->drawing);
    side_clear(&ui->draughtsman, &pane->side);
    job_free(pane->job);
    job_free(pane->measuring);
    result_release(pane->result);
    result_release(pane->measured);
    request_free(&pane->request);
    row_free(&pane->row);
    row_free(&pane->marked);
    *pane = (Pane){ 0 };
}
