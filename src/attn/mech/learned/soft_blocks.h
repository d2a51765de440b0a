/* attn/mech/learned/soft_blocks.h -- attention through blocks that were softly permuted.
 *
 * The sequence is cut into nb blocks of b tokens.  Sorted block u has slots
 *
 *     K'_ut = sum_v Perm[u,v] k_(vb+t),   V'_ut likewise,   0 <= t < b
 *
 * over the blocks v that have a t-th token and Perm[u,v] > 0; a slot without a
 * source does not exist.  A query of block u sees the slots of sorted block u
 * (or of the first few sorted blocks) and, if asked, its own block's tokens.
 * Nothing n x n exists: weights are spread over the sources of a slot only
 * where somebody looks.
 */
#ifndef ATTN_MECH_LEARNED_SOFT_BLOCKS_H
#define ATTN_MECH_LEARNED_SOFT_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"

/* The own block: not seen, in the same softmax, a second softmax added. */
typedef enum SoftLocal { SOFT_LOCAL_NONE, SOFT_LOCAL_CONCAT, SOFT_LOCAL_SUM } SoftLocal;

typedef struct SoftBlocks {
    int64_t     h, n, d, e, b, nb;
    int64_t     rows;    /* sorted blocks that are used: nb, or the first of a cut */
    bool        cut;     /* every query sees those `rows` blocks */
    bool        causal;
    SoftLocal   local;
    double      scale;
    Tensor      perm;    /* f64 [h,nb,nb], set by the mechanism; row = sorted block */
    int64_t    *filled;  /* [h,rows] slots of a sorted block that exist */
    Tensor      k, v;    /* sorted slots [h,rows*b,.], then (concat) the n own rows */
    AttendInput sorted, own;       /* scores against slots and against tokens */
    Tensor      sorted_lse, own_lse;
    double     *sorted_z, *own_z;  /* [h*n] log-sum-exp of each row */
} SoftBlocks;

/* cut 0: each query sees its own sorted block. */
SoftBlocks soft_blocks_of(const Run *r, int64_t block, int64_t cut, SoftLocal local,
                          double scale);
int64_t soft_blocks_length(const SoftBlocks *s, int64_t u); /* tokens of block u */

/* Scores of block pairs from the blocks' mean queries and keys, f64 [h,nb,nb], rounded as they
 * are dumped; charges soft_blocks_mean_flops: tokens in the means, and their products. */
Tensor soft_blocks_mean_logits(Run *r, const SoftBlocks *s);
double soft_blocks_mean_flops(const SoftBlocks *s);

/* Sorted keys and values from perm.  Charges the products to overhead. */
void soft_blocks_sort(Run *r, SoftBlocks *s);
void soft_blocks_attend(Run *r, SoftBlocks *s); /* sets r->out */
/* connectivity, connectivity_hard (the largest source only), order (of keys) and weights; s must
 * live in the run's arena. */
void soft_blocks_show(Run *r, SoftBlocks *s);

#endif
