/* gpu_matrix.c -- see gpu_matrix.h. */
#include "attn/cuda/host/gpu_matrix.h"

#include <string.h>

/* The size that vectors of so many numbers are packed to; 0: too long. */
static int64_t matrix_size(int64_t d, int64_t e)
{
    int64_t most = d > e ? d : e;

    return most <= 64 ? 64 : most <= 128 ? 128 : most <= 256 ? 256 : 0;
}

static bool is_same(const Tensor *a, const Tensor *b)
{
    if (a->data != b->data || a->rank != b->rank)
        return false;
    for (int x = 0; x < a->rank; x++)
        if (a->shape[x] != b->shape[x] || a->stride[x] != b->stride[x])
            return false;
    return true;
}

static int64_t number_bytes(const Run *r)
{
    return gpu_kind(r)->arithmetic == ARITHMETIC_TF32 ? 4 : 2;
}

static Packed pack(Run *r, const Tensor *t, int64_t size)
{
    PackCall call = { .from = gpu_tensor(r, t), .arithmetic = (int32_t)gpu_kind(r)->arithmetic };

    call.to.heads = call.from.heads;
    call.to.rows = (call.from.rows + PACKED_ROWS - 1) / PACKED_ROWS * PACKED_ROWS;
    call.to.size = size;
    call.to.data = gpu_scratch(r, call.to.heads * call.to.rows * size, number_bytes(r));
    if (gpu_ready(r))
        gpu_began(r, "packing", gpu_api(r)->pack(&call));
    return call.to;
}

/* t in the run's arithmetic; what is prepared is not done again. */
static Packed packed(Run *r, const Tensor *t, int64_t size)
{
    const Prepared *made = r->prepared;

    for (int x = 0; made && x < MATRIX_INPUTS; x++)
        if (made->to[x].data && made->to[x].size == size && is_same(t, &made->from[x]))
            return made->to[x];
    return pack(r, t, size);
}

void gpu_prepare(Run *r)
{
    const Tensor *inputs[MATRIX_INPUTS] = { &r->q, &r->k, &r->v };
    int64_t       size = matrix_size(r->d, r->e);
    bool          packs = gpu_kind(r)->arithmetic != ARITHMETIC_F32 && size;
    Prepared     *made = packs ? run_alloc(r, 1, sizeof(*made)) : NULL;

    if (made)
        memset(made, 0, sizeof(*made));
    for (int x = 0; x < MATRIX_INPUTS && !run_failed(r); x++) {
        if (!inputs[x]->data || inputs[x]->rank != 3)
            continue;
        gpu_toward(r, inputs[x]->data, tensor_bytes(inputs[x]));
        if (made)
            made->from[x] = *inputs[x];
        if (made)
            made->to[x] = pack(r, inputs[x], size);
    }
    if (r->x.data)
        gpu_toward(r, r->x.data, tensor_bytes(&r->x));
    r->prepared = made;
    gpu_finish(r, "preparing the input");
}

/* Numbers of 32 bits need more of a multiprocessor than some GPUs have (163 KiB, or 99). */
bool gpu_matrix_fits(const Run *r, const AttendInput *in)
{
    int64_t size = matrix_size(in->q.shape[2], in->v.shape[2]);

    return gpu_kind(r)->arithmetic != ARITHMETIC_F32 && size &&
           ATTEND_SHARED(size, number_bytes(r)) <= gpu_kind(r)->device->info.shared &&
           !tensor_given(&in->row.table) &&
           !tensor_given(&in->col.table) && !tensor_given(&in->value.table);
}

int gpu_attend_begin(Run *r, const MatrixAttendCall *call)
{
    const DeviceApi *api = gpu_api(r);

    switch (gpu_kind(r)->arithmetic) {
    case ARITHMETIC_BF16: return api->attend_bf16(call);
    case ARITHMETIC_F16:  return api->attend_f16(call);
    default:              return api->attend_tf32(call);
    }
}

static void attend_own(Run *r, MatrixAttendCall *call)
{
    run_prepare(r, true);
    gpu_items(r, call);
    run_prepare(r, false);
    if (run_failed(r) || gpu_attend_warpgroup(r, call))
        return;
    if (gpu_ready(r) && gpu_began(r, "attend", gpu_attend_begin(r, call)) && call->join_count)
        gpu_began(r, "attend", gpu_api(r)->attend_join(call));
}

void gpu_attend_matrix(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                       double *cells)
{
    int64_t          size = matrix_size(in->q.shape[2], in->v.shape[2]);
    MatrixAttendCall call = {
        .heads = r->h, .n = in->q.shape[1], .m = in->k.shape[1], .size = size,
        .scale = in->scale,
        .tiles = gpu_tiles(r, in, pattern, ATTEND_HEIGHT(size), cells),
        .distance = gpu_lines(gpu_tensor(r, &in->distance)),
        .out = gpu_result(r, &out->out),
        .lse = gpu_lines(gpu_result(r, &out->lse)),
    };

    call.q = packed(r, &in->q, size);
    call.k = packed(r, &in->k, size);
    call.v = packed(r, &in->v, size);
    if (gpu_ready(r) && !gpu_attend_fused(r, in, &call))
        attend_own(r, &call);
    gpu_finish(r, "attend");
    gpu_computed(r, gpu_kind(r)->arithmetic);
}
