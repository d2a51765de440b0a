/* attn/mech/memory/recurrence.h -- a sequence taken segment by segment, with a memory of
 * what came before.
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
#include "attn/ops/weights.h"
#include "attn/pattern/pattern.h"
#include "attn/run/view.h"

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

/* Number of first segments that get their own view. */
#define RECURRENCE_SNAPSHOTS 24
bool recurrence_shows(const Run *r, int64_t t);
/* View segment_weights [h,queries,keys] of the current stage; lse: of the whole run.  Keys from
 * `own` on are the segment's.  What `segment` borrows must live as long as the run. */
void recurrence_show_segment(Run *r, const AttendInput *segment, Tensor lse, int64_t first,
                             int64_t own, const Pattern *cells);

/* Views reach_tokens and reach_segments i32 [layers + 1,n]: how far before itself a query is
 * reached from after 0, 1, 2, ... layers of these cells, as far as that changes (12 at most). */
void recurrence_show_reach(Run *r, const Recurrence *c, const Pattern *cells);

/* A memory whose oldest tokens are squeezed into fewer slots.
 *
 * At the end of every segment the tokens that no longer fit the first-in-first-out memory
 * leave it together (a batch), and every `ratio` of them become one slot, which is a linear
 * mixture of tokens, their maximum, or one of them.  The last `cmem_len` slots are seen.
 * When each slot comes and goes is known before anything is computed; so is which tokens it
 * holds, except where usage chooses them.
 */

/* Which tokens of its batch slot g holds: g ratio .. (g + 1) ratio - 1; g ratio, g ratio + 2,
 * ... (ratio of them); one. */
typedef enum SlotCover { COVER_GROUP, COVER_SPREAD, COVER_ONE } SlotCover;

typedef struct CompressedMemory {
    Recurrence recurrence;
    SlotCover  cover;
    int64_t    cmem_len, ratio;
    int64_t    slots;      /* ever made */
    int64_t   *made;       /* [segments + 1] before each segment */
    int64_t   *batch;      /* [slots] segment after which it was made */
    int64_t   *first, *end; /* [slots] its tokens, as in the view `memory` */
    int64_t   *slot_of;    /* [n] slot whose group the token is in; -1: none */
} CompressedMemory;

/* NULL when the run failed. */
CompressedMemory *compressed_memory_new(Run *r, Recurrence c, SlotCover cover, int64_t cmem_len,
                                        int64_t ratio);
/* Tokens [*first, *end) leave after segment t; whether there are any to squeeze. */
bool compressed_memory_batch(const CompressedMemory *c, int64_t t, int64_t *first, int64_t *end);
/* COVER_ONE: `slot` holds `token`, not its group. */
void compressed_memory_choose(CompressedMemory *c, int64_t slot, int64_t token);
/* Slots [*first, made[t]) are seen by segment t. */
int64_t compressed_memory_seen(const CompressedMemory *c, int64_t t, int64_t *first);

/* ---- patterns; rows are read when the run is over -------------------------------- */

/* n x n: 8 a token in a slot, 1 in the memory, 16 in the segment itself. */
Pattern *compressed_memory_cells(Run *r, const CompressedMemory *c);
/* n x n and n x slots: the tokens that are read as they are, and the slots. */
Pattern *compressed_memory_tokens(Run *r, const CompressedMemory *c);
Pattern *compressed_memory_slots(Run *r, const CompressedMemory *c);

/* ---- views ------------------------------------------------------------------------- */

typedef struct CompressedViews {
    const CompressedMemory *memory;
    AttendInput tokens, slots; /* queries of the run; keys of tokens, and of slots */
    Tensor      lse;           /* [h,n] */
    RowSums     sums;          /* over both */
    const double *taps;        /* [ratio] of a slot; NULL: equal shares (COVER_ONE: 1) */
    int64_t     cmem_len, mem_len, segment; /* as the user gave them: columns */
    int64_t     heads;
} CompressedViews;

/* `memory`, `slot_weights`, `bands`; v is kept. */
void compressed_memory_show(Run *r, const CompressedViews *v);
/* `squeezed`: the share of each token in each of the first `slots` ever made.  linear: slots
 * are mixtures with known shares; else only which tokens is. */
void compressed_memory_show_squeezed(Run *r, const CompressedViews *v, bool linear,
                                     int64_t slots);
/* `weights` over the cells, where slots are such mixtures. */
void compressed_memory_show_weights(Run *r, const CompressedViews *v, const Pattern *cells);

#endif
