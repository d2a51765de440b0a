/* dot_generic.c -- the loops of dot.h for any processor, and which of them this one runs. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "model/dot.h"

#define TARGET
#define INLINE static inline __attribute__((always_inline))
#define WIDTH 4
#define DOT dot_generic
#define DOT_NAME "generic"

typedef float Vec __attribute__((vector_size(16)));

INLINE Vec vec_zero(void)
{
    return (Vec){ 0, 0, 0, 0 };
}

INLINE Vec vec_splat(float x)
{
    return (Vec){ x, x, x, x };
}

INLINE Vec vec_load(const float *p)
{
    Vec x;

    __builtin_memcpy(&x, p, sizeof(x));
    return x;
}

INLINE Vec vec_fma(Vec a, Vec b, Vec c)
{
    return a * b + c;
}

INLINE float vec_total(Vec x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

INLINE Vec vec_of_bytes(const uint8_t *p)
{
    return (Vec){ (float)p[0], (float)p[1], (float)p[2], (float)p[3] };
}

INLINE Vec vec_of_signed(const int8_t *p)
{
    return (Vec){ (float)p[0], (float)p[1], (float)p[2], (float)p[3] };
}

static inline float dot_half(const uint8_t *p)
{
    uint32_t bits = dot_u16(p), sign = bits >> 15 << 31, rest = bits & 0x7fff, whole;
    float    value;

    if (rest < 0x400) {
        value = (float)rest * 0x1p-24f;
        return sign ? -value : value;
    }
    whole = sign | ((rest << 13) + (rest >= 0x7c00 ? 0x70000000u : 0x38000000u));
    __builtin_memcpy(&value, &whole, sizeof(value));
    return value;
}

INLINE Vec vec_of_halves(const uint8_t *p)
{
    return (Vec){ dot_half(p), dot_half(p + 2), dot_half(p + 4), dot_half(p + 6) };
}

INLINE Vec vec_of_brains(const uint8_t *p)
{
    const uint32_t bits[4] = { dot_u16(p) << 16, dot_u16(p + 2) << 16, dot_u16(p + 4) << 16,
                               dot_u16(p + 6) << 16 };
    Vec            x;

    __builtin_memcpy(&x, bits, sizeof(x));
    return x;
}

#include "model/dot_body.h"

/* Those of the instruction set of kernel_at(0), and lower. */
const DotKernel *dot_kernel_at(int index)
{
    const DotKernel *found[4] = { NULL };
    int              count = 0;

#if defined(__x86_64__)
    const char *best = kernel_at(0)->name;
    bool        any = strcmp(best, "generic") != 0;

    /* Every processor with AVX2 has F16C, for which clang has no name. */
    if (!strcmp(best, "avx512") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        found[count++] = &dot_avx512;
    if (any && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[count++] = &dot_avx2;
#endif
    found[count++] = &dot_generic;
    return index >= 0 && index < count ? found[index] : NULL;
}

void dot_sums(const float *x, int64_t cols, float *sums)
{
    for (int64_t c = 0; c < cols; c += DOT_SUM) {
        int64_t end = c + DOT_SUM < cols ? c + DOT_SUM : cols;
        float   sum = 0;

        for (int64_t i = c; i < end; i++)
            sum += x[i];
        sums[c / DOT_SUM] = sum;
    }
}
