/* attn/study/row.h -- a row of weights against another's, over m cells. */
#ifndef ATTN_STUDY_ROW_H
#define ATTN_STUDY_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/run/view.h"
#include "core/arena.h"

double row_sum(const float *w, int64_t m);
/* The sum of w where kept is above 0; *left_out: some w above 0 is elsewhere. */
double kept_mass(const float *w, const float *kept, int64_t m, bool *left_out);
/* sum_j |p_j - factor q_j| */
double row_distance(const float *p, const float *q, double factor, int64_t m);
/* KL(p || q) = sum_j p_j ln(p_j / q_j), in nats, of two rows and their row_sum.  NaN where neither
 * row has a key, and where KL is not defined: then *lacks gets the reason (static), which is
 * otherwise unchanged.  A row is a distribution when no entry is negative and its sum is 1. */
double row_divergence(const float *p, double p_sum, const float *q, double q_sum, int64_t m,
                      const char **lacks);

/* How far an output is from the exact one: |o - o*|^2 and |o*|^2, entry by entry. */
typedef struct OutputError {
    double error2, norm2;
} OutputError;

static inline void output_error_add(OutputError *e, double got, double exact)
{
    double diff = got - exact;

    e->error2 += diff * diff;
    e->norm2 += exact * exact;
}

/* One query's row of a matrix, laid out as the image its keys come from.
 *
 * Key j of the sequence is the pixel (floor(j/width), j mod width).  The result is an
 * ordinary view of height x width entries in one plane: cells that the query does not
 * see, and pixels past the end of the sequence, are outside its support.
 */

/* `base` must outlive the view and have keys as columns; NULL: no memory. */
const View *span_view(Arena *a, const View *base, int64_t plane, int64_t query, int64_t width);

#endif
