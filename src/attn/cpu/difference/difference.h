/* attn/cpu/difference/difference.h -- cpu_difference_attend: rows in float beside those in double.
 *
 * In float a worker holds the weights of a few rows against all keys in both heads, each step of
 * keys as 2^(score - the largest so far).  W is made of them, a step at a time, when the sums of
 * the rows are known, and multiplies the values of both heads once.
 *
 * The difference of two softmaxes may be far smaller than either, and then their rounding is what
 * is left.  So every row has an estimate of its error, and is left to double where that is large.
 * The estimate takes the errors of scores to be independent.  So the worst of some hundred rows is
 * computed again in double, and where it differs, all of them are left to double.
 */
#ifndef ATTN_CPU_DIFFERENCE_DIFFERENCE_H
#define ATTN_CPU_DIFFERENCE_DIFFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/difference.h"

typedef struct NearDifference NearDifference;

/* Whether the scores are products, the rows enough to pay, and the widths what the loops can. */
bool near_difference_pays(const DifferenceAttend *in);
/* In the run's arena; NULL: no memory. */
NearDifference *near_difference_new(Run *r, const DifferenceAttend *in, DifferenceResult *out);
/* All rows of a pair.  Returns how many are not exact enough, and sets doubt [n] for them. */
int64_t near_difference_pair(NearDifference *near, int64_t pair, uint8_t *doubt);

/* The output [2e] of row i of a pair, from raw [2e]. */
void difference_normed(const DifferenceAttend *in, const double *raw, double *y);
/* Writes row i of a pair of so many heads. */
void difference_write(const DifferenceAttend *in, DifferenceResult *out, int64_t heads,
                      int64_t pair, int64_t i, const double *raw);

#endif
