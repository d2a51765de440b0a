/* overview.c -- see overview.h. */
#include "app/figure/overview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/figure/picture.h"
#include "app/session/model_input.h"

#define BUDGET 2e6 /* entries read of a tile */

typedef struct Making {
    const TilesRequest *q;
    Tile               *tiles;
    const atomic_bool  *cancel;
    Session            *session; /* of the layers; NULL: not needed yet */
} Making;

void tile_free(Tile *tile)
{
    grid_free(&tile->grid);
}

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

static int64_t plane_of(const TilesRequest *q, const View *view, int64_t head)
{
    int64_t planes = view_planes(view), rounds = planes / q->heads;

    if (planes % q->heads || !rounds)
        return 0;
    return head * rounds + (q->round < rounds ? q->round : 0);
}

static void make_tile(const Making *m, const View *view, int64_t head, Tile *tile)
{
    const TilesRequest *q = m->q;
    GridRequest         request = { .view = view, .components = view_components(view),
                                    .plane = plane_of(q, view, head), .rows = q->rows,
                                    .cols = q->cols, .budget_entries = BUDGET,
                                    .threads = q->threads, .cancel = m->cancel };
    Error               err = ERROR_INIT;

    keep_view(tile, view, request.plane);
    if (grid_reduce(&request, &tile->grid, &err))
        tile_settle(tile, TILE_READY, "");
    else if (!atomic_load(m->cancel))
        tile_settle(tile, TILE_NONE, err.text);
}

static const View *view_of(const TilesRequest *q, Result *result, Error *err)
{
    const View *view = result_view(result, *q->shown ? q->shown : NULL, err);
    ViewCurve   curve;

    if (view && view->kind == VIEW_HOPS)
        view = result_reach(result, &q->reach, err);
    if (view && view_curve(view, &curve)) {
        error_set(err, ERR_UNSUPPORTED, "%s is a curve", view->name);
        return NULL;
    }
    return view;
}

/* Scores follow the pictures of a layer: nobody waits for them. */
static void make_scores(const Making *m, const Result *result, Tile *tiles)
{
    int64_t     heads = m->q->heads;
    HeadScores *scores = heads > 0 ? calloc((size_t)heads, sizeof(*scores)) : NULL;

    if (scores && result && result->run->h == heads)
        result_head_scores(result, scores, m->q->threads, m->cancel);
    for (int64_t head = 0; head < heads; head++) {
        if (scores)
            tiles[head].scores = scores[head];
        atomic_store(&tiles[head].scored, true);
    }
    free(scores);
}

/* view NULL: there is none, and why. */
static void make_heads(const Making *m, const Result *result, const View *view, int64_t layer,
                       const char *why)
{
    int64_t heads = m->q->heads;
    Tile   *tiles = m->tiles + layer * heads;

    for (int64_t head = 0; head < heads && !atomic_load(m->cancel); head++) {
        if (view && (view_planes(view) == 1 ? head == 0 || heads == 1
                                            : view_planes(view) >= heads))
            make_tile(m, view, head, &tiles[head]);
        else
            tile_settle(&tiles[head], TILE_NONE, view ? "the same for every head" : why);
    }
    make_scores(m, result, tiles);
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

/* Runs on the session's input, unless that is not there. */
static void run_layer(const Making *m, int64_t layer, bool loaded, Error *err)
{
    Result     *result = NULL;
    const View *view = NULL;
    Job        *job = loaded ? session_submit(m->session, m->q->request, err) : NULL;

    if (m->q->on_layer)
        m->q->on_layer(m->q->context, layer);
    if (job)
        result = wait_for(job, m->cancel, err);
    if (result && err->code == ERR_NONE)
        view = view_of(m->q, result, err);
    make_heads(m, result, view, layer, err->text);
    result_release(result);
    if (job)
        job_free(job);
}

/* The number that the file has for the i-th of its layers. */
static int64_t layer_number(const Making *m, int64_t layer)
{
    const Input *open = m->q->result ? m->q->result->input : session_input(m->session);

    return open ? input_layer_number(open, layer) : layer;
}

static void load_layer(const Making *m, int64_t layer)
{
    InputChoice choice = m->q->choice;
    Error       err = ERROR_INIT;
    bool        loaded;

    choice.layer = layer_number(m, layer);
    choice.cancel = m->cancel;
    loaded = session_load(m->session, m->q->spec, &choice, &err);
    run_layer(m, layer, loaded, &err);
}

/* A layer of a model's pass. */
static bool take_layer(void *context, Input *input)
{
    const Making *m = context;
    InputChoice   choice = m->q->choice;
    int64_t       layer = input->layer;
    Error         err = ERROR_INIT;

    if (layer >= m->q->layers || (m->q->result && layer == m->q->layer)) {
        input_free(input);
        return true;
    }
    choice.layer = layer;
    run_layer(m, layer, session_take_input(m->session, input, m->q->spec, &choice, &err), &err);
    return !atomic_load(m->cancel);
}

static void load_model(Making *m)
{
    InputChoice choice = m->q->choice;
    Error       err = ERROR_INIT;

    choice.cancel = m->cancel;
    if (model_input_each(m->session, m->q->spec, &choice, take_layer, m, &err) ||
        atomic_load(m->cancel))
        return;
    for (int64_t k = 0; k < m->q->layers * m->q->heads; k++)
        if (atomic_load(&m->tiles[k].state) == TILE_WAITS)
            tile_settle(&m->tiles[k], TILE_NONE, err.text);
}

bool tiles_make(const TilesRequest *q, Tile *tiles, const atomic_bool *cancel, Error *err)
{
    Making      m = { .q = q, .tiles = tiles, .cancel = cancel };
    Error       own = ERROR_INIT;
    const View *view = q->view || !q->result ? q->view : view_of(q, q->result, &own);

    if (q->result)
        make_heads(&m, q->result, view, q->layer, own.text);
    if (q->spec && (q->layers > 1 || !q->result)) {
        m.session = session_new(err);
        if (!m.session)
            return false;
        if (model_spec_is(q->spec))
            load_model(&m);
        else
            for (int64_t layer = 0; layer < q->layers && !atomic_load(cancel); layer++)
                if (!q->result || layer != q->layer)
                    load_layer(&m, layer);
        session_free(m.session);
    }
    return !atomic_load(cancel) || error_set(err, ERR_CANCELLED, "cancelled");
}
