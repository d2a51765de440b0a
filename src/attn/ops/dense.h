/* attn/ops/dense.h -- matrices in double: layers, norms, activations, products.
 *
 *     layer   y = x W + b (+ base)      W stored [in,out] or [1,in,out]
 *     norm    (x - mean) / sqrt(var + eps) * gain + bias, per token, biased variance
 *     gelu    a g(a),  g = (1 + erf(a / sqrt 2)) / 2, or
 *             g = (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2
 *
 * Results are f64 unless stated otherwise: the norm of a token with nearly equal features
 * magnifies rounding errors, and discrete decisions must not depend on them.
 *
 * There are two products.  dense_layer is BLAS.  dense_linear and op_product64 sum in index
 * order, the same way for every row: identical rows give identical bits wherever they stand,
 * and exact ties stay ties.
 */
#ifndef ATTN_OPS_DENSE_H
#define ATTN_OPS_DENSE_H

#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

/* ---- types ----------------------------------------------------------------------- */

/* f64 [h,rows,cols] of x f32 [h',rows,cols]. */
Tensor dense_wide(Run *r, Tensor x);
/* f32 of x, of its shape. */
Tensor dense_rounded(Run *r, Tensor x);
/* [h,cols,rows] of x [h,rows,cols], of its type. */
Tensor dense_turned(Run *r, Tensor x);
/* f32 [h,rows,count] of columns [first, first + count) of x [h,rows,cols]. */
Tensor dense_columns(Run *r, Tensor x, int64_t first, int64_t count);

/* ---- products and sums ------------------------------------------------------------ */

/* f64 [1,n,out] of x [1,n,in] f32 or f64, w [in,out], b [out] or absent, base [1,n,out] f32 or
 * f64 or absent.  Charges 2 n in out. */
Tensor dense_layer(Run *r, Tensor x, Tensor w, Tensor b, Tensor base, FlopClass charge);
/* The first `cols` columns of x w + bias in index order; x f64 [h',rows,in], w f32
 * [h',in,>=cols], bias f32 [h',>=cols] or absent.  Charges 2 rows in cols per head to overhead. */
Tensor dense_linear(Run *r, Tensor x, Tensor w, Tensor bias, int64_t cols);
/* Adds y, f32 or f64 of the same shape, to f64 x in place; returns x. */
Tensor dense_add(Run *r, Tensor x, Tensor y);

/* log(sum e^x) of numbers added one by one, of any size; -inf for none. */
typedef struct LogSum {
    double top, sum; /* the largest, sum e^(x - top) */
} LogSum;

LogSum log_sum_new(void);
void   log_sum_add(LogSum *s, double x);
double log_sum_of(const LogSum *s);

/* Singular values of a matrix, x = left diag(values) right, the largest first; k = min(rows, cols).
 * turned is left diag(values) = x right^T, of the first `count` values or of all. */
typedef struct DenseSvd {
    Tensor turned, values, right; /* f64 [1,rows,>= count], [k], [1,k,cols] */
} DenseSvd;

/* Of x f64 [1,rows,cols], contiguous, which is overwritten.  On the host, whatever the device.
 * Charges nothing. */
DenseSvd dense_svd(Run *r, Tensor x, int64_t count);
/* What it calls; `out` has room. */
void cpu_svd(Run *r, Tensor *x, DenseSvd *out);
/* values and right by gram = x^T x f64 [1,cols,cols], of which what is above the diagonal is not
 * read, and which is overwritten.  False, without an error: squares have lost a small value, or
 * gram is not finite. */
bool cpu_svd_gram(Run *r, Tensor *gram, DenseSvd *out);

/* ---- activations ------------------------------------------------------------------ */

typedef enum GeluForm { GELU_TANH, GELU_ERF } GeluForm; /* they differ by up to 4.7e-4 */
extern const char *const gelu_names[];

double gelu_gate(double a, GeluForm form);  /* g(a) */

#define ROOT_2_PI 0.79788456080286535588 /* sqrt(2/pi) */
#define GELU_CUBE 0.044715
/* The tanh form: g(a) is the sigmoid of this. */
static inline double gelu_argument(double a)
{
    return 2 * ROOT_2_PI * (a + GELU_CUBE * a * a * a);
}
double gelu_slope(double a, GeluForm form); /* derivative of a g(a) */

#define DENSE_GELU_FLOPS 10
/* f64 of the same shape.  Charges DENSE_GELU_FLOPS per element to overhead. */
Tensor dense_gelu(Run *r, Tensor a, GeluForm form);
/* In place, without a charge; returns x. */
Tensor dense_activate(Run *r, Tensor x, EntryKind kind);

/* ---- norms ------------------------------------------------------------------------ */

/* 5 of the normalisation, gain, bias and the sum with the residual of the branch. */
#define DENSE_NORM_FLOPS 8
/* f64 [1,n,c] of x [1,n,c] f32 or f64; gain and bias [c] or absent.  Charges DENSE_NORM_FLOPS
 * per element. */
Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, FlopClass charge);
/* One row y [d] in place, as op_normalise; charges nothing. */
void dense_normalise_row(double *y, int64_t d, NormaliseKind kind, double eps);

/* ---- parameters ------------------------------------------------------------------- */

/* Parameters without a head axis, of exactly this shape.  A matrix f32 [1,rows,cols] that is not
 * given is drawn: uniform(+-bound), or with bound 0 Glorot's; a vector [count] is absent then. */
Tensor dense_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols,
                    double bound);
Tensor dense_vector(Run *r, const char *name, Tensor given, int64_t count);

#endif
