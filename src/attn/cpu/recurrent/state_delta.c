/* state_delta.c -- chunks of a corrected state in float; see state_delta.h. */
#include <stdint.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"

typedef float Real;
#define REAL_MATRIX Matrix
#define REAL_PRODUCT cpu_sgemm
#define STATE_DELTA_NAME cpu_state_delta

static void real_scale(const float *x, int64_t count, float factor, float *y)
{
    kernel_at(0)->scale(x, count, factor, y);
}

static float real_dot(const float *x, const float *y, int64_t count)
{
    float sum;

    kernel_at(0)->dots(x, y, count, (const int32_t[]){ 0 }, 1, count, &sum);
    return sum;
}

static void real_fade(float *x, const double *gate, int64_t count)
{
    kernel_at(0)->fade(x, gate, count);
}

static void real_mix(const float *w, const float *x, int64_t count, int64_t width, float *y)
{
    static const int32_t rows[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                                    31 };

    kernel_at(0)->mix_row(w, x, width, rows, count, width, 1, y);
}

#include "attn/cpu/recurrent/state_delta.h"
