/* attn/mech/lab/wide.h -- plain attention in double, to hold other arithmetic against.
 *
 *     S = scale Q K^T,  P = softmax(S),  out = P V     over all keys, or j <= i
 *
 * A tile of rows exists at a time.  The lab compares what a number format or a
 * quantiser makes of attention with this, cell by cell, without storing n x n.
 */
#ifndef ATTN_MECH_LAB_WIDE_H
#define ATTN_MECH_LAB_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef struct WideAttend {
    Tensor  q, k, v;      /* [h',n,d], [h',m,d], [h',m,e], f32 or f64 each */
    double  scale;
    int64_t heads;
    Tensor  out;          /* f64 [h,n,e] */
    Tensor  lse;          /* f64 [h,n] log of the sum of exp of the row's scores */
} WideAttend;

/* Of tensors of the run's shapes and order.  Charges per allowed cell 2d to score, 2e to mix
 * and 5 to overhead when it is `counted`; else nothing (what only a view needs). */
void wide_attend(Run *r, WideAttend *a, bool counted);

/* Weights of row i at keys start, start + step, ... (all of them allowed). */
typedef void (*WideRead)(const void *context, int64_t head, int64_t i, int64_t start,
                         int64_t count, int64_t step, double *out);
typedef struct WideSource {
    WideRead    read;
    const void *context; /* lives in the run's arena */
    double      cost;    /* multiply-adds to read one */
} WideSource;
WideSource wide_weights(const WideAttend *a);

/* What became of the weights: the views weights, weights_reference and weights_error (the
 * signed difference) over `cells`, and the figure weights_max_error. */
void wide_compare(Run *r, const Pattern *cells, WideSource got, WideSource reference);

/* Allowed cells summed over heads, counted row by row. */
double wide_cells(const Run *r);
int64_t wide_keys(const Run *r, int64_t i); /* that query i sees: the first so many */
/* All cells of the run, or those its causal order allows. */
Pattern *wide_pattern(Run *r);

/* The largest |got - reference| over two tensors f64 of one shape, NaN where there is one;
 * and the Frobenius norm of the difference, relative to that of the reference. */
double wide_max_error(Run *r, Tensor got, Tensor reference);
double wide_relative_error(Run *r, Tensor got, Tensor reference);

#endif
