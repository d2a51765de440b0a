/* row_sums.c -- see row_sums.h. */
#include "attn/ops/row_sums.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/cpu/kernel.h"
#include "attn/ops/exact.h"
#include "attn/run.h"

/* Up to this lse and scores are good to 1e-6; scores of usual size over a million keys stay below,
 * so that no picture of these sums rows. */
#define FINE 16
/* Up to this a score is good to 1e-6 or so though what it sums cancels: 1/sqrt(d) times the
 * lengths of a usual query and key is sqrt(d), so that no usual row is summed here either. */
#define SHORT 32
#define PIECE 256
#define ROUNDING 1e-6 /* of scores and lse, as a share of their size */

/* Weights are exp(score - base) / sum; sum 0: not yet known.  In known[] as the bits of both. */
typedef struct Softmax {
    float base, sum;
} Softmax;

static bool all_zero(Run *r, void *list, int64_t count, int64_t size)
{
    void *data = run_alloc(r, count, size);

    if (data)
        memset(data, 0, (size_t)(count * size));
    *(void **)list = data;
    return data != NULL;
}

RowSums row_sums_of(Run *r, int64_t heads, int inputs, const Pattern *cells)
{
    RowSums sums = { .cells = cells };

    if (cells && run_wants_views(r) && !run_failed(r) &&
        all_zero(r, &sums.longest, inputs * heads, sizeof(*sums.longest)))
        all_zero(r, &sums.known, heads * pattern_queries(cells), sizeof(*sums.known));
    return sums;
}

static float lse_of(const WeightRow *w)
{
    return tensor_f32(w->lse)[w->head * w->lse->stride[0] + w->i];
}

/* ---- how large scores may be -------------------------------------------------- */

static double length_of(const float *x, int64_t d)
{
    double squares = 0;

    for (int64_t t = 0; t < d; t++)
        squares += (double)x[t] * (double)x[t];
    return sqrt(squares);
}

/* Of the keys of an input; two threads may both look, and find the same.  Never 0, which is not
 * yet known. */
static double longest_key(const WeightRow *w, const AttendInput *in, int input)
{
    _Atomic(float) *known = &w->sums->longest[input * w->heads + w->head];
    const float    *k = tensor_head(&in->k, w->head, w->heads);
    float           most = atomic_load_explicit(known, memory_order_relaxed);

    if (most > 0)
        return (double)most;
    most = FLT_MIN;
    for (int64_t j = 0; j < in->k.shape[1]; j++)
        most = fmaxf(most, (float)length_of(k + j * in->k.stride[1], in->k.shape[2]));
    atomic_store_explicit(known, most, memory_order_relaxed);
    return (double)most;
}

/* No score of the row is further from 0, and no sum of some of its products. */
static double furthest(const WeightRow *w)
{
    const AttendInput *in = w->in;
    const float       *q = (const float *)tensor_head(&in->q, w->head, w->heads) +
                     w->i * in->q.stride[1];
    double             key = w->sums->own ? longest_key(w, w->sums->own, 0)
                                          : longest_key(w, in, w->input);

    if (w->sums->other)
        key = fmax(key, longest_key(w, w->sums->other, 1));
    return fabs(in->scale) * length_of(q, in->q.shape[2]) * key;
}

/* ---- sums --------------------------------------------------------------------- */

static void join_run(const WeightRow *w, const AttendInput *in, PatternRun cells, LogSum *own)
{
    float piece[PIECE];

    for (int64_t done = 0; done < cells.count; done += PIECE) {
        int64_t count = cells.count - done < PIECE ? cells.count - done : PIECE;

        attend_scores_run(in, w->heads, w->head, w->i, cells.start + done * cells.step, count,
                          cells.step, piece);
        for (int64_t c = 0; c < count; c++)
            log_sum_add(own, (double)piece[c]);
    }
}

static void join_cells(const WeightRow *w, const AttendInput *in, const Pattern *cells, LogSum *own)
{
    PatternRow row = { 0 };

    pattern_row(cells, pattern_per_head(cells) ? w->head : 0, w->at, &row);
    for (int64_t x = 0; !row.failed && x < row.count; x++)
        join_run(w, in, row.runs[x], own);
    pattern_row_free(&row);
}

/* That of lse where the row's own cannot be had, or where they differ by more than rounding of
 * what is as large as `size`: then the softmax was over more than these cells. */
static Softmax softmax_of_row(const WeightRow *w, float lse, double size)
{
    const RowSums *s = w->sums;
    LogSum         own = log_sum_new();

    join_cells(w, s->own ? s->own : w->in, s->cells, &own);
    if (s->other)
        join_cells(w, s->other, s->other_cells, &own);
    return fabs(log_sum_of(&own) - (double)lse) <= ROUNDING * size
               ? (Softmax){ (float)own.top, (float)own.sum }
               : (Softmax){ lse, 1 };
}

static Softmax softmax_known(const WeightRow *w, float lse)
{
    Softmax            found = { lse, 1 };
    _Atomic(uint64_t) *known;
    uint64_t           bits;

    if (!w->sums->known || !isfinite(lse))
        return found;
    known = &w->sums->known[w->head * pattern_queries(w->sums->cells) + w->at];
    bits = atomic_load_explicit(known, memory_order_relaxed);
    if (bits == 0) { /* two threads may both sum it, and find the same */
        double size = fabs((double)lse), far = furthest(w);

        if (size > FINE || far > SHORT)
            found = softmax_of_row(w, lse, fmax(size, far));
        memcpy(&bits, &found, sizeof(bits));
        atomic_store_explicit(known, bits, memory_order_relaxed);
    }
    memcpy(&found, &bits, sizeof(found));
    return found;
}

/* Scores that differ by less than lse can tell have the same weight: the difference is a float. */
void attend_weights_run(const WeightRow *w, int64_t start, int64_t count, int64_t step, float *out)
{
    Softmax of = softmax_known(w, lse_of(w));

    attend_scores_run(w->in, w->heads, w->head, w->i, start, count, step, out);
    kernel_at(0)->line(out, count, 1, -of.base);
    kernel_at(0)->exp_over(out, count, (double)of.sum);
}
