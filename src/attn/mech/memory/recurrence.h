/* attn/mech/memory/recurrence.h -- a sequence taken segment by segment, with a memory of what came before.
 *
 * The tokens are cut into segments of `segment`; the last may be short.  Segment t attends
 * to itself and to the `mem_len` tokens before it, which are kept as they were.  The next
 * layer caches its own inputs, so through L layers a token is reached from L windows away,
 * while nothing is learned through what was cached.
 */
#ifndef ATTN_MECH_MEMORY_RECURRENCE_H
#define ATTN_MECH_MEMORY_RECURRENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"

typedef struct Recurrence {
    int64_t n, segment, count; /* tokens, tokens of a segment, segments */
    int64_t mem_len;
    bool    causal;
} Recurrence;

/* Lengths beyond the sequence are cut to it. */
Recurrence recurrence_of(const Run *r, int64_t segment, int64_t mem_len);
int64_t recurrence_start(const Recurrence *c, int64_t t); /* first token of segment t */
int64_t recurrence_end(const Recurrence *c, int64_t t);   /* one past its last */
int64_t recurrence_memory(const Recurrence *c, int64_t t); /* first token that it remembers */

/* Attention of one segment, its result put where the segment is: into rows first, ... of out
 * [h,n,e] and lse [h,n].  What the attention allocates is freed again. */
void recurrence_attend(Run *r, const AttendInput *segment, const Pattern *cells, int64_t first,
                       Tensor out, Tensor lse);

/* What the components of cells are: compressed, memory, own segment (View.components). */
extern const char *const recurrence_components[8];

/* A run shows each of its first segments by itself. */
#define RECURRENCE_SNAPSHOTS 24
bool recurrence_shows(const Run *r, int64_t t);
/* View segment_weights [h,queries,keys] of the current stage; lse: of the whole run.  Keys from
 * `own` on are the segment's.  What `segment` borrows must live as long as the run. */
void recurrence_show_segment(Run *r, const AttendInput *segment, Tensor lse, int64_t first,
                             int64_t own, const Pattern *cells);

/* Views reach_tokens and reach_segments i32 [layers + 1,n]: how far before itself a query is
 * reached from after 0, 1, 2, ... layers of these cells, as far as that changes (12 at most). */
void recurrence_show_reach(Run *r, const Recurrence *c, const Pattern *cells);

#endif
