/* attn/reach_parts.h -- the inside of a ReachLayer; private to reach*.c.
 *
 * Rows with the same keys share one list, and a run that several lists hold is
 * kept once: blocks, clusters, global columns and strides then cost their runs,
 * not their cells.  An edge is a key (>= 0) or ~number of a run.
 */
#ifndef ATTN_REACH_PARTS_H
#define ATTN_REACH_PARTS_H

#include "attn/reach.h"

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
};

static inline const ReachLayer *reach_layer_at(const ReachStack *s, int layer) /* from 1 */
{
    return s->layers[(layer - 1) % s->count];
}

/* Told that row `row` of a block reaches the tokens 64 group + (bits of `tokens`) at
 * a depth: with residual connections at this one first, else at exactly this one. */
typedef void (*ReachFound)(void *context, int depth, int64_t row, int64_t group, uint64_t tokens);

/* Tells of all depths from 0 for the rows from `first` on.  With residual connections
 * it ends where nothing more can come.  changed (may be NULL; [depth + 1]): set for the
 * depths at which some row reaches other tokens than at the one before.  False:
 * cancelled, or out of memory. */
bool reach_search(const ReachStack *stack, ReachBlock *block, int64_t first, ReachFound found,
                  void *context, bool *changed, const atomic_bool *cancel);

#endif
