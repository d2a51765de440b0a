/* pane_study.c -- sizes for a budget, quality per head and cost of a token, of the open panes; see
 * pane_study.h. */
#include "ui/shell/pane_study.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/command/command.h"
#include "attn/run/mechanism.h"
#include "ui/shell/shell.h"
#include "ui/state/panes.h"

struct PaneStudy {
    Request requests[PANES_MOST]; /* owned copies; the size is set in them */
    Request before[PANES_MOST];   /* owned copies, to know the panes again */
    int     count;
    StudyKind kind;
    Budget  budget;
    Text    out; /* a line for each pane, or the table */
    int64_t n;   /* tokens of the input that it ran on */
};

/* ---- what is studied ---------------------------------------------------------------- */

/* Runs on the CPU: pairs, FLOPs and quality are the same on every device. */
static bool add_request(PaneStudy *study, const Request *request, Error *err)
{
    Request *copy = &study->requests[study->count];

    if (!request_copy(copy, request, err))
        return false;
    if (!request_copy(&study->before[study->count], request, err)) {
        request_free(copy);
        return false;
    }
    study->count++;
    copy->device[0] = copy->precision[0] = '\0';
    copy->ops = NULL;
    copy->measure = copy->missed = false;
    copy->repeat = copy->seeds = 0;
    return true;
}

/* A pane's size was mostly set by how it was opened, so a budget replaces it. */
static void forget_sizes(PaneStudy *study)
{
    for (int i = 0; i < study->count; i++) {
        const char *size = mechanism_find(study->requests[i].mechanism)->size;

        if (size)
            assignments_remove(&study->requests[i].given, size);
    }
}

PaneStudy *pane_study_new(const Ui *ui, StudyKind kind, const Budget *budget, Error *err)
{
    PaneStudy *study = calloc(1, sizeof(*study));
    bool       ok = study != NULL;

    if (!ok)
        error_set(err, ERR_NOMEM, "not enough memory for a study of the panes");
    if (ok && !ui->compare.count)
        ok = error_set(err, ERR_USAGE, "no pane is open: Enter in the list opens a mechanism");
    for (int i = 0; ok && i < ui->compare.count; i++)
        ok = add_request(study, &ui->compare.panes[i].request, err);
    if (ok)
        study->kind = kind;
    if (ok && kind == STUDY_BUDGET) {
        study->budget = *budget;
        forget_sizes(study);
    }
    if (ok)
        return study;
    pane_study_free(study);
    return NULL;
}

void pane_study_free(PaneStudy *study)
{
    if (!study)
        return;
    for (int i = 0; i < study->count; i++) {
        request_free(&study->requests[i]);
        request_free(&study->before[i]);
    }
    text_free(&study->out);
    free(study);
}

/* ---- running ------------------------------------------------------------------------ */

/* Exact attention on the same input and mask: what shares are of. */
static Result *run_exact(const PaneStudy *study, Session *s, Error *err)
{
    Request exact = REQUEST_INIT;
    Result *result = NULL;

    exact.causal = study->requests[0].causal;
    exact.seed = study->requests[0].seed;
    exact.threads = study->requests[0].threads;
    exact.memory_limit = study->requests[0].memory_limit;
    if (request_parse(s, &exact, "full", err))
        result = session_run(s, &exact, err);
    request_free(&exact);
    return result;
}

static bool choose_sizes(PaneStudy *study, Session *s, Error *err)
{
    Result *exact = run_exact(study, s, err);
    bool    ok = exact != NULL;

    for (int i = 0; ok && i < study->count; i++) {
        text_add(&study->out, i ? "; " : "");
        ok = budget_choose(s, &study->budget, exact, &study->requests[i], &study->out, err);
    }
    result_release(exact);
    return ok;
}

/* Below the table, why a row is missing. */
static void show_missing(PaneStudy *study, const Result *result, int i)
{
    bool failed = result->run->err.code != ERR_NONE;

    if (failed || (study->kind == STUDY_QUALITY && !result->record.head_count))
        text_addf(&study->out, "\n%s: %s\n", study->requests[i].mechanism,
                  failed ? result->run->err.text : "is not compared with exact attention");
}

static bool compare_panes(PaneStudy *study, Session *s, int columns, Error *err)
{
    bool    decode = study->kind == STUDY_DECODE;
    Result *results[PANES_MOST];
    int     count = 0;
    bool    ok = true;

    for (int i = 0; ok && i < study->count; i++) {
        Request *request = &study->requests[i];

        request->quality = request->per_head = !decode;
        request->decode = request->measure = decode;
        session_progress(s, decode ? "one token more: %s" : "quality of each head: %s",
                         request->mechanism);
        results[count] = session_run(s, request, err);
        ok = results[count] != NULL;
        count += ok;
    }
    if (ok)
        (decode ? compare_decode : compare_heads)(results, count, TABLE_TEXT, columns,
                                                  &study->out);
    for (int i = 0; i < count; i++) {
        if (ok)
            show_missing(study, results[i], i);
        result_release(results[i]);
    }
    return ok;
}

bool pane_study_run(PaneStudy *study, Session *s, int columns, Error *err)
{
    study->n = session_input(s)->n;
    return study->kind == STUDY_BUDGET ? choose_sizes(study, s, err)
                                       : compare_panes(study, s, columns, err);
}

/* ---- what came out ------------------------------------------------------------------ */

/* The pane that this request is of, after `from`; -1: it was closed or changed. */
static int pane_of(const Ui *ui, const Request *request, int from)
{
    for (int i = from; i < ui->compare.count; i++)
        if (request_same(&ui->compare.panes[i].request, request))
            return i;
    return -1;
}

/* Sets the size that was chosen for request `index`, if one was, and runs the pane. */
static bool set_size(Ui *ui, const PaneStudy *study, int index, Pane *pane, Error *err)
{
    const char       *size = mechanism_find(study->requests[index].mechanism)->size;
    const Assignment *chosen = size ? assignments_find(&study->requests[index].given, size) : NULL;
    char              words[128];

    if (!chosen)
        return true;
    snprintf(words, sizeof(words), "%s=%s", size, chosen->text);
    if (!request_set(ui->session, &pane->request, words, err))
        return false;
    pane_run(ui, pane);
    return true;
}

static bool set_sizes(Ui *ui, const PaneStudy *study, Error *err)
{
    int at = 0;

    for (int i = 0; i < study->count; i++) {
        int pane = pane_of(ui, &study->before[i], at);

        if (pane < 0)
            continue;
        at = pane + 1;
        if (!set_size(ui, study, i, &ui->compare.panes[pane], err))
            return false;
    }
    return true;
}

static const char quality_words[] =
    "\nmass: of exact attention's weights, what the allowed keys keep; p5: 5 % of\n"
    "the queries keep less. output err: of the output, relative to exact\n"
    "attention's. TV: total variation of a query's weights from exact ones, 0 to\n"
    "1, mean. KL: their divergence from exact ones, nats, mean.\n";

/* "quality of each head against exact attention, n=4096, causal" */
static void open_table(Ui *ui, const PaneStudy *study)
{
    int  causal = study->requests[0].causal;
    char title[128], tokens[48];
    Text text = { 0 };

    for (int i = 1; i < study->count; i++)
        causal = study->requests[i].causal == causal ? causal : -1;
    if (study->n < session_input(ui->session)->n)
        snprintf(tokens, sizeof(tokens), "first %lld of %lld", (long long)study->n,
                 (long long)session_input(ui->session)->n);
    else
        snprintf(tokens, sizeof(tokens), "n=%lld", (long long)study->n);
    snprintf(title, sizeof(title), "%s, %s%s",
             study->kind == STUDY_DECODE ? "what one token more costs"
                                         : "quality of each head against exact attention",
             tokens, causal > 0 ? ", causal" : causal == 0 ? ", not causal" : "");
    text_addf(&text, "%s%s", text_str(&study->out),
              study->kind == STUDY_QUALITY ? quality_words : "");
    pager_open(ui, title, text_str(&text), false);
    text_free(&text);
}

void pane_study_show(Ui *ui, PaneStudy *study)
{
    Error err = ERROR_INIT;

    if (study->kind != STUDY_BUDGET) {
        open_table(ui, study);
        return;
    }
    history_note(ui);
    if (set_sizes(ui, study, &err)) {
        ui_say(ui, ROLE_GOOD, "%s; u undoes", text_str(&study->out));
    } else {
        history_drop(ui);
        ui_say(ui, ROLE_ERROR, "%s", err.text);
    }
}
