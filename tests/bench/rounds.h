/* rounds.h -- what every benchmark of this folder begins with. */
#ifndef TESTS_BENCH_ROUNDS_H
#define TESTS_BENCH_ROUNDS_H

#include <stdlib.h>

#include "profile/record.h"

/* The first argument, from 1 to `most`, or the usual number of rounds.  Before the first thread and
 * the first product: the program may begin again with other kernels of BLAS. */
static inline int bench_rounds(int argc, char **argv, int usual, int most)
{
    int rounds = argc > 1 ? atoi(argv[1]) : usual;

    environment_start_for_blas(argv);
    return rounds < 1 ? 1 : rounds > most ? most : rounds;
}

#endif
