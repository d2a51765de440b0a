/* evicted.c -- a cache over time: which keys it holds, and what the others would have had.
 *
 *     exact_ij   = softmax over all keys j <= p_i of S_ij, the run's scores
 *     evicted_ij = exact_ij where the cache does not hold key j at step i, else 0
 *     mass_i     = sum over j of evicted_ij
 *
 * Rows are read when they are asked for; a row needs every score of its query.
 */
#include <math.h>
#include <stdlib.h>

#include "attn/run.h"

typedef struct Evicted {
    AttendInput    in;
    const Pattern *held;
    int64_t        h, m, q_offset;
} Evicted;

/* Weights of the row's keys, in any float: scores, then exact attention. */
static void exact_row(const Evicted *e, int64_t head, int64_t i, int64_t keys, float *w)
{
    float  most = -HUGE_VALF;
    double sum = 0;

    attend_scores_run(&e->in, e->h, head, i, 0, keys, 1, w);
    for (int64_t j = 0; j < keys; j++)
        most = fmaxf(most, w[j]);
    for (int64_t j = 0; j < keys; j++)
        sum += (double)(w[j] = expf(w[j] - most));
    for (int64_t j = 0; j < keys; j++)
        w[j] = (float)((double)w[j] / sum);
}

/* Row i into w [m]; false: no memory. */
static bool evicted_row(const Evicted *e, int64_t head, int64_t i, float *w)
{
    PatternRow row = { 0 };
    int64_t    keys = max_i64(0, min_i64(e->m, i + e->q_offset + 1));
    bool       ok;

    exact_row(e, head, i, keys, w);
    for (int64_t j = keys; j < e->m; j++)
        w[j] = 0;
    pattern_row(e->held, head, i, &row);
    for (int64_t x = 0; x < row.count; x++)
        for (int64_t c = 0; c < row.runs[x].count; c++)
            w[row.runs[x].start + c * row.runs[x].step] = 0;
    ok = !row.failed;
    pattern_row_free(&row);
    return ok;
}

static void read_evicted(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Evicted *e = view->context;
    float         *w = malloc((size_t)e->m * sizeof(*w));
    bool           ok = w && evicted_row(e, head, i, w);

    for (int64_t c = 0; c < count; c++)
        out[c] = ok ? w[start + c * step] : (float)NAN;
    free(w);
}

/* A row of the view is a head, its columns are queries. */
static void read_mass(const View *view, int64_t plane, int64_t head, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Evicted *e = view->context;
    float         *w = malloc((size_t)e->m * sizeof(*w));

    (void)plane;
    for (int64_t c = 0; c < count; c++) {
        double sum = 0;

        if (!w || !evicted_row(e, head, start + c * step, w))
            sum = (double)NAN;
        for (int64_t j = 0; w && j < e->m; j++)
            sum += (double)w[j];
        out[c] = (float)sum;
    }
    free(w);
}

static const char *const states[8] = { "in the cache", "new", "leaves now", "in a slot" };

static void show_cache(Run *r, PatternShape s, const Pattern *held, uint8_t slots)
{
    Pattern *cached = pattern_cached(r->arena, s, held, slots);
    bool     each = pattern_per_head(held);
    int64_t  shape[3] = { r->h, r->n, r->m };
    View    *view = view_add(r, "cache", VIEW_COMPONENTS, DT_U8, each ? 3 : 2,
                             each ? shape : shape + 1);

    if (!cached)
        run_fail(r, ERR_NOMEM, "not enough memory for the keys of the cache");
    if (view) {
        view->support = cached;
        view->components = states;
    }
}

void run_cache(Run *r, const AttendInput *in, const Pattern *held, uint8_t slots)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .causal = true,
                       .q_offset = r->q_offset };
    bool         shows = run_wants_views(r) && held && r->causal && !r->keys_ahead;
    Evicted     *e = shows ? run_alloc(r, 1, sizeof(*e)) : NULL;
    View        *view;

    if (!e)
        return;
    *e = (Evicted){ .in = *in, .held = held, .h = r->h, .m = r->m, .q_offset = r->q_offset };
    show_cache(r, s, held, slots);
    view = view_reader(r, "evicted", VIEW_WEIGHTS, DT_F32, read_evicted, e, NULL);
    if (view) {
        view->cost = (double)r->d;
        view->shown = pattern_finish(r->arena, s, pattern_difference(r->arena,
                                     pattern_full(r->arena, s, COMPONENT_OTHER),
                                     pattern_operand(held)), true);
    }
    view = view_add(r, "evicted_mass", VIEW_TENSOR, DT_F32, 2, (int64_t[]){ r->h, r->n });
    if (view) {
        view->rows = "head";
        view->cols = "query";
        view->read = read_mass;
        view->context = e;
        view->cost = (double)r->m * (double)r->d;
    }
}
