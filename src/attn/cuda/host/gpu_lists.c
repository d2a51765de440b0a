/* gpu_lists.c -- rows by lists on the device; see attn/ops/ops.h, op_gather and below. */
#include "attn/cuda/host/gpu.h"

static void move(Run *r, const Tensor *x, const Tensor *index, Tensor *y, bool scatter)
{
    ArenaMark mark = arena_mark(r->arena);
    MoveCall  call = { .heads = y->shape[0], .x = gpu_tensor(r, x), .y = gpu_tensor(r, y),
                       .index = gpu_lines(gpu_tensor(r, index)), .scatter = scatter };

    if (gpu_ready(r))
        gpu_done(r, scatter ? "scatter" : "gather", gpu_api(r)->move(&call));
    arena_release(r->arena, mark);
}

void gpu_gather(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move(r, x, index, y, false);
}

void gpu_scatter(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move(r, x, index, y, true);
}

void gpu_merge_rows(Run *r, const MergeRows *in)
{
    ArenaMark mark = arena_mark(r->arena);
    MergeCall call = { .heads = in->out.shape[0], .lists = in->lists,
                       .rows = gpu_tensor(r, &in->rows),
                       .lse = gpu_lines(gpu_tensor(r, &in->lse)),
                       .index = gpu_lines(gpu_tensor(r, &in->index)),
                       .out = gpu_tensor(r, &in->out), .z = gpu_lines(gpu_tensor(r, &in->z)) };

    if (gpu_ready(r))
        gpu_done(r, "merge", gpu_api(r)->merge(&call));
    arena_release(r->arena, mark);
}

/* The host makes where a row's entries begin, and often all of them. */
static void lists_toward(Run *r, const SumLists *in)
{
    int64_t rows = in->heads * in->n, entries = run_failed(r) ? 0 : in->start[rows];

    gpu_toward(r, in->start, (rows + 1) * (int64_t)sizeof(*in->start));
    gpu_toward(r, in->entry, entries * (int64_t)sizeof(*in->entry));
    gpu_toward(r, in->weight, entries * (int64_t)sizeof(*in->weight));
    gpu_toward(r, in->share, rows * (int64_t)sizeof(*in->share));
}

void gpu_sum_lists(Run *r, const SumLists *in, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    SumsCall  call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, y),
                       .start = in->start, .entry = in->entry, .weight = in->weight,
                       .share = in->share };

    lists_toward(r, in);
    if (gpu_ready(r))
        gpu_done(r, "sums of lists", gpu_api(r)->sum_lists(&call));
    arena_release(r->arena, mark);
}

void gpu_pool_windows(Run *r, const PoolWindows *in, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    WindowsCall call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, y),
                         .first = in->first, .end = in->end, .kind = (int32_t)in->kind };

    if (gpu_ready(r))
        gpu_done(r, "pooling", gpu_api(r)->pool_windows(&call));
    arena_release(r->arena, mark);
}
