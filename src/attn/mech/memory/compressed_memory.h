/* attn/mech/memory/compressed_memory.h -- a memory whose oldest tokens are squeezed into fewer slots.
 *
 * At the end of every segment the tokens that no longer fit the first-in-first-out memory
 * leave it together (a batch), and every `ratio` of them become one slot, which is a linear
 * mixture of tokens, their maximum, or one of them.  The last `cmem_len` slots are seen.
 * When each slot comes and goes is known before anything is computed; so is which tokens it
 * holds, except where usage chooses them.
 */
#ifndef ATTN_MECH_MEMORY_COMPRESSED_MEMORY_H
#define ATTN_MECH_MEMORY_COMPRESSED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/mech/memory/recurrence.h"
#include "attn/ops/row_sums.h"
#include "attn/run/view.h"

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
    int64_t   *first, *end; /* [slots] its tokens, as the view `memory` tells */
    int64_t   *slot_of;    /* [n] slot whose group the token is in; -1: none */
} CompressedMemory;

/* NULL when the run failed. */
CompressedMemory *compressed_memory_new(Run *r, Recurrence c, SlotCover cover, int64_t cmem_len,
                                        int64_t ratio);
/* Tokens [*first, *end) leave after segment t; whether there are any to squeeze. */
bool compressed_memory_batch(const CompressedMemory *c, int64_t t, int64_t *first, int64_t *end);
/* COVER_ONE: the slot is this token, not what its group was. */
void compressed_memory_choose(CompressedMemory *c, int64_t slot, int64_t token);
/* Slots [*first, made[t]) are seen by segment t. */
int64_t compressed_memory_seen(const CompressedMemory *c, int64_t t, int64_t *first);

/* ---- patterns; rows are read when the run is over -------------------------------- */

/* n x n: 8 a token in a slot, 1 in the memory, 16 in the segment itself. */
Pattern *compressed_memory_cells(Run *r, const CompressedMemory *c);
/* The same, segments x n: what each segment can read. */
Pattern *compressed_memory_bands(Run *r, const CompressedMemory *c);
/* slots x n: the tokens of each of the first `slots`. */
Pattern *compressed_memory_members(Run *r, const CompressedMemory *c, int64_t slots);
/* n x (cmem_len + mem_len + segment): the slots a query sees, the tokens in memory (both
 * right-aligned), and those of its segment. */
Pattern *compressed_memory_places(Run *r, const CompressedMemory *c, int64_t cmem_len,
                                  int64_t mem_len, int64_t segment);
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
