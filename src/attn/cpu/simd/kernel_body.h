/* attn/cpu/simd/kernel_body.h -- the loops of kernel.h, over a file's own vectors.
 *
 * The including file defines Vec (WIDTH floats), VECS (vectors per row of a
 * register tile: TILE_ROWS * VECS accumulators must fit the registers), ROW_VECS
 * (those of a single row, at most ROW_SUMS), TARGET (the function attribute),
 * INLINE, TURN (Kernel.turn), the vec_* functions that are not below and the bits_* functions, Wide
 * (WIDE doubles) and wide_from, and KERNEL, the name of the table at the end.
 *
 * 2^x: x = r + f with r whole and |f| <= 1/2; 2^f by a polynomial of degree 5
 * whose relative error is 1e-7, minimax with p(0) = 1.  Below EXP2_LOWEST the
 * result is exactly 0, so a masked cell (-inf) has weight 0.
 *
 * Loops along arrays and over codes of bits are in kernel_arrays.h, those that
 * compare entries of panels and give bits or bounds in kernel_bits.h, those in
 * double in kernel_double.h and kernel_powers.h, those of a step of decoding in kernel_pass.h,
 * products of small matrices in kernel_product.h.
 */
#define STRIP (VECS * WIDTH)
/* Long dot products are summed in pieces: rounding grows with a piece's length. */
#define SCORE_DEPTH 64
#define FINE_DEPTH 16
/* Floats beyond those that are read, to prefetch where rows lie one below the other: the hardware
 * begins anew with every page.  Measured on Zen 3, 4 and 5 (docs/performance-log.md). */
#define FAR (WIDTH < LANES ? 576 : 2048)
#define NEAR 0
#define ALONE -1 /* nothing */
#define AHEAD (WIDTH == LANES && kernel_fetching.near ? NEAR : FAR)

INLINE Vec vec_load(const float *p)
{
    Vec x;

    __builtin_memcpy(&x, p, sizeof(x));
    return x;
}

INLINE void vec_store(float *p, Vec x)
{
    __builtin_memcpy(p, &x, sizeof(x));
}

/* The first `count` < WIDTH entries of x. */
INLINE void vec_store_part(float *p, int64_t count, Vec x)
{
    for (int64_t i = 0; i < count; i++)
        p[i] = x[i];
}

INLINE Vec vec_add(Vec a, Vec b)
{
    return a + b;
}

INLINE Vec vec_sub(Vec a, Vec b)
{
    return a - b;
}

INLINE Vec vec_mul(Vec a, Vec b)
{
    return a * b;
}

INLINE Vec vec_div(Vec a, Vec b)
{
    return a / b;
}

INLINE Vec poly_exp2(Vec f)
{
    Vec p = vec_splat(1.326472731307149e-3f);

    p = vec_fma(p, f, vec_splat(9.671512991189957e-3f));
    p = vec_fma(p, f, vec_splat(5.550733581185341e-2f));
    p = vec_fma(p, f, vec_splat(2.4022242426872253e-1f));
    p = vec_fma(p, f, vec_splat(6.931470036506653e-1f));
    return vec_fma(p, f, vec_splat(1.0f));
}

/* TILE_ROWS x (vecs vectors of) scores, in pieces of `depth`; `at` is the first column in the
 * panel. */
INLINE void strip_score(const float *q, int64_t ldq, const float *panel, int64_t d, const int depth,
                        const uint64_t *keep, int at, const int vecs, float *s, int64_t lds,
                        float *top)
{
    Vec     c[TILE_ROWS][VECS];
    int64_t from = 0;

    do {
        int64_t to = d - from < depth ? d : from + depth;

        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            UNROLL for (int x = 0; x < vecs; x++)
                c[r][x] = vec_splat(0.0f);
        for (int64_t t = from; t < to; t++) {
            Vec b[VECS];

            UNROLL for (int x = 0; x < vecs; x++)
                b[x] = vec_load(panel + t * TILE_KEYS + at + x * WIDTH);
            UNROLL for (int r = 0; r < TILE_ROWS; r++) {
                Vec a = vec_splat(q[r * ldq + t]);

                UNROLL for (int x = 0; x < vecs; x++)
                    c[r][x] = vec_fma(a, b[x], c[r][x]);
            }
        }
        if (from > 0)
            UNROLL for (int r = 0; r < TILE_ROWS; r++)
                UNROLL for (int x = 0; x < vecs; x++)
                    c[r][x] = vec_add(c[r][x], vec_load(s + r * lds + at + x * WIDTH));
        if (to < d)
            UNROLL for (int r = 0; r < TILE_ROWS; r++)
                UNROLL for (int x = 0; x < vecs; x++)
                    vec_store(s + r * lds + at + x * WIDTH, c[r][x]);
        from = to;
    } while (from < d);
    if (keep)
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            UNROLL for (int x = 0; x < vecs; x++)
                c[r][x] = vec_keep(c[r][x], keep[r] >> (at + x * WIDTH));
    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        Vec high = vec_load(top + r * LANES);

        UNROLL for (int x = 0; x < vecs; x++) {
            vec_store(s + r * lds + at + x * WIDTH, c[r][x]);
            high = vec_max(c[r][x], high);
        }
        vec_store(top + r * LANES, high);
    }
}

INLINE void skip_columns(int from, int to, float *s, int64_t lds)
{
    for (int at = from; at < to; at += WIDTH)
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            vec_store(s + r * lds + at, vec_splat(-INFINITY));
}

INLINE void strips_score(const float *q, int64_t ldq, const float *panel, int64_t d,
                         const int depth, const uint64_t *keep, int from, int to, float *s,
                         int64_t lds, float *top)
{
    int at = from;

    skip_columns(0, from, s, lds);
    for (; at + STRIP <= to; at += STRIP)
        strip_score(q, ldq, panel, d, depth, keep, at, VECS, s, lds, top);
    if (VECS > 3 && at + 2 * WIDTH < to) {
        strip_score(q, ldq, panel, d, depth, keep, at, VECS > 3 ? 3 : 1, s, lds, top);
        at += 3 * WIDTH;
    } else if (VECS > 2 && at + WIDTH < to) {
        strip_score(q, ldq, panel, d, depth, keep, at, VECS > 2 ? 2 : 1, s, lds, top);
        at += 2 * WIDTH;
    }
    for (; at < to; at += WIDTH)
        strip_score(q, ldq, panel, d, depth, keep, at, 1, s, lds, top);
    skip_columns(at, TILE_KEYS, s, lds);
}

static TARGET void tile_score(const float *q, int64_t ldq, const float *panel, int64_t d,
                              const uint64_t *keep, int from, int to, float *s, int64_t lds,
                              float *top)
{
    strips_score(q, ldq, panel, d, SCORE_DEPTH, keep, from, to, s, lds, top);
}

static TARGET void tile_score_fine(const float *q, int64_t ldq, const float *panel, int64_t d,
                                   const uint64_t *keep, int from, int to, float *s, int64_t lds,
                                   float *top)
{
    strips_score(q, ldq, panel, d, FINE_DEPTH, keep, from, to, s, lds, top);
}

INLINE Vec row_top(const float *s, int64_t count)
{
    Vec high = vec_load(s);

    for (int64_t j = WIDTH; j < count; j += WIDTH)
        high = vec_max(vec_load(s + j), high);
    return high;
}

/* s becomes 2^(s - base); returns the sum. */
INLINE float row_exp2(float *s, int64_t count, float base)
{
    Vec sum[4], low = vec_splat(base);

    int64_t j = 0;

    UNROLL for (int x = 0; x < 4; x++)
        sum[x] = vec_splat(0.0f);
    for (; j + 4 * WIDTH <= count; j += 4 * WIDTH)
        UNROLL for (int x = 0; x < 4; x++) {
            Vec w = vec_exp2(vec_sub(vec_load(s + j + x * WIDTH), low));

            vec_store(s + j + x * WIDTH, w);
            sum[x] = vec_add(sum[x], w);
        }
    for (; j < count; j += WIDTH) {
        Vec w = vec_exp2(vec_sub(vec_load(s + j), low));

        vec_store(s + j, w);
        sum[0] = vec_add(sum[0], w);
    }
    return vec_total(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
}

static TARGET void tile_softmax(float *s, int64_t lds, int rows, int64_t count, const float *top,
                                float *max, float *sum, float *factor)
{
    for (int r = 0; r < rows; r++) {
        float high = vec_top(top ? vec_load(top + r * LANES) : row_top(s + r * lds, count));
        float before = max[r];
        float now = high > before ? high : before;
        float base = now > -INFINITY ? now : 0.0f; /* nothing allowed yet */

        factor[r] = now > before ? exp2f(before - base) : 1.0f;
        max[r] = now;
        sum[r] = sum[r] * factor[r] + row_exp2(s + r * lds, count, base);
    }
}

/* A row of `vecs` vectors. */
INLINE void row_shares(float *s, const int vecs, uint64_t keep, float *max, float *sum)
{
    Vec   x[4], high = vec_splat(-INFINITY), total = vec_splat(0.0f), low;
    float top;

    UNROLL for (int i = 0; i < vecs; i++) {
        x[i] = vec_keep(vec_load(s + i * WIDTH), keep >> (i * WIDTH));
        high = vec_max(x[i], high);
    }
    top = vec_top(high);
    low = vec_splat(top > -INFINITY ? top : 0.0f);
    UNROLL for (int i = 0; i < vecs; i++) {
        x[i] = vec_exp2(vec_sub(x[i], low));
        total = vec_add(total, x[i]);
    }
    *max = top;
    *sum = vec_total(total);
    low = vec_splat(*sum == 0 ? 0.0f : 1.0f / *sum);
    UNROLL for (int i = 0; i < vecs; i++)
        vec_store(s + i * WIDTH, vec_mul(x[i], low));
}

/* A longer row of `count` scores. */
INLINE void long_row_shares(float *s, int64_t count, uint64_t keep, float *max, float *sum)
{
    float top, share;

    for (int64_t j = 0; j < count; j += WIDTH)
        vec_store(s + j, vec_keep(vec_load(s + j), keep >> j));
    top = vec_top(row_top(s, count));
    *max = top > -INFINITY ? top : -INFINITY; /* NaN: nothing but NaN */
    *sum = row_exp2(s, count, top > -INFINITY ? top : 0.0f);
    share = *sum == 0 ? 0.0f : 1.0f / *sum;
    for (int64_t j = 0; j < count; j += WIDTH)
        vec_store(s + j, vec_mul(vec_load(s + j), vec_splat(share)));
}

static TARGET void rows_shares(float *s, int64_t lds, int64_t rows, int keys, const uint64_t *keep,
                               float *max, float *sum)
{
    uint64_t all = ~UINT64_C(0) >> (TILE_KEYS - keys);
    int64_t  count = (keys + LANES - 1) / LANES * LANES;

    for (int64_t r = 0; r < rows; r++, s += lds) {
        uint64_t bits = keep ? keep[r] & all : all;

        if (count == WIDTH)
            row_shares(s, 1, bits, &max[r], &sum[r]);
        else if (count == 2 * WIDTH)
            row_shares(s, 2, bits, &max[r], &sum[r]);
        else if (count == 4 * WIDTH)
            row_shares(s, 4, bits, &max[r], &sum[r]);
        else
            long_row_shares(s, count, bits, &max[r], &sum[r]);
    }
}

/* `vecs` vectors of columns; the last has only `part` columns when part > 0.  The weight of
 * key j in row r is w[r * ldw + j * step]. */
INLINE void strip_mix(const float *w, int64_t ldw, const int64_t step, const float *v, int64_t ldv,
                      int64_t keys, const int vecs, const int64_t part, const float *factor,
                      float *acc, int64_t lda)
{
    Vec c[TILE_ROWS][VECS];

    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int x = 0; x < vecs; x++)
            c[r][x] = vec_mul(vec_splat(factor[r]), vec_load(acc + r * lda + x * WIDTH));
    for (int64_t j = 0; j < keys; j++) {
        Vec b[VECS];

        UNROLL for (int x = 0; x < vecs; x++)
            b[x] = part ? vec_load_part(v + j * ldv, part) : vec_load(v + j * ldv + x * WIDTH);
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            Vec a = vec_splat(w[r * ldw + j * step]);

            UNROLL for (int x = 0; x < vecs; x++)
                c[r][x] = vec_fma(a, b[x], c[r][x]);
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int x = 0; x < vecs; x++)
            vec_store(acc + r * lda + x * WIDTH, c[r][x]);
}

INLINE void strips_mix(const float *w, int64_t ldw, const int64_t step, const float *v, int64_t ldv,
                       int64_t keys, int64_t e, const float *factor, float *acc, int64_t lda)
{
    int64_t at = 0;

    for (; e - at >= STRIP; at += STRIP)
        strip_mix(w, ldw, step, v + at, ldv, keys, VECS, 0, factor, acc + at, lda);
    for (; e - at >= WIDTH; at += WIDTH)
        strip_mix(w, ldw, step, v + at, ldv, keys, 1, 0, factor, acc + at, lda);
    if (at < e)
        strip_mix(w, ldw, step, v + at, ldv, keys, 1, e - at, factor, acc + at, lda);
}

static TARGET void tile_mix(const float *w, int64_t ldw, const float *v, int64_t ldv, int64_t keys,
                            int64_t e, const float *factor, float *acc, int64_t lda)
{
    strips_mix(w, ldw, 1, v, ldv, keys, e, factor, acc, lda);
}

static TARGET void tile_mix_turned(const float *w, const float *v, int64_t ldv, int64_t keys,
                                   int64_t e, const float *factor, float *acc, int64_t lda)
{
    strips_mix(w, 1, TILE_KEYS, v, ldv, keys, e, factor, acc, lda);
}

/* One vector of columns: their maxima over rows, then 2^(s - max) and its sums. */
static TARGET void columns_softmax(float *s, int64_t rows, int columns, float *max, float *sum,
                                   float *factor)
{
    for (int x = 0; x < columns; x += WIDTH) {
        Vec   high = vec_splat(-INFINITY), total = vec_splat(0.0f), low;
        float base[WIDTH];

        for (int64_t r = 0; r < rows; r++)
            high = vec_max(vec_load(s + r * TILE_KEYS + x), high);
        vec_store(base, high);
        for (int c = 0; c < WIDTH; c++) {
            float before = max[x + c], now = base[c] > before ? base[c] : before;

            base[c] = now > -INFINITY ? now : 0.0f;
            factor[x + c] = now > before ? exp2f(before - base[c]) : 1.0f;
            max[x + c] = now;
        }
        low = vec_load(base);
        for (int64_t r = 0; r < rows; r++) {
            Vec w = vec_exp2(vec_sub(vec_load(s + r * TILE_KEYS + x), low));

            vec_store(s + r * TILE_KEYS + x, w);
            total = vec_add(total, w);
        }
        vec_store(sum + x, total);
    }
}

/* A key's product with q and its squares, summed while it is in its registers. */
INLINE void dot_square(const float *q, const float *k, int64_t d, Vec *sum, Vec *square)
{
    int64_t t = 0;

    for (; t + WIDTH <= d; t += WIDTH) {
        Vec now = vec_load(k + t);

        __builtin_prefetch(k + t + AHEAD);
        *sum = vec_fma(vec_load(q + t), now, *sum);
        *square = vec_fma(now, now, *square);
    }
    if (t < d) {
        Vec now = vec_load_part(k + t, d - t);

        *sum = vec_fma(vec_load_part(q + t, d - t), now, *sum);
        *square = vec_fma(now, now, *square);
    }
}

/* Neighbouring keys, one after the other: the processor's own prefetch follows lines in order. */
static TARGET float rows_dots_squares(const float *q, const float *k, int64_t ldk, int64_t count,
                                      int64_t d, float *s)
{
    enum { GROUP = 4 };
    float most = 0;

    for (int64_t x = 0; x < count; x += GROUP) {
        Vec   sum[GROUP], square[GROUP];
        float total[GROUP], all;

        UNROLL for (int g = 0; g < GROUP; g++) {
            sum[g] = square[g] = vec_splat(0.0f);
            dot_square(q, k + (x + g < count ? x + g : x) * ldk, d, &sum[g], &square[g]);
        }
        vec_totals(sum, total);
        for (int64_t g = 0; g < GROUP && x + g < count; g++)
            s[x + g] = total[g];
        all = vec_total(vec_add(vec_add(square[0], square[1]), vec_add(square[2], square[3])));
        most = all <= most ? most : all; /* NaN, too */
        if (isnan(most))
            return most;
    }
    return most;
}

/* A run of neighbours that is long beside what lies AHEAD of its end. */
INLINE bool fetches(const int32_t *keys, int64_t count)
{
    return kernel_fetching.runs && count >= TILE_KEYS && keys[count - 1] - keys[0] == count - 1;
}

#define ROW_SUMS 8 /* sums of a row that is mixed, which hide the latency of a product */

/* `vecs` columns of vectors; `sets` keys in turn have sums of their own; prefetches what
 * lies `ahead`, unless that is ALONE. */
INLINE void strip_mix_row(const float *w, const float *v, int64_t ldv, const int32_t *keys,
                          int64_t count, const int vecs, const int sets, const int64_t part,
                          const int ahead, float factor, float *acc)
{
    Vec     c[ROW_SUMS];
    int64_t j = 0;

    UNROLL for (int x = 0; x < vecs; x++)
        c[x] = vec_mul(vec_splat(factor), vec_load(acc + x * WIDTH));
    UNROLL for (int x = vecs; x < sets * vecs; x++)
        c[x] = vec_splat(0.0f);
    for (; j + sets <= count; j += sets)
        UNROLL for (int i = 0; i < sets; i++) {
            const float *row = v + (int64_t)keys[j + i] * ldv;
            Vec          a = vec_splat(w[j + i]);

            UNROLL for (int x = 0; x < vecs; x++) {
                Vec now = part ? vec_load_part(row, part) : vec_load(row + x * WIDTH);

                if (ahead != ALONE)
                    __builtin_prefetch(row + x * WIDTH + ahead);
                c[i * vecs + x] = vec_fma(a, now, c[i * vecs + x]);
            }
        }
    for (; j < count; j++)
        UNROLL for (int x = 0; x < vecs; x++) {
            const float *row = v + (int64_t)keys[j] * ldv;
            Vec          now = part ? vec_load_part(row, part) : vec_load(row + x * WIDTH);

            c[x] = vec_fma(vec_splat(w[j]), now, c[x]);
        }
    UNROLL for (int x = vecs; x < sets * vecs; x++)
        c[x % vecs] = vec_add(c[x % vecs], c[x]);
    UNROLL for (int x = 0; x < vecs; x++)
        vec_store(acc + x * WIDTH, c[x]);
}

#define ROW_STRIP (ROW_VECS * WIDTH)
#define ROW_SETS (ROW_SUMS / ROW_VECS)

static TARGET void row_mix(const float *w, const float *v, int64_t ldv, const int32_t *keys,
                           int64_t count, int64_t e, float factor, float *acc)
{
    bool    near = AHEAD == NEAR, fetch = fetches(keys, count);
    int64_t at = 0;

    for (; fetch && near && e - at >= ROW_STRIP; at += ROW_STRIP)
        strip_mix_row(w, v + at, ldv, keys, count, ROW_VECS, ROW_SETS, 0, NEAR, factor, acc + at);
    for (; fetch && e - at >= ROW_STRIP; at += ROW_STRIP)
        strip_mix_row(w, v + at, ldv, keys, count, ROW_VECS, ROW_SETS, 0, FAR, factor, acc + at);
    for (; e - at >= ROW_STRIP; at += ROW_STRIP)
        strip_mix_row(w, v + at, ldv, keys, count, ROW_VECS, ROW_SETS, 0, ALONE, factor, acc + at);
    for (; e - at >= STRIP; at += STRIP)
        strip_mix_row(w, v + at, ldv, keys, count, VECS, 2, 0, ALONE, factor, acc + at);
    for (; e - at >= WIDTH; at += WIDTH)
        strip_mix_row(w, v + at, ldv, keys, count, 1, 4, 0, ALONE, factor, acc + at);
    if (at < e)
        strip_mix_row(w, v + at, ldv, keys, count, 1, 1, e - at, ALONE, factor, acc + at);
}

/* A row of the state is read and written once for all tokens. */
INLINE void strip_recur(const float *const fq[], const float *const fk[], const float *v, int64_t f,
                        int64_t e, const int tokens, const int vecs, float *state, float *out)
{
    const float *query[RECUR_TOKENS], *key[RECUR_TOKENS];
    Vec          value[RECUR_TOKENS][VECS], sum[RECUR_TOKENS][VECS];

    UNROLL for (int i = 0; i < tokens; i++) {
        query[i] = fq[i];
        key[i] = fk[i];
        UNROLL for (int x = 0; x < vecs; x++) {
            value[i][x] = vec_load(v + i * e + x * WIDTH);
            sum[i][x] = vec_splat(0.0f);
        }
    }
    for (int64_t r = 0; r < f; r++) {
        float *cell = state + r * e;
        Vec    read[RECUR_TOKENS], write[RECUR_TOKENS], now[VECS];

        UNROLL for (int i = 0; i < tokens; i++) {
            read[i] = vec_splat(query[i][r]);
            write[i] = vec_splat(key[i][r]);
        }
        UNROLL for (int x = 0; x < vecs; x++)
            now[x] = vec_load(cell + x * WIDTH);
        UNROLL for (int i = 0; i < tokens; i++)
            UNROLL for (int x = 0; x < vecs; x++) {
                now[x] = vec_fma(write[i], value[i][x], now[x]);
                sum[i][x] = vec_fma(read[i], now[x], sum[i][x]);
            }
        UNROLL for (int x = 0; x < vecs; x++)
            vec_store(cell + x * WIDTH, now[x]);
    }
    UNROLL for (int i = 0; i < tokens; i++)
        UNROLL for (int x = 0; x < vecs; x++)
            vec_store(out + i * e + x * WIDTH, sum[i][x]);
}

INLINE void strips_recur(const float *const fq[], const float *const fk[], const float *v,
                         int64_t f, int64_t e, const int tokens, float *state, float *out)
{
    int64_t at = 0;

    for (; e - at >= STRIP; at += STRIP)
        strip_recur(fq, fk, v + at, f, e, tokens, VECS, state + at, out + at);
    for (; at < e; at += WIDTH)
        strip_recur(fq, fk, v + at, f, e, tokens, 1, state + at, out + at);
}

static TARGET void tokens_recur(const float *const fq[], const float *const fk[], const float *v,
                                int64_t tokens, int64_t f, int64_t e, float *state, float *out)
{
    int64_t i = 0;

    for (; i + RECUR_TOKENS <= tokens; i += RECUR_TOKENS)
        strips_recur(fq + i, fk + i, v + i * e, f, e, RECUR_TOKENS, state, out + i * e);
    for (; i < tokens; i++)
        strips_recur(fq + i, fk + i, v + i * e, f, e, 1, state, out + i * e);
}

#include "attn/cpu/simd/kernel_bits.h"
#include "attn/cpu/simd/kernel_arrays.h"
#include "attn/cpu/simd/kernel_double.h"
#include "attn/cpu/simd/kernel_powers.h"
#include "attn/cpu/simd/kernel_pass.h"
#include "attn/cpu/simd/kernel_product.h"

const Kernel KERNEL = {
    .name = KERNEL_NAME,
    .score = tile_score,
    .score_fine = tile_score_fine,
    .softmax = tile_softmax,
    .shares = rows_shares,
    .log_sums = array_log_sums,
    .join = array_join,
    .mix = tile_mix,
    .mix_turned = tile_mix_turned,
    .product = small_product,
    .columns = columns_softmax,
    .dots = row_dots,
    .mix_row = row_mix,
    .pass = key_pass,
    .dots_squares = rows_dots_squares,
    .recur = tokens_recur,
    .exp2 = array_exp2,
    .logistic = array_logistic,
    .elu = array_elu,
    .cap = array_cap,
    .fold_scaled = array_fold_scaled,
    .scale64 = array_scale64,
    .over64 = array_over64,
    .times64 = array_times64,
    .fade = array_fade,
    .gate_rows = array_gate_rows,
    .fold_positive64 = array_fold_positive64,
    .fused64 = rows_fused64,
    .panel64 = panel_dots64,
    .largest64 = array_largest64,
    .soften64 = array_soften64,
    .subtract64 = array_subtract64,
    .next_above64 = array_next_above64,
    .nearest_codes = codes_nearest,
    .bit_sums = codes_bit_sums,
    .mean_rows = rows_mean,
    .moments = array_moments,
    .centre = array_centre,
    .at_least = scores_at_least,
    .rows_reach = scores_rows_reach,
    .reach = scores_reach,
    .class_bound = scores_class_bound,
    .column_bounds = scores_column_bounds,
    .fold_heads = scores_fold_heads,
    .peaks = scores_peaks,
    .scale = array_scale,
    .line = array_line,
    .add_turned = rows_add_turned,
    .subtract = array_subtract,
    .largest = array_largest,
    .squares = array_squares,
    .squares_near = array_squares_near,
    .rows_squares_near = rows_squares_near,
    .most_squares = rows_most_squares,
    .fold = array_fold,
    .dot_wide = array_dot_wide,
    .dots_wide = rows_dot_wide,
    .mix_wide = rows_mix_wide,
    .dot_double = array_dot_double,
    .equal = keys_equal,
    .at_most = keys_at_most,
    .meet = keys_meet,
    .dots64 = rows_dots64,
    .product64 = rows_product64,
    .gelu = array_gelu,
    .recur64 = token_recur64,
    .standardise = row_standardise,
    .exp64 = array_exp64,
    .sigmoid64 = array_sigmoid64,
    .softplus64 = array_softplus64,
    .exp_over = array_exp_over,
    .log_sum_exp64 = array_log_sum_exp64,
    .divergence = array_divergence,
    .waves = array_waves,
    .float_waves = array_float_waves,
    .turn = TURN,
};
