/* evicted.c -- a cache over time: which keys it holds, and what the others would have had.
 *
 *     exact_ij   = softmax over all keys j <= p_i of S_ij, the run's scores
 *     evicted_ij = exact_ij where the cache does not hold key j at step i, else 0
 *     mass_i     = sum over j of evicted_ij
 *
 * Rows are read when they are asked for.  The first cell of a row needs every score of its query,
 * for the sum that its weights are divided by, which is then known.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "attn/run.h"

typedef struct Evicted {
    AttendInput        in;
    const Pattern     *held;
    int64_t            h, n, m, q_offset;
    _Atomic(uint64_t) *known; /* [h,n] bits of the log of the sum of exp of a row's scores, a
                                 double; 0: not yet */
} Evicted;

static int64_t keys_of(const Evicted *e, int64_t i)
{
    return max_i64(0, min_i64(e->m, i + e->q_offset + 1));
}

/* NaN: no memory. */
static double sum_scores(const Evicted *e, int64_t head, int64_t i)
{
    int64_t keys = keys_of(e, i);
    float  *score = malloc((size_t)keys * sizeof(*score) + 1), most = -HUGE_VALF;
    double  sum = 0;

    if (!score)
        return (double)NAN;
    attend_scores_run(&e->in, e->h, head, i, 0, keys, 1, score);
    for (int64_t j = 0; j < keys; j++)
        most = fmaxf(most, score[j]);
    for (int64_t j = 0; j < keys; j++)
        sum += (double)expf(score[j] - most);
    free(score);
    return (double)most + log(sum);
}

/* Two threads may find the same sum, which is then the same number. */
static double row_sum(const Evicted *e, int64_t head, int64_t i)
{
    _Atomic(uint64_t) *known = &e->known[head * e->n + i];
    uint64_t           bits = atomic_load_explicit(known, memory_order_relaxed);
    double             sum;

    if (bits) {
        memcpy(&sum, &bits, sizeof(sum));
        return sum;
    }
    sum = sum_scores(e, head, i);
    memcpy(&bits, &sum, sizeof(bits));
    if (isfinite(sum))
        atomic_store_explicit(known, bits, memory_order_relaxed);
    return sum;
}

/* Cells of held keys are 0; runs are of neighbours. */
static bool clear_held(const Evicted *e, int64_t head, int64_t i, int64_t start, int64_t count,
                       int64_t step, float *out)
{
    PatternRow row = { 0 };
    bool       ok;

    pattern_row(e->held, head, i, &row);
    for (int64_t x = 0; x < row.count; x++) {
        int64_t from = max_i64(0, row.runs[x].start - start), end;

        from = (from + step - 1) / step;
        end = row.runs[x].start + row.runs[x].count - start;
        for (int64_t c = from; c < count && c * step < end; c++)
            out[c] = 0;
    }
    ok = !row.failed;
    pattern_row_free(&row);
    return ok;
}

static void read_evicted(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Evicted *e = view->context;
    int64_t        left = keys_of(e, i) - start;
    int64_t        seen = left > 0 ? min_i64(count, (left + step - 1) / step) : 0;
    double         sum = seen ? row_sum(e, head, i) : 0;

    if (seen)
        attend_scores_run(&e->in, e->h, head, i, start, seen, step, out);
    for (int64_t c = 0; c < count; c++)
        out[c] = c < seen ? expf((float)((double)out[c] - sum)) : 0;
    if (!clear_held(e, head, i, start, count, step, out))
        out[0] = (float)NAN;
}

/* A row of the view is a head, its columns are queries. */
static void read_mass(const View *view, int64_t plane, int64_t head, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Evicted *e = view->context;
    float         *w = malloc((size_t)e->m * sizeof(*w));

    (void)plane;
    for (int64_t c = 0; c < count; c++) {
        int64_t i = start + c * step, keys = w ? keys_of(e, i) : 0;
        double  sum = w ? 0 : (double)NAN;

        if (keys)
            read_evicted(view, head, i, 0, keys, 1, w);
        for (int64_t j = 0; j < keys; j++)
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
    *e = (Evicted){ .in = *in, .held = held, .h = r->h, .n = r->n, .m = r->m,
                    .q_offset = r->q_offset,
                    .known = run_alloc(r, r->h * r->n, sizeof(*e->known)) };
    for (int64_t x = 0; e->known && x < r->h * r->n; x++)
        atomic_init(&e->known[x], 0);
    if (run_failed(r))
        return;
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
