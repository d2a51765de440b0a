/* attn/study/reach_layer.h -- the inside of a ReachLayer; private to reach*.c.
 *
 * Rows with the same keys share one list, and a run that several lists hold is
 * kept once: blocks, clusters, global columns and strides then cost their runs,
 * not their cells.  An edge is a key (>= 0) or ~number of a run.
 */
#ifndef ATTN_STUDY_REACH_LAYER_H
#define ATTN_STUDY_REACH_LAYER_H

#include "attn/study/reach.h"

typedef struct ReachRun {
    int32_t start, count, step;
    int32_t shared; /* number among the runs of several lists; -1: of one list only */
} ReachRun;

struct ReachLayer {
    int64_t   tokens;
    int32_t  *list;   /* [tokens] of each row */
    int32_t  *shared; /* [lists] number among the lists of several rows; -1: of one row only */
    int64_t  *first;  /* [lists + 1] into edge */
    int32_t  *edge;
    ReachRun *run;
    int64_t   lists, edges, runs;
    int64_t   shared_lists, shared_runs;
    int32_t  *shared_list, *shared_run; /* their numbers back */
    int64_t   cells;      /* of all lists */
    /* The transposed lists, where runs save little; NULL elsewhere. */
    int64_t  *into_first; /* [tokens + 1] into `into` */
    int32_t  *into;       /* of each key: rows that have it, ~number of a shared list */
    bool     *into_cut;   /* [tokens] there are more of them */
};

static inline const ReachLayer *reach_layer_at(const ReachStack *s, int layer) /* from 1 */
{
    return s->layers[(layer - 1) % s->count];
}

typedef uint64_t Word;

#define LANES_WIDE 4

/* The tokens that the rows of a block reach: for every token a word of bits, bit b of row b. */
struct ReachBlock {
    int64_t tokens;
    int     lanes;        /* words of one token */
    Word   *set;          /* [tokens * lanes] at the current depth */
    Word   *next;         /* after one more layer */
    Word   *reached;      /* at any depth so far */
    Word   *tree;         /* [2 tokens * lanes]; its leaves are the second half */
    Word   *lists, *runs; /* of those that are shared; grow with the layers */
    int64_t list_room, run_room;
    int64_t tree_lo, tree_hi; /* leaves that hold something */
    int64_t set_lo, set_hi;   /* tokens that may have a word in `set` */
    int64_t next_lo, next_hi;
    Word    full[LANES_WIDE];  /* of a token that all rows of the block reach */
    Word    alive[LANES_WIDE]; /* rows with a bit in `set`; the others are complete */
    int64_t active, bits;      /* tokens that have a word in `set`, and the bits of all of them */
};

/* Functions on words are compiled twice, for one word a token and for four, so that loops over
 * lanes are unrolled. */
#define LANED static inline __attribute__((always_inline))

/* Moves `set` through one layer; keep: adds it to the result.  fresh: only bits that are not in
 * `reached` count, so words may be fetched for the tokens that lack some. */
void reach_move(ReachBlock *block, const ReachLayer *layer, bool keep, bool fresh);

#endif
