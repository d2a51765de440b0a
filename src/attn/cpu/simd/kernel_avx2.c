/* kernel_avx2.c -- the kernels of kernel.h on 256-bit vectors with FMA.
 *
 * 12 of the 16 registers accumulate a tile of 6 x 16; chosen at run time, so
 * this file needs no compiler flag.
 */
#include "attn/cpu/simd/kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define WIDTH 8
#define VECS 2
#define ROW_VECS 8
#define WIDE 4
#define TURN kernel_avx2_turn
#define KERNEL kernel_avx2
#define KERNEL_NAME "avx2"

typedef __m256 Vec;
typedef double Wide __attribute__((vector_size(32)));

static inline TARGET Vec poly_exp2(Vec f);

INLINE Vec vec_splat(float x)
{
    return _mm256_set1_ps(x);
}

/* Whether all of x lie within +-range. */
INLINE bool wide_within(Wide x, double range)
{
    __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);

    return _mm256_movemask_pd(_mm256_cmp_pd(size, _mm256_set1_pd(range), _CMP_LT_OQ)) == 0xf;
}

INLINE Vec vec_load_part(const float *p, int64_t count)
{
    static const int32_t mask[2 * WIDTH] = { -1, -1, -1, -1, -1, -1, -1, -1 };

    return _mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(mask + WIDTH - count)));
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE Vec vec_max(Vec a, Vec b)
{
    return _mm256_max_ps(a, b);
}

INLINE Vec vec_keep(Vec x, uint64_t bits)
{
    __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i have = _mm256_and_si256(_mm256_set1_epi32((int)(bits & 0xff)), lane);
    __m256  live = _mm256_castsi256_ps(_mm256_cmpeq_epi32(have, lane));

    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), x, live);
}

/* The last number first. */
INLINE Vec vec_turned(Vec x)
{
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

INLINE float vec_total(Vec x)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

/* The totals of four vectors at once: fewer steps than four calls of vec_total. */
INLINE void vec_totals(const Vec x[4], float *total)
{
    __m256 low = _mm256_hadd_ps(x[0], x[1]), high = _mm256_hadd_ps(x[2], x[3]);
    __m256 four = _mm256_hadd_ps(low, high);

    _mm_storeu_ps(total, _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1)));
}

INLINE float vec_top(Vec x)
{
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

INLINE uint64_t bits_equal(const int32_t *p, int32_t value)
{
    __m256i x = _mm256_loadu_si256((const __m256i *)p);
    __m256i hit = _mm256_cmpeq_epi32(x, _mm256_set1_epi32(value));

    return (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(hit));
}

INLINE uint64_t bits_at_most(const int32_t *p, int32_t value)
{
    __m256i x = _mm256_loadu_si256((const __m256i *)p);
    __m256i above = _mm256_cmpgt_epi32(x, _mm256_set1_epi32(value));

    return (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(above)) ^ 0xff;
}

/* Bit i: x[i] >= limit[i]. */
INLINE uint64_t bits_reach(Vec x, Vec limit)
{
    return (uint64_t)_mm256_movemask_ps(_mm256_cmp_ps(x, limit, _CMP_GE_OQ));
}

/* The whole part is added to the exponent bits.  NaN stays NaN. */
INLINE Vec vec_exp2(Vec x)
{
    Vec     live = _mm256_cmp_ps(x, vec_splat(EXP2_LOWEST), _CMP_NLT_UQ);
    Vec     whole = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i shift = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
    __m256i bits = _mm256_castps_si256(poly_exp2(x - whole));

    return _mm256_and_ps(live, _mm256_castsi256_ps(_mm256_add_epi32(bits, shift)));
}

/* One instruction, which compilers do not find for a loop. */
INLINE Wide wide_from(const float *p)
{
    return (Wide)_mm256_cvtps_pd(_mm_loadu_ps(p));
}

INLINE double wide_total(Wide x)
{
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128((__m256d)x),
                             _mm256_extractf128_pd((__m256d)x, 1));

    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* a b + sum, rounded once where an instruction does so. */
INLINE Wide wide_fused(double a, Wide b, Wide sum)
{
    return (Wide)_mm256_fmadd_pd(_mm256_set1_pd(a), (__m256d)b, (__m256d)sum);
}

/* Four numbers of a row, and of the fourth row below it. */
INLINE Vec halves(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

/* Four numbers of eight rows become eight of four columns. */
INLINE void turn_four(const float *const row[TURN_ROWS], int64_t t, float *panel)
{
    Vec a = halves(row[0] + t, row[4] + t), b = halves(row[1] + t, row[5] + t);
    Vec c = halves(row[2] + t, row[6] + t), e = halves(row[3] + t, row[7] + t);
    Vec ab_low = _mm256_unpacklo_ps(a, b), ab_high = _mm256_unpackhi_ps(a, b);
    Vec ce_low = _mm256_unpacklo_ps(c, e), ce_high = _mm256_unpackhi_ps(c, e);

    _mm256_storeu_ps(panel, _mm256_shuffle_ps(ab_low, ce_low, 0x44));
    _mm256_storeu_ps(panel + TILE_KEYS, _mm256_shuffle_ps(ab_low, ce_low, 0xee));
    _mm256_storeu_ps(panel + 2 * TILE_KEYS, _mm256_shuffle_ps(ab_high, ce_high, 0x44));
    _mm256_storeu_ps(panel + 3 * TILE_KEYS, _mm256_shuffle_ps(ab_high, ce_high, 0xee));
}

TARGET int64_t kernel_avx2_turn(const float *const row[TURN_ROWS], int64_t d, float *panel)
{
    int64_t t = 0;

    for (; t + 4 <= d; t += 4)
        turn_four(row, t, panel + t * TILE_KEYS);
    return t;
}

#include "attn/cpu/simd/kernel_body.h"

#endif
