/* input/generators.h -- made inputs: vectors as functions of a seed, and the synthetic generators.
 *
 * Each number is a pure function of (seed, meaning): the same on every machine and for every
 * number of threads; equal things get equal vectors.
 */
#ifndef INPUT_GENERATORS_H
#define INPUT_GENERATORS_H

#include "core/threads.h"
#include "input/input.h"

/* The logit of a match that stands out in a sequence of a few words. */
#define GENERATE_MATCH 6.0

/* Sets the sizes and allocates q [heads,n,d], k and v [kv_heads,n,d]; checks the total, with x,
 * against the limit first. */
bool generate_allocate(Input *in, int64_t heads, int64_t kv_heads, int64_t n, int64_t d,
                       const InputChoice *choice, Error *err);
/* x [n, heads * d]: the values that the heads see side by side. */
bool generate_x(Input *in, const InputChoice *choice, Error *err);

/* fn(context, item, worker) for all items, on all CPUs. */
void generate_parallel(int64_t items, ThreadsFn fn, void *context);

/* count numbers N(0, deviation) of the stream called name. */
void generate_normal(uint64_t seed, const char *name, float *out, int64_t count,
                     double deviation);

/* A symbol of a kind; in each head it has a vector of length sqrt(d), nearly orthogonal to all
 * others. */
typedef struct Symbol {
    const char *kind;
    uint64_t    number;
    double      weight; /* 0: no such term */
} Symbol;
void generate_code(uint64_t seed, Symbol symbol, int64_t head, float *out, int64_t d);

/* The factor of q and k for which q . k / sqrt(d) = match, for vectors of length sqrt(d). */
double generate_amplitude(double match, int64_t d);

/* Random Fourier features (Rahimi and Recht 2007): rows whose products are
 * close to a Gaussian of the points' distance in units of `bandwidth`.
 * frequencies: [(d + 1) / 2, dims]. */
void generate_frequencies(uint64_t seed, const char *name, int64_t head, int dims,
                          const double *bandwidth, int64_t d, float *frequencies);
void generate_features(const float *frequencies, int dims, const double *point,
                       double amplitude, float *out, int64_t d);

/* The synthetic generators and their arguments.
 *
 * A generator gives the symbols of query, key and value at each position; q and k that share a
 * symbol have the product of its weights as score. Generators without symbols fill the tensors
 * themselves. generators.def has one row per generator.
 */

#define GENERATOR_ARGUMENTS 8
#define GENERATOR_TERMS 3
/* The first five arguments of every generator, in this order; its own follow. */
enum { ARGUMENT_N, ARGUMENT_D, ARGUMENT_HEADS, ARGUMENT_SEED, ARGUMENT_MATCH, ARGUMENT_OWN };

typedef struct Generation {
    Input   *in;
    uint64_t seed;
    int64_t  n, d, heads;
    int64_t  kv_heads; /* of k and v; heads unless the argument of that name is given */
    double   match;  /* logit of a full match */
    double   a, b;   /* the generator's own arguments */
    int32_t *table;  /* [n], when the generator's plan asked for one */
    const InputChoice *choice; /* checked for cancellation: load_goes_on */
} Generation;

typedef struct Position {
    Symbol q[GENERATOR_TERMS], k[GENERATOR_TERMS], v[GENERATOR_TERMS];
    char   label[32]; /* empty: none */
} Position;

typedef struct Generator {
    void (*settle)(Generation *g, double *a, double *b); /* puts sizes for 0; optional */
    void (*plan)(Generation *g);                         /* fills the table; optional */
    void (*place)(const Generation *g, int64_t i, Position *out);
    /* Replaces place; scratch has d + 1 numbers. */
    void (*fill)(Generation *g, float *scratch);
} Generator;

extern const Generator generators[]; /* as many as input_generators() names, in its order */

#endif
