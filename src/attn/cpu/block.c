/* block.c -- see block.h. */
#include "attn/cpu/block.h"

#include "attn/cpu/cpu.h"

#include <math.h>
#include <string.h>

bool block_init(Block *b, Arena *arena, const Kernel *kernel, int64_t capacity, int64_t d,
                int64_t e)
{
    int64_t groups = capacity / TILE_ROWS, size = (int64_t)sizeof(float);

    *b = (Block){ .kernel = kernel, .capacity = capacity, .d = d, .e = e };
    /* The extra lanes keep rows from falling on the same cache sets. */
    b->lds = STEP_PANELS * TILE_KEYS + LANES;
    b->lda = round_up_to(e, LANES);
    b->q = arena_alloc(arena, capacity, d * size);
    b->s = arena_alloc(arena, capacity, b->lds * size);
    b->acc = arena_alloc(arena, capacity, b->lda * size);
    b->top = arena_alloc(arena, capacity, LANES * size);
    b->max = arena_alloc(arena, capacity, size);
    b->sum = arena_alloc(arena, capacity, size);
    b->factor = arena_alloc(arena, capacity, size);
    b->slots = arena_alloc(arena, groups, (int64_t)sizeof(*b->slots));
    b->panel = arena_alloc(arena, groups, STEP_PANELS * (int64_t)sizeof(*b->panel));
    return b->q && b->s && b->acc && b->top && b->max && b->sum && b->factor && b->slots &&
           b->panel;
}

void block_begin(Block *b, int64_t rows)
{
    int64_t padded = round_up_to(rows, TILE_ROWS);

    b->rows = rows;
    b->groups = padded / TILE_ROWS;
    memset(b->q + rows * b->d, 0, (size_t)((padded - rows) * b->d) * sizeof(float));
    memset(b->acc, 0, (size_t)(padded * b->lda) * sizeof(float));
    for (int64_t i = 0; i < padded; i++) {
        b->max[i] = -INFINITY;
        b->sum[i] = 0.0f;
    }
    for (int64_t i = 0; i < padded * LANES; i++)
        b->top[i] = -INFINITY;
    memset(b->slots, 0, (size_t)b->groups * sizeof(*b->slots));
}

void block_query(Block *b, int64_t row, const float *q, double scale)
{
    b->kernel->scale(q, b->d, (float)(scale * LOG2_E), b->q + row * b->d);
}

float *block_score(Block *b, int64_t g, int64_t panel_index, const float *panel, int64_t keys,
                   const uint64_t *keep)
{
    int    slot = b->slots[g]++;
    float *tile = block_tile(b, g, slot);

    b->panel[g * STEP_PANELS + slot] = (int32_t)panel_index;
    b->kernel->score(b->q + g * TILE_ROWS * b->d, b->d, panel, b->d, keep,
                     (int)min_i64(keys, TILE_KEYS), tile, b->lds, b->top + g * TILE_ROWS * LANES);
    return tile;
}

void block_soften(Block *b, int64_t g, bool changed)
{
    int64_t row = g * TILE_ROWS;
    float  *top = b->top + row * LANES;

    b->kernel->softmax(block_tile(b, g, 0), b->lds, TILE_ROWS, b->slots[g] * TILE_KEYS,
                       changed ? NULL : top, b->max + row, b->sum + row, b->factor + row);
    for (int x = 0; x < TILE_ROWS * LANES; x++)
        top[x] = -INFINITY;
}

void block_mix(Block *b, int64_t g, const float *v, int64_t ldv, int64_t m)
{
    static const float ones[TILE_ROWS] = { 1, 1, 1, 1, 1, 1 };
    const int32_t     *panel = b->panel + g * STEP_PANELS;
    const float       *factor = b->factor + g * TILE_ROWS;

    for (int from = 0, to; from < b->slots[g]; from = to) {
        int64_t key = (int64_t)panel[from] * TILE_KEYS;

        to = from + 1;
        while (to < b->slots[g] && panel[to] == panel[to - 1] + 1)
            to++;
        b->kernel->mix(block_tile(b, g, from), b->lds, v + key * ldv, ldv,
                       min_i64((to - from) * TILE_KEYS, m - key), b->e, factor,
                       b->acc + g * TILE_ROWS * b->lda, b->lda);
        factor = ones;
    }
    b->slots[g] = 0;
}

void block_row(const Block *b, int64_t row, float *out, float *lse)
{
    const float *acc = b->acc + row * b->lda;
    float        sum = b->sum[row];
    bool         any = b->max[row] > -INFINITY || sum != 0.0f; /* a NaN counts as a key */

    if (any)
        b->kernel->scale(acc, b->e, 1.0f / sum, out);
    else
        memset(out, 0, (size_t)b->e * sizeof(*out));
    *lse = any ? (float)(((double)b->max[row] + log2((double)sum)) * LN_2) : -INFINITY;
}
