/* core/rng.h -- the one source of random numbers.
 *
 * Counter-based (Philox 4x32-10; Salmon et al. 2011, "Parallel random numbers:
 * as easy as 1, 2, 3"): number t of a stream is a pure function of (seed,
 * stream, t), so a draw is the same on every machine, for every thread count,
 * and does not move when another tensor is drawn before it.
 */
#ifndef CORE_RNG_H
#define CORE_RNG_H

#include <stdint.h>

typedef struct Rng {
    uint64_t seed, stream; /* what is drawn */
    uint64_t at;           /* how many 64-bit numbers were taken */
} Rng;

/* A stream of its own for each name, so draws do not disturb each other. */
Rng rng_named(uint64_t seed, const char *name);

uint64_t rng_at(uint64_t seed, uint64_t stream, uint64_t index);
uint64_t rng_next(Rng *rng);
double   rng_uniform(Rng *rng);                 /* [0, 1), 53 bits */
double   rng_normal(Rng *rng);                  /* N(0, 1), Box-Muller */
uint64_t rng_below(Rng *rng, uint64_t bound);   /* 0..bound-1, no bias */

/* Uses both numbers of each pair, so it is not what rng_normal gives one by one. */
void rng_fill_normal(Rng *rng, float *out, int64_t count, double deviation);
void rng_fill_uniform(Rng *rng, float *out, int64_t count, double lo, double hi);

#endif
