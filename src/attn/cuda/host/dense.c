/* dense.c -- products of matrices, rows and entries on the device; see attn/ops. */
#include <math.h>

#include "attn/cuda/host/gpu.h"

#define TILE 64          /* rows and columns of c for one block, at least */
#define FEW_TILES 128    /* fewer do not occupy a large GPU */
#define PIECE_LEAST 1024 /* entries of the inner axis */
#define MOST_PIECES 64

/* Pieces of the inner axis that make enough tiles. */
static int64_t pieces_of(const GemmCall *g)
{
    int64_t tiles = g->heads * ((g->rows + TILE - 1) / TILE) * ((g->cols + TILE - 1) / TILE);
    int64_t wanted = tiles > 0 ? FEW_TILES / tiles : 1;

    if (g->pieces > 1 || g->in_order)
        return g->pieces;
    wanted = min_i64(min_i64(wanted, MOST_PIECES), g->inner / PIECE_LEAST);
    return max_i64(wanted, 1);
}

static bool cut_product(Run *r, GemmCall g, int64_t pieces)
{
    bool         wide = g.c.dtype == DEVICE_F64;
    GemmSumCall  sum = { .heads = g.heads, .pieces = pieces, .wide = wide, .c = g.c,
                         .alpha = g.alpha, .beta = g.beta };
    int64_t      size = g.rows * g.cols;
    float       *parts = gpu_scratch(r, g.heads * pieces, size * (wide ? 8 : 4));

    if (!parts)
        return false;
    sum.parts = parts;
    g.pieces = pieces;
    g.all_inner = g.inner;
    g.inner = (g.inner + pieces - 1) / pieces;
    g.step_a = g.ta ? g.inner * g.a.row_stride : g.inner;
    g.step_b = g.tb ? g.inner : g.inner * g.b.row_stride;
    g.step_c = size;
    g.alpha = 1;
    g.beta = 0;
    g.c = gpu_block(parts, wide ? DEVICE_F64 : DEVICE_F32, g.heads, g.rows, g.cols);
    g.c.head_stride = pieces * size;
    return gpu_began(r, "gemm", gpu_api(r)->gemm(&g)) &&
           gpu_began(r, "gemm_sum", gpu_api(r)->gemm_sum(&sum));
}

bool gpu_product(Run *r, GemmCall call)
{
    int64_t pieces;

    if (run_failed(r))
        return false;
    call.pieces = call.pieces ? call.pieces : 1;
    pieces = pieces_of(&call);
    if (pieces > 1 && call.pieces == 1)
        return cut_product(r, call, pieces);
    return gpu_began(r, "gemm", gpu_api(r)->gemm(&call));
}

/* c from op(a) and op(b); call: the rest. */
static void multiply(Run *r, const Tensor *a, const Tensor *b, GemmCall call, Tensor *c)
{
    ArenaMark mark = arena_mark(r->arena);

    call.heads = c->shape[0];
    call.rows = c->shape[1];
    call.cols = c->shape[2];
    call.inner = a->shape[call.ta ? 1 : 2];
    call.a = gpu_tensor(r, a);
    call.b = gpu_tensor(r, b);
    call.c = gpu_result(r, c);
    if (gpu_ready(r))
        gpu_product(r, call);
    gpu_finish(r, "gemm");
    arena_release(r->arena, mark);
}

void gpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c)
{
    multiply(r, a, b, (GemmCall){ .ta = ta, .tb = tb, .alpha = alpha, .beta = beta,
                                  .arithmetic = gpu_kind(r)->arithmetic }, c);
    if (a->dtype == DT_F32 && b->dtype == DT_F32 && c->dtype == DT_F32)
        gpu_computed(r, gpu_kind(r)->arithmetic);
}

void gpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c)
{
    multiply(r, a, b, (GemmCall){ .alpha = alpha, .folded = true }, c);
}

void gpu_dots64(Run *r, const Tensor *x, const Tensor *w, Tensor *y)
{
    multiply(r, x, w, (GemmCall){ .alpha = 1, .in_order = true }, y);
}

void gpu_product64(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);

    multiply(r, x, w, (GemmCall){ .alpha = 1, .in_order = true,
                                  .start = gpu_floats(r, bias, y->shape[2]) }, y);
    arena_release(r->arena, mark);
}

/* ---- blocks mixed ------------------------------------------------------------------ */

/* Columns [first, first + cols) of the blocks' entries, of the first `blocks` blocks of x. */
static void mix_columns(Run *r, GemmCall call, int64_t first, int64_t cols, int64_t blocks)
{
    call.cols = cols;
    call.inner = min_i64(blocks, call.inner);
    call.b.data = (float *)call.b.data + first;
    call.c.data = (float *)call.c.data + first;
    if (cols > 0)
        gpu_product(r, call);
}

/* A block is a row of b w entries.  The last block may be short: its entries are mixed apart. */
void gpu_mix_blocks(Run *r, const Tensor *perm, const Tensor *x, int64_t b, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   w = x->shape[2], n = x->shape[1], rest = n % b * w;
    GemmCall  call = { .heads = y->shape[0], .rows = y->shape[1] / b, .inner = perm->shape[2],
                       .a = gpu_tensor(r, perm), .b = gpu_tensor(r, x), .c = gpu_result(r, y),
                       .alpha = 1 };

    call.b.row_stride = b * w;
    call.c.row_stride = b * w;
    if (gpu_ready(r)) {
        mix_columns(r, call, 0, rest, n / b + 1);
        mix_columns(r, call, rest, b * w - rest, n / b);
    }
    gpu_finish(r, "gemm");
    arena_release(r->arena, mark);
}

/* ---- rows: softmax, normalisation, lengths, inverses, balancing --------------------- */

/* Contiguous x as rows of its last axis. */
static Tensor as_rows(const Tensor *x)
{
    int64_t cols = x->shape[x->rank - 1];
    int64_t shape[2] = { cols > 0 ? tensor_count(x) / cols : 0, cols };

    return tensor_of(x->dtype, 2, shape, x->data);
}

void gpu_softmax(Run *r, const SoftmaxRows *in)
{
    Tensor      rows = in->x.rank == 3 ? in->x : as_rows(&in->x);
    int         last = rows.rank - 1;
    SoftmaxCall call = { .x = gpu_result(r, &rows).data, .wide = rows.dtype == DT_F64,
                         .heads = last == 2 ? rows.shape[0] : 1, .rows = rows.shape[last - 1],
                         .cols = rows.shape[last], .pitch = last == 2 ? rows.stride[0] : 0,
                         .causal = in->causal, .offset = in->offset };

    if (in->lse.data) {
        call.lse = gpu_result(r, &in->lse).data;
        call.lse_pitch = in->lse.stride[0];
    }
    if (gpu_ready(r))
        gpu_done(r, "softmax", gpu_api(r)->softmax(&call));
}

static void normalise(Run *r, const Tensor *x, NormaliseCall call, const float *gain,
                      const float *bias, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);

    call.heads = y->shape[0];
    call.x = gpu_tensor(r, x);
    call.y = gpu_result(r, y);
    call.gain = gpu_floats(r, gain, y->shape[2]);
    call.bias = gpu_floats(r, bias, y->shape[2]);
    GPU_OP(r, mark, "normalise", normalise, &call);
}

void gpu_standardised_product(Run *r, const Standardised *in, const Tensor *w, Tensor *y)
{
    ArenaMark     mark = arena_mark(r->arena);
    NormaliseCall call = { .centre = true, .length = LENGTH_ROOT_MEAN, .eps = in->eps };
    Tensor        z = tensor_of(DT_F32, 3, in->x.shape, gpu_scratch(r, tensor_count(&in->x),
                                                                    (int64_t)sizeof(float)));

    normalise(r, &in->x, call, in->gain, in->bias, &z);
    gpu_gemm(r, &z, false, w, false, 1, 0, y);
    arena_release(r->arena, mark);
}

void gpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y)
{
    NormaliseCall call = { .eps = eps, .centre = kind == NORMALISE_LAYER };

    call.length = kind == NORMALISE_L2     ? LENGTH_NORM
                  : kind == NORMALISE_NONE ? LENGTH_ONE
                                           : LENGTH_ROOT_MEAN;
    normalise(r, x, call, NULL, NULL, y);
}

double gpu_largest_norm(Run *r, const Tensor *x)
{
    ArenaMark mark = arena_mark(r->arena);
    NormsCall call = { .x = gpu_tensor(r, x),
                       .found = gpu_scratch(r, NORM_BLOCKS, (int64_t)sizeof(double)) };
    double    most = 0;

    if (gpu_ready(r))
        gpu_done(r, "norms", gpu_api(r)->norms(&call));
    gpu_wait(r, "the host looks for the longest row");
    for (int b = 0; b < NORM_BLOCKS && !run_failed(r); b++)
        most = call.found[b] <= most || isnan(most) ? most : call.found[b];
    arena_release(r->arena, mark);
    return sqrt(most);
}

void gpu_gelu(Run *r, Tensor *x, const float *bias)
{
    ArenaMark mark = arena_mark(r->arena);
    Tensor    rows = as_rows(x);
    GeluCall  call = { .x = gpu_result(r, &rows).data, .count = tensor_count(x),
                       .width = rows.shape[1], .bias = gpu_floats(r, bias, rows.shape[1]) };

    GPU_OP(r, mark, "gelu", gelu, &call);
}

void gpu_pinv(Run *r, const Tensor *a, double rcond, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    int64_t   size = a->shape[1] * a->shape[1];
    PinvCall  call = { .a = gpu_tensor(r, a), .rcond = rcond, .y = gpu_result(r, y).data,
                       .work = gpu_scratch(r, a->shape[0] * size, 2 * (int64_t)sizeof(double)) };

    GPU_OP(r, mark, "pinv", pinv, &call);
}

void gpu_sinkhorn(Run *r, Tensor *log_p, const Tensor *allowed, bool columns)
{
    ArenaMark    mark = arena_mark(r->arena);
    SinkhornCall call = { .heads = log_p->shape[0], .b = log_p->shape[1],
                          .log_p = gpu_result(r, log_p).data,
                          .allowed = gpu_tensor(r, allowed).data, .columns = columns };

    GPU_OP(r, mark, "sinkhorn", sinkhorn, &call);
}

/* ---- entries, and rows in double (attn/ops/rows.h) ---------------------------------- */

#define LONG_ROW 65536 /* entries from which a row is cut in pieces */
#define MOST_SPLITS 256

/* t with its strides, of rank 3; copied into the arena if it lies elsewhere. */
static EntryTensor operand(Run *r, const Tensor *t)
{
    EntryTensor  o = { .dtype = (int32_t)t->dtype, .heads = t->shape[0] };
    DeviceTensor copy;

    if (!t->data || run_failed(r))
        return (EntryTensor){ .heads = 1 };
    for (int a = 0; a < 3; a++)
        o.stride[a] = t->shape[a] > 1 ? t->stride[a] : 0;
    o.data = t->data;
    if (arena_holds(r->arena, t->data))
        return o;
    copy = gpu_tensor(r, t);
    o.data = copy.data;
    o.stride[0] = t->shape[0] > 1 ? copy.head_stride : 0;
    o.stride[1] = t->shape[1] > 1 ? copy.row_stride : 0;
    o.stride[2] = t->shape[2] > 1 ? 1 : 0;
    return o;
}

/* Of rank 3, in the arena. */
static EntryTensor result(Run *r, const Tensor *t)
{
    if (!run_failed(r) && !arena_holds(r->arena, t->data))
        run_fail(r, ERR_INTERNAL, "%s: an operation's result is not in the run's arena",
                 r->mechanism->id);
    return operand(r, t);
}

static bool has_two(EntryKind kind)
{
    return kind == ENTRY_SUM || kind == ENTRY_PRODUCT || kind == ENTRY_QUOTIENT ||
           kind == ENTRY_GATE || kind == ENTRY_WHERE;
}

static bool is_one(const EntryTensor *t)
{
    return !t->data || (!t->stride[0] && !t->stride[1] && !t->stride[2]);
}

/* Reshapes contiguous tensors to rows of a length that suits the device. */
static void fold(EntriesCall *call, const Entries *in)
{
    EntryTensor  *all[] = { &call->x, &call->z, &call->y };
    const Tensor *of[] = { &in->x, &in->z, &in->y };
    int64_t       count = tensor_count(&in->y), width = 1024;

    for (int o = 0; o < 3; o++)
        if (!is_one(all[o]) && !(tensor_contiguous(of[o]) && tensor_count(of[o]) == count))
            return;
    if (count % width)
        width = count % 32 ? count : 32;
    for (int o = 0; o < 3; o++)
        if (!is_one(all[o])) {
            all[o]->heads = 1;
            all[o]->stride[0] = 0;
            all[o]->stride[1] = width;
            all[o]->stride[2] = 1;
        }
    call->shape[0] = 1;
    call->shape[1] = count / width;
    call->shape[2] = width;
}

void gpu_zero(Run *r, double *data, int64_t count)
{
    int64_t     width = count % 32 ? count : 32;
    EntriesCall call = { .x = { .heads = 1 }, .z = { .heads = 1 }, .kind = ENTRY_FILL,
                         .y = { .data = data, .dtype = DEVICE_F64, .heads = 1,
                                .stride = { 0, width, 1 } },
                         .shape = { 1, count ? count / width : 0, width } };

    if (count > 0 && gpu_ready(r))
        gpu_began(r, "entries", gpu_api(r)->entries(&call));
}

void gpu_entries(Run *r, const Entries *in)
{
    ArenaMark   mark = arena_mark(r->arena);
    EntriesCall call = { .x = operand(r, &in->x), .kind = (int32_t)in->kind, .by = in->by,
                         .y = result(r, &in->y),
                         .shape = { in->y.shape[0], in->y.shape[1], in->y.shape[2] } };

    call.z = has_two(in->kind) ? operand(r, &in->z) : (EntryTensor){ .heads = 1 };
    if (in->kind == ENTRY_ROUND) {
        const Precision *to = precision_of((PrecisionFormat)in->by);

        call.bits = to->bits;
        call.least = to->least;
        call.limit = to->limit;
    }
    fold(&call, in);
    GPU_OP(r, mark, "entries", entries, &call);
}

void gpu_turn_pairs(Run *r, const TurnPairs *in, Tensor *y)
{
    ArenaMark     mark = arena_mark(r->arena);
    TurnPairsCall call = { .x = gpu_tensor(r, &in->x), .y = gpu_result(r, y),
                           .turns = gpu_tensor(r, &in->turns).data,
                           .pairs = in->turns.shape[2] / 2, .step = in->step, .gap = in->gap };

    GPU_OP(r, mark, "turned pairs", turn_pairs, &call);
}

void gpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    ArenaMark       mark = arena_mark(r->arena);
    Normalise64Call call = { .x = gpu_tensor(r, x), .y = gpu_tensor(r, y), .kind = (int32_t)kind,
                             .eps = eps };

    GPU_OP(r, mark, "normalise", normalise64, &call);
}

/* By the mean of squares, and eps / d. */
void gpu_unit_rows(Run *r, const Tensor *x, double eps, Tensor *y)
{
    double  d = (double)x->shape[2];
    Tensor  wide = run_tensor3(r, DT_F64, y->shape[0], y->shape[1], y->shape[2]);
    Entries scale = { .x = wide, .kind = ENTRY_SCALE, .by = 1 / sqrt(d), .y = *y };

    if (run_failed(r))
        return;
    gpu_normalise64(r, x, NORMALISE_RMS, eps / d, &wide);
    gpu_entries(r, &scale);
}

/* Entries of gain or bias; *step: elements between lines, 0 where all lines share them. */
static const float *of_lines(Run *r, const Tensor *t, int64_t *step)
{
    *step = t->rank > 1 && t->shape[t->rank - 2] > 1 ? t->shape[t->rank - 1] : 0;
    return gpu_floats(r, t->data, tensor_count(t));
}

void gpu_standardise64(Run *r, const Tensor *x, double eps, const Tensor *gain,
                       const Tensor *bias, Tensor *y)
{
    ArenaMark         mark = arena_mark(r->arena);
    int64_t           lines = x->shape[1], size = lines * x->shape[2];
    Standardise64Call call = { .x = operand(r, x), .y = result(r, y), .eps = eps,
                               .shape = { x->shape[0], lines, x->shape[2] }, .splits = 1 };

    if (size >= LONG_ROW && lines > 1)
        call.splits = lines < MOST_SPLITS ? lines : MOST_SPLITS;
    if (call.splits > 1)
        call.sums = gpu_scratch(r, 2 * call.splits * x->shape[0], (int64_t)sizeof(double));
    call.gain = of_lines(r, gain, &call.gain_step);
    call.bias = of_lines(r, bias, &call.bias_step);
    GPU_OP(r, mark, "standardise", standardise64, &call);
}
