/* lsh.c -- see lsh.h.
 *
 * A tile of positions at a time: the projections never need as many numbers as
 * there are positions times buckets.
 */
#include "attn/lsh.h"

#include <string.h>

#include "attn/run.h"

#define TILE (1 << 22) /* projections held at a time */

/* Rows [first, first+count) of every head. */
static Tensor rows_of(Run *r, Tensor x, int64_t first, int64_t count)
{
    int64_t n = x.shape[1], d = x.shape[2];
    Tensor  y;

    if (count == n)
        return x;
    y = run_tensor3(r, DT_F32, x.shape[0], count, d);
    for (int64_t t = 0; t < x.shape[0] && !run_failed(r); t++)
        memcpy(tensor_f32(&y) + t * count * d, tensor_f32(&x) + (t * n + first) * d,
               (size_t)(count * d) * sizeof(float));
    return y;
}

/* Argmax of [y ; -y] over columns [first, first+count) of y f64 [h,rows,W]. */
static Tensor factor_hash(Run *r, Tensor y, int64_t first, int64_t count)
{
    int64_t width = y.shape[2];
    Tensor  part = y;

    if (count < width) {
        part = run_tensor3(r, DT_F64, y.shape[0], y.shape[1], count);
        for (int64_t i = 0; i < y.shape[0] * y.shape[1] && !run_failed(r); i++)
            memcpy((double *)part.data + i * count, (double *)y.data + i * width + first,
                   (size_t)count * sizeof(double));
    }
    return op_argmax(r, part, true);
}

static void hash_tile(Run *r, Tensor x, Tensor w, int64_t half, int64_t first, Tensor bucket)
{
    int64_t h = bucket.shape[0], rounds = bucket.shape[1], n = bucket.shape[2];
    int64_t count = x.shape[1], width = w.shape[2] / rounds;
    Tensor  y = op_dots64(r, x, w), a, b = { .rank = 0 };

    y = tensor_of(DT_F64, 3, (int64_t[]){ h, count * rounds, width }, y.data);
    a = factor_hash(r, y, 0, half);
    if (half < width)
        b = factor_hash(r, y, half, width - half);
    for (int64_t e = 0; e < h * rounds * count && !run_failed(r); e++) {
        int64_t round = e % rounds, i = e / rounds % count, t = e / rounds / count;

        tensor_i32(&bucket)[(t * rounds + round) * n + first + i] =
            tensor_i32(&a)[e] + (int32_t)(b.data ? 2 * half * tensor_i32(&b)[e] : 0);
    }
}

Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half)
{
    int64_t h = x.shape[0], n = x.shape[1], rounds = rotations.shape[2];
    int64_t width = rotations.shape[3], tile = TILE / width / rounds / h + 1;
    Tensor  bucket = run_tensor3(r, DT_I32, h, rounds, n);
    Tensor  w = tensor_of(DT_F32, 3, (int64_t[]){ rotations.shape[0], rotations.shape[1],
                                                  rounds * width }, rotations.data);

    for (int64_t first = 0; first < n && !run_failed(r); first += tile) {
        int64_t   count = n - first < tile ? n - first : tile;
        ArenaMark mark = arena_mark(r->arena);

        hash_tile(r, rows_of(r, x, first, count), w, half, first, bucket);
        arena_release(r->arena, mark);
    }
    return bucket;
}
