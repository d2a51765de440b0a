/* lsh.c -- see lsh.h.
 *
 * A tile of positions at a time: the projections never need as many numbers as
 * there are positions times buckets (or bits).
 */
#include "attn/lsh.h"

#include <string.h>

#include "attn/run.h"

#define TILE (1 << 22) /* projections held at a time */

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

        hash_tile(r, tensor_rows(x, first, count), w, half, first, bucket);
        arena_release(r->arena, mark);
    }
    return bucket;
}

/* ---- hyperplanes ------------------------------------------------------------ */

/* f32 [h',d,bits]: the normals of planes [h',bits,d+1] as columns. */
static Tensor normals_of(Run *r, Tensor planes)
{
    int64_t bits = planes.shape[1], d = planes.shape[2] - 1;
    Tensor  w = run_tensor3(r, DT_F32, planes.shape[0], d, bits);

    for (int64_t x = 0; x < tensor_count(&w) && !run_failed(r); x++) {
        int64_t plane = x / (d * bits) * bits + x % bits;

        tensor_f32(&w)[x] = tensor_f32(&planes)[plane * (d + 1) + x / bits % d];
    }
    return w;
}

/* One code from a row of projections. */
static int64_t code_of(const double *y, const float *planes, int64_t bits, int64_t d, bool bias)
{
    int64_t code = 0;

    for (int64_t t = 0; t < bits; t++)
        if (y[t] > (bias ? (double)planes[t * (d + 1) + d] : 0))
            code |= INT64_C(1) << t;
    return code;
}

Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias)
{
    int64_t h = r->h, n = x.shape[1], d = x.shape[2], bits = planes.shape[1];
    int64_t tile = TILE / bits / h + 1;
    Tensor  code = run_tensor2(r, DT_I64, h, n), w = normals_of(r, planes);

    for (int64_t first = 0; first < n && !run_failed(r); first += tile) {
        int64_t   count = n - first < tile ? n - first : tile;
        ArenaMark mark = arena_mark(r->arena);
        Tensor    y = op_dots64(r, tensor_rows(x, first, count), w);

        for (int64_t i = 0; i < h * count && !run_failed(r); i++)
            ((int64_t *)code.data)[i / count * n + first + i % count] =
                code_of((double *)y.data + i * bits, tensor_head(&planes, i / count, h), bits, d,
                        bias);
        arena_release(r->arena, mark);
    }
    return code;
}
