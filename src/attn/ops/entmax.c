/* entmax.c -- see ops.h.
 *
 * A weight of sparsemax or entmax is 0 unless its entry is less than 1 (in the scale
 * of tau) below the largest.  Only those entries are sorted or raised to powers.
 */
#include "attn/ops/ops.h"

#include <math.h>
#include <stdlib.h>

#include "attn/cpu/simd/kernel.h"

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* Writes entries scale * z[j] - shift >= least to work; returns how many. */
static int64_t candidates(const double *z, int64_t count, double scale, double shift,
                          double least, double *work)
{
    int64_t found = 0;

    for (int64_t j = 0; j < count; j++) {
        double x = scale * z[j] - shift;

        work[found] = x;
        found += x >= least;
    }
    return found;
}

static double softmax_tau(const double *z, int64_t count, double top)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++)
        sum += exp(z[j] - top);
    return top + log(sum);
}

/* The sorted entries give the number of positive weights.  Entries are taken relative to the
 * largest, so that long sums of large numbers stay exact. */
static double sparsemax_tau(const double *z, int64_t count, double top, double *work)
{
    int64_t found = candidates(z, count, 1, top, -1, work);
    double  sum = 0, tau = 0;

    qsort(work, (size_t)found, sizeof(*work), descending);
    for (int64_t x = 1; x <= found; x++) {
        sum += work[x - 1];
        if (1 + (double)x * work[x - 1] > sum)
            tau = (sum - 1) / (double)x;
    }
    return top + tau;
}

static double square_tau(const double *z, int64_t count, double top, double *work)
{
    int64_t found = candidates(z, count, 0.5, top / 2, -1, work);
    double  sum = 0, squares = 0, tau = 0;

    qsort(work, (size_t)found, sizeof(*work), descending);
    for (int64_t x = 1; x <= found; x++) {
        double size = (double)x, mean, spread, here;

        sum += work[x - 1];
        squares += work[x - 1] * work[x - 1];
        mean = sum / size;
        spread = squares - size * mean * mean;
        here = mean - sqrt(fmax(0, (1 - spread) / size));
        if (here <= work[x - 1])
            tau = here;
    }
    return top / 2 + tau;
}

static double power_sum(const double *x, int64_t count, double tau, double power)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++)
        if (x[j] > tau)
            sum += pow(x[j] - tau, power);
    return sum;
}

/* The number of present entries, which sets the upper end of the bisection. */
static int64_t present(const double *z, int64_t count)
{
    int64_t found = 0;

    for (int64_t j = 0; j < count; j++)
        found += z[j] > -HUGE_VAL;
    return found;
}

/* Not shifted by the largest entry: the trace shows every threshold of the stated bisection. */
static EntmaxRow bisect(const Entmax *e, const double *z, int64_t count, double top,
                        double *work, double *trace, int64_t traced)
{
    double    power = 1 / (e->alpha - 1), high = (e->alpha - 1) * top, low = high - 1;
    double    size = (double)present(z, count), sum = 0, tau = low;
    double    step = high - pow(1 / size, e->alpha - 1) - low;
    int64_t   found = candidates(z, count, e->alpha - 1, 0, low, work);

    for (int64_t t = 0; t < e->iterations; t++) {
        step /= 2;
        tau = low + step;
        sum = power_sum(work, found, tau, power);
        if (t < traced)
            trace[t] = tau;
        if (tau <= low && t >= traced)
            break; /* the step is below the resolution of double */
        if (sum >= 1)
            low = tau;
    }
    if (!(sum > 0)) { /* tau was rounded up to the largest entry itself */
        tau = low;
        sum = power_sum(work, found, tau, power);
    }
    return (EntmaxRow){ .tau = tau, .total = e->divide ? sum : 1 };
}

EntmaxRow entmax_row(const Entmax *e, const double *z, int64_t count, double *work,
                     double *trace, int64_t traced)
{
    EntmaxRow row = { .tau = 0, .total = 1 };
    double    top = kernel_at(0)->largest64(z, count);

    if (!(top > -HUGE_VAL))
        return row;
    switch (e->form) {
    case ENTMAX_SOFTMAX: row.tau = softmax_tau(z, count, top); break;
    case ENTMAX_SPARSEMAX: row.tau = sparsemax_tau(z, count, top, work); break;
    case ENTMAX_SQUARE: row.tau = square_tau(z, count, top, work); break;
    case ENTMAX_BISECT: row = bisect(e, z, count, top, work, trace, traced); break;
    }
    return row;
}

double entmax_weight(const Entmax *e, EntmaxRow row, double z)
{
    double x;

    switch (e->form) {
    case ENTMAX_SOFTMAX: return exp(z - row.tau);
    case ENTMAX_SPARSEMAX: return fmax(z - row.tau, 0);
    case ENTMAX_SQUARE:
        x = fmax(z / 2 - row.tau, 0);
        return x * x;
    default:
        x = (e->alpha - 1) * z - row.tau;
        return x > 0 ? pow(x, 1 / (e->alpha - 1)) / row.total : 0;
    }
}

double entmax_flops(const Entmax *e, int64_t count)
{
    if (count < 1)
        return 0;
    if (e->form == ENTMAX_SOFTMAX)
        return 5 * (double)count;
    return (double)count *
           (e->form == ENTMAX_BISECT ? (double)e->iterations : log2((double)count));
}
