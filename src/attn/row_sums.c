/* row_sums.c -- see row_sums.h. */
#include "attn/row_sums.h"

#include <math.h>

#include "attn/cpu/kernel.h"
#include "attn/run.h"

/* Up to this lse and scores are good to 1e-6; scores of usual size over a million keys stay below,
 * so that no picture of these sums rows. */
#define FINE 16
#define PIECE 256
#define ROUNDING 1e-6 /* of scores and lse, as a share of their size */

RowSums row_sums_of(Run *r, int64_t heads, const Pattern *cells)
{
    RowSums sums = { .cells = cells };

    if (cells && run_wants_views(r) && !run_failed(r))
        sums.known = run_alloc(r, heads * pattern_queries(cells), sizeof(*sums.known));
    for (int64_t i = 0; sums.known && i < heads * pattern_queries(cells); i++)
        atomic_init(&sums.known[i], 0);
    return sums;
}

static float lse_of(const WeightRow *w)
{
    return tensor_f32(w->lse)[w->head * w->lse->stride[0] + w->i];
}

/* Over a run of cells, of exp(score - lse). */
static double sum_of_run(const WeightRow *w, PatternRun cells, double lse)
{
    float  piece[PIECE];
    double sum = 0;

    for (int64_t done = 0; done < cells.count; done += PIECE) {
        int64_t count = cells.count - done < PIECE ? cells.count - done : PIECE;

        attend_scores_run(w->in, w->heads, w->head, w->i, cells.start + done * cells.step, count,
                          cells.step, piece);
        for (int64_t c = 0; c < count; c++)
            sum += exp((double)piece[c] - lse);
    }
    return sum;
}

/* 1 where it cannot be had, or where what is missing is more than rounding: then the softmax was
 * over more than these cells. */
static float sum_of_row(const WeightRow *w, double lse)
{
    const Pattern *cells = w->sums->cells;
    PatternRow     row = { 0 };
    double         sum = 0;

    pattern_row(cells, pattern_per_head(cells) ? w->head : 0, w->at, &row);
    for (int64_t x = 0; !row.failed && x < row.count; x++)
        sum += sum_of_run(w, row.runs[x], lse);
    pattern_row_free(&row);
    return fabs(sum - 1) <= ROUNDING * fabs(lse) ? (float)sum : 1;
}

static double sum_known(const WeightRow *w, double lse)
{
    _Atomic(float) *known;
    float           sum;

    if (!w->sums->known || !(fabs(lse) > FINE) || !isfinite(lse))
        return 1;
    known = &w->sums->known[w->head * pattern_queries(w->sums->cells) + w->at];
    sum = atomic_load_explicit(known, memory_order_relaxed);
    if (sum == 0) { /* two threads may both sum it, and find the same */
        sum = sum_of_row(w, lse);
        atomic_store_explicit(known, sum, memory_order_relaxed);
    }
    return (double)sum;
}

/* Scores that differ by less than lse can tell have the same weight: the difference is a float. */
void attend_weights_run(const WeightRow *w, int64_t start, int64_t count, int64_t step, float *out)
{
    float lse = lse_of(w);

    attend_scores_run(w->in, w->heads, w->head, w->i, start, count, step, out);
    kernel_at(0)->line(out, count, 1, -lse);
    kernel_at(0)->exp_over(out, count, sum_known(w, (double)lse));
}
