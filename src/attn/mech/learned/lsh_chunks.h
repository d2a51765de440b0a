/* attn/mech/learned/lsh_chunks.h -- positions hashed in rounds, sorted by bucket and cut into chunks, and
 * the pictures of who sees whom in them.
 */
#ifndef ATTN_MECH_LEARNED_LSH_CHUNKS_H
#define ATTN_MECH_LEARNED_LSH_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/mech/learned/chunks.h"
#include "attn/ops/ops.h"

typedef struct Lsh {
    int64_t h, n, rounds;
    int64_t first, end; /* rounds that are looked at: all, or one for a picture of it */
    bool    joint, across, causal;
    Chunks  chunks; /* of one sorted list: a round, or all rounds end to end */
    Tensor  bucket; /* i32 [h,rounds,n] of each position */
    Tensor  order;  /* i32 [h,rounds,n] position at each sorted slot */
    Tensor  chunk;  /* i32 [h,rounds,n] of each position */
} Lsh;

/* What the weights are made of: queries are the run's. */
typedef struct LshLook {
    Tensor k;
    double scale;
    Tensor z;            /* f32 [h,n] log-sum-exp of each row over all rounds */
    bool   exclude_self; /* a position sees itself only if it sees nothing else */
    bool   weigh;        /* a cell counts as often as it is visited */
} LshLook;

/* connectivity, union, visits and weights; l must live in the run's arena. */
void lsh_chunks_show(Run *r, const Lsh *l, const LshLook *look);

#endif
