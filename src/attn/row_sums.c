/* row_sums.c -- see row_sums.h. */
#include "attn/row_sums.h"

#include <float.h>
#include <math.h>

#include "attn/cpu/kernel.h"
#include "attn/run.h"

/* Up to this lse and scores are good to 1e-6; scores of usual size over a million keys stay below,
 * so that no picture of these sums rows. */
#define FINE 16
#define PIECE 256
#define ROUNDING 1e-6 /* of scores and lse, as a share of their size */
/* Up to this a score is good to 1e-6 or so though what it sums cancels: 1/sqrt(d) times the
 * lengths of a usual query and key is sqrt(d), so that no usual row is summed here either. */
#define SHORT 32

static bool all_zero(Run *r, _Atomic(float) **out, int64_t count)
{
    *out = run_alloc(r, count, sizeof(**out));
    for (int64_t x = 0; *out && x < count; x++)
        atomic_init(&(*out)[x], 0);
    return *out != NULL;
}

RowSums row_sums_of(Run *r, int64_t heads, const Pattern *cells)
{
    RowSums sums = { .cells = cells };

    if (cells && run_wants_views(r) && !run_failed(r) && all_zero(r, &sums.longest, heads) &&
        all_zero(r, &sums.base, heads * pattern_queries(cells)))
        all_zero(r, &sums.known, heads * pattern_queries(cells));
    return sums;
}

static float lse_of(const WeightRow *w)
{
    return tensor_f32(w->lse)[w->head * w->lse->stride[0] + w->i];
}

static double length(const float *x, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += (double)x[t] * (double)x[t];
    return sqrt(sum);
}

/* Of the head's keys; never 0, which is not yet known. */
static double longest_key(const WeightRow *w)
{
    const Tensor   *k = &w->in->k;
    _Atomic(float) *known = &w->sums->longest[w->head];
    const float    *keys = tensor_head(k, w->head, w->heads);
    float           most = atomic_load_explicit(known, memory_order_relaxed);

    if (most > 0)
        return (double)most;
    most = FLT_MIN;
    for (int64_t j = 0; j < k->shape[1]; j++)
        most = fmaxf(most, (float)length(keys + j * k->stride[1], k->shape[2]));
    atomic_store_explicit(known, most, memory_order_relaxed);
    return (double)most;
}

/* No score of the row is further from 0, and no sum of some of its products. */
static double furthest(const WeightRow *w)
{
    const Tensor *q = &w->in->q;
    const float  *queries = tensor_head(q, w->head, w->heads);

    return w->in->scale * length(queries + w->i * q->stride[1], q->shape[2]) * longest_key(w);
}

/* What weights are: exp(score - base) / sum. */
typedef struct Softmax {
    float  base;
    double sum;
} Softmax;

/* Takes in scores; `base` is the greatest so far. */
static void join(Softmax *own, const float *scores, int64_t count)
{
    float  most = own->base;
    double sum = 0;

    for (int64_t c = 0; c < count; c++)
        most = fmaxf(most, scores[c]);
    for (int64_t c = 0; c < count && most > -INFINITY; c++)
        sum += exp((double)scores[c] - (double)most);
    if (own->sum > 0)
        sum += own->sum * exp((double)own->base - (double)most);
    *own = (Softmax){ most, sum };
}

static void join_run(const WeightRow *w, PatternRun cells, Softmax *own)
{
    float piece[PIECE];

    for (int64_t done = 0; done < cells.count; done += PIECE) {
        int64_t count = cells.count - done < PIECE ? cells.count - done : PIECE;

        attend_scores_run(w->in, w->heads, w->head, w->i, cells.start + done * cells.step, count,
                          cells.step, piece);
        join(own, piece, count);
    }
}

/* That of lse where the row's own cannot be had, or where they differ by more than rounding of
 * what is as large as `size`: then the softmax was over more than these cells. */
static Softmax softmax_of_row(const WeightRow *w, float lse, double size)
{
    const Pattern *cells = w->sums->cells;
    PatternRow     row = { 0 };
    Softmax        own = { -INFINITY, 0 };
    double         apart;

    pattern_row(cells, pattern_per_head(cells) ? w->head : 0, w->at, &row);
    for (int64_t x = 0; !row.failed && x < row.count; x++)
        join_run(w, row.runs[x], &own);
    pattern_row_free(&row);
    apart = (double)own.base - (double)lse + log(own.sum);
    return fabs(apart) <= ROUNDING * size ? own : (Softmax){ lse, 1 };
}

static Softmax softmax_known(const WeightRow *w, float lse)
{
    const RowSums *sums = w->sums;
    Softmax        found = { lse, 1 };
    int64_t        at;

    if (!sums->known || !isfinite(lse))
        return found;
    at = w->head * pattern_queries(sums->cells) + w->at;
    found.sum = (double)atomic_load_explicit(&sums->known[at], memory_order_acquire);
    found.base = atomic_load_explicit(&sums->base[at], memory_order_relaxed);
    if (found.sum == 0) { /* two threads may both sum it, and find the same */
        double size = fabs((double)lse), far = furthest(w);

        found = size > FINE || far > SHORT ? softmax_of_row(w, lse, fmax(size, far))
                                           : (Softmax){ lse, 1 };
        found.sum = (double)(float)found.sum;
        atomic_store_explicit(&sums->base[at], found.base, memory_order_relaxed);
        atomic_store_explicit(&sums->known[at], (float)found.sum, memory_order_release);
    }
    return found;
}

/* Scores that differ by less than lse can tell have the same weight: the difference is a float. */
void attend_weights_run(const WeightRow *w, int64_t start, int64_t count, int64_t step, float *out)
{
    Softmax of = softmax_known(w, lse_of(w));

    attend_scores_run(w->in, w->heads, w->head, w->i, start, count, step, out);
    kernel_at(0)->line(out, count, 1, -of.base);
    kernel_at(0)->exp_over(out, count, of.sum);
}
