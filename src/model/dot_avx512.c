/* dot_avx512.c -- the loops of dot.h on 512-bit vectors. */
#include "model/dot.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma,f16c")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define WIDTH 16
#define DOT dot_avx512
#define DOT_NAME "avx512"
#define AHEAD 4096

typedef __m512 Vec;

INLINE Vec vec_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE Vec vec_splat(float x)
{
    return _mm512_set1_ps(x);
}

INLINE Vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE float vec_total(Vec x)
{
    return _mm512_reduce_add_ps(x);
}

INLINE Vec vec_of_bytes(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

INLINE Vec vec_of_signed(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

INLINE Vec vec_of_halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

INLINE Vec vec_of_brains(const uint8_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));

    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

INLINE float dot_half(const uint8_t *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128((int)dot_u16(p))));
}

#define DOT_NIBBLES 1

/* s + q x of 32 numbers of half a byte each: a permutation looks at the lowest four bits only, so
 * the halves need neither masks nor conversions. */
INLINE Vec add_nibbles(const uint8_t *p, const float *x)
{
    const Vec table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i   q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    Vec       low = _mm512_permutexvar_ps(q, table);
    Vec       high = _mm512_permutexvar_ps(_mm512_srli_epi32(q, 4), table);

    return vec_fma(high, vec_load(x + 16), _mm512_mul_ps(low, vec_load(x)));
}

INLINE void dot_halves(const uint8_t *p, float *a, float *b)
{
    __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128((int)(dot_u16(p) | dot_u16(p + 2) << 16)));

    *a = _mm_cvtss_f32(both);
    *b = _mm_cvtss_f32(_mm_movehdup_ps(both));
}

#define DOT_Q4_1 1 /* of its own, below */

/* Factor and offset of four blocks of 20 bytes, side by side: d0 m0 d1 m1 .. */
INLINE __m256 four_halves(const uint8_t *w)
{
    __m128i all = _mm_loadu_si128((const __m128i *)w);

    all = _mm_blend_epi32(all, _mm_loadu_si128((const __m128i *)(w + 16)), 2);
    all = _mm_blend_epi32(all, _mm_loadu_si128((const __m128i *)(w + 32)), 4);
    all = _mm_blend_epi32(all, _mm_loadu_si128((const __m128i *)(w + 48)), 8);
    return _mm256_cvtph_ps(all);
}

/* The commonest type of small files: four blocks at once, whose factors are converted together. */
static TARGET float dot_q4_1(const uint8_t *w, const float *x, const float *sums, int64_t cols)
{
    Vec     acc[2] = { vec_zero(), vec_zero() };
    __m256  rest = _mm256_setzero_ps();
    float   d[8], m;
    int64_t c = 0;

    for (; c + 128 <= cols; c += 128, w += 80, sums += 8) {
        __m256 both = four_halves(w);

        _mm_prefetch((const char *)((uintptr_t)w + AHEAD), _MM_HINT_T0);
        _mm_prefetch((const char *)((uintptr_t)w + AHEAD + 64), _MM_HINT_T0);
        _mm256_storeu_ps(d, both);
        rest = _mm256_fmadd_ps(_mm256_movehdup_ps(both), _mm256_loadu_ps(sums), rest);
        for (int b = 0; b < 4; b++)
            acc[b % 2] = vec_fma(vec_splat(d[2 * b]),
                                 add_nibbles(w + 20 * b + 4, x + c + 32 * b), acc[b % 2]);
    }
    for (; c < cols; c += 32, w += 20, sums += 2) {
        dot_halves(w, &d[0], &m);
        acc[0] = vec_fma(vec_splat(d[0]), add_nibbles(w + 4, x + c), acc[0]);
        rest = _mm256_add_ps(rest, _mm256_setr_ps(m * (sums[0] + sums[1]), 0, 0, 0, 0, 0, 0, 0));
    }
    return vec_total(_mm512_add_ps(acc[0], acc[1])) +
           vec_total(_mm512_zextps256_ps512(rest));
}

#include "model/dot_body.h"

#endif
