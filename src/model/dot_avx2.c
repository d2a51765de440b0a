/* dot_avx2.c -- the loops of dot.h on 256-bit vectors with FMA. */
#include "model/dot.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdbool.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define WIDTH 8
#define DOT dot_avx2
#define DOT_NAME "avx2"

typedef __m256 Vec;

INLINE Vec vec_zero(void)
{
    return _mm256_setzero_ps();
}

INLINE Vec vec_splat(float x)
{
    return _mm256_set1_ps(x);
}

INLINE Vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE float vec_total(Vec x)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

INLINE Vec vec_of_bytes(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

INLINE Vec vec_of_signed(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

INLINE Vec vec_of_halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

INLINE Vec vec_of_brains(const uint8_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));

    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

INLINE float dot_half(const uint8_t *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128((int)dot_u16(p))));
}

#include "model/dot_body.h"

#endif
