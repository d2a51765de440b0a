/* model/swap.h -- a mechanism in place of a layer's exact attention. */
#ifndef MODEL_SWAP_H
#define MODEL_SWAP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "attn/run.h"
#include "core/threads.h"
#include "model/forward.h"
#include "model/model.h"

/* "window(window=33)" as a mechanism and its parameters; free with mechanism_spec_free. */
typedef struct MechanismSpec {
    const Mechanism *mechanism;
    Assignments      given;
} MechanismSpec;

bool mechanism_spec_parse(const char *text, MechanismSpec *out, Error *err);
void mechanism_spec_free(MechanismSpec *spec);

/* Which part of the swap has the head; NULL: none, it stays exact. */
const Swap *swap_part(const Swap *swap, int64_t layer, int64_t head);

/* A layer's input to a mechanism: q [H,n,d], k and v [K,n,d], x [n,D]. */
typedef struct SwapInput {
    const ModelConfig *config;
    Tensor             q, k, v, x;
    uint64_t           seed;
    Threads           *threads;
    const atomic_bool *cancel;
} SwapInput;

/* Exact attention, as the model has it: over [H,n,d] floats at out. */
bool exact_attend(Run *bare, const SwapInput *in, float *out, double *flops);

typedef struct SwapOutcome {
    double flops;     /* score and mixing, all heads */
    bool   untrained;
    char   note[SWAP_NOTE]; /* how a parameter was read, "rank=96, ..."; "": nothing to say */
} SwapOutcome;

/* Whether the mechanism takes such inputs, which are not read; false with *err set. */
bool swap_check(const MechanismSpec *spec, const char *text, const SwapInput *in, Error *err);
/* The mechanism on the layer, k and v repeated to H heads; into out [H,n,d].  `arena` is reset. */
bool swap_attend(const MechanismSpec *spec, const char *text, const SwapInput *in, Arena *arena,
                 float *out, SwapOutcome *outcome, Error *err);

/* Which cells a mechanism allows in n positions, when they are all that it is: one softmax over
 * cells that do not depend on q, k, v or x.  In `run`, which the caller frees; NULL with *err set:
 * it is no such mechanism. */
const Pattern *swap_pattern(const MechanismSpec *spec, const char *text, const ModelConfig *config,
                            int64_t n, uint64_t seed, Run **run, Error *err);
/* Whether the first rows of both hold the same cells.  *failed: there is no memory to know it. */
bool pattern_rows_same(const Pattern *a, const Pattern *b, int64_t rows, bool *failed);

#endif
