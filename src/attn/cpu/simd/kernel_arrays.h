/* attn/cpu/simd/kernel_arrays.h -- the part of kernel_body.h that goes along arrays of floats and
 * codes of bits.
 *
 * sin and cos: y = k pi/2 + r, |r| <= pi/4, with pi/2 in three parts whose products with k are
 * exact; minimax polynomials of r^2, good to 1e-7 of the largest value.
 */
#ifndef ATTN_CPU_KERNEL_ARRAYS_H
#define ATTN_CPU_KERNEL_ARRAYS_H

#include <float.h>

static TARGET void array_exp2(float *x, int64_t count, float scale, float shift)
{
    Vec a = vec_splat(scale), b = vec_splat(-shift);

    for (; count >= WIDTH; count -= WIDTH, x += WIDTH)
        vec_store(x, vec_exp2(vec_fma(a, vec_load(x), b)));
    if (count > 0)
        vec_store_part(x, count, vec_exp2(vec_fma(a, vec_load_part(x, count), b)));
}

/* 1 / (1 + 2^-x): 2^128 is infinite, whose weight is 0; NaN stays. */
INLINE Vec logistic_of(Vec x)
{
    Vec power = vec_exp2(vec_sub(vec_splat(0.0f), vec_max(vec_splat(-128.0f), x)));

    return vec_div(vec_splat(1.0f), vec_add(vec_splat(1.0f), power));
}

static TARGET float array_logistic(float *x, int64_t count, float shift)
{
    Vec sum = vec_splat(0.0f), b = vec_splat(shift);

    for (int64_t j = 0; j < count; j += WIDTH) {
        Vec y = logistic_of(vec_add(vec_load(x + j), b));

        vec_store(x + j, y);
        sum = vec_add(sum, y);
    }
    return vec_total(sum);
}

INLINE Vec elu_of(Vec x, float alpha)
{
    Vec above = vec_max(x, vec_splat(0.0f)), below = vec_sub(x, above);
    Vec power = vec_exp2(vec_mul(vec_splat(1.44269504f), below));

    return vec_add(above, vec_fma(vec_splat(alpha), power, vec_splat(1.0f - alpha)));
}

static TARGET void array_elu(const float *x, int64_t count, float alpha, float *y)
{
    for (; count >= STRIP; count -= STRIP, x += STRIP, y += STRIP) {
        Vec strip[VECS]; /* y may be x: without these, each waits for the one before */

        UNROLL for (int v = 0; v < VECS; v++)
            strip[v] = elu_of(vec_load(x + v * WIDTH), alpha);
        UNROLL for (int v = 0; v < VECS; v++)
            vec_store(y + v * WIDTH, strip[v]);
    }
    for (; count >= WIDTH; count -= WIDTH, x += WIDTH, y += WIDTH)
        vec_store(y, elu_of(vec_load(x), alpha));
    if (count > 0)
        vec_store_part(y, count, elu_of(vec_load_part(x, count), alpha));
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

typedef int32_t Ints __attribute__((vector_size(sizeof(Vec))));

/* Whether count >= WIDTH numbers are 0 without a sign. */
INLINE bool all_zero(const float *x, int64_t count)
{
    Ints    any = (Ints)vec_load(x + count - WIDTH);
    int32_t bits = 0;

    for (int64_t i = 0; i + WIDTH < count; i += WIDTH)
        any |= (Ints)vec_load(x + i);
    UNROLL for (int c = 0; c < WIDTH; c++)
        bits |= any[c];
    return bits == 0;
}

/* Most tiles of a span with a soft edge lie before the edge, where nothing is added. */
static TARGET void rows_add_turned(float *s, int64_t lds, int64_t rows, int64_t count,
                                   const float *x, float factor)
{
    Vec by = vec_splat(factor);

    if (count >= WIDTH && all_zero(x - count + 1, count + rows - 1))
        return;
    for (int64_t r = 0; r < rows; r++, s += lds, x++) {
        int64_t j = 0;

        for (; j + WIDTH <= count; j += WIDTH)
            vec_store(s + j, vec_fma(by, vec_turned(vec_load(x - j - WIDTH + 1)), vec_load(s + j)));
        for (; j < count; j++)
            s[j] += factor * x[-j];
    }
}

static TARGET int64_t array_subtract(const float *x, int64_t count, float a, const float *y,
                                     float b, float *w, double *squares)
{
    Vec     first = vec_splat(a), second = vec_splat(b), below = vec_splat(0x1p-149f);
    Vec     square[2] = { vec_splat(0.0f), vec_splat(0.0f) };
    int64_t i = 0, negative = 0;

    for (; i + WIDTH <= count; i += WIDTH) {
        Vec more = vec_mul(first, vec_load(x + i)), less = vec_mul(second, vec_load(y + i));

        negative += __builtin_popcountll(bits_reach(vec_sub(less, more), below));
        vec_store(w + i, vec_sub(more, less));
        square[0] = vec_fma(more, more, square[0]);
        square[1] = vec_fma(less, less, square[1]);
    }
    *squares += (double)vec_total(vec_add(square[0], square[1]));
    for (; i < count; i++) {
        float more = a * x[i], less = b * y[i];

        w[i] = more - less;
        negative += w[i] < 0;
        *squares += (double)(more * more) + (double)(less * less);
    }
    return negative;
}

/* Lanes whose sum is that of the squares. */
INLINE Vec squares_of(const float *x, int64_t count)
{
    Vec     sum[2] = { vec_splat(0.0f), vec_splat(0.0f) };
    int64_t i = 0;

    for (; i + 2 * WIDTH <= count; i += 2 * WIDTH)
        UNROLL for (int p = 0; p < 2; p++)
            sum[p] = vec_fma(vec_load(x + i + p * WIDTH), vec_load(x + i + p * WIDTH), sum[p]);
    for (; i < count; i += WIDTH) {
        int64_t left = count - i < WIDTH ? count - i : WIDTH;
        Vec     part = left < WIDTH ? vec_load_part(x + i, left) : vec_load(x + i);

        sum[0] = vec_fma(part, part, sum[0]);
    }
    return vec_add(sum[0], sum[1]);
}

static TARGET float array_squares_near(const float *x, int64_t count)
{
    return vec_total(squares_of(x, count));
}

#define SQUARE_ROWS 4

/* Of four rows, or of `rows` if they are fewer: their lanes are summed in fewer steps together. */
INLINE void four_squares(const float *x, int64_t ldx, int64_t rows, int64_t d, float *to)
{
    Vec sum[SQUARE_ROWS];

    UNROLL for (int r = 0; r < SQUARE_ROWS; r++)
        sum[r] = squares_of(x + (r < rows ? r : 0) * ldx, d);
    vec_totals(sum, to);
}

static TARGET float rows_most_squares(const float *x, int64_t ldx, int64_t rows, int64_t d)
{
    float most = 0;

    for (int64_t r = 0; r < rows; r += SQUARE_ROWS) {
        float total[SQUARE_ROWS];

        four_squares(x + r * ldx, ldx, rows - r, d, total);
        UNROLL for (int g = 0; g < SQUARE_ROWS; g++)
            most = total[g] <= most || isnan(most) ? most : total[g];
    }
    return most;
}

static TARGET void rows_squares_near(const float *x, int64_t ldx, int64_t rows, int64_t d,
                                     float *to)
{
    float   rest[SQUARE_ROWS];
    int64_t r = 0;

    for (; r + SQUARE_ROWS <= rows; r += SQUARE_ROWS)
        four_squares(x + r * ldx, ldx, SQUARE_ROWS, d, to + r);
    if (r < rows)
        four_squares(x + r * ldx, ldx, rows - r, d, rest);
    for (int64_t g = r; g < rows; g++)
        to[g] = rest[g - r];
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

/* x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3))) is the tanh form of GELU.  It stays accurate
 * near 0, where 1 + tanh cancels. */
INLINE Vec gelu_of(Vec x)
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

typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef int32_t Ints __attribute__((vector_size(4 * WIDTH)));

INLINE Floats floats_of(Vec x)
{
    Floats y;

    __builtin_memcpy(&y, &x, sizeof(y));
    return y;
}

INLINE Floats floats_select(Ints choose, Floats yes, Floats no)
{
    return (Floats)(((Ints)yes & choose) | ((Ints)no & ~choose));
}

INLINE Floats floats_exp2(Floats x)
{
    Vec y;

    __builtin_memcpy(&y, &x, sizeof(y));
    return floats_of(vec_exp2(y));
}

/* u = x / top.  tanh u is u + u^3 p(u^2) with a polynomial of degree 4 below 0.625, where the other
 * form cancels: 1 - 2 / (1 + e^2u). */
INLINE Floats floats_cap(Floats x, float top)
{
    Floats u = x / top, size = (Floats)((Ints)u & INT32_MAX), square = u * u, far, near;
    Ints   small = size < 0.625f, none = x == -INFINITY;

    near = ((((-5.43937e-3f * square + 2.039789e-2f) * square - 5.366502e-2f) *
                 square + 1.3330543e-1f) * square - 3.3333249e-1f) * square;
    near = near * u + u;
    far = floats_select(size < 20.0f, size, (Floats){ 0 } + 20.0f);
    far = 1.0f - 2.0f / (1.0f + floats_exp2(2.88539008f * far));
    far = (Floats)((Ints)far | ((Ints)u & INT32_MIN));
    near = top * floats_select(small, near, far);
    return floats_select(none | (Ints)(x != x), x, near);
}

static TARGET void array_cap(float *x, int64_t count, float top)
{
    float tail[WIDTH] = { 0 };

    top = top < FLT_MIN ? FLT_MIN : top;
    for (; count >= WIDTH; count -= WIDTH, x += WIDTH) {
        Floats y = floats_cap(floats_of(vec_load(x)), top);

        __builtin_memcpy(x, &y, sizeof(y));
    }
    for (int64_t i = 0; i < count; i++)
        tail[i] = x[i];
    if (count > 0) {
        Floats y = floats_cap(floats_of(vec_load(tail)), top);

        __builtin_memcpy(tail, &y, sizeof(y));
    }
    for (int64_t i = 0; i < count; i++)
        x[i] = tail[i];
}

#define FLOAT_ROUNDER 12582912.0f /* 1.5 * 2^23: the low bits of x + this hold x rounded */
#define FLOAT_WAVES 1024.0f       /* beyond, and for NaN, the C library computes */

INLINE Vec vec_choose(Ints yes, Vec a, Vec b)
{
    return (Vec)(((Ints)a & yes) | ((Ints)b & ~yes));
}

INLINE void float_waves(Vec y, Vec *sine, Vec *cosine)
{
    Vec  turns = vec_fma(y, vec_splat(0.636619772f), vec_splat(FLOAT_ROUNDER));
    Vec  k = vec_sub(vec_splat(FLOAT_ROUNDER), turns), r, square, s, c;
    Ints quarter = (Ints)turns, swap = -(quarter & 1);

    r = vec_fma(k, vec_splat(1.5703125f), y);
    r = vec_fma(k, vec_splat(4.837512969970703e-4f), r);
    r = vec_fma(k, vec_splat(7.549789954891882e-8f), r);
    square = vec_mul(r, r);
    s = vec_fma(vec_splat(-1.9515295891e-4f), square, vec_splat(8.3321608736e-3f));
    s = vec_fma(s, square, vec_splat(-1.6666654611e-1f));
    s = vec_fma(vec_mul(s, square), r, r);
    c = vec_fma(vec_splat(2.443315711809948e-5f), square, vec_splat(-1.388731625493765e-3f));
    c = vec_fma(c, square, vec_splat(4.166664568298827e-2f));
    c = vec_fma(c, square, vec_splat(-0.5f));
    c = vec_fma(c, square, vec_splat(1.0f));
    *sine = (Vec)((Ints)vec_choose(swap, c, s) ^ (quarter & 2) << 30);
    *cosine = (Vec)((Ints)vec_choose(swap, s, c) ^ ((quarter + 1) & 2) << 30);
}

/* Whether all of x lie within +-range; NaN does not. */
INLINE bool vec_within(Vec x, float range)
{
    return bits_reach(vec_splat(range), size_of(x, true)) == (UINT64_C(1) << WIDTH) - 1;
}

static TARGET void array_float_waves(const float *y, int64_t count, float factor, float size,
                                     float *sines, float *cosines)
{
    Vec     by = vec_splat(factor), all = vec_splat(size);
    int64_t i = 0;

    for (; i + WIDTH <= count; i += WIDTH) {
        Vec x = vec_mul(by, vec_load(y + i)), sine, cosine;

        if (!vec_within(x, FLOAT_WAVES))
            break;
        float_waves(x, &sine, &cosine);
        vec_store(sines + i, vec_mul(all, sine));
        vec_store(cosines + i, vec_mul(all, cosine));
    }
    for (; i < count; i++) {
        float x = factor * y[i], sine = size * sinf(x), cosine = size * cosf(x);

        sines[i] = sine;
        cosines[i] = cosine;
    }
}

/* ---- codes of CODE_BITS bits -------------------------------------------------- */

typedef unsigned long long Word __attribute__((vector_size(sizeof(Wide))));
typedef int32_t Lane __attribute__((vector_size(sizeof(Vec))));

/* Bits set in each word. */
INLINE Word word_bits(Word x)
{
    x -= (x >> 1) & 0x5555555555555555;
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    x += x >> 8;
    x += x >> 16;
    return (x + (x >> 32)) & 127;
}

/* A word holds a distance above the number of its centre, so the least word is the nearest
 * centre, and of equal distances the lowest number. */
INLINE void word_nearest(const int64_t *codes, const int64_t *centres, int64_t of, int32_t *index)
{
    Word own, best = (Word){ 0 } + ~0ull;

    __builtin_memcpy(&own, codes, sizeof(own));
    for (int64_t c = 0; c < of; c++) {
        Word apart = (word_bits(own ^ (unsigned long long)centres[c]) << 32) +
                     (unsigned long long)c;
        Word less = (Word)(apart < best);

        best = (apart & less) | (best & ~less);
    }
    for (int x = 0; x < WIDE; x++)
        index[x] = (int32_t)(best[x] & 0xffffffff);
}

static TARGET void codes_nearest(const int64_t *codes, int64_t count, const int64_t *centres,
                                 int64_t of, int32_t *index)
{
    int64_t tail[WIDE] = { 0 }, taken = 0;
    int32_t last[WIDE];

#ifdef CODES_COUNTED
    taken = CODES_COUNTED(codes, count, centres, of, index);
#endif
    codes += taken;
    index += taken;
    count -= taken;
    for (; count >= WIDE; count -= WIDE, codes += WIDE, index += WIDE)
        word_nearest(codes, centres, of, index);
    for (int64_t i = 0; i < count; i++)
        tail[i] = codes[i];
    word_nearest(tail, centres, of, last);
    for (int64_t i = 0; i < count; i++)
        index[i] = last[i];
}

static TARGET void codes_bit_sums(const int64_t *codes, const int32_t *cluster, int64_t count,
                                  int32_t *ones)
{
    Lane place;

    for (int x = 0; x < WIDTH; x++)
        place[x] = x;
    for (int64_t i = 0; i < count; i++)
        for (int x = 0; x < CODE_BITS; x += WIDTH) {
            int32_t *to = ones + (int64_t)cluster[i] * CODE_BITS + x, half;
            Lane     now;

            half = (int32_t)((uint64_t)codes[i] >> x);
            __builtin_memcpy(&now, to, sizeof(now));
            now += (half >> place) & 1;
            __builtin_memcpy(to, &now, sizeof(now));
        }
}

#endif
