/* state_delta_wide.c -- chunks of a corrected state in double; see state_delta.h. */
#include <stdint.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"

typedef double Real;
#define REAL_MATRIX WideMatrix
#define STATE_DELTA_NAME cpu_state_delta_wide

static void real_product(WideMatrix a, WideMatrix b, int64_t rows, int64_t cols, int64_t inner,
                         double alpha, double beta, double *c, int64_t ldc, int64_t writes,
                         double *panel)
{
    (void)writes;
    (void)panel;
    cpu_dgemm(a, b, rows, cols, inner, alpha, beta, c, ldc);
}

static void real_scale(const double *x, int64_t count, double factor, double *y)
{
    for (int64_t c = 0; c < count; c++)
        y[c] = factor * x[c];
}

static void real_fade(double *x, const double *gate, int64_t count)
{
    kernel_at(0)->times64(x, gate, count);
}

static double real_dot(const double *x, const double *y, int64_t count)
{
    return kernel_at(0)->dot_double(x, y, count);
}

static void real_gates(const double *gate, int64_t count, double *product, const double *x,
                       double *near, const double *y, double *far)
{
    for (int64_t c = 0; c < count; c++) {
        product[c] *= gate[c];
        near[c] = x[c] * product[c];
        far[c] = y[c] / product[c];
    }
}

#define SIDES 8 /* entries side by side: vectors */

static void real_mix(const double *restrict w, const double *restrict x, int64_t count,
                     int64_t width, double *restrict y)
{
    for (int64_t r = 0; r < count; r++, x += width) {
        int64_t c = 0;

        for (; c + SIDES <= width; c += SIDES)
            for (int64_t s = c; s < c + SIDES; s++)
                y[s] += w[r] * x[s];
        for (; c < width; c++)
            y[c] += w[r] * x[c];
    }
}

#include "attn/cpu/recurrent/state_delta.h"
