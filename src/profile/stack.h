/* profile/stack.h -- what a stack of layers holds and reads while it generates.
 *
 * Layers are text: `(window(4096)x5,full)x8`.  A layer is full, window(W) or a state; xN repeats
 * the layer or the brackets before it.  W counts keys, the query's own included, as the sliding
 * window of a model's configuration does; window(keys=W) says so.  window(W,sinks=S) keeps the
 * first S keys besides.  Two mechanisms may be written as they are: window(window=W), of which a
 * causal row sees W/2 + 1 keys, and streaming-llm(sinks=S,window=W).
 *
 * A state is MECH(H,K,V), of a mechanism of the catalogue whose step costs the same after any
 * number of tokens (retnet, gated-deltanet, ...): H heads, keys of K and values of V numbers.  What
 * it costs is Mechanism.decode with all parameters at their defaults, and gates computed from a
 * head's own query.  state(H,K,V) is one of an unknown mechanism: H matrices of K x V.
 * h2o(heavy=64,recent=64) is a mechanism that keeps keys (Mechanism.kind_of_layer): what it holds
 * is Mechanism.decode with the sizes of the stack; which keys a step reads, the tokens decide.
 * `+conv(C,W)` behind a state is a short convolution of C channels that sees W tokens: W - 1 inputs
 * of each channel are held.
 */
#ifndef PROFILE_STACK_H
#define PROFILE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"

#define STACK_LAYERS 1024
#define LAYER_GIVEN  64

typedef enum LayerKind { LAYER_FULL, LAYER_WINDOW, LAYER_STATE, LAYER_KEPT } LayerKind;

typedef struct StackLayer {
    LayerKind kind;
    int64_t   window, sinks;     /* keys, and first keys besides; of LAYER_WINDOW */
    int64_t   heads, keys, values; /* of LAYER_STATE */
    const char *mechanism;       /* of LAYER_STATE: its id, static; NULL: unknown; of LAYER_KEPT */
    char      given[LAYER_GIVEN]; /* of LAYER_KEPT: parameters, "heavy=64,recent=64" */
    double    state_bytes, step_bytes, step_flops; /* of LAYER_STATE, without the convolution */
    int64_t   channels, width;   /* of its short convolution; 0: none */
} StackLayer;

/* What its layers share.  Numbers of a state are float32 and never quantised; those of a
 * convolution are cached numbers, of 16 bits where these are quantised. */
typedef struct StackShape {
    int64_t heads, kv_heads, dim; /* of queries; of keys and values; numbers of a head */
    int64_t rank, rope; /* latent attention: one vector of rank + rope numbers for all heads, in
                           place of keys and values; rank 0: none */
    double  bits;       /* of a cached number */
    int64_t group;      /* cached numbers of a row that share a scale; 0: no scales */
    double  scale_bits; /* of a scale */
} StackShape;

typedef struct Stack {
    StackLayer layers[STACK_LAYERS];
    int        count;
} Stack;

/* Layers that are the same. */
typedef struct StackKind {
    StackLayer layer;
    int        count;
} StackKind;

/* Of layers and one sequence, the token of the step included.  Bytes may be fractions. */
typedef struct StackCost {
    double token_bytes; /* that one token more adds: none in a window that is full */
    double cache_bytes; /* that are held after n tokens, the states included */
    double state_bytes; /* of them in states, whatever n is */
    double read_bytes;  /* of them that the step reads; NaN where the tokens decide it */
    double step_flops;  /* scores, softmax and sums of values; NaN there, too, and where a layer is
                           a state of an unknown mechanism */
} StackCost;

/* ERR_PARAM names the place in the text, from 1. */
bool stack_parse(const char *text, Stack *out, Error *err);
/* Begins again from the first layer until there are `depth`; ERR_PARAM: there are more already. */
bool stack_repeat(Stack *stack, int64_t depth, Error *err);
/* Text that stack_parse reads: "(window(1024)x5,full)x10,window(1024)x2". */
void stack_text(const Stack *stack, Text *out);
void stack_layer_text(const StackLayer *layer, Text *out); /* "window(1024)" */
/* The kinds of layers in the order in which they come, into out[STACK_LAYERS]; returns how many. */
int stack_kinds(const Stack *stack, StackKind *out);

/* ERR_PARAM: a shape that no model can have. */
bool stack_shape_check(const StackShape *shape, Error *err);
/* The same, or one that a layer of the stack cannot have. */
bool stack_check(const Stack *stack, const StackShape *shape, Error *err);
/* Numbers that fill the last group of a row up; a row is one token's keys, or values, of all
 * heads. */
int64_t stack_group_rest(const StackShape *shape);
/* A group holds numbers of two heads, or is not full: llama.cpp refuses the type. */
bool stack_group_cuts_heads(const StackShape *shape);
/* Bits, group and scale of cached numbers by name: "bf16", "q8". */
bool        stack_dtype_parse(const char *name, StackShape *shape, Error *err);
const char *stack_dtype_name(int index); /* NULL past the end */

/* ---- layers that are mechanisms (stack_mechanism.c) ---- */

/* What is held or added: cached numbers, and bytes of what has a type of its own. */
typedef struct StackKept {
    double numbers, bytes;
} StackKept;

struct Mechanism;
/* The costs of a state of its sizes; false: what a step costs depends on the tokens before it, or
 * it is not known. */
bool stack_state_find(const struct Mechanism *m, StackLayer *layer);
/* What a LAYER_KEPT holds after n tokens, and what one more adds: of each further one, or, where
 * the cache is bounded, until it is full.  False with ERR_PARAM: its parameters are wrong. */
bool stack_kept_find(const StackLayer *layer, const StackShape *shape, int64_t n, StackKept *held,
                     StackKept *adds, Error *err);

/* The shape is checked; n is at least 1. */
StackCost stack_cost(const Stack *stack, const StackShape *shape, int64_t n);
StackCost stack_kind_cost(const StackKind *kind, const StackShape *shape, int64_t n);

#endif
