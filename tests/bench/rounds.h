/* rounds.h -- what every benchmark of this folder begins with. */
#ifndef TESTS_BENCH_ROUNDS_H
#define TESTS_BENCH_ROUNDS_H

#include <stdlib.h>

#include "attn/cpu/cpu.h"
#include "core/arena.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "profile/measure.h"
#include "profile/record.h"

/* The first argument, from 1 to `most`, or the usual number of rounds.  Before the first thread and
 * the first product: the program may begin again with other kernels of BLAS. */
static inline int bench_rounds(int argc, char **argv, int usual, int most)
{
    int rounds = argc > 1 ? atoi(argv[1]) : usual;

    environment_start_for_blas(argv);
    return rounds < 1 ? 1 : rounds > most ? most : rounds;
}

/* FLOPs of fused multiply-adds a second of processor time, the median of a few: a thread that is
 * taken off the processor between two clocks makes one of them too large. */
static inline double bench_peak(Threads *threads)
{
    double peak[5];

    for (int x = 0; x < 5; x++) {
        double wall = clock_wall(), start = clock_cpu();

        peak[x] = cpu_peak(threads);
        peak[x] *= (clock_wall() - wall) / (clock_cpu() - start);
    }
    return stats_quantile(peak, 5, 0.5);
}

/* [heads, rows, width] in float32, normal; without a generator not filled.  No data: no memory. */
static inline Tensor bench_normal(Arena *arena, Rng *rng, int64_t heads, int64_t rows,
                                  int64_t width)
{
    Tensor t = tensor_new(arena, DT_F32, 3, (int64_t[]){ heads, rows, width });

    if (t.data && rng)
        rng_fill_normal(rng, t.data, tensor_count(&t), 1);
    return t;
}

#endif
