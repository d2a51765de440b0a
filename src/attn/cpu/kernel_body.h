/* attn/cpu/kernel_body.h -- the loops of kernel.h, over a file's own vectors.
 *
 * The including file defines Vec (WIDTH floats), VECS (vectors per row of a
 * register tile: TILE_ROWS * VECS accumulators must fit the registers), TARGET
 * (the function attribute), UNROLL and the vec_* and bits_* functions, Wide
 * (WIDE doubles), and KERNEL, the name of the table at the end.
 *
 * 2^x: x = r + f with r whole and |f| <= 1/2; 2^f by a polynomial of degree 5
 * whose relative error is 1e-7, minimax with p(0) = 1.  Below EXP2_LOWEST the
 * result is exactly 0, so a cell that is masked (-inf) leaves nothing behind.
 */
#define STRIP (VECS * WIDTH)
/* Long dot products are summed in pieces: rounding grows with a piece's length. */
#define SCORE_DEPTH 64

static inline TARGET __attribute__((always_inline)) Vec poly_exp2(Vec f)
{
    Vec p = vec_splat(1.326472731307149e-3f);

    p = vec_fma(p, f, vec_splat(9.671512991189957e-3f));
    p = vec_fma(p, f, vec_splat(5.550733581185341e-2f));
    p = vec_fma(p, f, vec_splat(2.4022242426872253e-1f));
    p = vec_fma(p, f, vec_splat(6.931470036506653e-1f));
    return vec_fma(p, f, vec_splat(1.0f));
}

/* TILE_ROWS x (vecs vectors of) scores; `at` is the first column in the panel. */
static inline TARGET __attribute__((always_inline)) void strip_score(
    const float *q, int64_t ldq, const float *panel, int64_t d, const uint64_t *keep, int at,
    const int vecs, float *s, int64_t lds, float *top)
{
    Vec     c[TILE_ROWS][VECS];
    int64_t from = 0;

    do {
        int64_t to = d - from < SCORE_DEPTH ? d : from + SCORE_DEPTH;

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

static TARGET void tile_score(const float *q, int64_t ldq, const float *panel, int64_t d,
                              const uint64_t *keep, int keys, float *s, int64_t lds, float *top)
{
    int at = 0;

    for (; at + STRIP <= keys; at += STRIP)
        strip_score(q, ldq, panel, d, keep, at, VECS, s, lds, top);
    for (; at < keys; at += WIDTH)
        strip_score(q, ldq, panel, d, keep, at, 1, s, lds, top);
    for (; at < TILE_KEYS; at += WIDTH)
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            vec_store(s + r * lds + at, vec_splat(-INFINITY));
}

static inline TARGET __attribute__((always_inline)) Vec row_top(const float *s, int64_t count)
{
    Vec high = vec_load(s);

    for (int64_t j = WIDTH; j < count; j += WIDTH)
        high = vec_max(vec_load(s + j), high);
    return high;
}

/* s becomes 2^(s - base); returns the sum. */
static inline TARGET __attribute__((always_inline)) float row_exp2(float *s, int64_t count,
                                                                   float base)
{
    Vec sum[4], low = vec_splat(base);

    UNROLL for (int x = 0; x < 4; x++)
        sum[x] = vec_splat(0.0f);
    for (int64_t j = 0; j < count; j += 4 * WIDTH)
        UNROLL for (int x = 0; x < 4; x++) {
            Vec w = vec_exp2(vec_sub(vec_load(s + j + x * WIDTH), low));

            vec_store(s + j + x * WIDTH, w);
            sum[x] = vec_add(sum[x], w);
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

/* `vecs` vectors of columns; the last has only `part` columns when part > 0.  The weight of
 * key j in row r is w[r * ldw + j * step]. */
static inline TARGET __attribute__((always_inline)) void strip_mix(
    const float *w, int64_t ldw, const int64_t step, const float *v, int64_t ldv, int64_t keys,
    const int vecs, const int64_t part, const float *factor, float *acc, int64_t lda)
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

static inline TARGET __attribute__((always_inline)) void strips_mix(
    const float *w, int64_t ldw, const int64_t step, const float *v, int64_t ldv, int64_t keys,
    int64_t e, const float *factor, float *acc, int64_t lda)
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

static TARGET void row_dots(const float *q, const float *k, int64_t ldk, const int32_t *keys,
                            int64_t count, int64_t d, float *s)
{
    enum { GROUP = 4 };

    for (int64_t x = 0; x < count; x += GROUP) {
        const float *row[GROUP];
        Vec          sum[GROUP];
        int64_t      t = 0;

        UNROLL for (int g = 0; g < GROUP; g++) {
            row[g] = k + (int64_t)keys[x + g < count ? x + g : x] * ldk;
            sum[g] = vec_splat(0.0f);
        }
        for (; t + WIDTH <= d; t += WIDTH) {
            Vec a = vec_load(q + t);

            UNROLL for (int g = 0; g < GROUP; g++)
                sum[g] = vec_fma(a, vec_load(row[g] + t), sum[g]);
        }
        if (t < d) {
            Vec a = vec_load_part(q + t, d - t);

            UNROLL for (int g = 0; g < GROUP; g++)
                sum[g] = vec_fma(a, vec_load_part(row[g] + t, d - t), sum[g]);
        }
        UNROLL for (int g = 0; g < GROUP; g++)
            if (x + g < count)
                s[x + g] = vec_total(sum[g]);
    }
}

static inline TARGET __attribute__((always_inline)) void strip_mix_row(
    const float *w, const float *v, int64_t ldv, const int32_t *keys, int64_t count,
    const int vecs, const int64_t part, float factor, float *acc)
{
    Vec c[VECS];

    UNROLL for (int x = 0; x < vecs; x++)
        c[x] = vec_mul(vec_splat(factor), vec_load(acc + x * WIDTH));
    for (int64_t j = 0; j < count; j++) {
        const float *row = v + (int64_t)keys[j] * ldv;
        Vec          a = vec_splat(w[j]);

        UNROLL for (int x = 0; x < vecs; x++)
            c[x] = vec_fma(a, part ? vec_load_part(row, part) : vec_load(row + x * WIDTH), c[x]);
    }
    UNROLL for (int x = 0; x < vecs; x++)
        vec_store(acc + x * WIDTH, c[x]);
}

static TARGET void row_mix(const float *w, const float *v, int64_t ldv, const int32_t *keys,
                           int64_t count, int64_t e, float factor, float *acc)
{
    int64_t at = 0;

    for (; e - at >= STRIP; at += STRIP)
        strip_mix_row(w, v + at, ldv, keys, count, VECS, 0, factor, acc + at);
    for (; e - at >= WIDTH; at += WIDTH)
        strip_mix_row(w, v + at, ldv, keys, count, 1, 0, factor, acc + at);
    if (at < e)
        strip_mix_row(w, v + at, ldv, keys, count, 1, e - at, factor, acc + at);
}

static inline TARGET __attribute__((always_inline)) void strip_recur(
    const float *fq, const float *fk, const float *v, int64_t f, int64_t e, const int vecs,
    float *state, float *out)
{
    Vec value[VECS], sum[VECS];

    UNROLL for (int x = 0; x < vecs; x++) {
        value[x] = vec_load(v + x * WIDTH);
        sum[x] = vec_splat(0.0f);
    }
    for (int64_t r = 0; r < f; r++)
        UNROLL for (int x = 0; x < vecs; x++) {
            float *cell = state + r * e + x * WIDTH;
            Vec    now = vec_fma(vec_splat(fk[r]), value[x], vec_load(cell));

            vec_store(cell, now);
            sum[x] = vec_fma(vec_splat(fq[r]), now, sum[x]);
        }
    UNROLL for (int x = 0; x < vecs; x++)
        vec_store(out + x * WIDTH, sum[x]);
}

static TARGET void token_recur(const float *fq, const float *fk, const float *v, int64_t f,
                               int64_t e, float *state, float *out)
{
    int64_t at = 0;

    for (; e - at >= STRIP; at += STRIP)
        strip_recur(fq, fk, v + at, f, e, VECS, state + at, out + at);
    for (; at < e; at += WIDTH)
        strip_recur(fq, fk, v + at, f, e, 1, state + at, out + at);
}

static TARGET void array_exp2(float *x, int64_t count, float scale, float shift)
{
    float tail[WIDTH] = { 0 };
    Vec   a = vec_splat(scale), b = vec_splat(-shift);

    for (; count >= WIDTH; count -= WIDTH, x += WIDTH)
        vec_store(x, vec_exp2(vec_fma(a, vec_load(x), b)));
    for (int64_t i = 0; i < count; i++)
        tail[i] = x[i];
    vec_store(tail, vec_exp2(vec_fma(a, vec_load(tail), b)));
    for (int64_t i = 0; i < count; i++)
        x[i] = tail[i];
}

static inline TARGET __attribute__((always_inline)) Vec elu_of(Vec x, float alpha)
{
    Vec above = vec_max(x, vec_splat(0.0f)), below = vec_sub(x, above);
    Vec power = vec_exp2(vec_mul(vec_splat(1.44269504f), below));

    return vec_add(above, vec_fma(vec_splat(alpha), power, vec_splat(1.0f - alpha)));
}

static TARGET void array_elu(const float *x, int64_t count, float alpha, float *y)
{
    float tail[WIDTH] = { 0 };

    for (; count >= WIDTH; count -= WIDTH, x += WIDTH, y += WIDTH)
        vec_store(y, elu_of(vec_load(x), alpha));
    for (int64_t i = 0; i < count; i++)
        tail[i] = x[i];
    vec_store(tail, elu_of(vec_load(tail), alpha));
    for (int64_t i = 0; i < count; i++)
        y[i] = tail[i];
}

static TARGET void array_scale(const float *x, int64_t count, float factor, float *y)
{
    int64_t i = 0;

    for (; i + WIDTH <= count; i += WIDTH)
        vec_store(y + i, vec_mul(vec_splat(factor), vec_load(x + i)));
    for (; i < count; i++)
        y[i] = factor * x[i];
}

static TARGET void array_line(float *x, int64_t count, float factor, float shift)
{
    int64_t i = 0;

    for (; i + WIDTH <= count; i += WIDTH)
        vec_store(x + i, vec_fma(vec_splat(factor), vec_load(x + i), vec_splat(shift)));
    for (; i < count; i++)
        x[i] = factor * x[i] + shift;
}

static TARGET float array_largest(const float *x, int64_t count, float sign)
{
    Vec     high[2] = { vec_splat(-INFINITY), vec_splat(-INFINITY) };
    float   top;
    int64_t i = 0;

    for (; i + 2 * WIDTH <= count; i += 2 * WIDTH)
        UNROLL for (int p = 0; p < 2; p++)
            high[p] = vec_max(vec_mul(vec_splat(sign), vec_load(x + i + p * WIDTH)), high[p]);
    top = vec_top(vec_max(high[0], high[1]));
    for (; i < count; i++)
        top = sign * x[i] > top ? sign * x[i] : top;
    return top;
}

typedef float Half __attribute__((vector_size(4 * WIDE)));

static inline TARGET __attribute__((always_inline)) Wide wide_load(const double *p)
{
    Wide x;

    __builtin_memcpy(&x, p, sizeof(x));
    return x;
}

static inline TARGET __attribute__((always_inline)) Wide wide_from(const float *p)
{
    Half x;

    __builtin_memcpy(&x, p, sizeof(x));
    return __builtin_convertvector(x, Wide);
}

static TARGET void array_fold(const float *x, int64_t count, double *sum)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(sum + i) + wide_from(x + i);

        __builtin_memcpy(sum + i, &now, sizeof(now));
    }
    for (; i < count; i++)
        sum[i] += (double)x[i];
}

static TARGET double array_dot_wide(const float *x, const double *z, int64_t count)
{
    Wide    part[2] = { { 0 }, { 0 } };
    double  sum = 0;
    int64_t i = 0;

    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        UNROLL for (int p = 0; p < 2; p++)
            part[p] += wide_from(x + i + p * WIDE) * wide_load(z + i + p * WIDE);
    part[0] += part[1];
    for (int c = 0; c < WIDE; c++)
        sum += part[0][c];
    for (; i < count; i++)
        sum += (double)x[i] * z[i];
    return sum;
}

static TARGET double array_dot_double(const double *x, const double *z, int64_t count)
{
    Wide    part[2] = { { 0 }, { 0 } };
    double  sum = 0;
    int64_t i = 0;

    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        UNROLL for (int p = 0; p < 2; p++)
            part[p] += wide_load(x + i + p * WIDE) * wide_load(z + i + p * WIDE);
    part[0] += part[1];
    for (int c = 0; c < WIDE; c++)
        sum += part[0][c];
    for (; i < count; i++)
        sum += x[i] * z[i];
    return sum;
}

/* The sum of (x - from)^power, power 1 or 2. */
static inline TARGET __attribute__((always_inline)) double array_moment(const float *x,
                                                                        int64_t count, double from,
                                                                        const int power)
{
    Wide    part[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
    double  sum = 0;
    int64_t i = 0;

    for (; i + 4 * WIDE <= count; i += 4 * WIDE)
        UNROLL for (int p = 0; p < 4; p++) {
            Wide off = wide_from(x + i + p * WIDE) - from;

            part[p] += power == 1 ? off : off * off;
        }
    part[0] += part[1] + part[2] + part[3];
    for (int c = 0; c < WIDE; c++)
        sum += part[0][c];
    for (; i < count; i++) {
        double off = (double)x[i] - from;

        sum += power == 1 ? off : off * off;
    }
    return sum;
}

static TARGET double array_squares(const float *x, int64_t count)
{
    return array_moment(x, count, 0, 2);
}

static TARGET void row_standardise(const float *x, int64_t count, double eps, const float *gain,
                                   const float *bias, float *y)
{
    double  mean = array_moment(x, count, 0, 1) / (double)count;
    double  by = 1 / sqrt(array_moment(x, count, mean, 2) / (double)count + eps);
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide off = (wide_from(x + i) - mean) * by;
        Half out;

        if (gain)
            off *= wide_from(gain + i);
        if (bias)
            off += wide_from(bias + i);
        out = __builtin_convertvector(off, Half);
        __builtin_memcpy(y + i, &out, sizeof(out));
    }
    for (; i < count; i++)
        y[i] = (float)(((double)x[i] - mean) * by * (gain ? (double)gain[i] : 1) +
                       (bias ? (double)bias[i] : 0));
}

static TARGET uint64_t keys_equal(const int32_t *x, int32_t value)
{
    uint64_t bits = 0;

    for (int j = 0; j < TILE_KEYS; j += WIDTH)
        bits |= bits_equal(x + j, value) << j;
    return bits;
}

static TARGET uint64_t keys_at_most(const int32_t *x, int32_t value)
{
    uint64_t bits = 0;

    for (int j = 0; j < TILE_KEYS; j += WIDTH)
        bits |= bits_at_most(x + j, value) << j;
    return bits;
}

#define DOUBLES (LANES / WIDE) /* vectors of a strip */
/* Sums in registers at once: 16 of 32, or 8 of 16. */
#define DOUBLE_ROWS (WIDE == 8 ? 8 : WIDE == 4 ? 2 : 1)

/* Entry `at` of x, which holds doubles or floats. */
static inline TARGET __attribute__((always_inline)) double wide_entry(const void *x,
                                                                      const bool wide, int64_t at)
{
    return wide ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

static inline TARGET __attribute__((always_inline)) void strip_dots64(
    const void *x, const bool wide, int64_t ldx, const int rows, int64_t d, const double *start,
    const double *w, double *y, int64_t ldy)
{
    Wide sum[DOUBLE_ROWS][DOUBLES];

    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < DOUBLES; c++)
            sum[r][c] = start ? wide_load(start + c * WIDE) : (Wide){ 0 };
    for (int64_t t = 0; t < d; t++, w += LANES)
        UNROLL for (int c = 0; c < DOUBLES; c++) {
            Wide b = wide_load(w + c * WIDE);

            UNROLL for (int r = 0; r < rows; r++)
                sum[r][c] += wide_entry(x, wide, r * ldx + t) * b;
        }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int c = 0; c < DOUBLES; c++)
            __builtin_memcpy(y + r * ldy + c * WIDE, &sum[r][c], sizeof(Wide));
}

static TARGET void rows_dots64(const float *x, int64_t ldx, int64_t rows, int64_t d,
                               const double *w, int64_t cols, double *y, int64_t ldy)
{
    for (int64_t at = 0; at < cols; at += LANES, w += d * LANES) {
        int64_t r = 0;

        for (; r + DOUBLE_ROWS <= rows; r += DOUBLE_ROWS)
            strip_dots64(x + r * ldx, false, ldx, DOUBLE_ROWS, d, NULL, w, y + r * ldy + at, ldy);
        for (; r < rows; r++)
            strip_dots64(x + r * ldx, false, ldx, 1, d, NULL, w, y + r * ldy + at, ldy);
    }
}

static TARGET void rows_product64(const double *x, int64_t ldx, int64_t rows, int64_t d,
                                  const double *start, const double *w, int64_t cols, double *y,
                                  int64_t ldy)
{
    for (int64_t at = 0; at < cols; at += LANES, w += d * LANES) {
        const double *from = start ? start + at : NULL;
        int64_t       r = 0;

        for (; r + DOUBLE_ROWS <= rows; r += DOUBLE_ROWS)
            strip_dots64(x + r * ldx, true, ldx, DOUBLE_ROWS, d, from, w, y + r * ldy + at, ldy);
        for (; r < rows; r++)
            strip_dots64(x + r * ldx, true, ldx, 1, d, from, w, y + r * ldy + at, ldy);
    }
}

/* x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3))) is the tanh form of GELU and keeps its digits
 * where it is small, which 1 + tanh does not. */
static inline TARGET __attribute__((always_inline)) Vec gelu_of(Vec x)
{
    Vec cube = vec_mul(vec_mul(x, x), vec_splat(0.044715f));
    Vec u = vec_mul(vec_fma(cube, x, x), vec_splat(-2.302208198f)); /* -2 sqrt(2/pi) log2 e */
    Vec low = vec_sub(vec_splat(0.0f), vec_max(vec_sub(vec_splat(0.0f), u), vec_splat(-120.0f)));

    return vec_div(x, vec_add(vec_splat(1.0f), vec_exp2(low)));
}

static TARGET void array_gelu(float *x, const float *bias, int64_t count)
{
    float tail[WIDTH] = { 0 };

    for (; count >= WIDTH; count -= WIDTH, x += WIDTH, bias += bias ? WIDTH : 0)
        vec_store(x, gelu_of(bias ? vec_add(vec_load(x), vec_load(bias)) : vec_load(x)));
    for (int64_t i = 0; i < count; i++)
        tail[i] = x[i] + (bias ? bias[i] : 0);
    vec_store(tail, gelu_of(vec_load(tail)));
    for (int64_t i = 0; i < count; i++)
        x[i] = tail[i];
}

#define RECUR_STRIP (4 * WIDE)

static inline TARGET __attribute__((always_inline)) void strip_recur64(
    const double *fq, const double *fk, const double *v, double keep, double take, int64_t f,
    int64_t e, const int vecs, double *state, double *out)
{
    Wide value[4], sum[4];

    UNROLL for (int x = 0; x < vecs; x++) {
        value[x] = wide_load(v + x * WIDE);
        sum[x] = (Wide){ 0 };
    }
    for (int64_t r = 0; r < f; r++) {
        double key = take * fk[r];

        UNROLL for (int x = 0; x < vecs; x++) {
            double *cell = state + r * e + x * WIDE;
            Wide    now = keep * wide_load(cell) + key * value[x];

            __builtin_memcpy(cell, &now, sizeof(now));
            sum[x] += fq[r] * now;
        }
    }
    UNROLL for (int x = 0; x < vecs; x++)
        __builtin_memcpy(out + x * WIDE, &sum[x], sizeof(Wide));
}

static TARGET void token_recur64(const double *fq, const double *fk, const double *v, double keep,
                                 double take, int64_t f, int64_t e, double *state, double *out)
{
    int64_t at = 0;

    for (; e - at >= RECUR_STRIP; at += RECUR_STRIP)
        strip_recur64(fq, fk, v + at, keep, take, f, e, 4, state + at, out + at);
    for (; e - at >= WIDE; at += WIDE)
        strip_recur64(fq, fk, v + at, keep, take, f, e, 1, state + at, out + at);
    for (; at < e; at++) {
        out[at] = 0;
        for (int64_t r = 0; r < f; r++) {
            state[r * e + at] = keep * state[r * e + at] + take * fk[r] * v[at];
            out[at] += fq[r] * state[r * e + at];
        }
    }
}

/* ---- exp, sin and cos in double --------------------------------------------------- */

typedef long long Whole __attribute__((vector_size(sizeof(Wide))));

#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: x + ROUNDER holds x rounded in its last bits */
#define EXP_RANGE 700.0            /* beyond, and for what is no number, the library decides */
#define WAVE_RANGE 1e5

/* Whether all of x[0..WIDE) lie within +-range. */
static inline TARGET __attribute__((always_inline)) bool wide_within(Wide x, double range)
{
    Whole   in = (x > -range) & (x < range);
    int64_t all = -1;

    UNROLL for (int c = 0; c < WIDE; c++)
        all &= in[c];
    return all != 0;
}

/* e^x = 2^k e^r, |r| <= ln 2 / 2: Taylor's series to r^13 is exact to the last bit or two. */
static inline TARGET __attribute__((always_inline)) Wide wide_exp(Wide x)
{
    static const double over[] = { 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
                                   1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                   1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1 };
    Wide  turns = x * 1.4426950408889634 + ROUNDER, k = turns - ROUNDER;
    Wide  r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10;
    Wide  sum = (Wide){ 0 } + over[0];
    Whole power = ((Whole)turns + 1023) << 52;

    UNROLL for (int t = 1; t < 14; t++)
        sum = sum * r + over[t];
    return sum * (Wide)power;
}

static TARGET void array_exp64(double *x, int64_t count)
{
    int64_t i = 0;

    for (; i + WIDE <= count; i += WIDE) {
        Wide now = wide_load(x + i);

        if (wide_within(now, EXP_RANGE)) {
            now = wide_exp(now);
            __builtin_memcpy(x + i, &now, sizeof(now));
        } else {
            for (int64_t c = i; c < i + WIDE; c++)
                x[c] = exp(x[c]);
        }
    }
    for (; i < count; i++)
        x[i] = exp(x[i]);
}

/* y = k pi/2 + r, |r| <= pi/4: Taylor's series of both, which change places and signs with k. */
static inline TARGET __attribute__((always_inline)) void wide_waves(Wide y, Wide *sine,
                                                                    Wide *cosine)
{
    static const double odd[] = { 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800,
                                  -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120,
                                  -1.0 / 6, 1 };
    static const double even[] = { 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
                                   -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2,
                                   1 };
    Wide  turns = y * 0.6366197723675814 + ROUNDER, k = turns - ROUNDER;
    Wide  r = y - k * 1.5707963267341256 - k * 6.077100506506192e-11, square = r * r;
    Wide  s = (Wide){ 0 } + odd[0], c = (Wide){ 0 } + even[0];
    Whole quarter = (Whole)turns, swap = -(quarter & 1);

    UNROLL for (int t = 1; t < 9; t++) {
        s = s * square + odd[t];
        c = c * square + even[t];
    }
    s *= r;
    *sine = (Wide)((((Whole)c & swap) | ((Whole)s & ~swap)) ^ (quarter & 2) << 62);
    *cosine = (Wide)((((Whole)s & swap) | ((Whole)c & ~swap)) ^ ((quarter + 1) & 2) << 62);
}

static TARGET void array_waves(const double *y, int64_t count, double size, double *sines,
                               double *cosines)
{
    int64_t i = 0;

    for (; i + WIDE <= count && wide_within(wide_load(y + i), WAVE_RANGE); i += WIDE) {
        Wide sine, cosine;

        wide_waves(wide_load(y + i), &sine, &cosine);
        sine *= size;
        cosine *= size;
        __builtin_memcpy(sines + i, &sine, sizeof(sine));
        __builtin_memcpy(cosines + i, &cosine, sizeof(cosine));
    }
    for (; i < count; i++) {
        double sine = size * sin(y[i]), cosine = size * cos(y[i]);

        sines[i] = sine;
        cosines[i] = cosine;
    }
}

const Kernel KERNEL = {
    .name = KERNEL_NAME,
    .score = tile_score,
    .softmax = tile_softmax,
    .mix = tile_mix,
    .mix_turned = tile_mix_turned,
    .columns = columns_softmax,
    .dots = row_dots,
    .mix_row = row_mix,
    .recur = token_recur,
    .exp2 = array_exp2,
    .elu = array_elu,
    .scale = array_scale,
    .line = array_line,
    .largest = array_largest,
    .squares = array_squares,
    .fold = array_fold,
    .dot_wide = array_dot_wide,
    .dot_double = array_dot_double,
    .equal = keys_equal,
    .at_most = keys_at_most,
    .dots64 = rows_dots64,
    .product64 = rows_product64,
    .gelu = array_gelu,
    .recur64 = token_recur64,
    .standardise = row_standardise,
    .exp64 = array_exp64,
    .waves = array_waves,
};
