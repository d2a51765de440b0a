/* side.c -- see side.h. */
#include "ui/pane/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries read at most: at once, in a blink, and to be exact at all. */
static const double efforts[] = { 2e5, 2e7, 3e8 };
#define EFFORTS ((int)(sizeof(efforts) / sizeof(*efforts)))

struct SideWork {
    Chore        chore;
    MarginRequest request;
    Margin        margin;
    Result      *results[2]; /* retained */
};

static void work_free(Chore *chore)
{
    SideWork *w = (SideWork *)chore;

    job_free(chore->job);
    for (int i = 0; i < 2; i++)
        result_release(w->results[i]);
    margin_free(&w->margin);
    free(w);
}

static bool read_strip(void *context, const atomic_bool *cancel, Error *err)
{
    SideWork *w = context;

    w->request.cancel = cancel;
    return margin_make(&w->request, &w->margin, err);
}

static void start(Draughtsman *d, Side *side, int effort)
{
    SideWork *w = calloc(1, sizeof(*w));
    Error     err = ERROR_INIT;

    if (!w)
        return;
    w->request = side->wanted;
    w->request.threads = d->threads;
    w->request.budget_entries = efforts[effort];
    w->chore.let_go = work_free;
    w->chore.job = session_submit_work(d->session, read_strip, w, &err);
    if (!w->chore.job) {
        snprintf(side->problem, sizeof(side->problem), "%.250s", err.text);
        free(w);
        return;
    }
    for (int i = 0; i < 2; i++)
        w->results[i] = side->results[i] ? result_retain(side->results[i]) : NULL;
    side->work = w;
    side->effort = effort;
}

static void abandon(Draughtsman *d, Side *side)
{
    if (side->work)
        draughtsman_abandon(d, &side->work->chore);
    side->work = NULL;
}

/* Where all rows were read it does not matter which are in sight. */
static bool same(const MarginRequest *a, const MarginRequest *b, bool sampled)
{
    return a->kind == b->kind && a->view == b->view && a->minus == b->minus &&
           a->plane == b->plane && a->minus_plane == b->minus_plane && a->head == b->head &&
           a->excluded == b->excluded && a->query_count == b->query_count &&
           !memcmp(a->queries, b->queries, (size_t)a->query_count * sizeof(*a->queries)) &&
           (!sampled || (a->row0 == b->row0 && a->row1 == b->row1 &&
                         a->row_order == b->row_order));
}

void side_want(Draughtsman *d, Side *side, const MarginRequest *request, Result *result,
               Result *minus)
{
    Result *results[2] = { result, minus };
    bool    sampled = !side->settled || side->margin.share < 1;

    if (same(&side->wanted, request, sampled) && side->results[0] == result &&
        side->results[1] == minus)
        return;
    abandon(d, side);
    for (int i = 0; i < 2; i++) {
        Result *before = side->results[i];

        side->results[i] = results[i] ? result_retain(results[i]) : NULL;
        result_release(before);
    }
    if (side->shown != request->view || side->margin.kind != request->kind)
        margin_free(&side->margin); /* bars of something else would mislead */
    side->wanted = *request;
    side->settled = false;
    side->problem[0] = '\0';
    start(d, side, 0);
}

void side_refuse(Draughtsman *d, Side *side, const char *why)
{
    if (side->wanted.kind != MARGIN_NONE)
        side_clear(d, side);
    snprintf(side->problem, sizeof(side->problem), "%.250s", why);
}

static void take(Side *side)
{
    margin_free(&side->margin);
    side->margin = side->work->margin;
    side->work->margin = (Margin){ 0 };
    side->shown = side->wanted.view;
    side->problem[0] = '\0';
    side->settled = !(side->margin.share < 1) || side->effort == EFFORTS - 1;
}

bool side_poll(Draughtsman *d, Side *side)
{
    SideWork *w = side->work;
    JobState  state = w ? job_state(w->chore.job) : JOB_WAITING;

    if (!w || state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    if (state == JOB_DONE)
        take(side);
    else
        side->settled = true;
    if (state == JOB_FAILED)
        snprintf(side->problem, sizeof(side->problem), "%.250s", job_error(w->chore.job)->text);
    side->work = NULL;
    work_free(&w->chore);
    if (!side->settled)
        start(d, side, side->effort + 1);
    return true;
}

void side_clear(Draughtsman *d, Side *side)
{
    abandon(d, side);
    margin_free(&side->margin);
    for (int i = 0; i < 2; i++)
        result_release(side->results[i]);
    *side = (Side){ 0 };
}
