/* row_weights.c -- see row_weights.h. */
#include "attn/study/row_weights.h"

#include <math.h>
#include <string.h>

#include "attn/cpu/kernel.h"

#define CHAINS 8 /* of a sum, so that an addition need not wait for the one before */
/* What float weights, and those made in bf16, leave of a sum of 1. */
#define SUM_TOLERANCE 1e-3

static double joined(const double chain[CHAINS])
{
    double sum = 0;

    for (int x = 0; x < CHAINS; x++)
        sum += chain[x];
    return sum;
}

double row_sum(const float *w, int64_t m)
{
    double  chain[CHAINS] = { 0 };
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            chain[x] += (double)w[j + x];
    for (; j < m; j++)
        chain[j % CHAINS] += (double)w[j];
    return joined(chain);
}

#define CELLS 4 /* compared at once, by any CPU */
typedef float   Cells __attribute__((vector_size(CELLS * sizeof(float)), aligned(sizeof(float)),
                                     may_alias));
typedef int32_t Mask __attribute__((vector_size(CELLS * sizeof(int32_t))));
typedef double  Wide __attribute__((vector_size(CELLS / 2 * sizeof(double))));

double kept_mass(const float *w, const float *kept, int64_t m, bool *left_out)
{
    Wide    low = { 0 }, high = { 0 };
    Cells   left = { 0 };
    int64_t j = 0;
    double  mass;

    for (; j + CELLS <= m; j += CELLS) {
        Cells all = *(const Cells *)(w + j);
        Cells own = (Cells)((Mask)all & (Mask)(*(const Cells *)(kept + j) > 0)); /* no branch */

        left += all - own;
        low += __builtin_convertvector(__builtin_shufflevector(own, own, 0, 1), Wide);
        high += __builtin_convertvector(__builtin_shufflevector(own, own, 2, 3), Wide);
    }
    mass = low[0] + low[1] + high[0] + high[1];
    for (; j < m; j++) {
        mass += kept[j] > 0 ? (double)w[j] : 0;
        left[0] += kept[j] > 0 ? 0 : w[j];
    }
    *left_out = left[0] > 0 || left[1] > 0 || left[2] > 0 || left[3] > 0;
    return mass;
}

double row_distance(const float *p, const float *q, double factor, int64_t m)
{
    double  chain[CHAINS] = { 0 };
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            chain[x] += fabs((double)p[j + x] - factor * (double)q[j + x]);
    for (; j < m; j++)
        chain[j % CHAINS] += fabs((double)p[j] - factor * (double)q[j]);
    return joined(chain);
}

static bool any_negative(const float *w, int64_t m)
{
    int     found[CHAINS] = { 0 }, any = 0;
    int64_t j = 0;

    for (; j + CHAINS <= m; j += CHAINS)
        for (int x = 0; x < CHAINS; x++)
            found[x] |= w[j + x] < 0;
    for (; j < m; j++)
        any |= w[j] < 0;
    for (int x = 0; x < CHAINS; x++)
        any |= found[x];
    return any;
}

/* 1 but for rounding; a NaN in it is none. */
static bool is_distribution(double sum)
{
    return fabs(sum - 1) <= SUM_TOLERANCE;
}

/* Whether CHAINS of them, or the last ones, are all 0. */
static bool are_nothing(const float *p, int64_t left)
{
    uint64_t bits[CHAINS / 2] = { 0 };

    memcpy(bits, p, (size_t)(left < CHAINS ? left : CHAINS) * sizeof(*p));
    return !(bits[0] | bits[1] | bits[2] | bits[3]);
}

/* sum p ln(p / q).  Sparse rows are 0 nearly everywhere: stretches without weight are passed. */
static double divergence_sum(const float *p, const float *q, int64_t m)
{
    double  sum = 0;
    int64_t end;

    for (int64_t j = 0; j < m; j = end) {
        bool nothing = are_nothing(p + j, m - j);

        for (end = j + CHAINS; end < m && are_nothing(p + end, m - end) == nothing;)
            end += CHAINS;
        end = end < m ? end : m;
        if (!nothing)
            sum += kernel_at(0)->divergence(p + j, q + j, end - j);
    }
    return sum;
}

/* p = P p', q = Q q' with sums of 1: sum p' ln(p' / q') = (sum p ln(p / q)) / P + ln(Q / P). */
double row_divergence(const float *p, double p_sum, const float *q, double q_sum, int64_t m,
                      const char **lacks)
{
    bool   negative = any_negative(p, m) || any_negative(q, m);
    double sum;

    if (p_sum == 0 && q_sum == 0 && !negative)
        return (double)NAN;
    if (!is_distribution(p_sum) || !is_distribution(q_sum) || negative) {
        *lacks = "rows of weights do not sum to 1, or hold negative ones";
        return (double)NAN;
    }
    sum = divergence_sum(p, q, m) / p_sum + log(q_sum / p_sum);
    if (isinf(sum)) {
        *lacks = "it is infinite: a key has weight here and none there";
        return (double)NAN;
    }
    return sum > 0 ? sum : 0; /* below 0 by rounding only */
}
