/* attn/mech/memory/squeeze.h -- rows that leave a memory become fewer slots, and what is lost by that.
 *
 *     mean, max    of the rows of a group of `ratio` that are there
 *     conv         sum_u w[u] R_{g ratio + u},   or sum_u R_{g ratio + u} W[u] + bias
 *     dilated      sum_u w[u] R_{g ratio + 2u}
 *     used         the rows with most attention from the segment
 *
 * Sums are in double.
 */
#ifndef ATTN_MECH_MEMORY_SQUEEZE_H
#define ATTN_MECH_MEMORY_SQUEEZE_H

#include "attn/mech/memory/compressed_memory.h"

typedef enum SqueezeWay {
    SQUEEZE_MEAN,
    SQUEEZE_MAX,
    SQUEEZE_CONV,
    SQUEEZE_DILATED,
    SQUEEZE_USED
} SqueezeWay;

typedef struct Squeeze {
    SqueezeWay        way;
    int64_t           ratio;
    double           *taps;       /* [ratio] of a convolution by numbers; else NULL */
    Tensor            full, bias; /* [1,ratio dm,dm], [dm]: by matrices; data NULL: it is not */
    CompressedMemory *memory;
} Squeeze;

/* A number for each row, or a matrix. */
static inline bool squeeze_convolves(SqueezeWay way)
{
    return way == SQUEEZE_CONV || way == SQUEEZE_DILATED;
}

SlotCover squeeze_cover(SqueezeWay way);
/* The parameters conv_weight and conv_bias, given or drawn; nothing for other ways. */
void squeeze_weights(Run *r, Squeeze *s, bool matrices, Tensor weight, Tensor bias);
/* SQUEEZE_USED: which tokens the slots of segment t's batch are; of equals the older. */
void squeeze_choose(Run *r, const Squeeze *s, int64_t t, const AttendInput *part);
/* Slots of segment t's batch, from the rows of `from` [h',n,w] to `to` [h',slots,w]; by matrices
 * h' is 1. */
void squeeze_batch(Run *r, const Squeeze *s, int64_t t, Tensor from, Tensor to);
/* FLOPs of `rows` rows of `width` numbers. */
double squeeze_flops(SqueezeWay way, bool matrices, int64_t rows, double width);
/* The attention-reconstruction loss of the paper for the queries q of segment t, to row t of
 * `loss` f32 [segments,h]: how far attention to the slots alone is from that to the tokens. */
void squeeze_loss(Run *r, const Squeeze *s, int64_t t, const AttendInput *tokens, Tensor slot_k,
                  Tensor slot_v, Tensor q, Tensor loss);

#endif
