/* attn/ops/dense.h -- dense layers in double, which token mixers and learned pooling are made of.
 *
 *     layer   y = x W + b (+ what it is added to)      W stored [in,out] or [1,in,out]
 *     norm    (x - mean) / sqrt(var + eps) * gain + bias, per token, biased variance
 *     gelu    a g(a),  g = (1 + erf(a / sqrt 2)) / 2, or
 *             g = (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2
 *
 * All results are f64: the norm of a token whose features nearly agree enlarges
 * what rounding left of them.
 */
#ifndef ATTN_OPS_DENSE_H
#define ATTN_OPS_DENSE_H

#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum GeluForm { GELU_TANH, GELU_ERF } GeluForm; /* they differ by up to 4.7e-4 */
extern const char *const gelu_names[];

typedef enum DenseActivation {
    ACTIVATE_RELU,
    ACTIVATE_GELU_TANH,
    ACTIVATE_SIGMOID
} DenseActivation;

/* sums [rows,cols] += a [rows,inner] b [inner,cols], row major; on the calling thread alone. */
void dense_add_product(int64_t rows, int64_t cols, int64_t inner, const double *a, const double *b,
                       double *sums);

double gelu_gate(double a, GeluForm form);  /* g(a) */
double gelu_slope(double a, GeluForm form); /* derivative of a g(a) */

/* f64 [1,n,out] of x [1,n,in] f32 or f64, w [in,out], b [out] or absent, base [1,n,out] f32 or
 * f64 or absent.  Charges 2 n in out. */
Tensor dense_layer(Run *r, Tensor x, Tensor w, Tensor b, Tensor base, FlopClass charge);
/* f64 of the same shape.  Overhead 10 per element. */
Tensor dense_gelu(Run *r, Tensor a, GeluForm form);
/* In place in f64 x, no FLOPs charged; returns x. */
Tensor dense_activate(Run *r, Tensor x, DenseActivation activation);
/* f64 [1,n,c] of x [1,n,c] f32 or f64; gain and bias [c] or absent.  Charges 8 per element: 5 of
 * the normalisation, gain, bias and the sum with what was left out of the branch.  FLOP_APART:
 * beside large products it is not counted. */
Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, FlopClass charge);
/* The same over all tokens and channels together (one group), as overhead. */
Tensor dense_group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps);
/* a b of every head, f64 [h,rows,cols] of a f64 [h,rows,in], b f32 or f64; charged to mix. */
Tensor dense_product(Run *r, Tensor a, Tensor b);
/* [h,cols,rows] of x [h,rows,cols], of its type. */
Tensor dense_turned(Run *r, Tensor x);
/* Adds y, f32 or f64 of the same shape, to f64 x in place; returns x. */
Tensor dense_add(Run *r, Tensor x, Tensor y);
/* x in f32: an output. */
Tensor dense_output(Run *r, Tensor x);

/* Parameters without a head axis, of exactly this shape.  A matrix f32 [1,rows,cols] that is not
 * given is drawn: uniform(+-bound), or with bound 0 Glorot's; a vector [count] is absent then. */
Tensor dense_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols,
                    double bound);
Tensor dense_vector(Run *r, const char *name, Tensor given, int64_t count);

/* Element of a contiguous f32 or f64 tensor. */
static inline double dense_at(const Tensor *t, int64_t at)
{
    return t->dtype == DT_F64 ? ((const double *)t->data)[at] : (double)tensor_f32(t)[at];
}

#define DENSE_NORM_FLOPS 8
#define DENSE_GELU_FLOPS 10

/* Arithmetic in double for what discrete decisions are taken on.
 *
 * Sums run in index order and the same way for every row, so identical rows
 * give identical bits wherever they stand and exact ties stay ties.  Tensors
 * called exact are f64 [h,rows,cols], one slice for every head.
 */

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
