/* gpu_gemm.c -- products of matrices on the device; see attn/ops.h. */
#include "attn/cuda/host/gpu_dense.h"

#define TILE 64          /* of c, for one block at least */
#define FEW_TILES 128    /* fewer do not occupy a large GPU */
#define PIECE_LEAST 1024 /* of the inner axis */
#define MOST_PIECES 64

/* How many pieces of the inner axis make enough tiles. */
static int64_t pieces_of(const GemmCall *g)
{
    int64_t tiles = g->heads * ((g->rows + TILE - 1) / TILE) * ((g->cols + TILE - 1) / TILE);
    int64_t wanted = tiles > 0 ? FEW_TILES / tiles : 1;

    if (g->pieces > 1 || g->in_order)
        return g->pieces;
    wanted = gpu_least(gpu_least(wanted, MOST_PIECES), g->inner / PIECE_LEAST);
    return gpu_most(wanted, 1);
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

static void finish(Run *r, ArenaMark mark)
{
    gpu_finish(r, "gemm");
    arena_release(r->arena, mark);
}

void gpu_gemm(Run *r, const Tensor *a, bool ta, const Tensor *b, bool tb, double alpha,
              double beta, Tensor *c)
{
    ArenaMark mark = arena_mark(r->arena);
    GemmCall  call = { .heads = c->shape[0], .rows = c->shape[1], .cols = c->shape[2],
                       .inner = a->shape[ta ? 1 : 2], .a = gpu_tensor(r, a),
                       .b = gpu_tensor(r, b), .c = gpu_result(r, c), .ta = ta, .tb = tb,
                       .alpha = alpha, .beta = beta, .arithmetic = gpu_kind(r)->arithmetic };

    if (gpu_ready(r))
        gpu_product(r, call);
    if (a->dtype == DT_F32 && b->dtype == DT_F32 && c->dtype == DT_F32)
        gpu_computed(r, gpu_kind(r)->arithmetic);
    finish(r, mark);
}

void gpu_gemm_long(Run *r, const Tensor *a, const Tensor *b, double alpha, Tensor *c)
{
    ArenaMark mark = arena_mark(r->arena);
    GemmCall  call = { .heads = c->shape[0], .rows = c->shape[1], .cols = c->shape[2],
                       .inner = a->shape[2], .a = gpu_tensor(r, a), .b = gpu_tensor(r, b),
                       .c = gpu_result(r, c), .alpha = alpha, .folded = true };

    if (gpu_ready(r))
        gpu_product(r, call);
    finish(r, mark);
}

/* y = x w, sums in index order. */
static void ordered(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    GemmCall  call = { .heads = y->shape[0], .rows = y->shape[1], .cols = y->shape[2],
                       .inner = x->shape[2], .a = gpu_tensor(r, x), .b = gpu_tensor(r, w),
                       .c = gpu_result(r, y), .alpha = 1, .in_order = true,
                       .start = gpu_floats(r, bias, y->shape[2]) };

    if (gpu_ready(r))
        gpu_product(r, call);
    finish(r, mark);
}

void gpu_dots64(Run *r, const Tensor *x, const Tensor *w, Tensor *y)
{
    ordered(r, x, w, NULL, y);
}

void gpu_product64(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y)
{
    ordered(r, x, w, bias, y);
}

/* ---- blocks mixed ------------------------------------------------------------------ */

/* Columns [first, first + cols) of the blocks' entries, of the first `blocks` blocks of x. */
static void mix_columns(Run *r, GemmCall call, int64_t first, int64_t cols, int64_t blocks)
{
    call.cols = cols;
    call.inner = gpu_least(blocks, call.inner);
    call.b.data = (float *)call.b.data + first;
    call.c.data = (float *)call.c.data + first;
    if (cols > 0)
        gpu_product(r, call);
}

/* A block is a row of b w entries; the last one may be short, so its entries go apart. */
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
    finish(r, mark);
}
