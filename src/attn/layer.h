/* attn/layer.h -- parameters of a mechanism that is a layer of its own.
 *
 * A layer (experts, memories, factored projections) has weights without a head
 * axis, and sizes that a file may decide: a size the user sets must agree with
 * the files, one he leaves out is taken from them.
 */
#ifndef ATTN_LAYER_H
#define ATTN_LAYER_H

#include <stdint.h>

#include "attn/run/param.h"
#include "core/tensor.h"

typedef struct Run Run;
typedef struct Init Init;

/* The extent of `axis` of a given tensor of `rank` axes says the size, times `factor`
 * (0: 1). */
typedef struct SizeFrom {
    const char *name;
    Tensor      tensor; /* data NULL: not given */
    int         rank, axis;
    int64_t     factor;
} SizeFrom;

/* The size called `name`: its value if the user set it (a file that says otherwise fails the
 * run), else what the first given tensor says, else `fallback`.  The list ends with a NULL
 * name.  Tensors of another rank are passed over: layer_weight tells of them. */
int64_t layer_size(Run *r, const char *name, int64_t value, int64_t fallback,
                   const SizeFrom *from);

/* Normal, of variance 1 / in: what a layer of so many inputs usually begins with. */
Init layer_by_fan(int64_t in);
/* As run_param and run_param_given, f32, of exactly this shape: no axis is shared. */
Tensor layer_weight(Run *r, const char *name, Tensor given, int rank, const int64_t *shape,
                    Init init);
Tensor layer_given(Run *r, const char *name, Tensor given, int rank, const int64_t *shape);

#endif
