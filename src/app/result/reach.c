/* reach.c -- what reaches what over depth; see views.h.
 *
 * The first thread that reads a view compiles the layers.  Rows are computed a block at a time and
 * kept in a few slots, so reading row after row costs one search a block.
 */
#include "app/result/views.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_SLOTS 4 /* blocks kept beside one for each thread */

/* A block of rows, ready or in work. */
typedef struct Slot {
    struct Slot *next;
    int          depth;
    bool         residual, ready, failed;
    int64_t      first; /* its first row */
    int          users;
    uint64_t     used; /* time of the last use */
    uint8_t     *rows;
    ReachBlock  *block;
} Slot;

typedef struct ReachView {
    View              view;
    struct ReachView *next;
    Reach            *reach;
    int               depth;
    bool              residual;
    /* The last path asked for by the owner's thread: screens ask again and again. */
    struct {
        int64_t q, k; /* q -1: none */
        int     hops;
        char    text[160];
    } way;
} ReachView;

struct Reach {
    const Result      *result; /* owns this */
    pthread_mutex_t    lock;
    pthread_cond_t     changed;
    const ReachLayer **layers; /* owned; one for each run of the stack */
    int                count;
    int64_t            tokens;
    enum { LAYERS_NONE, LAYERS_COMING, LAYERS_THERE, LAYERS_FAILED } state; /* guarded */
    Slot      *slots;                                                       /* guarded */
    int        slot_count;
    uint64_t   clock;
    ReachView *views; /* of the owner's thread */
};

Reach *reach_new(const Result *result)
{
    Reach *reach = calloc(1, sizeof(*reach));

    if (!reach)
        return NULL;
    reach->result = result;
    reach->count = 1 + result->upper_count;
    reach->tokens = result->run->n;
    reach->layers = calloc((size_t)reach->count, sizeof(*reach->layers));
    if (!reach->layers) {
        free(reach);
        return NULL;
    }
    pthread_mutex_init(&reach->lock, NULL);
    pthread_cond_init(&reach->changed, NULL);
    return reach;
}

static void slot_free(Slot *slot)
{
    free(slot->rows);
    reach_block_free(slot->block);
    free(slot);
}

void reach_free(Reach *reach)
{
    if (!reach)
        return;
    for (Slot *slot = reach->slots, *next; slot; slot = next) {
        next = slot->next;
        slot_free(slot);
    }
    for (ReachView *view = reach->views, *next; view; view = next) {
        next = view->next;
        free(view);
    }
    for (int i = 0; i < reach->count; i++)
        reach_layer_free((ReachLayer *)(uintptr_t)reach->layers[i]);
    free(reach->layers);
    pthread_cond_destroy(&reach->changed);
    pthread_mutex_destroy(&reach->lock);
    free(reach);
}

bool reach_is_offered(const Mechanism *m)
{
    for (const ViewPromise *v = m->views; v && v->name; v++)
        if (v->kind == VIEW_PATTERN && !strcmp(v->name, "connectivity"))
            return true;
    return false;
}

/* ---- layers ------------------------------------------------------------------------ */

static const Run *run_at(const Result *result, int layer)
{
    return layer ? result->upper[layer - 1] : result->run;
}

/* NULL with an error that says why the run has no pairs. */
static const Pattern *pattern_of(const Run *run, Error *err)
{
    const View    *view = run_view(run, "connectivity");
    const Pattern *cells = view ? view->support : NULL;

    if (!cells)
        error_set(err, ERR_UNSUPPORTED,
                  "%s has no set of allowed pairs, so nothing to follow from layer to layer",
                  run->mechanism->id);
    else if (pattern_queries(cells) != run->n || pattern_keys(cells) != run->n)
        error_set(err, ERR_UNSUPPORTED,
                  "%s: reach needs as many keys as queries, but there are "
                  "%lld queries and %lld keys",
                  run->mechanism->id, (long long)pattern_queries(cells),
                  (long long)pattern_keys(cells));
    else
        return cells;
    return NULL;
}

static bool compile(Reach *reach, const atomic_bool *cancel, Error *err)
{
    for (int i = 0; i < reach->count; i++) {
        const Pattern *cells = pattern_of(run_at(reach->result, i), err);

        if (!reach->layers[i] && cells)
            reach->layers[i] = reach_layer_new(cells, cancel, err);
        if (!reach->layers[i])
            return false;
    }
    return true;
}

/* Waits for the layers, or compiles them. */
static bool layers_known(Reach *reach, const atomic_bool *cancel, Error *err)
{
    bool mine, ok;

    pthread_mutex_lock(&reach->lock);
    while (reach->state == LAYERS_COMING)
        pthread_cond_wait(&reach->changed, &reach->lock);
    mine = reach->state != LAYERS_THERE;
    if (mine)
        reach->state = LAYERS_COMING;
    pthread_mutex_unlock(&reach->lock);
    if (!mine)
        return true;
    ok = compile(reach, cancel, err);
    pthread_mutex_lock(&reach->lock);
    reach->state = ok ? LAYERS_THERE : LAYERS_FAILED;
    pthread_cond_broadcast(&reach->changed);
    pthread_mutex_unlock(&reach->lock);
    return ok;
}

static ReachStack stack_of(const Reach *reach, int depth, bool residual)
{
    return (ReachStack){ reach->layers, reach->count, depth, residual };
}

/* ---- blocks of rows ------------------------------------------------------------------ */

static bool slot_is(const Slot *slot, const ReachView *view, int64_t first)
{
    return slot->first == first && slot->depth == view->depth && slot->residual == view->residual &&
           !slot->failed;
}

/* The idle slot that was used longest ago, or a new one.  Locked. */
static Slot *slot_spare(Reach *reach)
{
    Slot *oldest = NULL;

    for (Slot *slot = reach->slots; slot; slot = slot->next)
        if (!slot->users && (!oldest || slot->used < oldest->used))
            oldest = slot;
    if (oldest && reach->slot_count >= IDLE_SLOTS + threads_hardware())
        return oldest;
    oldest = calloc(1, sizeof(*oldest));
    if (oldest) {
        oldest->next = reach->slots;
        reach->slots = oldest;
        reach->slot_count++;
    }
    return oldest;
}

static bool slot_fill(Slot *slot, const ReachView *view)
{
    ReachStack stack = stack_of(view->reach, view->depth, view->residual);
    int64_t    n = view->reach->tokens;
    Error      err = ERROR_INIT;

    if (!slot->rows)
        slot->rows = malloc((size_t)(reach_block_rows(n) * reach_row_bytes(n)));
    if (!slot->block)
        slot->block = reach_block_new(n, &err);
    return slot->rows && slot->block &&
           reach_rows(&stack, slot->block, slot->first, slot->rows, NULL);
}

/* The block that holds row `first`, for reading; NULL: out of memory. */
static Slot *slot_take(const ReachView *view, int64_t first)
{
    Reach *reach = view->reach;
    Slot  *slot;
    bool   mine = false;

    pthread_mutex_lock(&reach->lock);
    for (slot = reach->slots; slot && !slot_is(slot, view, first); slot = slot->next)
        ;
    if (!slot && (slot = slot_spare(reach))) {
        mine = true;
        slot->depth = view->depth;
        slot->residual = view->residual;
        slot->first = first;
        slot->ready = slot->failed = false;
    }
    if (slot)
        slot->users++;
    while (slot && !mine && !slot->ready && !slot->failed)
        pthread_cond_wait(&reach->changed, &reach->lock);
    pthread_mutex_unlock(&reach->lock);
    if (mine) {
        bool ok = slot_fill(slot, view);

        pthread_mutex_lock(&reach->lock);
        slot->ready = ok;
        slot->failed = !ok;
        pthread_cond_broadcast(&reach->changed);
        pthread_mutex_unlock(&reach->lock);
    }
    return slot;
}

static void slot_give(Reach *reach, Slot *slot)
{
    pthread_mutex_lock(&reach->lock);
    slot->users--;
    slot->used = ++reach->clock;
    pthread_mutex_unlock(&reach->lock);
}

static void read_hops(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const ReachView *v = view->context;
    Reach           *reach = v->reach;
    Error            err = ERROR_INIT;
    int64_t          rows = reach_block_rows(reach->tokens);
    Slot            *slot = NULL;

    (void)head;
    if (layers_known(reach, NULL, &err))
        slot = slot_take(v, i / rows * rows);
    if (slot && slot->ready) {
        const uint8_t *hops = slot->rows + i % rows * reach_row_bytes(reach->tokens) + start;

        for (int64_t c = 0; c < count; c++)
            out[c] = hops[c * step] == REACH_NONE ? -1.0f : (float)hops[c * step];
    } else {
        for (int64_t c = 0; c < count; c++)
            out[c] = NAN;
    }
    if (slot)
        slot_give(reach, slot);
}

/* ---- views --------------------------------------------------------------------------- */

static bool find_depth(const Reach *reach, const ReachOptions *options, int *depth, Error *err)
{
    int given = options ? options->layers : 0;

    *depth = given ? given : reach->count > 1 ? reach->count : REACH_USUAL;
    return (*depth >= 1 && *depth <= REACH_MOST) ||
           error_set(err, ERR_USAGE, "layers: expected 1 to %d, got %d", REACH_MOST, *depth);
}

static bool followable(const Result *result, Error *err)
{
    if (!result->reach)
        return error_set(err, ERR_NOMEM, "not enough memory to follow the layers");
    for (int i = 0; i <= result->upper_count; i++) {
        const Run *run = run_at(result, i);

        if (run->err.code != ERR_NONE) {
            if (err)
                *err = run->err;
            return false;
        }
        if (!pattern_of(run, err))
            return false;
    }
    return true;
}

static View view_of(const ReachView *context, int64_t n)
{
    return (View){ .name = REACH_VIEW,
                   .kind = VIEW_HOPS,
                   .stage = "",
                   .iteration = -1,
                   .dtype = DT_I32,
                   .rank = 2,
                   .shape = { n, n },
                   .read = read_hops,
                   .context = context,
                   .rows = "query",
                   .cols = "key" };
}

const View *result_reach(const Result *result, const ReachOptions *options, Error *err)
{
    Reach     *reach = result->reach;
    ReachView *view;
    bool       residual = !options || !options->strict;
    int        depth;

    if (!followable(result, err) || !find_depth(reach, options, &depth, err))
        return NULL;
    for (view = reach->views; view; view = view->next)
        if (view->depth == depth && view->residual == residual)
            return &view->view;
    view = calloc(1, sizeof(*view));
    if (!view) {
        error_set(err, ERR_NOMEM, "not enough memory for a view");
        return NULL;
    }
    *view = (ReachView){
        .next = reach->views, .reach = reach, .depth = depth, .residual = residual, .way.q = -1
    };
    view->view = view_of(view, reach->tokens);
    reach->views = view;
    return &view->view;
}

int reach_view_depth(const View *view)
{
    return ((const ReachView *)view->context)->depth;
}

bool reach_view_strict(const View *view)
{
    return !((const ReachView *)view->context)->residual;
}

bool reach_view_ready(const View *view)
{
    Reach *reach = ((const ReachView *)view->context)->reach;
    bool   ready;

    pthread_mutex_lock(&reach->lock);
    ready = reach->state == LAYERS_THERE;
    pthread_mutex_unlock(&reach->lock);
    return ready;
}

/* ---- one pair ------------------------------------------------------------------------- */

int reach_view_path(const View *view, int64_t q, int64_t k, int64_t *path)
{
    const ReachView *v = view->context;
    ReachStack       stack = stack_of(v->reach, v->depth, v->residual);

    return reach_view_ready(view) ? reach_path(&stack, q, k, path) : -2;
}

#define VIA_MOST 6 /* tokens of a path that are named */

static void write_way(const ReachView *v, int hops, const int64_t *path, char *text, size_t size)
{
    size_t used;

    if (hops == -2)
        snprintf(text, size, "\xe2\x80\xa6");
    else if (hops < 0)
        snprintf(text, size, v->residual ? "not within %d layer%s" : "no walk of %d layer%s",
                 v->depth, v->depth == 1 ? "" : "s");
    else if (hops == 0)
        snprintf(text, size, "itself");
    if (hops <= 0)
        return;
    used = (size_t)snprintf(text, size, "%d layer%s%s", hops, hops == 1 ? "" : "s",
                            hops > 1 ? " via k=" : "");
    for (int t = 1; t < hops && used < size; t++) {
        bool cut = t == VIA_MOST && hops - t > 1; /* the last token is named in any case */

        t = cut ? hops - 1 : t;
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 cut     ? " \xe2\x80\xa6 "
                                 : t > 1 ? ", "
                                         : "",
                                 (long long)path[t]);
    }
}

int reach_view_way(const View *view, int64_t q, int64_t k, char *text, size_t size)
{
    const ReachView *asked = view->context;
    ReachView       *v = asked->reach->views;
    int64_t          path[REACH_MOST + 1];

    while (v != asked)
        v = v->next;
    if (v->way.q != q || v->way.k != k || v->way.hops == -2) {
        v->way.q = q;
        v->way.k = k;
        v->way.hops = reach_view_path(view, q, k, path);
        write_way(v, v->way.hops, path, v->way.text, sizeof(v->way.text));
    }
    snprintf(text, size, "%s", v->way.text);
    return v->way.hops;
}

/* ---- all of it ------------------------------------------------------------------------ */

bool result_reach_summary(const Result *result, const ReachOptions *options, Threads *threads,
                          const atomic_bool *cancel, ReachSummary *out, Error *err)
{
    ReachStack stack;
    int        depth;

    if (!followable(result, err) || !find_depth(result->reach, options, &depth, err) ||
        !layers_known(result->reach, cancel, err))
        return false;
    stack = stack_of(result->reach, depth, !options || !options->strict);
    return reach_summary(&stack, result->run->causal, threads, cancel, out, err);
}

bool result_reach_by_content(const Result *result)
{
    for (int i = 0; i <= result->upper_count; i++)
        if (run_at(result, i)->mechanism->classes & CLASS_LP)
            return true;
    return false;
}
