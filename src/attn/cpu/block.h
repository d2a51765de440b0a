/* attn/cpu/block.h -- the state of an online softmax over a block of queries.
 *
 * Life of a block: block_begin, block_query for each row, then for each step
 * block_score for the tiles of every group (TILE_ROWS rows), block_soften and
 * block_mix; at the end block_row gives a row's output and log-sum-exp.  A
 * group fills its own slots of the step, so tiles that are not needed are
 * neither computed nor kept.
 */
#ifndef ATTN_CPU_BLOCK_H
#define ATTN_CPU_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/kernel.h"
#include "core/arena.h"

#define STEP_PANELS 4 /* panels scored before their weights are used */

typedef struct Block {
    const Kernel *kernel;
    int64_t       capacity, d, e;   /* capacity: rows, a multiple of TILE_ROWS */
    int64_t       rows, groups;
    int64_t       lds, lda;
    float        *q;                /* [capacity][d] scaled into base 2 */
    float        *s;                /* [capacity][lds] scores, then weights */
    float        *acc;              /* [capacity][lda] */
    float        *max, *sum, *factor; /* [capacity] */
    float        *top;              /* [capacity][LANES] */
    int32_t      *slots;            /* [groups] tiles of this step */
    int32_t      *panel;            /* [groups][STEP_PANELS] their panels */
} Block;

/* False when the arena is out of memory. */
bool block_init(Block *b, Arena *arena, const Kernel *kernel, int64_t capacity, int64_t d,
                int64_t e);
void block_begin(Block *b, int64_t rows);
void block_query(Block *b, int64_t row, const float *q, double scale);
/* Scores of group g against the first `keys` of a packed panel, `keep` where it holds fewer
 * than TILE_KEYS; returns the tile (row stride lds). */
float *block_score(Block *b, int64_t g, int64_t panel_index, const float *panel, int64_t keys,
                   const uint64_t *keep);
/* Weights of the group's tiles; `changed`: scores were altered after block_score. */
void block_soften(Block *b, int64_t g, bool changed);
/* Adds the weighted rows of v [m,e] and ends the group's step. */
void block_mix(Block *b, int64_t g, const float *v, int64_t ldv, int64_t m);
/* out [e] and the natural log-sum-exp; no key: zeros and -inf. */
void block_row(const Block *b, int64_t row, float *out, float *lse);

static inline float *block_tile(const Block *b, int64_t g, int slot)
{
    return b->s + g * TILE_ROWS * b->lds + slot * TILE_KEYS;
}

#endif
