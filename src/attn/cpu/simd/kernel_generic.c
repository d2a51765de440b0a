/* kernel_generic.c -- the kernels of kernel.h for any processor.
 *
 * Four-float vectors of the compiler's own: SSE2, NEON or plain scalars,
 * whatever the machine's baseline has.
 */
#include "attn/cpu/simd/kernel.h"

#include <math.h>
#include <stddef.h>

#define TARGET
#define INLINE static inline __attribute__((always_inline))
#define WIDTH 4
#define VECS 2
#define ROW_VECS 8
#define WIDE 2
#define TURN NULL
#define KERNEL kernel_generic
#define KERNEL_NAME "generic"

typedef float   Vec __attribute__((vector_size(16)));
typedef double Wide __attribute__((vector_size(16)));
typedef int32_t Bits __attribute__((vector_size(16)));

static inline Vec poly_exp2(Vec f);

INLINE Vec vec_splat(float x)
{
    return (Vec){ x, x, x, x };
}

/* Whether all of x lie within +-range. */
INLINE bool wide_within(Wide x, double range)
{
    return fabs(x[0]) < range && fabs(x[1]) < range;
}

INLINE Vec vec_load_part(const float *p, int64_t count)
{
    Vec x = vec_splat(0.0f);

    for (int64_t i = 0; i < count; i++)
        x[i] = p[i];
    return x;
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return a * b + c;
}

INLINE Vec vec_select(Bits choose, Vec yes, Vec no)
{
    return (Vec)((choose & (Bits)yes) | (~choose & (Bits)no));
}

/* b where either is NaN, as the max instructions of x86 do. */
INLINE Vec vec_max(Vec a, Vec b)
{
    return vec_select(a > b, a, b);
}

INLINE Vec vec_keep(Vec x, uint64_t bits)
{
    Bits lane = { 1, 2, 4, 8 }, all = { 0, 0, 0, 0 };

    all += (int32_t)(bits & 15);
    return vec_select((all & lane) == lane, x, vec_splat(-INFINITY));
}

/* The last number first. */
INLINE Vec vec_turned(Vec x)
{
    return (Vec){ x[3], x[2], x[1], x[0] };
}

INLINE float vec_total(Vec x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

INLINE void vec_totals(const Vec x[4], float *total)
{
    for (int i = 0; i < 4; i++)
        total[i] = vec_total(x[i]);
}

INLINE float vec_top(Vec x)
{
    return fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
}

INLINE uint64_t bits_equal(const int32_t *p, int32_t value)
{
    uint64_t bits = 0;

    for (int i = 0; i < WIDTH; i++)
        bits |= (uint64_t)(p[i] == value) << i;
    return bits;
}

INLINE uint64_t bits_at_most(const int32_t *p, int32_t value)
{
    uint64_t bits = 0;

    for (int i = 0; i < WIDTH; i++)
        bits |= (uint64_t)(p[i] <= value) << i;
    return bits;
}

/* Bit i: x[i] >= limit[i]. */
INLINE uint64_t bits_reach(Vec x, Vec limit)
{
    uint64_t bits = 0;

    for (int i = 0; i < WIDTH; i++)
        bits |= (uint64_t)(x[i] >= limit[i]) << i;
    return bits;
}

/* Adding 1.5 * 2^23 rounds to a whole number, which then stands in the low bits. */
INLINE Vec vec_exp2(Vec x)
{
    Vec  magic = vec_splat(12582912.0f);
    Vec  low = vec_splat(EXP2_LOWEST);
    Bits dead = x < low;
    Vec  safe = vec_select(dead, low, x);
    Vec  shifted = safe + magic;
    Bits exponent = ((Bits)shifted - (Bits)magic) << 23;

    x = (Vec)((Bits)poly_exp2(safe - (shifted - magic)) + exponent);
    return vec_select(dead, vec_splat(0.0f), x);
}

INLINE Wide wide_from(const float *p)
{
    return (Wide){ (double)p[0], (double)p[1] };
}

INLINE double wide_total(Wide x)
{
    return x[0] + x[1];
}

/* a b + sum, rounded once where an instruction does so. */
INLINE Wide wide_fused(double a, Wide b, Wide sum)
{
    return sum + a * b;
}

#include "attn/cpu/simd/kernel_body.h"
