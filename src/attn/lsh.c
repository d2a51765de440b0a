/* lsh.c -- see lsh.h. */
#include "attn/lsh.h"

#include "attn/run.h"

/* ---- rotations -------------------------------------------------------------- */

typedef struct Turn {
    Tensor  w; /* f32 [h',d,rounds,W] */
    int64_t first, count;
    Tensor  y; /* f32 [h',rounds*count,d] */
} Turn;

/* An item is the columns of one round, which become rows. */
static void turn_item(void *context, int64_t item, int worker)
{
    const Turn  *job = context;
    int64_t      d = job->w.shape[1], rounds = job->w.shape[2], width = job->w.shape[3];
    const float *from = tensor_f32(&job->w) + (item / rounds * d * rounds + item % rounds) * width +
                        job->first;
    float       *to = tensor_f32(&job->y) + item * job->count * d;

    (void)worker;
    for (int64_t t = 0; t < d; t++)
        for (int64_t c = 0; c < job->count; c++)
            to[c * d + t] = from[t * rounds * width + c];
}

/* i32 [h,rounds,n]: argmax of [y ; -y] over columns [first, first + count) of each round. */
static Tensor factor_hash(Run *r, Tensor x, Tensor w, int64_t first, int64_t count)
{
    int64_t rounds = w.shape[2];
    Turn    job = { .w = w, .first = first, .count = count,
                    .y = run_tensor3(r, DT_F32, w.shape[0], rounds * count, w.shape[1]) };

    if (!run_failed(r))
        threads_run(r->threads, w.shape[0] * rounds, turn_item, &job);
    return op_nearest(r, &(Nearest){ .x.near = x, .y = job.y, .parts = rounds,
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
    for (int64_t i = 0; i < tensor_count(&bucket) && !run_failed(r); i++)
        tensor_i32(&bucket)[i] += (int32_t)(2 * half) * tensor_i32(&second)[i];
    return bucket;
}

/* ---- hyperplanes ------------------------------------------------------------ */

Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias)
{
    op_charge(r, FLOP_OVERHEAD,
              2 * (double)(r->h * x.shape[1]) * (double)(x.shape[2] * planes.shape[1]));
    return op_codes(r, x, planes, bias);
}
