/* attn/ops/entmax.h -- from the scores of a row to weights, some of them exactly 0.
 *
 *     alpha = 1    softmax      w = exp(z - tau)                    tau = logsumexp z
 *     alpha = 2    sparsemax    w = max(z - tau, 0)
 *     alpha = 1.5               w = max(z/2 - tau, 0)^2
 *     any alpha    bisection    w = max((alpha-1) z - tau, 0)^(1/(alpha-1)) / total
 *
 * tau makes the weights of the row sum to 1; it is found exactly by sorting where
 * alpha has a closed form, else by bisection.  All in double.
 */
#ifndef ATTN_OPS_ENTMAX_H
#define ATTN_OPS_ENTMAX_H

#include <stdbool.h>
#include <stdint.h>

typedef enum EntmaxForm {
    ENTMAX_SOFTMAX,
    ENTMAX_SPARSEMAX,
    ENTMAX_SQUARE, /* alpha = 1.5 */
    ENTMAX_BISECT,
} EntmaxForm;

typedef struct Entmax {
    EntmaxForm form;
    double     alpha;
    int64_t    iterations; /* of the bisection */
    bool       divide;     /* its result by its sum */
} Entmax;

typedef struct EntmaxRow {
    double tau;   /* in the scale of its form; a row without entries: 0 */
    double total; /* what weights are divided by */
} EntmaxRow;

/* Of z [count]; an entry of -inf is absent.  `work` has room for count numbers.  The
 * first `traced` thresholds a bisection tries go to trace. */
EntmaxRow entmax_row(const Entmax *e, const double *z, int64_t count, double *work,
                     double *trace, int64_t traced);
double    entmax_weight(const Entmax *e, EntmaxRow row, double z);
/* What is charged for a row: softmax 5 per entry, a sort count log2 count comparisons,
 * a bisection one power per entry and step. */
double    entmax_flops(const Entmax *e, int64_t count);

#endif
