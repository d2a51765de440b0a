/* factored.c -- see factored.h. */
#include "attn/factored.h"

#include <string.h>

#include "attn/run.h"

#define ROWS 64 /* of one item of work */

/* Columns [first, first+count) of t [1,n,.]. */
static Tensor columns_of(Tensor t, int64_t first, int64_t count)
{
    t.shape[2] = count;
    t.data = tensor_f32(&t) + first;
    return t;
}

/* Every row of t [1,n,width] becomes `count` numbers over and over, or 0. */
static void fill_rows(Tensor t, const Tensor *row, int64_t count)
{
    for (int64_t c = 0; c < tensor_count(&t); c++)
        tensor_f32(&t)[c] = row->data ? tensor_f32(row)[c % count] : 0;
}

typedef struct Scaling {
    const float *x, *factor; /* [n,dm], [dm] */
    float       *out;
    int64_t      n, dm;
} Scaling;

static void scale_item(void *context, int64_t item, int worker)
{
    const Scaling *job = context;

    (void)worker;
    for (int64_t i = item * ROWS; i < job->n && i < (item + 1) * ROWS; i++)
        for (int64_t c = 0; c < job->dm; c++)
            job->out[i * job->dm + c] = job->x[i * job->dm + c] * job->factor[c];
}

Tensor factored_dense(Run *r, Tensor x, Tensor d, Tensor e, Tensor b)
{
    int64_t   n = x.shape[1], dm = x.shape[2], modules = d.shape[0], size = e.shape[1];
    Tensor    out = run_tensor3(r, DT_F32, 1, n, modules * size);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    scaled = run_tensor3(r, DT_F32, 1, n, dm);
    Scaling   job = { .x = x.data, .out = scaled.data, .n = n, .dm = dm };

    e = tensor_with_rank(e, 3);
    if (!run_failed(r))
        fill_rows(out, &b, modules * size);
    for (int64_t s = 0; s < modules && !run_failed(r); s++) {
        job.factor = tensor_f32(&d) + s * dm;
        threads_run(r->threads, (n + ROWS - 1) / ROWS, scale_item, &job);
        op_gemm(r, scaled, false, e, false, 1, 1, columns_of(out, s * size, size), FLOP_OVERHEAD);
    }
    op_charge(r, FLOP_OVERHEAD, (double)n * (double)modules * (double)dm);
    arena_release(r->arena, mark);
    return out;
}

/* z with L - 1 rows of 0 before it and `side` modules of 0 on either side. */
static Tensor padded(Run *r, Tensor z, int64_t size, int64_t before, int64_t side)
{
    int64_t n = z.shape[1], wide = z.shape[2] + 2 * side * size;
    Tensor  out = run_tensor3(r, DT_F32, 1, n + before, wide);

    if (run_failed(r))
        return out;
    memset(out.data, 0, (size_t)tensor_bytes(&out));
    for (int64_t i = 0; i < n; i++)
        memcpy(tensor_f32(&out) + (i + before) * wide + side * size,
               tensor_f32(&z) + i * z.shape[2], (size_t)z.shape[2] * sizeof(float));
    return out;
}

Tensor factored_conv(Run *r, Tensor z, Tensor kernel, Tensor b)
{
    int64_t   n = z.shape[1], length = kernel.shape[0], width = kernel.shape[1];
    int64_t   size = kernel.shape[2], modules = z.shape[2] / size;
    Tensor    out = run_tensor3(r, DT_F32, 1, n, z.shape[2]);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    wide = padded(r, z, size, length - 1, (width - 1) / 2);

    if (!run_failed(r))
        fill_rows(out, &b, size);
    for (int64_t t = 0; t < length * width * modules && !run_failed(r); t++) {
        int64_t a = t / modules / width, c = t / modules % width, s = t % modules;
        Tensor  from = columns_of(wide, (s + c) * size, size);
        Tensor  k = tensor_of(DT_F32, 3, (int64_t[]){ 1, size, size },
                              tensor_f32(&kernel) + (a * width + c) * size * size);

        from.shape[1] = n;
        from.data = tensor_f32(&from) + a * wide.shape[2];
        op_gemm(r, from, false, k, false, 1, 1, columns_of(out, s * size, size), FLOP_OVERHEAD);
    }
    arena_release(r->arena, mark);
    return out;
}
