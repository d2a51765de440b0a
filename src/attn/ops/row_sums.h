/* attn/ops/row_sums.h -- weights of an attention that was computed, for views: exp(score - lse).
 *
 * lse is a float, and scores are summed here in another order than by the kernels: where scores, or
 * the products they are sums of, are in the hundreds either is off by more than 1e-5, and a row's
 * weights no longer sum to 1.  Such a row is summed once, when its first weight is read, and its
 * weights are those of that sum.
 */
#ifndef ATTN_OPS_ROW_SUMS_H
#define ATTN_OPS_ROW_SUMS_H

#include <stdatomic.h>

#include "attn/ops/ops.h"

typedef struct RowSums {
    const Pattern     *cells;   /* those of a softmax are a row's */
    _Atomic(uint64_t) *known;   /* [heads, rows of cells]; 0: not yet.  NULL: lse is all there is */
    _Atomic(float)    *longest; /* [inputs, heads] length of a key; 0: not yet */
    /* A softmax over the keys of two inputs: those of every row, and of the second the cells.
     * NULL: all keys are the input's that the weight is of. */
    const AttendInput *own, *other;
    const Pattern     *other_cells;
} RowSums;

/* In the run's arena, where views are wanted.  inputs: rows may be of so many. */
RowSums row_sums_of(Run *r, int64_t heads, int inputs, const Pattern *cells);

/* One row of it: of `in` and of lse the row i, of sums->cells the row `at`. */
typedef struct WeightRow {
    const AttendInput *in;
    const Tensor      *lse; /* [heads, rows] */
    const RowSums     *sums;
    int64_t            heads, head, i, at;
    int                input; /* which of the inputs `in` is */
} WeightRow;

/* Weights of the cells start, start + step, ...; any thread. */
void attend_weights_run(const WeightRow *row, int64_t start, int64_t count, int64_t step,
                        float *out);

#endif
