/* attn/mech/routing/sparse_ffn.h -- a feed-forward layer with one active unit in every block.
 *
 * The units stand in blocks; a controller of low rank picks one of each:
 *
 *     logits = (x C1) C2 + cb;   on(b) = argmax of the logits of block b
 *     y = sum over blocks of max(x . W1[:,on(b)], 0) W2[on(b),:] + b2
 *
 * Stages: controller, units.  The controller is in double because it chooses.
 */
#ifndef ATTN_MECH_ROUTING_SPARSE_FFN_H
#define ATTN_MECH_ROUTING_SPARSE_FFN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

typedef struct Run Run;

typedef struct SparseFfn {
    Tensor  c1, c2, cb; /* f32 [dm,rank], [rank,units], [units] */
    Tensor  w1, w2, b2; /* f32 [dm,units], [units,dm], [dm] */
    int64_t block;      /* units of a block; divides them */
    bool    multiply;   /* an active unit by its softmax probability in the block */
} SparseFfn;

/* Of r->x into r->out [1,n,dm], with the views routing, controller, blocks, hidden and
 * dense_hidden.  Charges to overhead 2 n rank (dm + units) for the controller, softmax over
 * all units if it multiplies, and 4 n dm units / block. */
void sparse_ffn(Run *r, const SparseFfn *layer);

#endif
