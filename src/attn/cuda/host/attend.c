/* attend.c -- pattern attention on the device; see attn/ops/ops.h, op_attend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"

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

/* Other kernels for what the base kernel, which runs on all GPUs, computes; see gpu.h.
 *
 * Checks cuDNN and wgmma results against the base kernel: the first result of each kind, in the
 * first and the last row of tiles (under a causal pattern these have the fewest and the most
 * keys).  A kind that differs is not used again, and the run reports it.
 */

/* rows x cols of each head; where ours is a NaN anything is right, where it is infinite (of a row
 * without keys) only the same. */
static bool is_near(const DeviceTensor *a, const DeviceTensor *own, int64_t rows, double near)
{
    double most = 0, apart = 0;

    for (int64_t h = 0; h < own->heads; h++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < own->cols; c++) {
                float x = ((float *)a->data)[h * a->head_stride + i * a->row_stride + c];
                float y = ((float *)own->data)[h * own->head_stride + i * own->row_stride + c];

                if (isnan(y) || x == y)
                    continue;
                if (isnan(x) || isinf(y))
                    return false;
                most = fmax(most, fabs((double)y));
                apart = fmax(apart, fabs((double)x - (double)y));
            }
    return apart <= near * fmax(most, 1e-30);
}

static DeviceTensor block_of(Run *r, int64_t heads, int64_t rows, int64_t cols)
{
    return (DeviceTensor){ .data = gpu_scratch(r, heads * rows * cols, sizeof(float)),
                           .dtype = DEVICE_F32, .heads = heads, .rows = rows, .cols = cols,
                           .head_stride = rows * cols, .row_stride = cols };
}

static void *moved(void *data, int64_t bytes)
{
    return (char *)data + bytes;
}

/* The row of tiles from query `first` on as a call of its own. */
static MatrixAttendCall row_of(Run *r, const MatrixAttendCall *call, int64_t first)
{
    MatrixAttendCall row = *call;
    int64_t          left = call->n - first, lists = call->tiles.per_head ? call->heads : 1;
    AttendItem      *items = gpu_list(r, lists, sizeof(*items));

    row.n = left < call->tiles.height ? left : call->tiles.height;
    row.q.data = moved(call->q.data, first * call->size * (int64_t)sizeof(uint16_t));
    row.tiles.start = call->tiles.start + first / call->tiles.height;
    row.out = block_of(r, call->heads, row.n, call->out.cols);
    row.lse = block_of(r, call->heads, 1, row.n);
    for (int64_t x = 0; items && x < lists; x++)
        items[x] = (AttendItem){ .head = call->tiles.per_head ? (int32_t)x : -1,
                                 .end = INT32_MAX, .slot = -1 };
    row.items = items;
    row.item_count = lists;
    row.join_count = 0;
    return row;
}

static bool row_agrees(Run *r, const MatrixAttendCall *call, int64_t first, double near)
{
    MatrixAttendCall row = row_of(r, call, first);
    DeviceTensor     out = call->out, lse = call->lse;

    out.data = moved(out.data, first * out.row_stride * (int64_t)sizeof(float));
    lse.data = moved(lse.data, first * (int64_t)sizeof(float));
    if (!run_failed(r))
        gpu_began(r, "attend", gpu_attend_begin(r, &row));
    gpu_wait(r, "a first result is compared with our own kernel's");
    return !run_failed(r) && is_near(&out, &row.out, row.n, near) &&
           is_near(&lse, &row.lse, 1, near);
}

static bool agrees(Run *r, const MatrixAttendCall *call, double near)
{
    int64_t last = (call->tiles.rows - 1) * call->tiles.height;

    return row_agrees(r, call, 0, near) && (!last || row_agrees(r, call, last, near));
}

bool gpu_rival_trusted(Run *r, const MatrixAttendCall *call, const RivalWay *way)
{
    static const char *const shapes[] = { "pattern", "full", "causal" };
    const DeviceKind        *kind = gpu_kind(r);
    atomic_int *known = &kind->device->rivals[way->which][kind->arithmetic][call->size / 128]
                                             [call->tiles.shape];
    bool        good;
    int         code;

    if (atomic_load(known))
        return atomic_load(known) > 0;
    code = way->begin(r, way->context);
    gpu_began(r, way->name, 0);
    good = !code && agrees(r, call, way->near);
    if (run_failed(r))
        return false;
    atomic_store(known, good ? 1 : -1);
    if (code)
        run_warn(r, "%s is not used: %s", way->name, gpu_api(r)->text(code));
    else if (!good)
        run_warn(r, "%s's %s attention differs from our own kernel's: not used", way->name,
                 shapes[call->tiles.shape]);
    return good;
}

/* Full and causal attention by cuDNN, the host's side; see gpu.h.
 *
 * Taken where the pattern is one of these two, numbers are of 16 bits, sizes are multiples of 8
 * and no term is added.  ATTNSCOPE_CUDNN=0 switches it off, to compare; a path names the library.
 * What it does not take goes to our own kernels, and so does what it computes otherwise than
 * they do (attend.c).
 */

static bool is_wanted(void)
{
    const char *given = getenv("ATTNSCOPE_CUDNN");

    return !given || strcmp(given, "0") != 0;
}

static bool fits_cudnn(const Run *r, const AttendInput *in, TileShape shape)
{
    Arithmetic how = gpu_kind(r)->arithmetic;
    int64_t    d = in->q.shape[2], e = in->v.shape[2], n = in->q.shape[1], m = in->k.shape[1];

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && d % 8 == 0 && e % 8 == 0 &&
           d <= 256 && e <= 256 && !tensor_given(&in->distance) && !in->cell_term &&
           in->q.shape[0] == r->h && in->k.shape[0] == in->v.shape[0] &&
           (shape == TILES_FULL || (shape == TILES_CAUSAL && n == m));
}

#define CUDNN_NEAR 3e-2 /* of the largest output: cuDNN rounds weights and outputs to 8 bits too */

/* The whole, and widened. */
static int begin_cudnn(Run *r, const void *context)
{
    int code = gpu_api(r)->fused(context);

    return code ? code : gpu_api(r)->unpack(context);
}

/* A plan, and trust in it: before the clock runs. */
static bool is_ready(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    const RivalWay way = { RIVAL_CUDNN, "cuDNN", CUDNN_NEAR, begin_cudnn, fused };
    bool           ready;

    run_prepare(r, true);
    ready = !gpu_api(r)->fused_plan(fused) && gpu_rival_trusted(r, call, &way);
    run_prepare(r, false);
    return ready;
}

bool gpu_attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call)
{
    FusedCall fused = {
        .heads = r->h, .n = call->n, .m = call->m, .d = in->q.shape[2], .e = in->v.shape[2],
        .causal = call->tiles.shape == TILES_CAUSAL,
        .arithmetic = (int32_t)gpu_kind(r)->arithmetic, .scale = in->scale,
        .q = call->q, .k = call->k, .v = call->v, .narrow = call->q,
        .out = call->out, .lse = call->lse,
    };
    int code;

    if (run_failed(r) || !is_wanted() || !fits_cudnn(r, in, (TileShape)call->tiles.shape))
        return false;
    fused.narrow.data = gpu_scratch(r, call->q.heads * call->q.rows * call->size,
                                    (int64_t)sizeof(uint16_t));
    if (run_failed(r) || !is_ready(r, call, &fused))
        return false;
    code = gpu_api(r)->fused(&fused);
    if (code == FUSED_DECLINED)
        return false;
    gpu_began(r, "cuDNN", code ? code : gpu_api(r)->unpack(&fused));
    r->computed |= COMPUTED_CUDNN;
    return true;
}

/* Attention over tiles by warpgroups, the host's side; see gpu.h.
 *
 * Taken instead of our kernel for all GPUs where a trial has shown it to be right and faster
 * (library.h); numbers are of 16 bits, packed to 64 or 128 columns, and nothing is added to scores.
 * What it computes otherwise than that kernel does is not used (attend.c).
 */

/* Weights are rounded to 8 bits (bf16) against the largest score so far, and a part of a row begins
 * with another one. */
#define WARPGROUP_NEAR 1e-2

static bool fits_warpgroup(const Run *r, const MatrixAttendCall *call)
{
    Arithmetic how = gpu_kind(r)->arithmetic;

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && call->size <= 128 &&
           !call->distance.data && !call->tiles.extra && call->scale > 0;
}

/* All blocks, and what was made in parts joined. */
static int begin_warpgroup(Run *r, const void *context)
{
    const WarpgroupCall *call = context;
    int                  code = gpu_api(r)->attend_warpgroup(call);

    return !code && call->attend.join_count ? gpu_api(r)->attend_join(&call->attend) : code;
}

bool gpu_attend_warpgroup(Run *r, const MatrixAttendCall *call)
{
    WarpgroupCall  own = { *call, (int32_t)gpu_kind(r)->arithmetic };
    const RivalWay way = { RIVAL_WARPGROUP, "wgmma", WARPGROUP_NEAR, begin_warpgroup, &own };
    bool           trusted;
    int            code;

    if (!device_way_taken(gpu_kind(r)->device, WAY_WARPGROUP) || !fits_warpgroup(r, call) ||
        !gpu_ready(r))
        return false;
    run_prepare(r, true);
    trusted = gpu_rival_trusted(r, call, &way);
    run_prepare(r, false);
    code = trusted ? begin_warpgroup(r, &own) : WARPGROUP_DECLINED;
    if (code == WARPGROUP_DECLINED)
        return false;
    gpu_began(r, "wgmma", code);
    r->computed |= COMPUTED_WARPGROUP;
    return true;
}
