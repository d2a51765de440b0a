/* attn/ops/precision.h -- numbers of a narrower format, emulated in double.
 *
 * A format is (p, emin, emax): p significand bits with the hidden one, the smallest normal
 * exponent, and the exponent from which on a number is infinite.  Rounding is to nearest,
 * ties to even, at
 *
 *     ulp = 2^(max(e, emin) - (p - 1)),   2^e <= |a| < 2^(e+1)
 *
 * so subnormals are rounded at the spacing of the smallest normal numbers, and results of
 * magnitude >= 2^emax are infinite.  NaN stays NaN, zeros keep their sign.
 *
 * Why double will do: a sum, product or quotient of two numbers of p bits that is rounded to
 * 53 >= 2p + 2 bits first is then rounded to p bits as if it had been exact.
 */
#ifndef ATTN_OPS_PRECISION_H
#define ATTN_OPS_PRECISION_H

#include <stdint.h>

typedef enum PrecisionFormat {
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_TF32,
    PRECISION_FLOAT32,
    PRECISION_FLOAT64,
    PRECISION_COUNT
} PrecisionFormat;

typedef struct Precision {
    const char *name;  /* "bf16" */
    int         bits;  /* of the significand, the hidden one included */
    int         emin;  /* exponent of the smallest normal number */
    int         emax;  /* 2^emax and above: infinite */
    double      least, limit; /* 2^emin, 2^emax */
    int         bytes; /* that a number takes in memory */
} Precision;

/* The names in the order of PrecisionFormat, NULL-terminated: choices of a parameter. */
extern const char *const precision_names[];

const Precision *precision_of(PrecisionFormat format);

double precision_round(const Precision *p, double a);
/* to may be from. */
void precision_round_all(const Precision *p, const double *from, double *to, int64_t count);

/* Distance to the next number of the format at magnitude |a|; of 0 and subnormals the
 * smallest subnormal. */
double precision_ulp(const Precision *p, double a);

/* Half accumulation: sum over ascending c of x[c x_step] y[c y_step], product and running
 * sum both rounded at each step, never fused. */
double precision_dot(const Precision *p, int64_t count, const double *x, int64_t x_step,
                     const double *y, int64_t y_step);
/* Half accumulation of a plain sum. */
double precision_sum(const Precision *p, int64_t count, const double *x);

#endif
