/* state_delta.c -- chunks of a corrected state in float; see state_delta.h. */
#include <stdint.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"

typedef float Real;
#define REAL_MATRIX Matrix
#define STATE_DELTA_NAME cpu_state_delta

/* Columns of b turned, TILE_KEYS at a time. */
static void turned_product(SmallProduct p, const float *b, int64_t ldb, int64_t writes,
                           float *panel)
{
    const float *a = p.a;
    float       *c = p.c;
    int64_t      cols = p.cols, rows = p.rows;

    for (int64_t at = 0; at < cols; at += TILE_KEYS) {
        int64_t above = writes ? 2 * (at / writes) : 0; /* rows of earlier tokens */

        p.cols = min_i64(TILE_KEYS, cols - at);
        pack_panel(b + at * ldb, ldb, p.cols, p.inner, panel);
        p.a = a + above * p.lda;
        p.b = panel;
        p.ldb = TILE_KEYS;
        p.rows = rows - above;
        p.c = c + above * p.ldc + at;
        p.rows_each = 2;
        p.cols_each = writes;
        cpu_product(&p);
    }
}

static void real_product(Matrix a, Matrix b, int64_t rows, int64_t cols, int64_t inner,
                         float alpha, float beta, float *c, int64_t ldc, int64_t writes,
                         float *panel)
{
    SmallProduct p = { .a = a.data, .lda = a.turned ? 1 : a.ld, .step = a.turned ? a.ld : 1,
                       .b = b.data, .ldb = b.ld, .rows = rows, .cols = cols, .inner = inner,
                       .alpha = alpha, .add = beta > 0, .c = c, .ldc = ldc };

    if (b.turned) {
        turned_product(p, b.data, b.ld, writes, panel);
        return;
    }
    p.rows_each = 1;
    p.inner_each = writes;
    cpu_product(&p);
}

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

static void real_gates(const double *gate, int64_t count, double *product, const float *x,
                       float *near, const float *y, float *far)
{
    kernel_at(0)->gate_rows(gate, count, product, x, near, y, far);
}

static void real_mix(const float *w, const float *x, int64_t count, int64_t width, float *y)
{
    static const int32_t rows[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                                    31 };

    kernel_at(0)->mix_row(w, x, width, rows, count, width, 1, y);
}

#include "attn/cpu/recurrent/state_delta.h"
