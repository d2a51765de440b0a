/* stats.c -- summaries of repeated measurements; see measure.h.
 *
 * The q-quantile of x_0 <= ... <= x_(c-1) lies at t = q (c - 1), linear between
 * the neighbours of t.  An outlier is beyond q3 + 3 (q3 - q1): timings have a
 * long upper tail, so only that side is watched.
 *
 * The median's interval needs no shape of the distribution: of c independent
 * samples, binomial(c, 1/2) lie below the true median, so x_(k) and x_(c+1-k)
 * enclose it with confidence 1 - 2 P(B < k).
 */
#include "profile/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double *sorted_copy(const double *values, int count)
{
    double *copy = count > 0 ? malloc((size_t)count * sizeof(*copy)) : NULL;

    if (!copy)
        return NULL;
    memcpy(copy, values, (size_t)count * sizeof(*copy));
    qsort(copy, (size_t)count, sizeof(*copy), by_value);
    return copy;
}

static double quantile_of_sorted(const double *sorted, int count, double q)
{
    double at = q * (count - 1);
    int    low = (int)at;

    if (low >= count - 1)
        return sorted[count - 1];
    return sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]);
}

double stats_quantile(const double *values, int count, double q)
{
    double *sorted = sorted_copy(values, count);
    double  value;

    if (!sorted || !(q >= 0) || !(q <= 1)) {
        free(sorted);
        return (double)NAN;
    }
    value = quantile_of_sorted(sorted, count, q);
    free(sorted);
    return value;
}

bool stats_median_ranks(int count, int *low, int *high)
{
    double term = -count * log(2), below = exp(term); /* log P(B = k), P(B <= k) */
    int    k = 0;

    while (below <= 0.025 && k < count / 2) {
        term += log((double)(count - k) / (k + 1));
        below += exp(term);
        k++;
    }
    if (!k)
        return false;
    *low = k;
    *high = count + 1 - k;
    return true;
}

static void interval(Timing *timing, const double *sorted)
{
    int low, high;

    timing->low = timing->high = NUMBER_NONE;
    if (!stats_median_ranks(timing->count, &low, &high))
        return;
    timing->low = number_of(sorted[low - 1]);
    timing->high = number_of(sorted[high - 1]);
}

/* A machine that slows down (or speeds up) while it is measured. */
static void drift(Timing *timing)
{
    int    third = timing->count / 3;
    double before, after;

    timing->drift = NUMBER_NONE;
    if (third < 3)
        return;
    before = stats_quantile(timing->samples, third, 0.5);
    after = stats_quantile(timing->samples + timing->count - third, third, 0.5);
    if (before > 0)
        timing->drift = number_of(after / before - 1);
}

void timing_summarise(Timing *timing)
{
    double *sorted = sorted_copy(timing->samples, timing->count);
    double  limit;

    timing->outliers = 0;
    timing->median = timing->q1 = timing->q3 = timing->min = NUMBER_NONE;
    timing->low = timing->high = timing->drift = NUMBER_NONE;
    if (!sorted)
        return;
    timing->q1 = number_of(quantile_of_sorted(sorted, timing->count, 0.25));
    timing->median = number_of(quantile_of_sorted(sorted, timing->count, 0.5));
    timing->q3 = number_of(quantile_of_sorted(sorted, timing->count, 0.75));
    timing->min = number_of(sorted[0]);
    limit = timing->q3.value + 3 * (timing->q3.value - timing->q1.value);
    for (int i = 0; i < timing->count; i++)
        timing->outliers += sorted[i] > limit;
    interval(timing, sorted);
    drift(timing);
    free(sorted);
}
