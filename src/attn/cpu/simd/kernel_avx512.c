/* kernel_avx512.c -- the kernels of kernel.h on 512-bit vectors.
 *
 * 24 of the 32 registers accumulate a tile of 6 x 64; chosen at run time, so
 * this file needs no compiler flag.
 */
#include "attn/cpu/simd/kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx512f")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define WIDTH 16
#define VECS 4
#define ROW_VECS 4
#define WIDE 8
#define TURN kernel_avx2_turn
#define KERNEL kernel_avx512
#define KERNEL_NAME "avx512"

typedef __m512 Vec;
typedef double Wide __attribute__((vector_size(64)));

static inline TARGET Vec poly_exp2(Vec f);

INLINE Vec vec_splat(float x)
{
    return _mm512_set1_ps(x);
}

/* Whether all of x lie within +-range. */
INLINE bool wide_within(Wide x, double range)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(range), _CMP_LT_OQ) == 0xff;
}

INLINE Vec vec_load_part(const float *p, int64_t count)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE Vec vec_max(Vec a, Vec b)
{
    return _mm512_max_ps(a, b);
}

INLINE Vec vec_keep(Vec x, uint64_t bits)
{
    return _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), (__mmask16)bits, x);
}

/* The last number first. */
INLINE Vec vec_turned(Vec x)
{
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), x);
}

INLINE float vec_total(Vec x)
{
    return _mm512_reduce_add_ps(x);
}

/* The totals of four vectors at once: fewer steps than four calls of vec_total. */
INLINE void vec_totals(const Vec x[4], float *total)
{
    __m512 low = _mm512_add_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    __m512 high = _mm512_add_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
    __m512 four = _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x44),
                                _mm512_shuffle_ps(low, high, 0xee));
    __m256 top = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(four), 1));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(four), top);

    _mm_storeu_ps(total, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
}

INLINE float vec_top(Vec x)
{
    return _mm512_reduce_max_ps(x);
}

INLINE uint64_t bits_equal(const int32_t *p, int32_t value)
{
    return _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(p), _mm512_set1_epi32(value));
}

INLINE uint64_t bits_at_most(const int32_t *p, int32_t value)
{
    return _mm512_cmple_epi32_mask(_mm512_loadu_si512(p), _mm512_set1_epi32(value));
}

/* Bit i: x[i] >= limit[i]. */
INLINE uint64_t bits_reach(Vec x, Vec limit)
{
    return _mm512_cmp_ps_mask(x, limit, _CMP_GE_OQ);
}

/* NaN passes the comparison and stays NaN. */
INLINE Vec vec_exp2(Vec x)
{
    __mmask16 live = _mm512_cmp_ps_mask(x, vec_splat(EXP2_LOWEST), _CMP_NLT_UQ);
    Vec       whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT);

    return _mm512_maskz_scalef_ps(live, poly_exp2(x - whole), whole);
}

/* One instruction, which compilers do not find for a loop. */
INLINE Wide wide_from(const float *p)
{
    return (Wide)_mm512_cvtps_pd(_mm256_loadu_ps(p));
}

INLINE double wide_total(Wide x)
{
    return _mm512_reduce_add_pd((__m512d)x);
}

/* a b + sum, rounded once where an instruction does so. */
INLINE Wide wide_fused(double a, Wide b, Wide sum)
{
    return (Wide)_mm512_fmadd_pd(_mm512_set1_pd(a), (__m512d)b, (__m512d)sum);
}

#define COUNTED __attribute__((target("avx512f,avx512vpopcntdq")))
#define CODES_COUNTED codes_counted
#define CODES 4 /* vectors of codes at a time, which hide the latency of a count */

/* codes_nearest of whole groups of codes, where the processor counts bits in one instruction;
 * returns how many it took. */
static COUNTED int64_t codes_counted(const int64_t *codes, int64_t count, const int64_t *centres,
                                     int64_t of, int32_t *index)
{
    int64_t taken = 0;

    if (!__builtin_cpu_supports("avx512vpopcntdq"))
        return 0;
    for (; taken + CODES * WIDE <= count; taken += CODES * WIDE) {
        __m512i best[CODES], own[CODES];

        for (int x = 0; x < CODES; x++) {
            own[x] = _mm512_loadu_si512(codes + taken + x * WIDE);
            best[x] = _mm512_set1_epi64(-1);
        }
        for (int64_t c = 0; c < of; c++)
            for (int x = 0; x < CODES; x++) {
                __m512i apart = _mm512_xor_si512(own[x], _mm512_set1_epi64(centres[c]));
                __m512i word = _mm512_slli_epi64(_mm512_popcnt_epi64(apart), 32);

                best[x] = _mm512_min_epu64(best[x], _mm512_or_si512(word, _mm512_set1_epi64(c)));
            }
        for (int x = 0; x < CODES; x++)
            _mm256_storeu_si256((void *)(index + taken + x * WIDE), _mm512_cvtepi64_epi32(best[x]));
    }
    return taken;
}

#include "attn/cpu/simd/kernel_body.h"

#endif
