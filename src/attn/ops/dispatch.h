/* attn/ops/dispatch.h -- what the fronts of operations share; for attn/ops alone. */
#ifndef ATTN_OPS_DISPATCH_H
#define ATTN_OPS_DISPATCH_H

#include "attn/ops/ops.h"
#include "attn/run.h"

/* Calls the back end's entry, unless the run has failed.  op_charge and op_traffic do nothing in
 * a failed run either. */
#define DISPATCH(r, entry, ...)                                                                \
    (run_failed(r)      ? (void)0                                                              \
     : (r)->ops->entry ? (r)->ops->entry((r), __VA_ARGS__)                                     \
                       : ops_lack((r), #entry))

static inline double bytes_of(Tensor t)
{
    return t.data ? (double)tensor_bytes(&t) : 0;
}

/* Fails the run: the back end has no such operation. */
void ops_lack(Run *r, const char *entry);

#endif
