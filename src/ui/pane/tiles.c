/* tiles.c -- see tiles.h. */
#include "ui/pane/tiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* What a painter needs of a view whose run goes. */
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
