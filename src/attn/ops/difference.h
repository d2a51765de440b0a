/* attn/ops/difference.h -- attention of pairs of heads, one softmax less a share of the other.
 *
 *     W_p      = softmax(S of the first head) - lambda_p softmax(S of the second head)
 *     raw      = W_p V_first, W_p V_second, side by side [2e]
 *     output   = factor * gain * raw / sqrt(mean(raw^2) + eps)
 *
 * Key heads are shared as everywhere.  Value heads come in pairs too, and each pair of them serves
 * equally many pairs of heads in turn.  The difference of two softmaxes may be far smaller than
 * either, and the norm makes it large again: rows for which float is not exact enough are computed
 * in double.
 */
#ifndef ATTN_OPS_DIFFERENCE_H
#define ATTN_OPS_DIFFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef struct DifferenceAttend {
    AttendInput   in;
    bool          halves;  /* pair p is (p, p + pairs), else (2p, 2p + 1) */
    const double *lambda;  /* [pairs] */
    bool          causal;  /* keys j <= i + offset */
    int64_t       offset;
    bool          norm;
    const double *gain;    /* [2e]; NULL: 1 */
    double        eps, factor;
} DifferenceAttend;

typedef struct DifferenceResult {
    Tensor out, raw; /* f32 [h,n,e]; raw: before the norm, data NULL where it is not asked for */
    Tensor top, sum; /* f64 [h,n]: the largest score of a row, and the sum of exp(score - top) */
    Tensor negative; /* i64 [pairs,n]: negative entries of W_p */
} DifferenceResult;

/* On the host, whatever the device, with a warning where that is another one.  Charges per allowed
 * cell of a head what op_attend does, and 2 per cell of a pair; the norm is not counted.  raw: it
 * is wanted. */
DifferenceResult op_difference_attend(Run *r, const DifferenceAttend *in, bool raw);
/* What op_difference_attend calls. */
void cpu_difference_attend(Run *r, const DifferenceAttend *in, DifferenceResult *out);

/* The head `which` (0, 1) of pair p, of so many heads; of values: p is the pair of heads. */
int64_t difference_head(const DifferenceAttend *in, int64_t heads, int64_t p, int which);
int64_t difference_value(const DifferenceAttend *in, int64_t heads, int64_t p, int which);
/* Keys that row i is allowed. */
int64_t difference_keys(const DifferenceAttend *in, int64_t i);

#endif
