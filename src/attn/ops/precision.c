/* precision.c -- see rows.h. */
#include <math.h>
#include <string.h>

#include "attn/ops/rows.h"
#include "attn/run.h"

const char *const precision_names[] = { "bf16", "fp16", "tf32", "float32", "float64", NULL };

static const Precision formats[PRECISION_COUNT] = {
    [PRECISION_BF16] = { "bf16", 8, -126, 128, 0x1p-126, 0x1p128, 2 },
    [PRECISION_FP16] = { "fp16", 11, -14, 16, 0x1p-14, 0x1p16, 2 },
    [PRECISION_TF32] = { "tf32", 11, -126, 128, 0x1p-126, 0x1p128, 4 },
    [PRECISION_FLOAT32] = { "float32", 24, -126, 128, 0x1p-126, 0x1p128, 4 },
    [PRECISION_FLOAT64] = { "float64", 53, -1022, 1024, 0x1p-1022, (double)INFINITY, 8 },
};

const Precision *precision_of(PrecisionFormat format)
{
    return &formats[format];
}

/* Rounds a normal double to fewer bits of significand: adds half a unit of the last bit kept (a
 * little less where that bit is even) and cuts the bits below.  A carry goes into the exponent,
 * as it should. */
static double round_normal(double a, int bits)
{
    int      cut = 53 - bits;
    uint64_t u, half = (uint64_t)1 << (cut - 1);

    memcpy(&u, &a, sizeof(u));
    u += half - 1 + (u >> cut & 1);
    u &= ~((half << 1) - 1);
    memcpy(&a, &u, sizeof(a));
    return a;
}

double precision_round(const Precision *p, double a)
{
    double size = fabs(a), coarse;

    if (p->bits == 53 || !(size <= 0x1.fffffffffffffp1023)) /* itself, infinite, NaN */
        return a;
    if (size < p->least) {
        /* Doubles next to `coarse` are exactly one subnormal of the format apart. */
        coarse = p->least * 0x1.8p53 / (double)((int64_t)1 << p->bits);
        size = (size + coarse) - coarse;
    } else {
        size = round_normal(size, p->bits);
    }
    return copysign(size >= p->limit ? (double)INFINITY : size, a);
}

double precision_ulp(const Precision *p, double a)
{
    int e = p->emin;

    if (!isfinite(a))
        return a - a;
    if (fabs(a) >= p->least)
        e = ilogb(a);
    return ldexp(1, e - (p->bits - 1));
}

double precision_dot(const Precision *p, int64_t count, const double *x, int64_t x_step,
                     const double *y, int64_t y_step)
{
    double sum = 0;

    for (int64_t c = 0; c < count; c++) {
        double product = precision_round(p, x[c * x_step] * y[c * y_step]);

        sum = precision_round(p, sum + product);
    }
    return sum;
}

double precision_sum(const Precision *p, int64_t count, const double *x)
{
    double sum = 0;

    for (int64_t c = 0; c < count; c++)
        sum = precision_round(p, sum + x[c]);
    return sum;
}

/* The arithmetic of attention in a narrow format; see RoundedAttend. */

/* Never fused: each product is rounded before it is added. */
double rounded_dot(const RoundedAttend *in, int64_t count, const double *x, const double *y,
                   int64_t step)
{
    const Precision *format = precision_of(in->format);
    double           sum = 0;

    if (in->half_sums)
        return precision_dot(format, count, x, 1, y, step);
    for (int64_t c = 0; c < count; c++)
        sum += x[c] * y[c * step];
    return precision_round(format, sum);
}

double rounded_raw_score(const RoundedAttend *in, int64_t heads, int64_t head, int64_t i,
                         int64_t j)
{
    return rounded_dot(in, in->q.shape[2], tensor_row_f64(&in->q, head, heads, i),
                       tensor_row_f64(&in->k, head, heads, j), 1);
}

double rounded_scaled(const RoundedAttend *in, double score)
{
    return in->scale > 0 ? precision_round(precision_of(in->format), score * in->scale) : score;
}

double rounded_exponential(const RoundedAttend *in, double score, double top)
{
    const Precision *format = precision_of(in->format);

    if (!in->half_softmax)
        return exp(score - top);
    return precision_round(format, exp(precision_round(format, score - top)));
}
