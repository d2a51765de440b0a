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
    d->threads = threads_new_behind(threads_hardware());
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
           a->excludes == b->excludes && (!a->excludes || a->excluded == b->excluded);
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

#define BUDGET 2e6 /* entries read of a tile */

struct Tiles {
    Chore       chore;
    Request     request; /* owned */
    Result     *result;  /* retained */
    const View *shown;   /* of it */
    ReachOptions reach;
    int64_t     round;
    char       *spec;    /* owned; NULL: only the open layer */
    InputChoice choice;
    int64_t     layers, heads, layer, rows, cols;
    Tile       *tiles;   /* owned; [layers][heads] */
    Threads    *threads; /* of the worker; borrowed */
};

static void tiles_free(Chore *chore)
{
    Tiles *t = (Tiles *)chore;

    job_free(chore->job);
    request_free(&t->request);
    result_release(t->result);
    for (int64_t k = 0; t->tiles && k < t->layers * t->heads; k++)
        grid_free(&t->tiles[k].grid);
    free(t->tiles);
    free(t->spec);
    free(t);
}

/* ---- on the worker ---------------------------------------------------------------- */

static void tile_settle(Tile *tile, TileState state, const char *why)
{
    snprintf(tile->why, sizeof(tile->why), "%.90s", why);
    atomic_store(&tile->state, (int)state);
}

/* Copies what drawing needs before the run is freed. */
static void keep_view(Tile *tile, const View *view, int64_t plane)
{
    tile->view = *view;
    tile->view.tensor = (Tensor){ .data = NULL };
    tile->view.read = NULL;
    tile->view.context = NULL;
    tile->view.support = tile->view.shown = NULL;
    tile->view.row_groups = tile->view.col_groups = NULL;
    tile->view.marks = NULL;
    tile->view.load = tile->view.row_load = NULL;
    tile->view.summary = NULL;
    tile->view.along = tile->view.low = tile->view.high = NULL;
    tile->view.curve = NULL;
    tile->view.origin = NULL;
    tile->found = view->found ? *view->found : (ViewFound){ 0 };
    tile->share = view->found ? view->found->share[plane] : (double)NAN;
    tile->found.share = &tile->share; /* a tile has one plane */
    tile->view.found = view->found ? &tile->found : NULL;
}

static int64_t plane_of(const Tiles *t, const View *view, int64_t head)
{
    int64_t planes = view_planes(view), rounds = planes / t->heads;

    if (planes % t->heads || !rounds)
        return 0;
    return head * rounds + (t->round < rounds ? t->round : 0);
}

static void make_tile(const Tiles *t, const Result *result, const View *view, int64_t head,
                      Tile *tile, const atomic_bool *cancel)
{
    GridRequest request = { .view = view, .components = result_components(result, view),
                            .plane = plane_of(t, view, head), .rows = t->rows, .cols = t->cols,
                            .budget_entries = BUDGET, .threads = t->threads, .cancel = cancel };
    Error       err = ERROR_INIT;

    keep_view(tile, view, request.plane);
    if (grid_reduce(&request, &tile->grid, &err))
        tile_settle(tile, TILE_READY, "");
    else if (!atomic_load(cancel))
        tile_settle(tile, TILE_NONE, err.text);
}

static const View *view_of(const Tiles *t, Result *result, Error *err)
{
    const View *view = result_view(result, t->shown->name, err);
    ViewCurve   curve;

    if (view && view->kind == VIEW_HOPS)
        view = result_reach(result, &t->reach, err);
    if (view && view_curve(view, &curve)) {
        error_set(err, ERR_UNSUPPORTED, "%s is a curve", view->name);
        return NULL;
    }
    return view;
}

/* view NULL: there is none, and why. */
static void make_heads(const Tiles *t, const Result *result, const View *view, int64_t layer,
                       const atomic_bool *cancel, const char *why)
{
    for (int64_t head = 0; head < t->heads && !atomic_load(cancel); head++) {
        Tile *tile = &t->tiles[layer * t->heads + head];

        if (view && (view_planes(view) == 1 ? head == 0 || t->heads == 1
                                            : view_planes(view) >= t->heads))
            make_tile(t, result, view, head, tile, cancel);
        else
            tile_settle(tile, TILE_NONE, view ? "the same for every head" : why);
    }
}

/* Waits for a run; NULL: cancelled or failed. */
static Result *wait_for(Job *job, const atomic_bool *cancel, Error *err)
{
    struct timespec pause = { .tv_nsec = 2000000 };
    Result         *result;

    while (job_state(job) == JOB_WAITING || job_state(job) == JOB_RUNNING) {
        if (atomic_load(cancel))
            job_cancel(job);
        nanosleep(&pause, NULL);
    }
    result = job_state(job) == JOB_DONE ? job_result(job) : NULL;
    if (!result)
        error_set(err, ERR_CANCELLED, "%s",
                  job_state(job) == JOB_FAILED ? job_error(job)->text : "cancelled");
    else if (result->run->err.code != ERR_NONE)
        *err = result->run->err;
    return result;
}

static void make_layer(const Tiles *t, int64_t layer, const atomic_bool *cancel)
{
    Error       err = ERROR_INIT;
    Session    *s = session_new(&err);
    InputChoice choice = t->choice;
    Result     *result = NULL;
    const View *view = NULL;
    Job        *job = NULL;

    choice.layer = input_layer_number(t->result->input, layer);
    if (s && session_load(s, t->spec, &choice, &err))
        job = session_submit(s, &t->request, &err);
    if (job)
        result = wait_for(job, cancel, &err);
    if (result && err.code == ERR_NONE)
        view = view_of(t, result, &err);
    make_heads(t, result, view, layer, cancel, err.text);
    result_release(result);
    if (job)
        job_free(job);
    session_free(s);
}

static bool make_tiles(void *context, const atomic_bool *cancel, Error *err)
{
    const Tiles *t = context;

    make_heads(t, t->result, t->shown, t->layer, cancel, "");
    for (int64_t layer = 0; layer < t->layers && !atomic_load(cancel); layer++)
        if (layer != t->layer)
            make_layer(t, layer, cancel);
    return !atomic_load(cancel) || error_set(err, ERR_CANCELLED, "cancelled");
}

/* ---- for the owner ------------------------------------------------------------------ */

static bool take_request(Tiles *t, const TilesRequest *q, Error *err)
{
    t->result = result_retain(q->result);
    t->reach = q->reach;
    t->round = q->round;
    t->choice = q->choice;
    t->layers = q->spec ? q->layers : 1;
    t->layer = q->spec ? q->layer : 0;
    t->heads = q->heads;
    t->rows = q->rows;
    t->cols = q->cols;
    t->spec = q->spec ? strdup(q->spec) : NULL;
    t->tiles = calloc((size_t)(t->layers * t->heads), sizeof(*t->tiles));
    t->shown = q->shown;
    if (!t->tiles || (q->spec && !t->spec))
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
    t->threads = d->threads;
    t->chore.let_go = tiles_free;
    if (take_request(t, request, err))
        t->chore.job = session_submit_work(d->session, make_tiles, t, err);
    if (t->chore.job)
        return t;
    tiles_free(&t->chore);
    return NULL;
}

const Tile *tiles_at(const Tiles *t, int64_t layer, int64_t head)
{
    return &t->tiles[layer * t->heads + head];
}

int64_t tiles_ready(const Tiles *t)
{
    int64_t ready = 0;

    for (int64_t k = 0; k < t->layers * t->heads; k++)
        ready += atomic_load(&t->tiles[k].state) != TILE_WAITS;
    return ready;
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
