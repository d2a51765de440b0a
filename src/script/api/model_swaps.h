/* script/api/model_swaps.h -- a script's swaps of a model, and their options. */
#ifndef SCRIPT_API_MODEL_SWAPS_H
#define SCRIPT_API_MODEL_SWAPS_H

#include "model/forward.h"
#include "script/host/binding.h"

/* A swap at a value of vary. */
typedef struct SwapValue {
    int64_t     given; /* which swap, from 0 */
    const char *text;  /* NULL: the swap does not depend on it */
} SwapValue;

/* All of it lives as long as the table that was pushed with it. */
typedef struct GivenSwaps {
    const Swap      *swaps;
    int64_t          count;
    bool             listed; /* they were given as a list */
    const SwapValue *values; /* [count] of vary; NULL: there is none */
} GivenSwaps;

/* The swap, or the swaps at each value of vary, in the options at t.  [-0, +1 (keeps them), v] */
GivenSwaps swaps_push(lua_State *L, int t, const Model *m);
/* Its one swap.  [-0, +1 (keeps it), v] */
GivenSwaps swap_push(lua_State *L, int t, const Model *m);

#endif
