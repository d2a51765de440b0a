/* model/dot_body.h -- the loops of dot.h over a file's own vectors.
 *
 * The including file defines TARGET, INLINE, WIDTH, Vec (WIDTH floats), DOT and DOT_NAME, and
 * vec_zero, vec_splat, vec_load, vec_fma, vec_total, vec_of_bytes (WIDTH unsigned bytes),
 * vec_of_signed, vec_of_halves and dot_half (floats of binary16), vec_of_brains (of bfloat16).
 *
 * A block is d sum(q x) + m sum(x): its numbers are multiplied by x as they are, and by the block's
 * factor once.  Layouts: model/file/weight.h.
 */
#include <string.h>

#define PARTS (16 / WIDTH)
#ifndef DOT_NIBBLES
#define DOT_NIBBLES 0 /* the file has an add_nibbles of its own */
#endif
#ifndef DOT_Q4_1
#define DOT_Q4_1 0 /* the file has a dot_q4_1 of its own */
#endif

/* Rows are read once and from memory, which processors fetch too late by themselves: half as long
 * again without. */
#ifndef AHEAD
#define AHEAD 4096
#endif

INLINE void fetch_ahead(const uint8_t *w)
{
    __builtin_prefetch((const void *)((uintptr_t)w + AHEAD));
}

typedef uint8_t Bytes16 __attribute__((vector_size(16)));

INLINE Bytes16 bytes_load(const uint8_t *p)
{
    Bytes16 x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* s + q x of 16 numbers. */
INLINE Vec add16(Bytes16 q, const float *x, Vec s)
{
    uint8_t bytes[16];

    memcpy(bytes, &q, sizeof(bytes));
    for (int part = 0; part < PARTS; part++)
        s = vec_fma(vec_of_bytes(bytes + part * WIDTH), vec_load(x + part * WIDTH), s);
    return s;
}

/* Shifts by numbers that the compiler knows are cheaper, of bytes much. */
#define UNROLL_8 _Pragma("GCC unroll 8")
#define UNROLL_16 _Pragma("GCC unroll 16")

#if !DOT_NIBBLES
/* s + q x of 32 numbers of half a byte each, the low halves first. */
INLINE Vec add_nibbles(const uint8_t *p, const float *x)
{
    Bytes16 q = bytes_load(p);

    return add16(q >> 4, x + 16, add16(q & 15, x, vec_zero()));
}

/* Two of binary16, side by side. */
INLINE void dot_halves(const uint8_t *p, float *a, float *b)
{
    *a = dot_half(p);
    *b = dot_half(p + 2);
}
#endif

/* bfloat16 is the upper half of a float. */
INLINE float dot_brain(const uint8_t *p)
{
    uint32_t bits = dot_u16(p) << 16;
    float    value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* 16 where the bit of those 16 is set. */
INLINE Bytes16 fifth_bits(const uint8_t *two)
{
    const Bytes16 bit = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint8_t a = two[0], b = two[1];
    Bytes16       both = { a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b };

    return (Bytes16)((both & bit) == bit) & 16;
}

/* Types of 32 values: bytes of a block, where its numbers are, their fifth bits, its offset. */
#define DOT32(type, size, at, fifth, offset, minimum)                                              \
    static TARGET float dot_##type(const uint8_t *w, const float *x, const float *sums,            \
                                   int64_t cols)                                                   \
    {                                                                                              \
        Vec   acc = vec_zero();                                                                    \
        float rest = 0;                                                                            \
                                                                                                   \
        for (int64_t c = 0; c < cols; c += 32, w += (size), x += 32, sums += 2) {                  \
            float d, m;                                                                            \
            Vec   s;                                                                               \
                                                                                                   \
            fetch_ahead(w);                                                                        \
            dot_halves(w, &d, &m);                                                                 \
            m = (minimum) ? m : (offset) * d;                                                      \
            if ((fifth) > 0) {                                                                     \
                Bytes16 q = bytes_load(w + (at)), low = (q & 15) | fifth_bits(w + (fifth));        \
                Bytes16 high = q >> 4 | fifth_bits(w + (fifth) + 2);                               \
                                                                                                   \
                s = add16(high, x + 16, add16(low, x, vec_zero()));                                \
            } else {                                                                               \
                s = add_nibbles(w + (at), x);                                                      \
            }                                                                                      \
            acc = vec_fma(vec_splat(d), s, acc);                                                   \
            rest += m * (sums[0] + sums[1]);                                                       \
        }                                                                                          \
        return vec_total(acc) + rest;                                                              \
    }

DOT32(q4_0, 18, 2, 0, -8.0f, false)
#if !DOT_Q4_1
DOT32(q4_1, 20, 4, 0, 0.0f, true)
#endif
DOT32(q5_0, 22, 6, 2, -16.0f, false)
DOT32(q5_1, 24, 8, 4, 0.0f, true)

static TARGET float dot_q8_0(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    Vec acc = vec_zero();

    (void)sums;
    for (int64_t c = 0; c < cols; c += 32, w += 34, x += 32) {
        Vec s = vec_zero();

        fetch_ahead(w);
        for (int part = 0; part < 2 * PARTS; part++)
            s = vec_fma(vec_of_signed((const int8_t *)w + 2 + part * WIDTH),
                        vec_load(x + part * WIDTH), s);
        acc = vec_fma(vec_splat(dot_half(w)), s, acc);
    }
    return vec_total(acc);
}

/* ---- blocks of 256 ------------------------------------------------------- */

static TARGET float dot_q2_k(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    Vec   acc = vec_zero();
    float rest = 0;

    for (int64_t c = 0; c < cols; c += 256, w += 84, x += 256, sums += 16) {
        float d = dot_half(w + 80), least = dot_half(w + 82);

        fetch_ahead(w);
        fetch_ahead(w + 64);
        UNROLL_16
        for (int g = 0; g < 16; g++) { /* 16 numbers each: half g % 2 of a row of 32 */
            Bytes16 q = bytes_load(w + 16 + 32 * (g / 8) + 16 * (g % 2)) >> (2 * (g % 8 / 2)) & 3;

            acc = vec_fma(vec_splat(d * (float)(w[g] & 15)),
                          add16(q, x + 16 * g, vec_zero()), acc);
            rest -= least * (float)(w[g] >> 4) * sums[g];
        }
    }
    return vec_total(acc) + rest;
}

static TARGET float dot_q3_k(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    Vec   acc = vec_zero();
    float rest = 0;

    for (int64_t c = 0; c < cols; c += 256, w += 110, x += 256, sums += 16) {
        const uint8_t *s = w + 96;
        float          d = dot_half(w + 108);

        fetch_ahead(w);
        fetch_ahead(w + 64);
        UNROLL_16
        for (int g = 0; g < 16; g++) {
            int     scale = (s[g % 8] >> 4 * (g / 8) & 15) + 16 * (s[8 + g % 4] >> 2 * (g / 4) & 3);
            float   factor = d * (float)(scale - 32);
            Bytes16 q = bytes_load(w + 32 + 32 * (g / 8) + 16 * (g % 2)) >> (2 * (g % 8 / 2)) & 3;
            Bytes16 high = bytes_load(w + 16 * (g % 2)) >> (g / 2) & 1;

            acc = vec_fma(vec_splat(factor), add16(q + high * 4, x + 16 * g, vec_zero()), acc);
            rest -= factor * 4 * sums[g];
        }
    }
    return vec_total(acc) + rest;
}

/* The 8 scales and 8 minima of 12 bytes, four to a word. */
INLINE void scales_of(const uint8_t *s, uint8_t *scale, uint8_t *least)
{
    uint32_t word[3], out[4];

    memcpy(word, s, sizeof(word));
    out[0] = word[0] & 0x3f3f3f3f;
    out[1] = (word[2] & 0x0f0f0f0f) | (word[0] >> 6 & 0x03030303) << 4;
    out[2] = word[1] & 0x3f3f3f3f;
    out[3] = (word[2] >> 4 & 0x0f0f0f0f) | (word[1] >> 6 & 0x03030303) << 4;
    memcpy(scale, out, 8);
    memcpy(least, out + 2, 8);
}

#define DOT256(type, size, at, fifth)                                                              \
    static TARGET float dot_##type(const uint8_t *w, const float *x, const float *sums,            \
                                   int64_t cols)                                                   \
    {                                                                                              \
        Vec   acc = vec_zero();                                                                    \
        float rest = 0;                                                                            \
                                                                                                   \
        for (int64_t c = 0; c < cols; c += 256, w += (size), x += 256, sums += 16) {               \
            float   d = dot_half(w), dmin = dot_half(w + 2), all = 0;                              \
            uint8_t scale[8], least[8];                                                            \
                                                                                                   \
            for (int line = 0; line < (size); line += 64)                                          \
                fetch_ahead(w + line);                                                             \
            scales_of(w + 4, scale, least);                                                        \
            UNROLL_8                                                                               \
            for (int g = 0; g < 8; g++) {                                                          \
                const uint8_t *from = w + (at) + 32 * (g / 2);                                     \
                Bytes16        low = bytes_load(from) >> 4 * (g % 2) & 15;                         \
                Bytes16        high = bytes_load(from + 16) >> 4 * (g % 2) & 15;                   \
                Vec            s;                                                                  \
                                                                                                   \
                if ((fifth) > 0) {                                                                 \
                    low |= (bytes_load(w + (fifth)) >> g & 1) << 4;                                \
                    high |= (bytes_load(w + (fifth) + 16) >> g & 1) << 4;                          \
                }                                                                                  \
                s = add16(high, x + 32 * g + 16, add16(low, x + 32 * g, vec_zero()));              \
                acc = vec_fma(vec_splat(d * (float)scale[g]), s, acc);                             \
                all += (float)least[g] * (sums[2 * g] + sums[2 * g + 1]);                          \
            }                                                                                      \
            rest -= dmin * all;                                                                    \
        }                                                                                          \
        return vec_total(acc) + rest;                                                              \
    }

DOT256(q4_k, 144, 16, 0)
DOT256(q5_k, 176, 48, 16)

static TARGET float dot_q6_k(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    Vec   acc = vec_zero();
    float rest = 0;

    for (int64_t c = 0; c < cols; c += 256, w += 210, x += 256, sums += 16) {
        float d = dot_half(w + 208);

        for (int line = 0; line < 210; line += 64)
            fetch_ahead(w + line);
        UNROLL_16
        for (int g = 0; g < 16; g++) {
            int     a = g / 8, r = g % 8 * 16;
            Bytes16 low = bytes_load(w + 64 * a + r % 64) >> 4 * (r / 64) & 15;
            Bytes16 high = bytes_load(w + 128 + 32 * a + r % 32) >> 2 * (r / 32) & 3;
            float   factor = d * (float)(int8_t)w[192 + g];

            acc = vec_fma(vec_splat(factor), add16(low | high << 4, x + 16 * g, vec_zero()), acc);
            rest -= factor * 32 * sums[g];
        }
    }
    return vec_total(acc) + rest;
}

/* ---- numbers ------------------------------------------------------------- */

static TARGET float dot_f32(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    const float *y = (const float *)(const void *)w;
    Vec          a = vec_zero(), b = vec_zero();
    int64_t      c = 0;
    float        rest = 0;

    (void)sums;
    for (; c + 2 * WIDTH <= cols; c += 2 * WIDTH) {
        a = vec_fma(vec_load(y + c), vec_load(x + c), a);
        b = vec_fma(vec_load(y + c + WIDTH), vec_load(x + c + WIDTH), b);
    }
    for (; c < cols; c++) {
        float one;

        memcpy(&one, y + c, sizeof(one));
        rest += one * x[c];
    }
    return vec_total(a) + vec_total(b) + rest;
}

/* Numbers of 16 bits; `one` reads one of them, `many` a vector. */
#define DOT16(type, one, many)                                                                     \
    static TARGET float dot_##type(const uint8_t *w, const float *x, const float *sums,            \
                                   int64_t cols)                                                   \
    {                                                                                              \
        Vec     a = vec_zero(), b = vec_zero();                                                    \
        int64_t c = 0;                                                                             \
        float   rest = 0;                                                                          \
                                                                                                   \
        (void)sums;                                                                                \
        for (; c + 32 <= cols; c += 32) {                                                          \
            fetch_ahead(w + 2 * c);                                                                \
            for (int part = 0; part < 2 * PARTS; part += 2) {                                      \
                int64_t at = c + part * WIDTH;                                                     \
                                                                                                   \
                a = vec_fma(many(w + 2 * at), vec_load(x + at), a);                                \
                b = vec_fma(many(w + 2 * (at + WIDTH)), vec_load(x + at + WIDTH), b);              \
            }                                                                                      \
        }                                                                                          \
        for (; c < cols; c++)                                                                      \
            rest += one(w + 2 * c) * x[c];                                                         \
        return vec_total(a) + vec_total(b) + rest;                                                 \
    }

DOT16(f16, dot_half, vec_of_halves)
DOT16(bf16, dot_brain, vec_of_brains)

static TARGET float dot_f64(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    double total = 0;

    (void)sums;
    for (int64_t c = 0; c < cols; c++) {
        double one;

        memcpy(&one, w + 8 * c, sizeof(one));
        total += (double)(float)one * (double)x[c]; /* weights count as float32 */
    }
    return (float)total;
}

const DotKernel DOT = {
    .name = DOT_NAME,
    .dot = {
        [WEIGHT_F32] = dot_f32,   [WEIGHT_F16] = dot_f16,   [WEIGHT_BF16] = dot_bf16,
        [WEIGHT_F64] = dot_f64,   [WEIGHT_Q4_0] = dot_q4_0, [WEIGHT_Q4_1] = dot_q4_1,
        [WEIGHT_Q5_0] = dot_q5_0, [WEIGHT_Q5_1] = dot_q5_1, [WEIGHT_Q8_0] = dot_q8_0,
        [WEIGHT_Q2_K] = dot_q2_k, [WEIGHT_Q3_K] = dot_q3_k, [WEIGHT_Q4_K] = dot_q4_k,
        [WEIGHT_Q5_K] = dot_q5_k, [WEIGHT_Q6_K] = dot_q6_k,
    },
};
