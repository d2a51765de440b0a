/* input/generate.h -- making q, k and v where no file holds them.
 *
 * Every number is a pure function of (seed, what it stands for): the same on
 * every machine and for every number of threads, and equal things get equal
 * vectors.
 */
#ifndef INPUT_GENERATE_H
#define INPUT_GENERATE_H

#include "core/threads.h"
#include "input/input.h"

/* The logit of a match that stands out of a sequence a few words long. */
#define GENERATE_MATCH 6.0

/* Sets the sizes and allocates q, k, v [heads,n,d]; the total, x included, is
 * held against the limit first. */
bool generate_allocate(Input *in, int64_t heads, int64_t n, int64_t d, const InputChoice *choice,
                       Error *err);
/* x [n, heads * d]: the heads' values side by side. */
bool generate_x(Input *in, const InputChoice *choice, Error *err);

/* fn(context, item, worker) for all items, on all CPUs. */
void generate_parallel(int64_t items, ThreadsFn fn, void *context);

/* count numbers N(0, deviation) of the stream called name. */
void generate_normal(uint64_t seed, const char *name, float *out, int64_t count,
                     double deviation);

/* The vector of length sqrt(d) that stands for a symbol of a kind in a head;
 * different symbols are nearly orthogonal. */
typedef struct Symbol {
    const char *kind;
    uint64_t    number;
    double      weight; /* 0: no such term */
} Symbol;
void generate_code(uint64_t seed, Symbol symbol, int64_t head, float *out, int64_t d);

/* out = amplitude * sum of weight * code; scratch holds d numbers. */
void generate_sum(uint64_t seed, const Symbol *symbols, int count, int64_t head,
                  double amplitude, float *scratch, float *out, int64_t d);

/* What q and k are multiplied by so that q . k / sqrt(d) = match for vectors
 * of length sqrt(d). */
double generate_amplitude(double match, int64_t d);

/* Random Fourier features (Rahimi and Recht 2007): rows whose products are
 * close to a Gaussian of the points' distance in units of `bandwidth`.
 * frequencies: [(d + 1) / 2, dims]. */
#define GENERATE_MAX_DIMS 5
void generate_frequencies(uint64_t seed, const char *name, int64_t head, int dims,
                          const double *bandwidth, int64_t d, float *frequencies);
void generate_features(const float *frequencies, int dims, const double *point,
                       double amplitude, float *out, int64_t d);

#endif
