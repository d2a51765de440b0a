/* attn/cpu/simd/kernel_bits.h -- comparisons of tags, places and scores: masks of panels, how often
 * rows meet keys, bounds and peaks.  A part of kernel_body.h.
 */
#ifndef ATTN_CPU_KERNEL_BITS_H
#define ATTN_CPU_KERNEL_BITS_H

INLINE uint64_t panel_equal(const int32_t *x, int32_t value)
{
    uint64_t bits = 0;

    UNROLL for (int j = 0; j < TILE_KEYS; j += WIDTH)
        bits |= bits_equal(x + j, value) << j;
    return bits;
}

INLINE uint64_t panel_at_most(const int32_t *x, int64_t value)
{
    int32_t  high = (int32_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN
                                                                            : value);
    uint64_t bits = 0;

    UNROLL for (int j = 0; j < TILE_KEYS; j += WIDTH)
        bits |= bits_at_most(x + j, high) << j;
    return bits;
}

static TARGET void keys_equal(const int32_t *x, const int32_t *own, int64_t rows, uint64_t *bits)
{
    for (int64_t r = 0; r < rows; r++)
        bits[r] = panel_equal(x, own[r]);
}

static TARGET void keys_at_most(const int32_t *x, const int32_t *own, int64_t rows, uint64_t *bits)
{
    for (int64_t r = 0; r < rows; r++)
        bits[r] = panel_at_most(x, own[r]);
}

INLINE uint64_t window_bits(const int32_t *place, int64_t first, int64_t last)
{
    return panel_at_most(place, last) & ~panel_at_most(place, first - 1);
}

/* The keys, out of `keep`, that row r meets in list x. */
INLINE uint64_t met_bits(const Meeting *m, int64_t x, int64_t r, uint64_t keep)
{
    const int32_t *place = m->place + x * m->ldk;
    int64_t        own = m->own_place[x * m->ldr + r];
    int64_t        first = own - m->before, last = own + m->after;
    uint64_t       seen;

    if (m->tag)
        keep &= panel_equal(m->tag + x * m->ldk, m->own_tag[x * m->ldr + r]);
    if (!keep)
        return 0;
    seen = window_bits(place, first, last);
    if (m->ring)
        seen |= window_bits(place, first - m->ring, last - m->ring) |
                window_bits(place, first + m->ring, last + m->ring);
    return keep & seen;
}

static TARGET void keys_meet(const Meeting *m, uint64_t times[][TIMES_DIGITS])
{
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t x = 0; x < m->lists && m->keep[r]; x++) {
            uint64_t carry = met_bits(m, x, r, m->keep[r]);

            for (uint64_t *digit = times[r]; carry; digit++) {
                uint64_t both = *digit & carry;

                *digit ^= carry;
                carry = both;
            }
        }
}

static TARGET uint64_t scores_at_least(const float *s, const float *limit)
{
    uint64_t bits = 0;

    UNROLL for (int j = 0; j < TILE_KEYS; j += WIDTH)
        bits |= bits_reach(vec_load(s + j), vec_load(limit + j)) << j;
    return bits;
}

static TARGET void scores_rows_reach(const float *s, int64_t rows, const float *limit,
                                     uint64_t *bits)
{
    for (int64_t r = 0; r < rows; r++, s += TILE_KEYS) {
        Vec low = vec_splat(limit[r]);

        bits[r] = 0;
        UNROLL for (int j = 0; j < TILE_KEYS; j += WIDTH)
            bits[r] |= bits_reach(vec_load(s + j), low) << j;
    }
}

static TARGET int64_t scores_reach(const float *x, int64_t count, float limit)
{
    int64_t found = 0;

    for (int64_t j = 0; j < count; j += LANES) {
        uint64_t bits = 0;

        UNROLL for (int i = 0; i < LANES; i += WIDTH)
            bits |= bits_reach(vec_load(x + j + i), vec_splat(limit)) << i;
        found += __builtin_popcountll(bits);
    }
    return found;
}

/* Entries whose places are alike modulo a power of two are a class. */
static TARGET float scores_class_bound(const float *x, int64_t count, int64_t takes)
{
    float high[LANES], least = INFINITY;
    int   classes = LANES;

    UNROLL for (int i = 0; i < LANES; i += WIDTH) {
        Vec most = vec_load(x + i);

        for (int64_t j = LANES; j < count; j += LANES)
            most = vec_max(vec_load(x + j + i), most);
        vec_store(high + i, most);
    }
    for (; classes / 2 >= takes; classes /= 2)
        for (int c = 0; c < classes / 2; c++)
            high[c] = high[c + classes / 2] > high[c] ? high[c + classes / 2] : high[c];
    for (int c = 0; c < classes; c++)
        least = high[c] < least ? high[c] : least;
    return least;
}

/* 1 where x reaches the limit, else 0. */
INLINE Vec vec_reaches(Vec x, Vec limit)
{
    return vec_max(vec_keep(vec_splat(1.0f), bits_reach(x, limit)), vec_splat(0.0f));
}

INLINE Vec vec_negative(Vec x)
{
    return vec_sub(vec_splat(0.0f), x);
}

/* One vector of columns. */
INLINE void strip_bounds(const float *s, int64_t rows, int64_t takes, int steps, float *limit)
{
    Vec high = vec_load(s), depth = vec_negative(high), low;

    for (int64_t r = 1; r < rows; r++) {
        high = vec_max(vec_load(s + r * TILE_KEYS), high);
        depth = vec_max(vec_negative(vec_load(s + r * TILE_KEYS)), depth);
    }
    low = vec_negative(depth);
    for (int step = 0; step < steps; step++) {
        Vec      middle = vec_fma(vec_splat(0.5f), vec_sub(high, low), low);
        Vec      count = vec_splat(0.0f);
        uint64_t enough;

        for (int64_t r = 0; r < rows; r++)
            count = vec_add(count, vec_reaches(vec_load(s + r * TILE_KEYS), middle));
        enough = bits_reach(count, vec_splat((float)takes));
        low = vec_max(vec_keep(middle, enough), low);
        high = vec_negative(vec_max(vec_keep(vec_negative(middle), ~enough), vec_negative(high)));
    }
    vec_store(limit, low);
}

static TARGET void scores_column_bounds(const float *s, int64_t rows, int64_t takes, int steps,
                                        float *limit)
{
    for (int c = 0; c < TILE_KEYS; c += WIDTH)
        strip_bounds(s + c, rows, takes, steps, limit + c);
}

static TARGET void scores_fold_heads(const float *s, int64_t rows, const float *factor, float *sum)
{
    for (int j = 0; j < TILE_KEYS; j += STRIP) {
        Vec total[VECS];

        UNROLL for (int v = 0; v < VECS; v++)
            total[v] = vec_splat(0.0f);
        for (int64_t r = 0; r < rows; r++)
            UNROLL for (int v = 0; v < VECS; v++) {
                Vec x = vec_load(s + r * TILE_KEYS + j + v * WIDTH);

                total[v] = vec_fma(vec_splat(factor[r]), vec_max(x, vec_splat(0.0f)), total[v]);
            }
        UNROLL for (int v = 0; v < VECS; v++)
            vec_store(sum + j + v * WIDTH, total[v]);
    }
}

INLINE Vec size_of(Vec x, bool negative)
{
    return negative ? vec_max(x, vec_negative(x)) : x;
}

INLINE Vec sizes_top(const float *s, int64_t count)
{
    Vec high[4];

    UNROLL for (int x = 0; x < 4; x++)
        high[x] = size_of(vec_load(s + x * WIDTH), true);
    for (int64_t j = 4 * WIDTH; j < count; j += 4 * WIDTH)
        UNROLL for (int x = 0; x < 4; x++)
            high[x] = vec_max(size_of(vec_load(s + j + x * WIDTH), true), high[x]);
    return vec_max(vec_max(high[0], high[1]), vec_max(high[2], high[3]));
}

/* The only entry of s that reaches the limit, or -1; without branches, which no processor would
 * foresee. */
INLINE int32_t only_peak(const float *s, int64_t count, const bool negative, float limit)
{
    int64_t found = 0, at = -1;

    for (int64_t j = 0; j < count; j += TILE_KEYS) {
        uint64_t bits = 0;

        UNROLL for (int x = 0; x < TILE_KEYS; x += WIDTH)
            bits |= bits_reach(size_of(vec_load(s + j + x), negative), vec_splat(limit)) << x;
        found += __builtin_popcountll(bits);
        at = bits ? j + __builtin_ctzll(bits) : at;
    }
    return found == 1 ? (int32_t)at : -1;
}

static TARGET void scores_peaks(const float *s, int64_t lds, int64_t rows, int64_t count,
                                const float *top, const float *margin, int32_t *at)
{
    for (int64_t r = 0; r < rows; r++) {
        Vec high = top ? vec_load(top + r * LANES) : sizes_top(s + r * lds, count);

        at[r] = only_peak(s + r * lds, count, !top, vec_top(high) - margin[r]);
    }
}

#endif
