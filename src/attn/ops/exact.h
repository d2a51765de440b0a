/* attn/ops/exact.h -- arithmetic in double for what discrete decisions are taken on.
 *
 * Sums run in index order and the same way for every row, so identical rows
 * give identical bits wherever they stand and exact ties stay ties.  Tensors
 * called exact are f64 [h,rows,cols], one slice for every head.
 */
#ifndef ATTN_OPS_EXACT_H
#define ATTN_OPS_EXACT_H

#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

/* x f32 [h',rows,cols] widened. */
Tensor exact_of(Run *r, Tensor x);
/* f32 of an exact tensor. */
Tensor exact_rounded(Run *r, Tensor x);
/* As op_normalise of x f32 [h',rows,d]; charges 5 per element. */
Tensor exact_normalised(Run *r, Tensor x, NormaliseKind kind, double eps);
/* One row of it, or in place; charge nothing. */
void   exact_normalise(double *y, int64_t d, NormaliseKind kind, double eps);
void   exact_normalised_row(const float *x, int64_t d, NormaliseKind kind, double eps, double *y);
Tensor exact_sum(Run *r, Tensor a, Tensor b);
/* x <- e^x and x <- x / by, in place; charge nothing. */
void   exact_exp(Run *r, Tensor x);
void   exact_divide(Run *r, Tensor x, double by);
/* The first `cols` columns of x w + bias; x f64 [h',rows,in], w f32 [h',in,>=cols],
 * bias f32 [h',>=cols] or absent.  Charges 2 rows in cols per head to overhead. */
Tensor exact_linear(Run *r, Tensor x, Tensor w, Tensor bias, int64_t cols);
/* f64 [1,n,count]: x y^T of one head with rows [first, first+count) of y.
 * Charges nothing: callers tile. */
Tensor exact_products(Run *r, Tensor x, Tensor y, int64_t head, int64_t first, int64_t count);

/* log(sum e^x) of numbers that come one by one, however large; -inf of none. */
typedef struct LogSum {
    double top, sum; /* the largest, sum e^(x - top) */
} LogSum;

LogSum log_sum_new(void);
void   log_sum_add(LogSum *s, double x);
double log_sum_of(const LogSum *s);

#endif
