/* model.c -- a vector times a matrix as it lies in a model's file.
 *
 * Writing token by token is such products and little else.  The rival is OpenBLAS's sgemv on the
 * same matrix in float32.  Both read 32 MiB and more from memory, one after the other on one
 * thread, round after round; the figure is the median of the ratios of the rounds.
 *
 *     build/tests/bench/model [rounds]
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "attn/cpu/blas.h"
#include "attn/cpu/cpu.h"
#include "core/rng.h"
#include "model/dot.h"
#include "profile/measure.h"
#include "profile/record.h"
#include "rounds.h"

#define ROWS 12288
#define COLS 1536
#define MOST_ROUNDS 200

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return values[count / 2];
}

/* Bytes below 0x40 are small numbers of every type, so no sum overflows. */
static void fill(uint8_t *data, int64_t count)
{
    Rng rng = rng_named(5, "weights");

    for (int64_t i = 0; i < count; i++)
        data[i] = (uint8_t)(rng_uniform(&rng) * 0x40);
}

static void bench_type(WeightType type, int rounds, const float *x, float *y)
{
    int64_t   bytes = COLS / weight_block_values(type) * weight_block_bytes(type);
    Weight    w = { .type = type, .rows = ROWS, .cols = COLS };
    uint8_t  *data = malloc((size_t)(ROWS * bytes));
    float    *whole = malloc(sizeof(*whole) * ROWS * COLS), sums[COLS / DOT_SUM];
    double    ratio[MOST_ROUNDS], rate[MOST_ROUNDS];
    RowDot    dot = dot_kernel_at(0)->dot[type];

    if (!data || !whole)
        exit(1);
    fill(data, ROWS * bytes);
    w.data = data;
    weight_read(&w, 0, ROWS, whole);
    dot_sums(x, COLS, sums);
    for (int round = 0; round < rounds; round++) {
        double start = clock_wall(), own, other;

        for (int64_t r = 0; r < ROWS; r++)
            y[r] = dot(data + r * bytes, x, sums, COLS);
        own = clock_wall() - start;
        start = clock_wall();
        cblas_sgemv(CblasRowMajor, CblasNoTrans, ROWS, COLS, 1, whole, COLS, x, 1, 0, y, 1);
        other = clock_wall() - start;
        ratio[round] = other / own;
        rate[round] = (double)(ROWS * bytes) / own * 1e-9;
    }
    printf("%-6s %8.2f %10.2f\n", weight_type_name(type), median(ratio, rounds),
           median(rate, rounds));
    free(data);
    free(whole);
}

int main(int argc, char **argv)
{
    static const WeightType types[] = { WEIGHT_F32, WEIGHT_F16, WEIGHT_Q8_0, WEIGHT_Q4_0,
                                        WEIGHT_Q4_1, WEIGHT_Q4_K, WEIGHT_Q6_K };
    static float            x[COLS], y[ROWS];
    int                     rounds = bench_rounds(argc, argv, 15, MOST_ROUNDS);
    Rng                     rng = rng_named(5, "x");

    rng_fill_normal(&rng, x, COLS, 1);
    blas_ready(1, NULL);
    printf("vector times matrix, %s, one thread\ntype   of sgemv  GB/s read\n",
           dot_kernel_at(0)->name);
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        bench_type(types[i], rounds, x, y);
    return 0;
}
