/* attn/cpu/terms.h -- what a position adds to scores and outputs, tile by tile.
 *
 * Terms depend on the distance i - j only through a table row index, so for a
 * tile the products side . table are needed for a short range of table rows:
 * they are computed by the score kernel for that range and spread over the
 * tile.  An attention without terms never comes here.
 */
#ifndef ATTN_CPU_TERMS_H
#define ATTN_CPU_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cpu/block.h"
#include "attn/ops/ops.h"

typedef struct Terms {
    const AttendInput *in;
    const Kernel      *kernel;
    int64_t            heads, n, m, d, e;
    int64_t            span;     /* most table rows one tile of a block can need, padded */
    bool               any;      /* the scores change */
    bool               value;
    float             *row_panels, *col_panels; /* [span/64][d][64] packed table rows */
    float             *row_dots; /* [TILE_ROWS][span] */
    float             *col_dots; /* [72][span] products of a panel's keys */
    float             *bucket;   /* [TILE_ROWS][span] weights summed by table row */
    float             *top;      /* [TILE_ROWS][LANES] not used */
    int64_t            row_low, col_low; /* first table row packed */
    int64_t            head;
    int32_t           *at;       /* [TERMS_LIST] table rows of listed keys */
    float             *dots;     /* [TERMS_LIST] */
} Terms;

#define TERMS_LIST 1024 /* most keys of one terms_add_list */

/* Most table rows a block of `rows` queries needs for one panel. */
int64_t terms_span(const AttendInput *in, int64_t n, int64_t m, int64_t rows);
bool terms_init(Terms *t, Arena *arena, const Kernel *kernel, const AttendInput *in,
                int64_t heads, int64_t span);
/* Prepares the products shared by the rows [first, first + rows) for a panel. */
void terms_panel(Terms *t, int64_t head, int64_t first, int64_t rows, int64_t panel);
/* Adds to the tile of rows [i, i + TILE_ROWS) and the prepared panel. */
void terms_add_tile(Terms *t, int64_t i, int64_t panel, float *s, int64_t lds);
/* Adds to the scores of listed keys of row i. */
void terms_add_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    float *s);
/* The value term of the weights of a tile, into the group's accumulators. */
void terms_mix_tile(Terms *t, int64_t head, int64_t i, int64_t panel, const float *w,
                    int64_t ldw, float *acc, int64_t lda);
void terms_mix_list(Terms *t, int64_t head, int64_t i, const int32_t *keys, int64_t count,
                    const float *w, float *acc);

#endif
