/* attn/ops/ops_front.h -- what the fronts of the operations (ops.c, ops_rows.c, ops_choose.c) share. */
#ifndef ATTN_OPS_OPS_FRONT_H
#define ATTN_OPS_OPS_FRONT_H

#include "attn/run.h"

/* The back end's entry, where it has one. */
#define DISPATCH(r, entry, ...) \
    ((r)->ops->entry ? (r)->ops->entry((r), __VA_ARGS__) : ops_lack((r), #entry))

/* Fails the run: the back end has no such operation. */
void ops_lack(Run *r, const char *entry);

static inline double bytes_of(Tensor t)
{
    return t.data ? (double)tensor_bytes(&t) : 0;
}

#endif
