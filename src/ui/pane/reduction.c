/* reduction.c -- see reduction.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ui/pane/reduction.h"

/* Entries read at most in each pass; 0: all. */
static const double drawing_efforts[] = { 2e5, 2e7, 0 };
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
    d->threads = threads_new_behind(threads_default());
    return true;
}

static bool reduce(void *context, const atomic_bool *cancel, Error *err)
{
    Reduction *r = context;

    threads_stay_behind(); /* the interface thread has priority */
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

static bool chore_over(const Chore *chore)
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

static void draughtsman_abandon(Draughtsman *d, Chore *chore)
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

static void drawing_abandon(Draughtsman *d, Drawing *drawing)
{
    if (drawing->work)
        draughtsman_abandon(d, &drawing->work->chore);
    drawing->work = NULL;
}

static bool same_cells(const GridRequest *a, const GridRequest *b)
{
    return a->view == b->view && a->minus == b->minus && a->components == b->components &&
           a->plane == b->plane && a->region.row0 == b->region.row0 &&
           a->region.row1 == b->region.row1 && a->region.col0 == b->region.col0 &&
           a->region.col1 == b->region.col1 && a->rows == b->rows && a->cols == b->cols &&
           a->row_order == b->row_order && a->col_order == b->col_order &&
           a->excludes == b->excludes && (!a->excludes || a->excluded == b->excluded) &&
           a->keeps_entries == b->keeps_entries;
}

/* Hop counts are found for many rows at once: a sample of rows costs as much as all. */
static double budget_of(const GridRequest *request, int effort)
{
    const View *view = request->view;

    return view->kind == VIEW_HOPS && (double)view_rows(view) * (double)view_cols(view) < EXACT_MOST
               ? 0
               : drawing_efforts[effort];
}

/* Retains what is wanted, then releases what was kept. */
static void keep_results(Result **kept, Result *const *wanted)
{
    for (int i = 0; i < 2; i++) {
        Result *before = kept[i];

        kept[i] = wanted[i] ? result_retain(wanted[i]) : NULL;
        result_release(before);
    }
}

static void drawing_start(Draughtsman *d, Drawing *drawing, int effort)
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
    keep_results(r->results, drawing->results);
    drawing->work = r;
    drawing->effort = effort;
}

void drawing_want(Draughtsman *d, Drawing *drawing, const GridRequest *request, Result *result,
                  Result *minus)
{
    Result *results[2] = { result, minus };

    if (same_cells(&drawing->wanted, request) && drawing->results[0] == result &&
        drawing->results[1] == minus)
        return;
    drawing_abandon(d, drawing);
    keep_results(drawing->results, results);
    drawing->wanted = *request;
    drawing->settled = false;
    drawing_start(d, drawing, 0);
}

static void drawing_take(Drawing *drawing)
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
        drawing_take(drawing);
    else
        drawing->settled = true;
    if (state == JOB_FAILED)
        snprintf(drawing->problem, sizeof(drawing->problem), "%.250s",
                 job_error(r->chore.job)->text);
    drawing->work = NULL;
    reduction_free(&r->chore);
    if (!drawing->settled)
        drawing_start(d, drawing, drawing->effort + 1);
    return true;
}

bool drawing_stop(Draughtsman *d, Drawing *drawing)
{
    if (!drawing->work || !drawing->grid.cells || !drawing->effort)
        return false;
    drawing_abandon(d, drawing);
    drawing->settled = true;
    return true;
}

bool drawing_pending(const Drawing *drawing)
{
    return drawing->work && drawing->effort == 0;
}

void drawing_clear(Draughtsman *d, Drawing *drawing)
{
    drawing_abandon(d, drawing);
    grid_free(&drawing->grid);
    for (int i = 0; i < 2; i++)
        result_release(drawing->results[i]);
    *drawing = (Drawing){ 0 };
}

/* ---- strips ---------------------------------------------------------------- */

/* Entries read at most in each pass. */
static const double side_efforts[] = { 2e5, 2e7, 3e8 };
#define SIDE_EFFORTS ((int)(sizeof(side_efforts) / sizeof(*side_efforts)))

struct SideWork {
    Chore        chore;
    MarginRequest request;
    Margin        margin;
    Result      *results[2]; /* retained */
};

static void side_work_free(Chore *chore)
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

static void side_start(Draughtsman *d, Side *side, int effort)
{
    SideWork *w = calloc(1, sizeof(*w));
    Error     err = ERROR_INIT;

    if (!w)
        return;
    w->request = side->wanted;
    w->request.threads = d->threads;
    w->request.budget_entries = side_efforts[effort];
    w->chore.let_go = side_work_free;
    w->chore.job = session_submit_work(d->session, read_strip, w, &err);
    if (!w->chore.job) {
        snprintf(side->problem, sizeof(side->problem), "%.250s", err.text);
        free(w);
        return;
    }
    keep_results(w->results, side->results);
    side->work = w;
    side->effort = effort;
}

static void side_abandon(Draughtsman *d, Side *side)
{
    if (side->work)
        draughtsman_abandon(d, &side->work->chore);
    side->work = NULL;
}

/* Visible rows matter only if rows were sampled. */
static bool same_margin(const MarginRequest *a, const MarginRequest *b, bool sampled)
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

    if (same_margin(&side->wanted, request, sampled) && side->results[0] == result &&
        side->results[1] == minus)
        return;
    side_abandon(d, side);
    keep_results(side->results, results);
    if (side->shown != request->view || side->margin.kind != request->kind)
        margin_free(&side->margin); /* old bars of another view would mislead */
    side->wanted = *request;
    side->settled = false;
    side->problem[0] = '\0';
    side_start(d, side, 0);
}

void side_refuse(Draughtsman *d, Side *side, const char *why)
{
    if (side->wanted.kind != MARGIN_NONE)
        side_clear(d, side);
    snprintf(side->problem, sizeof(side->problem), "%.250s", why);
}

static void side_take(Side *side)
{
    margin_free(&side->margin);
    side->margin = side->work->margin;
    side->work->margin = (Margin){ 0 };
    side->shown = side->wanted.view;
    side->problem[0] = '\0';
    side->settled = !(side->margin.share < 1) || side->effort == SIDE_EFFORTS - 1;
}

bool side_poll(Draughtsman *d, Side *side)
{
    SideWork *w = side->work;
    JobState  state = w ? job_state(w->chore.job) : JOB_WAITING;

    if (!w || state == JOB_WAITING || state == JOB_RUNNING)
        return false;
    if (state == JOB_DONE)
        side_take(side);
    else
        side->settled = true;
    if (state == JOB_FAILED)
        snprintf(side->problem, sizeof(side->problem), "%.250s", job_error(w->chore.job)->text);
    side->work = NULL;
    side_work_free(&w->chore);
    if (!side->settled)
        side_start(d, side, side->effort + 1);
    return true;
}

void side_clear(Draughtsman *d, Side *side)
{
    side_abandon(d, side);
    margin_free(&side->margin);
    for (int i = 0; i < 2; i++)
        result_release(side->results[i]);
    *side = (Side){ 0 };
}

/* ---- tiles ----------------------------------------------------------------- */

struct Tiles {
    Chore        chore;
    Request      request; /* owned */
    Result      *result;  /* retained */
    char        *spec, *shown; /* owned */
    TilesRequest wanted;
    Tile        *tiles;   /* owned; [layers][heads] */
};

static void tiles_free(Chore *chore)
{
    Tiles *t = (Tiles *)chore;

    job_free(chore->job);
    request_free(&t->request);
    result_release(t->result);
    for (int64_t k = 0; t->tiles && k < t->wanted.layers * t->wanted.heads; k++)
        tile_free(&t->tiles[k]);
    free(t->tiles);
    free(t->spec);
    free(t->shown);
    free(t);
}

static bool make_tiles(void *context, const atomic_bool *cancel, Error *err)
{
    const Tiles *t = context;

    return tiles_make(&t->wanted, t->tiles, cancel, err);
}

/* ---- for the owner ------------------------------------------------------------------ */

static bool take_request(Tiles *t, const TilesRequest *q, Threads *threads, Error *err)
{
    t->wanted = *q;
    t->wanted.layers = q->spec ? q->layers : 1;
    t->wanted.layer = q->spec ? q->layer : 0;
    t->wanted.threads = threads;
    t->wanted.request = &t->request;
    t->wanted.result = t->result = result_retain(q->result);
    t->wanted.spec = t->spec = q->spec ? strdup(q->spec) : NULL;
    t->wanted.shown = t->shown = strdup(q->shown);
    t->tiles = calloc((size_t)(t->wanted.layers * q->heads), sizeof(*t->tiles));
    if (!t->tiles || !t->shown || (q->spec && !t->spec))
        return error_set(err, ERR_NOMEM, "not enough memory for an overview");
    if (!request_copy(&t->request, q->request, err))
        return false;
    t->request.measure = t->request.quality = false;
    t->request.repeat = 0;
    return true;
}

Tiles *tiles_start(Draughtsman *d, const TilesRequest *request, Error *err)
{
    Tiles *t = calloc(1, sizeof(*t));

    if (!t) {
        error_set(err, ERR_NOMEM, "not enough memory for an overview");
        return NULL;
    }
    t->chore.let_go = tiles_free;
    if (take_request(t, request, d->threads, err))
        t->chore.job = session_submit_work(d->session, make_tiles, t, err);
    if (t->chore.job)
        return t;
    tiles_free(&t->chore);
    return NULL;
}

const Tile *tiles_at(const Tiles *t, int64_t layer, int64_t head)
{
    return &t->tiles[layer * t->wanted.heads + head];
}

int64_t tiles_ready(const Tiles *t)
{
    int64_t ready = 0;

    for (int64_t k = 0; k < t->wanted.layers * t->wanted.heads; k++)
        ready += atomic_load(&t->tiles[k].state) != TILE_WAITS;
    return ready;
}

int64_t tiles_scored(const Tiles *t)
{
    int64_t scored = 0;

    for (int64_t k = 0; k < t->wanted.layers * t->wanted.heads; k++)
        scored += atomic_load(&t->tiles[k].scored);
    return scored;
}

bool tiles_done(const Tiles *t)
{
    return chore_over(&t->chore);
}

void tiles_end(Draughtsman *d, Tiles *tiles)
{
    if (tiles && chore_over(&tiles->chore))
        tiles_free(&tiles->chore);
    else if (tiles)
        draughtsman_abandon(d, &tiles->chore);
}
