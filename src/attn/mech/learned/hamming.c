/* hamming.c -- see hamming.h. */
#include "attn/mech/learned/hamming.h"

#include "attn/run.h"

#define BITS 64

static int64_t majority(const int32_t *ones, int64_t members, int64_t bits)
{
    int64_t code = 0;

    for (int64_t t = 0; t < bits; t++)
        if (2 * (int64_t)ones[t] > members)
            code |= INT64_C(1) << t;
    return code;
}

bool hamming_majority(Run *r, Tensor codes, Tensor cluster, int64_t bits, Tensor centres)
{
    int64_t   count = centres.shape[1], all = codes.shape[0] * count;
    ArenaMark mark = arena_mark(r->arena);
    Tensor    ones = op_bit_sums(r, codes, cluster, count);
    Tensor    tally = op_tally(r, cluster, count);
    bool      moved = false;

    op_wait(r, "the host decides the bits of codes, and whether one moved");
    for (int64_t c = 0; c < all && !run_failed(r); c++) {
        int64_t *own = (int64_t *)centres.data + c;
        int32_t  members = tensor_i32(&tally)[c];
        int64_t  code = members ? majority(tensor_i32(&ones) + c * BITS, members, bits) : *own;

        moved |= code != *own;
        *own = code;
    }
    arena_release(r->arena, mark);
    return moved;
}
