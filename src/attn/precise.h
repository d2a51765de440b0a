/* attn/precise.h -- dense layers in double, for mechanisms that are layers of their own.
 *
 * Tensors are f64 [1,rows,cols] unless said otherwise.  Products are charged; biases,
 * norms and activations, small beside them, are not.
 */
#ifndef ATTN_PRECISE_H
#define ATTN_PRECISE_H

#include "attn/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum PreciseActivation { ACTIVATE_RELU, ACTIVATE_GELU_TANH, ACTIVATE_SIGMOID }
    PreciseActivation;

/* x w + b; x f32 or f64, w f32 [1,in,out], b f32 [out] or absent.  Charges 2 rows in out. */
Tensor precise_linear(Run *r, Tensor x, Tensor w, Tensor b, FlopClass charge);
/* (x - mean) / sqrt(variance + eps) * g + b of every row; x f32 or f64, g and b f32 [cols] or
 * absent (1 and 0). */
Tensor precise_norm(Run *r, Tensor x, Tensor g, Tensor b, double eps);
/* a b of every head, f64 [h,rows,cols] of a f64 [h,rows,in], b f32 or f64; charged to mix. */
Tensor precise_product(Run *r, Tensor a, Tensor b);
/* f64 [h,cols,rows] of x f64 [h,rows,cols]. */
Tensor precise_turned(Run *r, Tensor x);
/* x in f32: an output. */
Tensor precise_output(Run *r, Tensor x);
/* In place; returns x. */
Tensor precise_activate(Run *r, Tensor x, PreciseActivation activation);
/* Adds y, f32 or f64 of the same shape, to x in place; returns x. */
Tensor precise_add(Run *r, Tensor x, Tensor y);

/* Parameters without a head axis, of exactly this shape.  A matrix f32 [1,rows,cols] that is not
 * given is drawn: uniform(+-bound), or with bound 0 Glorot's; a vector [count] is absent then. */
Tensor precise_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols,
                      double bound);
Tensor precise_vector(Run *r, const char *name, Tensor given, int64_t count);

#endif
