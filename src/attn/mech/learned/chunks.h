/* attn/mech/learned/chunks.h -- a list cut into chunks, each seeing the chunks around it.
 *
 * The list has `slots` entries and is cut every `block` of them; the last
 * chunk may be short.  Chunk c sees chunks c - before ... c + after: those
 * that exist, or, when the list is a ring, modulo their number and each once.
 */
#ifndef ATTN_MECH_LEARNED_CHUNKS_H
#define ATTN_MECH_LEARNED_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"

typedef struct Chunks {
    int64_t slots, block, count; /* count: of chunks */
    int64_t before, after;
    bool    ring;
} Chunks;

Chunks chunks_of(int64_t slots, int64_t block, int64_t before, int64_t after, bool ring);

/* Slots [chunk * block, chunks_end). */
int64_t chunks_end(const Chunks *c, int64_t chunk);
/* Seen from `chunk`: first, first + 1, ... modulo count; returns how many. */
int64_t chunks_window(const Chunks *c, int64_t chunk, int64_t *first);
/* (query slot, key slot) pairs, key in a chunk that the query's sees. */
double  chunks_pairs(const Chunks *c);

/* The lists of `g`, the same for all heads: a group is a chunk, its queries are
 * the chunk's slots, its keys those of the window.  Rows are slots. */
void chunks_groups(Run *r, const Chunks *c, GroupAttend *g);

#endif
