/* attn/mech/lab/arithmetic.h -- numbers as small integers with a step and a zero point.
 *
 * A group (the tensor, a head, a row or a column of it) shares a step s and a
 * zero point z; lo and hi are its least and largest number, N the bits, rint
 * goes to the nearest integer, ties to even:
 *
 *     affine:    s = (hi - lo)/(2^N - 1),  z = clamp(rint(-lo/s), 0, 2^N - 1)
 *                c = clamp(rint(W/s) + z, 0, 2^N - 1),   W' = (c - z) s
 *     survey:    the same s;  z = rint(lo/s),  c = rint(W/s + z),  W' = (c - z) s
 *     symmetric: s = max|W|/(2^(N-1) - 1),  z = 0,  c = clamp(rint(W/s))
 *
 * A group of one and the same number has that number's size as its step and is
 * exact.  All in double of the float32 numbers, so codes are the same everywhere.
 */
#ifndef ATTN_MECH_LAB_ARITHMETIC_H
#define ATTN_MECH_LAB_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum QuantiseScheme { QUANTISE_AFFINE, QUANTISE_SURVEY, QUANTISE_SYMMETRIC } QuantiseScheme;
typedef enum QuantiseGrain {
    QUANTISE_TENSOR, QUANTISE_HEAD, QUANTISE_ROW, QUANTISE_COLUMN
} QuantiseGrain;

typedef struct Quantiser {
    int64_t        bits; /* N, 2 .. 16 */
    QuantiseScheme scheme;
    QuantiseGrain  grain;
    bool           include_zero; /* affine: lo <= 0 <= hi, so that 0 is exact */
} Quantiser;

typedef struct Codes {
    Tensor from;       /* f32 [h,rows,cols] */
    Tensor code;       /* i32, as from */
    Tensor step, zero; /* f64, i32: [1,1,1], [h,1,1], [h,rows,1] or [h,1,cols] */
    Tensor back;       /* f64, as from: (code - zero) step */
} Codes;

#define QUANTISE_FLOPS 8 /* a number: least, largest, divide, round, add, clamp; back: 2 */

/* Charges QUANTISE_FLOPS a number to overhead.  `name` is for messages. */
Codes quantise(Run *r, const Quantiser *q, const char *name, Tensor from);
/* Index of the group of entry `at` in step and zero. */
int64_t quantise_group(const Codes *c, QuantiseGrain grain, int64_t at);
/* x quantised and dequantised with the step and zero point of `group`. */
double quantise_again(const Quantiser *q, const Codes *c, int64_t group, double x);

typedef struct CodesSummary {
    double  max_error, step, sqnr_db; /* step: the largest; sqnr_db: infinite when exact */
    int64_t least, most, distinct;    /* codes in use */
} CodesSummary;
CodesSummary codes_summary(Run *r, const Codes *c);

/* Plain attention in double, to hold other arithmetic against.
 *
 *     S = scale Q K^T,  P = softmax(S),  out = P V     over all keys, or j <= i
 *
 * A tile of rows exists at a time.  The lab compares what a number format or a
 * quantiser makes of attention with this, cell by cell, without storing n x n.
 */

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

/* Shows the rounded weights: the views weights, weights_reference and weights_error (the
 * signed difference) over `cells`, and the figure weights_max_error. */
void wide_compare(Run *r, const Pattern *cells, WideSource got, WideSource reference);

/* Allowed cells summed over heads, counted row by row. */
double wide_cells(const Run *r);
int64_t wide_keys(const Run *r, int64_t i); /* that query i sees: the first so many */

/* The largest |got - reference| over two tensors f64 of one shape, NaN where there is one;
 * and the Frobenius norm of the difference, relative to that of the reference. */
double wide_max_error(Run *r, Tensor got, Tensor reference);
double wide_relative_error(Run *r, Tensor got, Tensor reference);

#endif
