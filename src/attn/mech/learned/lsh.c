/* lsh.c -- see lsh.h. */
#include "attn/mech/learned/lsh.h"

#include "attn/run.h"

/* ---- rotations -------------------------------------------------------------- */

/* i32 [h,rounds,n]: argmax of [y ; -y] over columns [first, first + count) of each round, the
 * columns of w f32 [h',d,rounds,W] being rows of y. */
static Tensor factor_hash(Run *r, Tensor x, Tensor w, int64_t first, int64_t count)
{
    int64_t d = w.shape[1], rounds = w.shape[2], width = w.shape[3];
    Tensor  y = run_tensor3(r, DT_F32, w.shape[0], rounds * count, d);

    for (int64_t head = 0; head < w.shape[0] && !run_failed(r); head++) {
        Tensor to = tensor_of(DT_F32, 3, (int64_t[]){ rounds, count, d },
                              tensor_f32(&y) + head * rounds * count * d);
        Tensor from = tensor_of(DT_F32, 3, to.shape,
                                tensor_f32(&w) + head * d * rounds * width + first);

        from.stride[0] = width;
        from.stride[1] = 1;
        from.stride[2] = rounds * width;
        op_entries(r, from, ENTRY_CAST, 0, to);
    }
    return op_nearest(r, &(Nearest){ .x.near = x, .y = y, .parts = rounds,
                                     .with_negative = true });
}

Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half)
{
    int64_t width = rotations.shape[3], columns = rotations.shape[2] * width;
    Tensor  bucket = factor_hash(r, x, rotations, 0, half), second;

    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * x.shape[1]) * (double)(x.shape[2] * columns));
    if (half == width)
        return bucket;
    second = factor_hash(r, x, rotations, half, width - half);
    op_entries_of(r, bucket, second, ENTRY_SUM, 2 * (double)half, bucket);
    return bucket;
}

/* ---- hyperplanes ------------------------------------------------------------ */

Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias)
{
    op_charge(r, FLOP_OVERHEAD,
              2 * (double)(r->h * x.shape[1]) * (double)(x.shape[2] * planes.shape[1]));
    return op_codes(r, x, planes, bias);
}
