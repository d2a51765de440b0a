/* attn/mech/lab/inner.h -- attention by any mechanism of the catalogue, inside another's run.
 *
 * A layer that is built around attention (attn/mech/lab/stack.h) does not know which mechanism it is
 * built around.  The inner run lives in the outer run's arena, under its memory limit, its
 * threads and its seed; what it charges goes to the outer run's current stage, its closed
 * form is added to the outer run's, and its error is the outer run's error.
 */
#ifndef ATTN_MECH_LAB_INNER_H
#define ATTN_MECH_LAB_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

typedef struct Mechanism Mechanism;
typedef struct Run Run;

typedef struct InnerCall {
    const Mechanism *mechanism;
    Tensor q, k, v; /* f32 [h,n,d] */
    Tensor x;       /* f32 [n,dm], the layer's input, for those that read it too */
    Tensor out;     /* f32 [h,n,d], written */
    bool   charge;  /* false: counted nowhere */
    bool   measure; /* fill what follows; makes the inner run's views, charges the same */
    int64_t cells;  /* of its connectivity, summed over heads; -1: it shows none */
    int64_t written; /* numbers that its operations write besides the output */
    int64_t used;   /* bytes of the arena in use at its end; filled always */
} InnerCall;

/* The mechanism called `id`, the value of parameter `name`; fails the run when there is none
 * or it does not take q, k and v. */
const Mechanism *inner_find(Run *r, const char *name, const char *id);
/* Whether it holds a weight for every cell of its connectivity, in its plain form. */
bool inner_holds_cells(const Mechanism *m);

void inner_attend(Run *r, InnerCall *call);

#endif
