/* input/generators.h -- the synthetic generators and their arguments.
 *
 * A generator says for one position which symbols its query, key and value are
 * made of; q and k that share a symbol attend to each other with the product
 * of its two weights.  Those whose structure is not made of symbols fill the
 * tensors themselves.  One row of generators.def names all there is to a
 * generator.
 */
#ifndef INPUT_GENERATORS_H
#define INPUT_GENERATORS_H

#include "input/generate.h"

#define GENERATOR_ARGUMENTS 8
#define GENERATOR_TERMS 3
/* The first five arguments of every generator. ORDER arguments */
enum { ARGUMENT_N, ARGUMENT_D, ARGUMENT_HEADS, ARGUMENT_SEED, ARGUMENT_MATCH, ARGUMENT_OWN };

typedef struct Generation {
    Input   *in;
    uint64_t seed;
    int64_t  n, d, heads;
    double   match;  /* logit of a full match */
    double   a, b;   /* the generator's own arguments */
    int32_t *table;  /* [n], when the generator's plan asked for one */
    const InputChoice *choice; /* nobody may wait for it any more: load_goes_on */
} Generation;

typedef struct Position {
    Symbol q[GENERATOR_TERMS], k[GENERATOR_TERMS], v[GENERATOR_TERMS];
    char   label[32]; /* empty: none */
} Position;

typedef struct Generator {
    void (*settle)(Generation *g, double *a, double *b); /* puts sizes for 0; optional */
    void (*plan)(Generation *g);                         /* fills the table; optional */
    void (*place)(const Generation *g, int64_t i, Position *out);
    /* Instead of place; scratch holds d + 1 numbers. */
    void (*fill)(Generation *g, float *scratch);
} Generator;

extern const Generator generators[]; /* as many as input_generators() names, in its order */

#endif
