/* attn/study/reach.h -- which tokens reach which through several layers of attention.
 *
 * One layer carries token j into token i where some head allows (i, j) (the
 * output projection mixes the heads) and, over the residual connection, where
 * i = j.  With B_l the cells of layer l, counted from the bottom, the outputs of
 * the first L layers depend on
 *
 *     R_L(i) = union over k in B_L(i) of R_{L-1}(k),    R_0(i) = { i }
 *
 * and a pair's hop count is the least L with j in R_L(i).  Without residual
 * connections R_L is the strict boolean power: the walks of exactly L layers.
 * Both are exact.
 *
 * No n x n table is stored: each layer is stored as runs, and 256 rows of the
 * result are computed at a time, one bit a row, in about 420 n bytes a thread
 * (64 rows in 110 n bytes above REACH_WIDE tokens).
 */
#ifndef ATTN_STUDY_REACH_H
#define ATTN_STUDY_REACH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "core/error.h"
#include "core/threads.h"

#define REACH_MOST 254  /* layers */
#define REACH_NONE 255  /* in place of a hop count: not reached */
#define REACH_WIDE 65536

/* The cells of one layer, heads united.  Immutable. */
typedef struct ReachLayer ReachLayer;

/* The pattern needs as many keys as queries; it is not kept.  NULL: cancelled
 * or out of memory. */
ReachLayer *reach_layer_new(const Pattern *pattern, const atomic_bool *cancel, Error *err);
void        reach_layer_free(ReachLayer *layer);
int64_t     reach_layer_tokens(const ReachLayer *layer);
int64_t     reach_layer_bytes(const ReachLayer *layer);

/* Layers upon each other; borrowed, all of the same number of tokens. */
typedef struct ReachStack {
    const ReachLayer *const *layers; /* bottom first; repeated when depth is larger */
    int  count;
    int  depth;                      /* 1..REACH_MOST */
    bool residual;
} ReachStack;

/* Scratch of one thread. */
typedef struct ReachBlock ReachBlock;

ReachBlock *reach_block_new(int64_t tokens, Error *err);
void        reach_block_free(ReachBlock *block);
int64_t     reach_block_rows(int64_t tokens); /* found at a time */
int64_t     reach_row_bytes(int64_t tokens);  /* from one row of hop counts to the next */

/* Hop counts of rows first .. first + reach_block_rows - 1 (fewer at the end) to
 * out: at least reach_block_rows * reach_row_bytes bytes.  Without residual
 * connections a count is the depth or REACH_NONE.  False: cancelled. */
bool reach_rows(const ReachStack *stack, ReachBlock *block, int64_t first, uint8_t *out,
                const atomic_bool *cancel);

/* ---- summary ------------------------------------------------------------------ */

typedef struct ReachDepth {
    int64_t pairs;    /* reached after so many layers (or fewer, with residuals) */
    int64_t least, most; /* tokens that reach one query */
} ReachDepth;

typedef struct ReachSummary {
    int64_t    tokens, possible; /* pairs that any depth could reach: all, or the causal half */
    int        depth;            /* as asked for */
    /* Layers after which every possible pair is connected, and after which nothing
     * changes any more; -1: not within the depth. */
    int        full, fixed;
    /* Hop count over the pairs of two tokens that are reached; 0: there are none, or no
     * residual connections. */
    double     mean;
    ReachDepth at[REACH_MOST + 1]; /* [0..depth] */
} ReachSummary;

/* causal: only pairs with j <= i count as possible. */
bool reach_summary(const ReachStack *stack, bool causal, Threads *threads,
                   const atomic_bool *cancel, ReachSummary *out, Error *err);

/* ---- one pair ----------------------------------------------------------------- */

/* A shortest path from query i down to token j: path[0] = i, path[hops] = j, and
 * path[t + 1] is a key of path[t] in layer hops - t (or path[t] itself over the
 * residual connection).  Of several paths the one with the lowest tokens, from the
 * bottom.  Returns the hops, -1: there is none within the depth, -2: out of
 * memory.  path has room for depth + 1. */
int reach_path(const ReachStack *stack, int64_t i, int64_t j, int64_t *path);

#endif
