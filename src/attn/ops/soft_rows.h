/* attn/ops/soft_rows.h -- softmax over a few keys in double, for decisions that the host makes.
 *
 * Products are summed in index order, so equal queries and keys have equal weights.
 */
#ifndef ATTN_OPS_SOFT_ROWS_H
#define ATTN_OPS_SOFT_ROWS_H

#include <stdint.h>

#include "core/tensor.h"

typedef struct Run Run;

typedef struct SoftRows {
    int64_t       count, padded, d; /* keys; with those that fill up the last strip; width */
    double        scale, cap;       /* of the scores; cap 0: none */
    const double *strips;           /* [g][padded / 16][d][16] keys, in the run's arena */
    const float  *panels;           /* [g][count / 64, rounded up][d][64] the same in float */
    const double *longest;          /* [g] length of the longest key */
} SoftRows;

/* keys: f64 [g,count,d].  longest is NULL where memory lacks; then the run has failed. */
SoftRows soft_rows_of(Run *r, const Tensor *keys, double scale, double cap);

/* w[x][c] = softmax of cap tanh(scale q[x] . keys[g][c] / cap) over c < seen, for rows x of q[.,d],
 * ldq floats apart.  w is [rows][padded]; from `seen` on its rows hold no weights.  wide: room for
 * rows d. */
void soft_rows_weigh(const SoftRows *s, int64_t g, const float *q, int64_t ldq, int64_t rows,
                     const int64_t *seen, double *wide, double *w);

#define SOFT_ROWS_NEAR 24 /* rows of soft_rows_near at most; whole tiles */

/* The same in float, rows of w ldw apart: off by at most error[x] of themselves, and 0 where they
 * are below 1e-36.  error is infinite where that is not known, as with a cap.  Columns from `seen`
 * on are 0 as far as ldw.  near_q: room for SOFT_ROWS_NEAR d. */
void soft_rows_near(const SoftRows *s, int64_t g, const float *q, int64_t ldq, int64_t rows,
                    const int64_t *seen, float *near_q, float *w, int64_t ldw, double *error);

#endif
