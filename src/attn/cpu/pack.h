/* attn/cpu/pack.h -- keys transposed into panels [d][TILE_KEYS].
 *
 * A panel holds up to TILE_KEYS rows of a [.,d] matrix as columns; missing
 * rows are zero.
 */
#ifndef ATTN_CPU_PACK_H
#define ATTN_CPU_PACK_H

#include <stdint.h>

/* count <= TILE_KEYS rows at k, k + ld, ... */
void pack_panel(const float *k, int64_t ld, int64_t count, int64_t d, float *panel);
/* Rows index[0..count) of k. */
void pack_rows(const float *k, int64_t ld, const int32_t *index, int64_t count, int64_t d,
               float *panel);

#endif
