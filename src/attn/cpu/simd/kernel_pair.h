/* kernel_pair.h -- the part of kernel_body.h where two queries take the same keys, in one pass.
 *
 * PAIR_KEYS keys at a time are scored, become weights and are mixed.  Few, because arithmetic on
 * rows that are at hand leaves the memory idle: the processor begins the next keys' reads while it
 * works on these only as far as it looks ahead.
 */
#define PAIR_KEYS LANES

static const int32_t pair_places[PAIR_KEYS] = { 0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15 };

/* Products of a key with both queries; fetch: prefetch what lies AHEAD. */
INLINE void pair_products(const PairAttend *p, const float *row, const bool fetch, Vec *first,
                          Vec *second)
{
    int64_t t = 0;

    *first = *second = vec_splat(0.0f);
    for (; t + WIDTH <= p->d; t += WIDTH) {
        Vec now = vec_load(row + t);

        if (fetch)
            __builtin_prefetch(row + t + AHEAD);
        *first = vec_fma(vec_load(p->q + t), now, *first);
        *second = vec_fma(vec_load(p->q + p->ldq + t), now, *second);
    }
    if (t < p->d) {
        Vec now = vec_load_part(row + t, p->d - t);

        *first = vec_fma(vec_load_part(p->q + t, p->d - t), now, *first);
        *second = vec_fma(vec_load_part(p->q + p->ldq + t, p->d - t), now, *second);
    }
}

/* Four scores of each query, key by key: the processor's own prefetch follows lines in order. */
INLINE void pair_dots(const PairAttend *p, const float *const row[4], const bool fetch,
                      float s[2][PAIR_KEYS], int64_t at)
{
    Vec sum[2][4];

    UNROLL for (int g = 0; g < 4; g++)
        pair_products(p, row[g], fetch, &sum[0][g], &sum[1][g]);
    vec_totals(sum[0], s[0] + at);
    vec_totals(sum[1], s[1] + at);
}

/* Scores of the first `count` of `keys`; those of none are -inf. */
INLINE void pair_scores(const PairAttend *p, const float *k, const int32_t *keys, int64_t count,
                        const bool fetch, float s[2][PAIR_KEYS])
{
    for (int64_t x = 0; x < count; x += 4) {
        const float *row[4];

        UNROLL for (int g = 0; g < 4; g++)
            row[g] = k + (int64_t)keys[x + g < count ? x + g : x] * p->ldk;
        pair_dots(p, row, fetch, s, x);
    }
    for (int64_t x = count; x < PAIR_KEYS; x++)
        s[0][x] = s[1][x] = -INFINITY;
}

/* A row's scores become weights of the largest so far, and join its sum; returns the factor of what
 * was summed and mixed before. */
INLINE float pair_soften(float *s, float *max, Vec *sum)
{
    Vec      high = vec_splat(*max);
    float    before = *max, base, factor = 1.0f;
    uint64_t reach = 0;

    UNROLL for (int x = 0; x < PAIR_KEYS; x += WIDTH) {
        reach |= bits_reach(vec_load(s + x), vec_splat(before));
        high = vec_max(vec_load(s + x), high);
    }
    if (reach)
        *max = vec_top(high);
    base = *max > -INFINITY ? *max : 0.0f; /* nothing allowed yet */
    if (*max > before) {
        factor = exp2f(before - base);
        *sum = vec_mul(*sum, vec_splat(factor));
    }
    UNROLL for (int x = 0; x < PAIR_KEYS; x += WIDTH) {
        Vec w = vec_exp2(vec_sub(vec_load(s + x), vec_splat(base)));

        vec_store(s + x, w);
        *sum = vec_add(*sum, w);
    }
    return factor;
}

/* Columns of four vectors, of both rows. */
INLINE void pair_strip(const PairAttend *p, float w[2][PAIR_KEYS], const float *v,
                       const int32_t *keys, int64_t count, const float *factor, float *acc)
{
    Vec c[2][4];

    UNROLL for (int x = 0; x < 4; x++) {
        c[0][x] = vec_mul(vec_splat(factor[0]), vec_load(acc + x * WIDTH));
        c[1][x] = vec_mul(vec_splat(factor[1]), vec_load(acc + p->lda + x * WIDTH));
    }
    for (int64_t j = 0; j < count; j++) {
        const float *row = v + (int64_t)keys[j] * p->ldv;
        Vec          a = vec_splat(w[0][j]), b = vec_splat(w[1][j]);

        UNROLL for (int x = 0; x < 4; x++) {
            Vec now = vec_load(row + x * WIDTH);

            c[0][x] = vec_fma(a, now, c[0][x]);
            c[1][x] = vec_fma(b, now, c[1][x]);
        }
    }
    UNROLL for (int x = 0; x < 4; x++) {
        vec_store(acc + x * WIDTH, c[0][x]);
        vec_store(acc + p->lda + x * WIDTH, c[1][x]);
    }
}

INLINE void pair_mix(const PairAttend *p, float w[2][PAIR_KEYS], const float *v,
                     const int32_t *keys, int64_t count, const float *factor)
{
    int64_t at = 0;

    for (; p->e - at >= 4 * WIDTH; at += 4 * WIDTH)
        pair_strip(p, w, v + at, keys, count, factor, p->acc + at);
    for (int i = 0; at < p->e && i < 2; i++)
        row_mix(w[i], v + at, p->ldv, keys, count, p->e - at, factor[i],
                p->acc + i * p->lda + at);
}

INLINE void pair_keys(const PairAttend *p, const float *k, const float *v, const int32_t *keys,
                      int64_t count, const bool fetch, Vec sum[2])
{
    float s[2][PAIR_KEYS], factor[2];

    pair_scores(p, k, keys, count, fetch, s);
    factor[0] = pair_soften(s[0], p->max, &sum[0]);
    factor[1] = pair_soften(s[1], p->max + p->ldm, &sum[1]);
    pair_mix(p, s, v, keys, count, factor);
}

/* Neighbouring keys of whole steps, which need no list. */
INLINE int64_t pair_neighbours(const PairAttend *p, const bool fetch, Vec sum[2])
{
    int64_t x = 0;

    for (; x + PAIR_KEYS <= p->count; x += PAIR_KEYS)
        pair_keys(p, p->k + x * p->ldk, p->v + x * p->ldv, pair_places, PAIR_KEYS, fetch, sum);
    return x;
}

INLINE Vec vec_first(float x)
{
    float lane[WIDTH] = { x };

    return vec_load(lane);
}

static TARGET void pair_attend(const PairAttend *p)
{
    Vec     sum[2] = { vec_first(p->sum[0]), vec_first(p->sum[p->ldm]) };
    int64_t x = 0;

    if (!p->keys)
        x = kernel_fetches ? pair_neighbours(p, true, sum) : pair_neighbours(p, false, sum);
    for (; x < p->count; x += PAIR_KEYS) {
        int64_t count = p->count - x < PAIR_KEYS ? p->count - x : PAIR_KEYS;

        if (p->keys)
            pair_keys(p, p->k, p->v, p->keys + x, count, false, sum);
        else
            pair_keys(p, p->k + x * p->ldk, p->v + x * p->ldv, pair_places, count, false, sum);
    }
    p->sum[0] = vec_total(sum[0]);
    p->sum[p->ldm] = vec_total(sum[1]);
}
