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
    bool    multiply;   /* scales an active unit by its softmax probability in the block */
} SparseFfn;

/* Computes r->out [1,n,dm] from r->x, with the views routing, controller, blocks, hidden and
 * dense_hidden.  Charges to overhead 2 n rank (dm + units) for the controller, softmax over
 * all units if it multiplies, and 4 n dm units / block. */
void sparse_ffn(Run *r, const SparseFfn *layer);

/* Dense layers made of few parameters (Scaling Transformers).
 *
 * S modules of M = dm / S columns; column s * M + m of the result is
 *
 *     Mult(x; D,E,b)[s M + m] = sum_d x_d D[s,d] E[d,m] + b[s M + m]
 *
 * and a convolution runs over the length (causal) and over the modules
 * (centred); what lies outside is 0:
 *
 *     conv(z)[i,s] = b + sum_(a<L, c<W) z[i + a - (L-1), s + c - (W-1)/2] K[a,c]
 */

/* [1,n,S*M] of x [1,n,dm]; D [S,dm], E [dm,M], b [S*M] or absent.  Charges n S dm (2 M + 1)
 * to overhead: parameters are saved, not multiplications. */
Tensor factored_dense(Run *r, Tensor x, Tensor d, Tensor e, Tensor b);

/* [1,n,S*M] of z [1,n,S*M]; K [L,W,M,M], b [M] or absent.  Charges 2 n S M^2 L W to overhead. */
Tensor factored_conv(Run *r, Tensor z, Tensor kernel, Tensor b);

#endif
