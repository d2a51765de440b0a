/* gpu_attend.c -- pattern attention on the device; see attn/ops/ops.h, op_attend. */
#include "attn/cuda/host/gpu_matrix.h"

static DistanceCall distance_call(Run *r, const DistanceTerm *term, bool has)
{
    DistanceCall out = { 0 };

    if (!has)
        return out;
    out.side = gpu_tensor(r, &term->side);
    out.table = gpu_tensor(r, &term->table);
    out.index = term->index;
    return out;
}

/* In float32, with all terms. */
static void attend_f32(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                       double *cells)
{
    AttendCall call = {
        .heads = r->h,
        .q = gpu_tensor(r, &in->q),
        .k = gpu_tensor(r, &in->k),
        .v = gpu_tensor(r, &in->v),
        .scale = in->scale,
        .distance = gpu_lines(gpu_tensor(r, &in->distance)),
        .row = distance_call(r, &in->row, in->row.side.data),
        .col = distance_call(r, &in->col, in->col.side.data),
        .value = distance_call(r, &in->value, in->value.table.data),
        .out = gpu_tensor(r, &out->out),
        .lse = gpu_lines(gpu_tensor(r, &out->lse)),
        .tiles = gpu_tiles(r, in, pattern, ATTEND_TILE, cells),
    };

    if (gpu_ready(r))
        gpu_done(r, "attend", gpu_api(r)->attend(&call));
    gpu_computed(r, ARITHMETIC_F32);
}

void gpu_attend(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                double *cells)
{
    ArenaMark mark = arena_mark(r->arena);

    run_prepare(r, true); /* as with any allocator, memory for results is there before */
    gpu_toward(r, out->out.data, tensor_bytes(&out->out));
    gpu_toward(r, out->lse.data, tensor_bytes(&out->lse));
    gpu_finish(r, "attend");
    run_prepare(r, false);
    if (gpu_matrix_fits(r, in))
        gpu_attend_matrix(r, in, pattern, out, cells);
    else
        attend_f32(r, in, pattern, out, cells);
    arena_release(r->arena, mark);
}
