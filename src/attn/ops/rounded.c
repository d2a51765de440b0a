/* rounded.c -- the arithmetic of attention in a narrow format; see RoundedAttend. */
#include "attn/run.h"

#include <math.h>

/* Never fused: a product is a number of its own before it is added. */
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

static const double *row_of(const Tensor *t, int64_t heads, int64_t head, int64_t i)
{
    return (const double *)tensor_head(t, head, heads) + i * t->stride[1];
}

double rounded_raw_score(const RoundedAttend *in, int64_t heads, int64_t head, int64_t i,
                         int64_t j)
{
    return rounded_dot(in, in->q.shape[2], row_of(&in->q, heads, head, i),
                       row_of(&in->k, heads, head, j), 1);
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
