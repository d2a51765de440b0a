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

#include "model/dot_body.h"

#endif
