/* kernel_pass.h -- the part of kernel_body.h where a few queries take the same keys in one pass.
 *
 * Some keys are scored, become weights and are mixed, four queries at a time, then the next ones.
 * Neighbours are few at a time and fetched ahead, because arithmetic on rows that are at hand
 * leaves the memory idle: the processor begins the next reads only as far as it looks ahead.
 */
#define PASS_GROUP 4 /* queries at a time; two or one where fewer are left */
#define PASS_PAIR 2  /* of them, whose values are mixed at a time */
#define PASS_KEYS 64
#define PASS_FEW (WIDTH < LANES ? 8 : LANES) /* neighbours, which are fetched ahead */
#define PASS_LONE (WIDTH < LANES ? 8 : PASS_KEYS) /* of one query */
#define PASS_VECS 4
#define PASS_STRIP (PASS_VECS * WIDTH) /* columns that are mixed at a time */

#define PLACES(x) x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7
static const int32_t pass_places[PASS_KEYS] = { PLACES(0),  PLACES(8),  PLACES(16), PLACES(24),
                                                PLACES(32), PLACES(40), PLACES(48), PLACES(56) };

/* Products of each query with keys [first, end) of four.  `ahead`, here and below: floats beyond
 * those that are read, to prefetch, or ALONE. */
INLINE void pass_products(const KeyPass *p, const int rows, const float *const key[4],
                          const int first, const int end, const int ahead, Vec sum[PASS_GROUP][4])
{
    int64_t t = 0;

    for (; t + WIDTH <= p->d; t += WIDTH)
        UNROLL for (int g = first; g < end; g++) {
            Vec now = vec_load(key[g] + t);

            if (ahead != ALONE)
                __builtin_prefetch(key[g] + t + ahead);
            UNROLL for (int r = 0; r < rows; r++)
                sum[r][g] = vec_fma(vec_load(p->q + r * p->ldq + t), now, sum[r][g]);
        }
    if (t < p->d)
        UNROLL for (int g = first; g < end; g++) {
            Vec now = vec_load_part(key[g] + t, p->d - t);

            UNROLL for (int r = 0; r < rows; r++)
                sum[r][g] = vec_fma(vec_load_part(p->q + r * p->ldq + t, p->d - t), now,
                                    sum[r][g]);
        }
}

/* Scores of the first `count` of `keys`.  Fetched ahead, key after key, because the processor's own
 * prefetch follows lines in order, or with short vectors two keys for more than one row, which read
 * a query once for both; else the lines of four keys in turns, whose reads do not wait for each
 * other, or of as many as sixteen registers have room for. */
INLINE void pass_scores(const KeyPass *p, const int rows, const float *k, const int32_t *keys,
                        int64_t count, const int ahead, float *const s[PASS_GROUP])
{
    const bool narrow = WIDTH < LANES;
    const int  fetched = narrow && rows > 1 ? 2 : 1, listed = narrow && rows > PASS_PAIR ? 2 : 4;
    const int  together = ahead == ALONE ? listed : fetched;

    for (int64_t x = 0; x < count; x += 4) {
        const float *key[4];
        Vec          sum[PASS_GROUP][4];

        UNROLL for (int g = 0; g < 4; g++) {
            key[g] = k + (int64_t)keys[x + g < count ? x + g : x] * p->ldk;
            UNROLL for (int r = 0; r < rows; r++)
                sum[r][g] = vec_splat(0.0f);
        }
        UNROLL for (int g = 0; g < 4; g += together)
            pass_products(p, rows, key, g, g + together, ahead, sum);
        UNROLL for (int r = 0; r < rows; r++) {
            if (x + 4 <= count)
                vec_totals(sum[r], s[r] + x);
            else
                for (int64_t g = 0; x + g < count; g++)
                    s[r][x + g] = vec_total(sum[r][g]);
        }
    }
}

static TARGET void row_dots(const float *q, const float *k, int64_t ldk, const int32_t *keys,
                            int64_t count, int64_t d, float *s)
{
    KeyPass p = { .q = q, .ldk = ldk, .d = d };

    if (!fetches(keys, count))
        pass_scores(&p, 1, k, keys, count, ALONE, (float *[PASS_GROUP]){ s });
    else if (AHEAD == NEAR)
        pass_scores(&p, 1, k, keys, count, NEAR, (float *[PASS_GROUP]){ s });
    else
        pass_scores(&p, 1, k, keys, count, FAR, (float *[PASS_GROUP]){ s });
}

/* A row's scores become weights of the largest so far, and join its sum; returns the factor of what
 * was summed and mixed before. */
INLINE float pass_soften(float *s, const int step, float *max, Vec *sum)
{
    Vec      high = vec_splat(*max);
    float    before = *max, base, factor = 1.0f;
    uint64_t reach = 0;

    UNROLL for (int x = 0; x < step; x += WIDTH) {
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
    UNROLL for (int x = 0; x < step; x += WIDTH) {
        Vec w = vec_exp2(vec_sub(vec_load(s + x), vec_splat(base)));

        vec_store(s + x, w);
        *sum = vec_add(*sum, w);
    }
    return factor;
}

/* Columns of four vectors, of two rows. */
INLINE void pass_strip(const KeyPass *p, float (*w)[PASS_KEYS], const float *v,
                       const int32_t *keys, int64_t count, const int ahead, const float *factor,
                       float *acc)
{
    Vec c[PASS_PAIR][PASS_VECS];

    UNROLL for (int r = 0; r < PASS_PAIR; r++)
        UNROLL for (int x = 0; x < PASS_VECS; x++)
            c[r][x] = vec_mul(vec_splat(factor[r]), vec_load(acc + r * p->lda + x * WIDTH));
    for (int64_t j = 0; j < count; j++) {
        const float *row = v + (int64_t)keys[j] * p->ldv;
        Vec          a = vec_splat(w[0][j]), b = vec_splat(w[1][j]);

        UNROLL for (int x = 0; x < PASS_VECS; x++) {
            Vec now = vec_load(row + x * WIDTH);

            if (ahead != ALONE)
                __builtin_prefetch(row + x * WIDTH + ahead);
            c[0][x] = vec_fma(a, now, c[0][x]);
            c[1][x] = vec_fma(b, now, c[1][x]);
        }
    }
    UNROLL for (int r = 0; r < PASS_PAIR; r++)
        UNROLL for (int x = 0; x < PASS_VECS; x++)
            vec_store(acc + r * p->lda + x * WIDTH, c[r][x]);
}

/* The same of one row: `vecs` vectors, as row_mix takes them. */
INLINE void lone_strip(const KeyPass *p, const float *w, const float *v, const int32_t *keys,
                       int64_t count, const int vecs, const int ahead, float factor, float *acc)
{
    strip_mix_row(w, v, p->ldv, keys, count, vecs, ROW_SUMS / vecs, 0, ahead, factor, acc);
}

/* Whole strips of columns from `at` on; returns the first column that is left.  One row takes as
 * many columns at a time as it can, so that a key's lines follow each other. */
INLINE int64_t pass_strips(const KeyPass *p, const int rows, float (*w)[PASS_KEYS],
                           const float *v, const int32_t *keys, int64_t count, const int ahead,
                           const float *factor, int64_t at)
{
    for (; rows == 1 && p->e - at >= ROW_STRIP; at += ROW_STRIP)
        lone_strip(p, w[0], v + at, keys, count, ROW_VECS, ahead, factor[0], p->acc + at);
    for (; rows == 1 && p->e - at >= PASS_STRIP; at += PASS_STRIP)
        lone_strip(p, w[0], v + at, keys, count, PASS_VECS, ahead, factor[0], p->acc + at);
    for (; p->e - at >= PASS_STRIP; at += PASS_STRIP)
        UNROLL for (int r = 0; r < rows; r += PASS_PAIR)
            pass_strip(p, w + r, v + at, keys, count, r == 0 ? ahead : ALONE, factor + r,
                       p->acc + r * p->lda + at);
    return at;
}

INLINE void pass_mix(const KeyPass *p, const int rows, float (*w)[PASS_KEYS],
                     const float *v, const int32_t *keys, int64_t count, const int ahead,
                     const float *factor)
{
    int64_t at = 0;

    if (ahead != ALONE && p->v != p->k)
        at = pass_strips(p, rows, w, v, keys, count, ahead, factor, 0);
    at = pass_strips(p, rows, w, v, keys, count, ALONE, factor, at);
    for (int r = 0; at < p->e && r < rows; r++)
        row_mix(w[r], v + at, p->ldv, keys, count, p->e - at, factor[r],
                p->acc + r * p->lda + at);
}

INLINE void pass_keys(const KeyPass *p, const int rows, const float *k, const float *v,
                      const int32_t *keys, int64_t count, const int step, const int ahead,
                      Vec *sum)
{
    float s[PASS_GROUP][PASS_KEYS], factor[PASS_GROUP];

    pass_scores(p, rows, k, keys, count, ahead, (float *[PASS_GROUP]){ s[0], s[1], s[2], s[3] });
    for (int64_t x = count; x < step; x++) /* of no key */
        UNROLL for (int r = 0; r < rows; r++)
            s[r][x] = -INFINITY;
    UNROLL for (int r = 0; r < rows; r++)
        factor[r] = pass_soften(s[r], step, p->max + r * p->ldm, &sum[r]);
    pass_mix(p, rows, s, v, keys, count, ahead, factor);
}

/* Keys from place x on, at most PASS_KEYS. */
INLINE void pass_some(const KeyPass *p, const int rows, int64_t x, Vec *sum)
{
    int64_t      count = p->count - x < PASS_KEYS ? p->count - x : PASS_KEYS;
    const float *k = p->keys ? p->k : p->k + x * p->ldk, *v = p->keys ? p->v : p->v + x * p->ldv;

    pass_keys(p, rows, k, v, p->keys ? p->keys + x : pass_places, count, PASS_KEYS, ALONE, sum);
}

INLINE Vec vec_first(float x)
{
    float lane[WIDTH] = { x };

    return vec_load(lane);
}

/* Neighbours are `few` at a time, fetched ahead; the last ones, and listed keys, are PASS_KEYS. */
INLINE void pass_rows(const KeyPass *p, const int rows, const int few, const int ahead)
{
    Vec     sum[PASS_GROUP];
    int64_t x = 0;

    UNROLL for (int r = 0; r < rows; r++)
        sum[r] = vec_first(p->sum[r * p->ldm]);
    for (; !p->keys && x + few <= p->count; x += few)
        pass_keys(p, rows, p->k + x * p->ldk, p->v + x * p->ldv, pass_places, few, few, ahead,
                  sum);
    for (; x < p->count; x += PASS_KEYS)
        pass_some(p, rows, x, sum);
    UNROLL for (int r = 0; r < rows; r++)
        p->sum[r * p->ldm] = vec_total(sum[r]);
}

/* One function for each number of rows and distance, because a compiler that joins them keeps more
 * of *p in registers than the sums leave room for. */
#define PASS(name, rows, few, ahead)                                                               \
    static TARGET __attribute__((noinline)) void name(const KeyPass *p)                            \
    {                                                                                              \
        pass_rows(p, rows, few, ahead);                                                            \
    }
PASS(pass_four, PASS_GROUP, PASS_FEW, FAR)
PASS(pass_four_near, PASS_GROUP, PASS_FEW, NEAR)
/* Two rows take sixteen keys at a time.  That is faster for two heads that share latents: these are
 * keys and values, so nothing else is read between. */
PASS(pass_two, PASS_PAIR, LANES, FAR)
PASS(pass_two_near, PASS_PAIR, LANES, NEAR)
PASS(pass_one, 1, PASS_LONE, FAR)
PASS(pass_one_near, 1, PASS_FEW, NEAR)
#undef PASS

static TARGET void key_pass(const KeyPass *p)
{
    KeyPass group = *p;
    bool    near = AHEAD == NEAR;

    for (int left = p->rows; left > 0; left -= group.rows) {
        group.rows = left >= PASS_GROUP ? PASS_GROUP : left >= PASS_PAIR ? PASS_PAIR : 1;
        if (group.rows == PASS_GROUP)
            (near ? pass_four_near : pass_four)(&group);
        else if (group.rows == PASS_PAIR)
            (near ? pass_two_near : pass_two)(&group);
        else
            (near ? pass_one_near : pass_one)(&group);
        group.q += group.rows * p->ldq;
        group.max += group.rows * p->ldm;
        group.sum += group.rows * p->ldm;
        group.acc += group.rows * p->lda;
    }
}
