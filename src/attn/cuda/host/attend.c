/* attend.c -- pattern attention on the device; see attn/ops/ops.h, op_attend.
 *
 * In float32 one kernel adds all terms.  In other arithmetic tensor cores compute scores with at
 * most a distance term, by cuDNN, by Hopper's warpgroups or by the base kernel.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/cuda/host/gpu.h"

#define MATRIX_INPUTS 3

/* The run's q, k and v packed for tensor cores before it begins (Run.prepared). */
typedef struct Prepared {
    Tensor from[MATRIX_INPUTS];
    Packed to[MATRIX_INPUTS];
} Prepared;

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

/* A positive cap stays one in float32. */
static ScoreCap cap_of(const AttendInput *in)
{
    return (ScoreCap){ .top = in->softcap > 0 ? (float)fmax(in->softcap, (double)FLT_MIN) : 0,
                       .after_distance = in->distance_capped };
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
        .cap = cap_of(in),
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

/* ---- packing ------------------------------------------------------------------------- */

/* The size that vectors of d and e numbers are packed to; 0: too long. */
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

Packed gpu_packed(Run *r, const Tensor *t, int64_t size)
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
        if (made) {
            made->from[x] = *inputs[x];
            made->to[x] = pack(r, inputs[x], size);
        }
    }
    if (r->x.data)
        gpu_toward(r, r->x.data, tensor_bytes(&r->x));
    r->prepared = made;
    gpu_finish(r, "preparing the input");
}

/* Whether tensor cores can compute these scores.  Numbers of 32 bits need more shared memory
 * than some GPUs have (163 KiB, or 99). */
static bool matrix_fits(const Run *r, const AttendInput *in)
{
    int64_t size = matrix_size(in->q.shape[2], in->v.shape[2]);

    return gpu_kind(r)->arithmetic != ARITHMETIC_F32 && size &&
           ATTEND_SHARED(size, number_bytes(r)) <= gpu_kind(r)->device->info.shared &&
           !tensor_given(&in->row.table) &&
           !tensor_given(&in->col.table) && !tensor_given(&in->value.table);
}

/* ---- alternatives to the base kernel --------------------------------------------------
 *
 * Checks cuDNN and wgmma results against the base kernel: the first result of each kind, in the
 * first and the last row of tiles (under a causal pattern these have the fewest and the most
 * keys).  A kind that differs is not used again, and the run reports it.
 */

/* Another way to call->out and call->lse. */
typedef struct RivalWay {
    Rival       which;
    const char *name;
    double      near; /* the largest difference, as a share of the largest output */
    int       (*begin)(Run *r, const void *context); /* all of the call; a code */
    const void *context;
} RivalWay;

/* Starts the base kernel; a code. */
static int begin_base(Run *r, const MatrixAttendCall *call)
{
    const DeviceApi *api = gpu_api(r);

    switch (gpu_kind(r)->arithmetic) {
    case ARITHMETIC_BF16: return api->attend_bf16(call);
    case ARITHMETIC_F16:  return api->attend_f16(call);
    default:              return api->attend_tf32(call);
    }
}

/* Compares rows x cols of each head.  A NaN of the base kernel agrees with anything, an infinity
 * (a row without keys) only with itself. */
static bool is_near(const DeviceTensor *a, const DeviceTensor *base, int64_t rows, double near)
{
    double most = 0, apart = 0;

    for (int64_t h = 0; h < base->heads; h++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < base->cols; c++) {
                float x = ((float *)a->data)[h * a->head_stride + i * a->row_stride + c];
                float y = ((float *)base->data)[h * base->head_stride + i * base->row_stride + c];

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
    return gpu_block(gpu_scratch(r, heads * rows * cols, sizeof(float)), DEVICE_F32, heads, rows,
                     cols);
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
        gpu_began(r, "attend", begin_base(r, &row));
    gpu_wait(r, "a first result is compared with our own kernel's");
    return !run_failed(r) && is_near(&out, &row.out, row.n, near) &&
           is_near(&lse, &row.lse, 1, near);
}

static bool agrees(Run *r, const MatrixAttendCall *call, double near)
{
    int64_t last = (call->tiles.rows - 1) * call->tiles.height;

    return row_agrees(r, call, 0, near) && (!last || row_agrees(r, call, last, near));
}

/* Whether its results for calls of this kind may be used; tried once, outside of timed parts. */
static bool rival_trusted(Run *r, const MatrixAttendCall *call, const RivalWay *way)
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

/* ---- cuDNN: full and causal attention --------------------------------------------------
 *
 * Used where the pattern is one of these two, numbers are of 16 bits, sizes are multiples of 8
 * and no term is added.  ATTNSCOPE_CUDNN=0 switches it off; a path names the library.
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
           d <= 256 && e <= 256 && !attend_has_terms(in) &&
           in->q.shape[0] == r->h && in->k.shape[0] == in->v.shape[0] &&
           (shape == TILES_FULL || (shape == TILES_CAUSAL && n == m));
}

#define CUDNN_NEAR 3e-2 /* of the largest output: cuDNN rounds weights and outputs to 8 bits too */

/* The whole call; the output is widened to float32. */
static int begin_cudnn(Run *r, const void *context)
{
    int code = gpu_api(r)->fused(context);

    return code ? code : gpu_api(r)->unpack(context);
}

/* Plans and checks it, outside of timed parts. */
static bool is_ready(Run *r, const MatrixAttendCall *call, const FusedCall *fused)
{
    const RivalWay way = { RIVAL_CUDNN, "cuDNN", CUDNN_NEAR, begin_cudnn, fused };
    bool           ready;

    run_prepare(r, true);
    ready = !gpu_api(r)->fused_plan(fused) && rival_trusted(r, call, &way);
    run_prepare(r, false);
    return ready;
}

/* Starts it by cuDNN; false: left to other kernels. */
static bool attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call)
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

/* ---- Hopper's warpgroups: tiles --------------------------------------------------------
 *
 * Used where a trial has shown it to be right and faster (library.h), numbers are of 16 bits,
 * packed to 64 or 128 columns, and nothing is added to scores.
 */

/* Weights are rounded to 8 bits (bf16) relative to the largest score so far, which differs
 * between the parts of a row. */
#define WARPGROUP_NEAR 1e-2

static bool fits_warpgroup(const Run *r, const MatrixAttendCall *call)
{
    Arithmetic how = gpu_kind(r)->arithmetic;

    return (how == ARITHMETIC_BF16 || how == ARITHMETIC_F16) && call->size <= 128 &&
           !call->distance.data && !call->tiles.extra && !(call->cap.top > 0) && call->scale > 0;
}

/* All blocks; then joins the rows that were cut. */
static int begin_warpgroup(Run *r, const void *context)
{
    const WarpgroupCall *call = context;
    int                  code = gpu_api(r)->attend_warpgroup(call);

    return !code && call->attend.join_count ? gpu_api(r)->attend_join(&call->attend) : code;
}

/* Starts it by warpgroups, by call's items; false: left to the base kernel. */
static bool attend_warpgroup(Run *r, const MatrixAttendCall *call)
{
    WarpgroupCall  own = { *call, (int32_t)gpu_kind(r)->arithmetic };
    const RivalWay way = { RIVAL_WARPGROUP, "wgmma", WARPGROUP_NEAR, begin_warpgroup, &own };
    bool           trusted;
    int            code;

    if (!device_way_taken(gpu_kind(r)->device, WAY_WARPGROUP) || !fits_warpgroup(r, call) ||
        !gpu_ready(r))
        return false;
    run_prepare(r, true);
    trusted = rival_trusted(r, call, &way);
    run_prepare(r, false);
    code = trusted ? begin_warpgroup(r, &own) : WARPGROUP_DECLINED;
    if (code == WARPGROUP_DECLINED)
        return false;
    gpu_began(r, "wgmma", code);
    r->computed |= COMPUTED_WARPGROUP;
    return true;
}

/* ---- the operation ------------------------------------------------------------------- */

static void attend_base(Run *r, MatrixAttendCall *call)
{
    run_prepare(r, true);
    gpu_items(r, call);
    run_prepare(r, false);
    if (run_failed(r) || attend_warpgroup(r, call))
        return;
    if (gpu_ready(r) && gpu_began(r, "attend", begin_base(r, call)) && call->join_count)
        gpu_began(r, "attend", gpu_api(r)->attend_join(call));
}

static void attend_matrix(Run *r, const AttendInput *in, const Pattern *pattern, AttendResult *out,
                       double *cells)
{
    int64_t          size = matrix_size(in->q.shape[2], in->v.shape[2]);
    MatrixAttendCall call = {
        .heads = r->h, .n = in->q.shape[1], .m = in->k.shape[1], .size = size,
        .scale = in->scale,
        .cap = cap_of(in),
        .tiles = gpu_tiles(r, in, pattern, ATTEND_HEIGHT(size), cells),
        .distance = gpu_lines(gpu_tensor(r, &in->distance)),
        .out = gpu_result(r, &out->out),
        .lse = gpu_lines(gpu_result(r, &out->lse)),
    };

    call.q = gpu_packed(r, &in->q, size);
    call.k = gpu_packed(r, &in->k, size);
    call.v = gpu_packed(r, &in->v, size);
    if (gpu_ready(r) && !attend_fused(r, in, &call))
        attend_base(r, &call);
    gpu_finish(r, "attend");
    gpu_computed(r, gpu_kind(r)->arithmetic);
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
    if (matrix_fits(r, in))
        attend_matrix(r, in, pattern, out, cells);
    else
        attend_f32(r, in, pattern, out, cells);
    arena_release(r->arena, mark);
}
