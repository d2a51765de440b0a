/* attn/mech/lab/quantise.h -- numbers as small integers with a step and a zero point.
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
#ifndef ATTN_MECH_LAB_QUANTISE_H
#define ATTN_MECH_LAB_QUANTISE_H

#include <stdbool.h>
#include <stdint.h>

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
/* What x comes back as with the step and zero point of `group`. */
double quantise_again(const Quantiser *q, const Codes *c, int64_t group, double x);

typedef struct CodesSummary {
    double  max_error, step, sqnr_db; /* step: the largest; sqnr_db: infinite when exact */
    int64_t least, most, distinct;    /* codes in use */
} CodesSummary;
CodesSummary codes_summary(Run *r, const Codes *c);

#endif
