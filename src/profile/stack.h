/* profile/stack.h -- what a stack of layers holds and reads while it generates.
 *
 * Layers are text: `(window(4096)x5,full)x8`.  A layer is full, window(W) or state(H,K,V); xN
 * repeats the layer or the brackets before it.  W counts keys, the query's own included, as the
 * sliding window of a model's configuration does; the causal mechanism `window(window=W)` sees
 * W/2 + 1 of them.
 */
#ifndef PROFILE_STACK_H
#define PROFILE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

#define STACK_LAYERS 1024

typedef enum LayerKind { LAYER_FULL, LAYER_WINDOW, LAYER_STATE } LayerKind;

typedef struct StackLayer {
    LayerKind kind;
    int64_t   window;            /* keys; of LAYER_WINDOW */
    int64_t   heads, keys, values; /* of LAYER_STATE: matrices of keys x values */
} StackLayer;

/* What its layers share.  Numbers of a state are float32 and never quantised. */
typedef struct StackShape {
    int64_t heads, kv_heads, dim; /* of queries; of keys and values; numbers of a head */
    int64_t rank, rope; /* latent attention: one vector of rank + rope numbers for all heads, in
                           place of keys and values; rank 0: none */
    double  bits;       /* of a cached number */
    int64_t group;      /* cached numbers that share a scale; 0: no scales */
    double  scale_bits; /* of a scale */
} StackShape;

typedef struct Stack {
    StackLayer layers[STACK_LAYERS];
    int        count;
} Stack;

/* Of all layers and one sequence, the token of the step included.  Bytes may be fractions. */
typedef struct StackCost {
    double token_bytes; /* that one token more adds: none in a window that is full */
    double cache_bytes; /* that are held after n tokens, the states included */
    double read_bytes;  /* of them that the step reads */
    double step_flops;  /* scores, softmax and sums of values; NaN where a layer is a state */
} StackCost;

/* ERR_PARAM names the place in the text, from 1. */
bool stack_parse(const char *text, Stack *out, Error *err);
/* ERR_PARAM: a shape that no model can have. */
bool stack_shape_check(const StackShape *shape, Error *err);
/* The shape is checked; n is at least 1. */
StackCost stack_cost(const Stack *stack, const StackShape *shape, int64_t n);

#endif
