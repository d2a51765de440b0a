/* pattern_draw.c -- tables of random keys: few distinct ones per row, uniformly.
 *
 * Rows are drawn in order, heads one after the other, from a stream of their own name, so
 * a table depends on the seed and on nothing that runs beside it.
 */
#include "attn/pattern/pattern.h"

#include "core/rng.h"

static int64_t min64(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

typedef struct Draw {
    PatternShape shape;
    PatternSkip  skip;
    void        *context;
    Rng          rng;
    int32_t     *candidates; /* [m], scratch of one row */
} Draw;

static bool taken(const int32_t *out, int64_t count, int64_t key)
{
    for (int64_t t = 0; t < count; t++)
        if (out[t] == key)
            return true;
    return false;
}

/* Robert Floyd's sampling needs no list when every position is a candidate. */
static void draw_from_range(Draw *d, int64_t range, int64_t take, int32_t *out)
{
    for (int64_t c = 0; c < take; c++) {
        int64_t top = range - take + c, key = (int64_t)rng_below(&d->rng, (uint64_t)top + 1);

        out[c] = (int32_t)(taken(out, c, key) ? top : key);
    }
}

#define TRIES 32

/* One more key: by rejection, which is cheap when few positions are left out;
 * from the list of what remains when it keeps failing.  -1: nothing remains. */
static int32_t draw_allowed(Draw *d, int64_t i, int64_t range, const int32_t *out, int64_t c)
{
    int64_t count = 0;

    for (int t = 0; t < TRIES; t++) {
        int64_t key = (int64_t)rng_below(&d->rng, (uint64_t)range);

        if (!taken(out, c, key) && !d->skip(d->context, i, key))
            return (int32_t)key;
    }
    for (int64_t j = 0; j < range; j++)
        if (!taken(out, c, j) && !d->skip(d->context, i, j))
            d->candidates[count++] = (int32_t)j;
    return count ? d->candidates[rng_below(&d->rng, (uint64_t)count)] : -1;
}

static void draw_row(Draw *d, int64_t i, int64_t r, int32_t *out)
{
    int64_t range = d->shape.causal ? min64(i + d->shape.q_offset + 1, d->shape.m) : d->shape.m;
    int64_t c = 0;

    if (range < 0)
        range = 0;
    if (!d->skip) {
        c = min64(r, range);
        draw_from_range(d, range, c, out);
    } else if (range > 0 && !d->skip(d->context, i, -1)) {
        for (; c < r; c++)
            if ((out[c] = draw_allowed(d, i, range, out, c)) < 0)
                break;
    }
    for (; c < r; c++)
        out[c] = -1;
}

Tensor pattern_draw_random(Arena *a, PatternShape s, int64_t r, uint64_t seed, const char *name,
                           PatternSkip skip, void *context)
{
    int64_t shape[3] = { s.heads, s.n, r };
    Tensor  table = tensor_new(a, DT_I32, 3, shape);
    Draw    d = { .shape = s, .skip = skip, .context = context, .rng = rng_named(seed, name) };
    ArenaMark mark = arena_mark(a);

    d.candidates = arena_alloc(a, skip ? s.m : 1, sizeof(*d.candidates));
    if (!table.data || !d.candidates)
        return (Tensor){ 0 };
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.n; i++)
            draw_row(&d, i, r, tensor_i32(&table) + (h * s.n + i) * r);
    arena_release(a, mark);
    return table;
}
