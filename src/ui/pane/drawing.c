/* drawing.c -- see figure_run.h. */
#include "ui/pane/drawing.h"

#include <stdio.h>
#include <stdlib.h>

/* Entries read at most: at once, in a blink, and to be exact at all. */
static const double efforts[] = { 2e5, 2e7, 0 };
#define EXACT_MOST 3e8

struct Reduction {
    Chore       chore;
    GridRequest request;
    Grid        grid;
    Result     *results[2]; /* retained */
};

bool draughtsman_open(Draughtsman *d, Error *err)
{
    d->session = session_new(err);
    if (!d->session)
        return false;
    d->threads = threads_new_behind(threads_hardware());
    return true;
}

static bool reduce(void *context, const atomic_bool *cancel, Error *err)
{
    Reduction *r = context;

    threads_stay_behind(); /* the keys come first */
    r->request.cancel = cancel;
    return grid_reduce(&r->request, &r->grid, err);
}

static void reduction_free(Chore *chore)
{
    Reduction *r = (Reduction *)chore;

    job_free(chore->job);
    for (int i = 0; i < 2; i++)
        result_release(r->results[i]);
    grid_free(&r->grid);
    free(r);
}

bool chore_over(const Chore *chore)
{
    JobState state = job_state(chore->job);

    return state != JOB_WAITING && state != JOB_RUNNING;
}

void draughtsman_sweep(Draughtsman *d)
{
    for (Chore **at = &d->abandoned; *at;) {
        Chore *chore = *at;

        if (!chore_over(chore)) {
            at = &chore->next;
            continue;
        }
        *at = chore->next;
        chore->let_go(chore);
    }
}

void draughtsman_abandon(Draughtsman *d, Chore *chore)
{
    job_cancel(chore->job);
    chore->next = d->abandoned;
    d->abandoned = chore;
}

void draughtsman_close(Draughtsman *d)
{
    for (Chore *chore = d->abandoned; chore; chore = chore->next)
        job_wait(chore->job);
    draughtsman_sweep(d);
    session_free(d->session);
    threads_free(d->threads);
    *d = (Draughtsman){ 0 };
}

static void abandon(Draughtsman *d, Drawing *drawing)
{
    if (drawing->work)
        draughtsman_abandon(d, &drawing->work->chore);
    drawing->work = NULL;
}

static bool same(const GridRequest *a, const GridRequest *b)
{
    return a->view == b->view && a->minus == b->minus && a->components == b->components &&
           a->plane == b->plane && a->region.row0 == b->region.row0 &&
           a->region.row1 == b->region.row1 && a->region.col0 == b->region.col0 &&
           a->region.col1 == b->region.col1 && a->rows == b->rows && a->cols == b->cols &&
           a->row_order == b->row_order && a->col_order == b->col_order &&
           a->excludes == b->excludes && (!a->excludes || a->excluded == b->excluded);
}

/* Hop counts are found for many rows at once: a sample of rows costs as much as all. */
static double budget_of(const GridRequest *request, int effort)
{
    const View *view = request->view;

    return view->kind == VIEW_HOPS && (double)view_rows(view) * (double)view_cols(view) < EXACT_MOST
               ? 0
               : efforts[effort];
}

static void start(Draughtsman *d, Drawing *drawing, int effort)
{
    Reduction *r = calloc(1, sizeof(*r));
    Error      err = ERROR_INIT;

    if (!r)
        return;
    r->request = drawing->wanted;
    r->request.threads = d->threads;
    r->request.budget_entries = budget_of(&r->request, effort);
    r->chore.let_go = reduction_free;
    r->chore.job = session_submit_work(d->session, reduce, r, &err);
    if (!r->chore.job) {
        snprintf(drawing->problem, sizeof(drawing->problem), "%.250s", err.text);
        free(r);
        return;
    }
    for (int i = 0; i < 2; i++)
        r->results[i] = drawing->results[i] ? result_retain(drawing->results[i]) : NULL;
    drawing->work = r;
    drawing->effort = effort;
}

void drawing_want(Draughtsman *d, Drawing *drawing, const GridRequest *request, Result *result,
                  Result *minus)
{
    Result *results[2] = { result, minus };

    if (same(&drawing->wanted, request) && drawing->results[0] == result &&
        drawing->results[1] == minus)
        return;
    abandon(d, drawing);
    for (int i = 0; i < 2; i++) {
        Result *before = drawing->results[i];

        drawing->results[i] = results[i] ? result_retain(results[i]) : NULL;
        result_release(before);
    }
    drawing->wanted = *request;
    drawing->settled = false;
    start(d, drawing, 0);
}

static void take(Drawing *drawing)
{
    Reduction *r = drawing->work;

    grid_free(&drawing->grid);
    drawing->grid = r->grid;
    r->grid = (Grid){ 0 };
    drawing->shown = r->request.view;
    drawing->kind = r->request.view->kind;
    drawing->causes =
        !r->request.minus && (drawing->kind == VIEW_PATTERN || drawing->kind == VIEW_COMPONENTS);
    drawing->problem[0] = '\0';
    drawing->settled = !drawing->grid.sampled ||
                       (drawing->effort >= 1 && drawing->grid.count > EXACT_MOST) ||
                       drawing->effort == 2;
}

bool drawing_poll(Draughtsman *d, Drawing *drawing)
{
    Reduction *r = drawing->work;
    JobState   state = r ? job_state(r->chore.job) : JOB_WAITING;

    if (!r || state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    if (state == JOB_DONE)
        take(drawing);
    else
        drawing->settled = true;
    if (state == JOB_FAILED)
        snprintf(drawing->problem, sizeof(drawing->problem), "%.250s",
                 job_error(r->chore.job)->text);
    drawing->work = NULL;
    reduction_free(&r->chore);
    if (!drawing->settled)
        start(d, drawing, drawing->effort + 1);
    return true;
}

bool drawing_pending(const Drawing *drawing)
{
    return drawing->work && drawing->effort == 0;
}

void drawing_clear(Draughtsman *d, Drawing *drawing)
{
    abandon(d, drawing);
    grid_free(&drawing->grid);
    for (int i = 0; i < 2; i++)
        result_release(drawing->results[i]);
    *drawing = (Drawing){ 0 };
}
