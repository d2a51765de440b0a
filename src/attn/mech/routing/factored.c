/* factored.c -- see factored.h. */
#include "attn/mech/routing/factored.h"

#include "attn/run.h"

/* Every row of t [1,n,modules*size] becomes b (of all modules, or over and over), or 0. */
static void fill_rows(Run *r, Tensor t, Tensor b, int64_t size)
{
    int64_t shape[3] = { t.shape[1], t.shape[2] / size, size };

    if (b.data)
        op_entries(r, tensor_with_rank(b, 1), ENTRY_CAST, 0, tensor_of(DT_F32, 3, shape, t.data));
    else
        op_entries(r, b, ENTRY_FILL, 0, t);
}

Tensor factored_dense(Run *r, Tensor x, Tensor d, Tensor e, Tensor b)
{
    int64_t   n = x.shape[1], dm = x.shape[2], modules = d.shape[0], size = e.shape[1];
    Tensor    out = run_tensor3(r, DT_F32, 1, n, modules * size);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    scaled = run_tensor3(r, DT_F32, 1, n, dm);

    e = tensor_with_rank(e, 3);
    fill_rows(r, out, b, modules * size);
    for (int64_t s = 0; s < modules && !run_failed(r); s++) {
        Tensor factor = tensor_of(DT_F32, 1, &dm, tensor_f32(&d) + s * dm);

        op_entries_of(r, x, factor, ENTRY_PRODUCT, 1, scaled);
        op_gemm(r, scaled, false, e, false, 1, 1, tensor_columns(out, s * size, size),
                FLOP_OVERHEAD);
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
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, out);
    op_entries(r, z, ENTRY_CAST, 0,
               tensor_columns(tensor_rows(out, before, n), side * size, z.shape[2]));
    return out;
}

Tensor factored_conv(Run *r, Tensor z, Tensor kernel, Tensor b)
{
    int64_t   n = z.shape[1], length = kernel.shape[0], width = kernel.shape[1];
    int64_t   size = kernel.shape[2], modules = z.shape[2] / size;
    Tensor    out = run_tensor3(r, DT_F32, 1, n, z.shape[2]);
    ArenaMark mark = arena_mark(r->arena);
    Tensor    wide = padded(r, z, size, length - 1, (width - 1) / 2);

    fill_rows(r, out, b, size);
    for (int64_t t = 0; t < length * width * modules && !run_failed(r); t++) {
        int64_t a = t / modules / width, c = t / modules % width, s = t % modules;
        Tensor  from = tensor_columns(wide, (s + c) * size, size);
        Tensor  k = tensor_of(DT_F32, 3, (int64_t[]){ 1, size, size },
                              tensor_f32(&kernel) + (a * width + c) * size * size);

        from.shape[1] = n;
        from.data = tensor_f32(&from) + a * wide.shape[2];
        op_gemm(r, from, false, k, false, 1, 1, tensor_columns(out, s * size, size),
                FLOP_OVERHEAD);
    }
    arena_release(r->arena, mark);
    return out;
}
