/* attn/dense.h -- the steps token mixers are made of, in double.
 *
 *     layer   y = x W + b (+ what it is added to)      W stored [in,out]
 *     norm    (x - mean) / sqrt(var + eps) * gain + bias, per token, biased variance
 *     gelu    a g(a),  g = (1 + erf(a / sqrt 2)) / 2, or
 *             g = (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2
 *
 * All results are f64: the norm of a token whose features nearly agree enlarges
 * what rounding left of them.
 */
#ifndef ATTN_DENSE_H
#define ATTN_DENSE_H

#include "attn/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum GeluForm { GELU_TANH, GELU_ERF } GeluForm; /* they differ by up to 4.7e-4 */
extern const char *const gelu_names[];

double gelu_gate(double a, GeluForm form);  /* g(a) */
double gelu_slope(double a, GeluForm form); /* derivative of a g(a) */

/* f64 [1,n,out] of x [1,n,in] f32 or f64, w [in,out], b [out] or absent, base [1,n,out] f32 or
 * f64 or absent.  Charges 2 n in out. */
Tensor dense_layer(Run *r, Tensor x, Tensor w, Tensor b, Tensor base, FlopClass charge);
/* f64 of the same shape.  Overhead 10 per element. */
Tensor dense_gelu(Run *r, Tensor a, GeluForm form);
/* f64 [1,n,c] of x [1,n,c] f32 or f64; gain and bias [c] or absent.  Overhead 8 per element:
 * 5 of the normalisation, gain, bias and the sum with what was left out of the branch. */
Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps);
/* The same over all tokens and channels together (one group). */
Tensor dense_group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps);
/* Element of a contiguous f32 or f64 tensor. */
static inline double dense_at(const Tensor *t, int64_t at)
{
    return t->dtype == DT_F64 ? ((const double *)t->data)[at] : (double)tensor_f32(t)[at];
}

#define DENSE_NORM_FLOPS 8
#define DENSE_GELU_FLOPS 10

#endif
