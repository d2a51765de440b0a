/* difference.c -- see difference.h. */
#include "attn/ops/difference.h"

int64_t difference_head(const DifferenceAttend *in, int64_t heads, int64_t p, int which)
{
    return in->halves ? p + which * (heads / 2) : 2 * p + which;
}

int64_t difference_value(const DifferenceAttend *in, int64_t heads, int64_t p, int which)
{
    int64_t shared = in->in.v.shape[0], pair = p * shared / heads;

    return in->halves ? pair + which * (shared / 2) : 2 * pair + which;
}

int64_t difference_keys(const DifferenceAttend *in, int64_t i)
{
    int64_t m = in->in.k.shape[1], seen = i + in->offset + 1;

    return !in->causal || seen > m ? m : seen < 0 ? 0 : seen;
}
