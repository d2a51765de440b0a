/* gpu_columns.c -- convolutions, best columns, products with listed rows and attention of narrow
 * formats on the device; see attn/ops_rows.h. */
#include "attn/cuda/host/gpu_dense.h"

void gpu_tap_sums(Run *r, const TapSums *in, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    TapSumsCall call = { .heads = y->shape[0], .x = gpu_tensor(r, &in->x),
                         .taps = gpu_tensor(r, &in->taps), .y = gpu_result(r, y),
                         .groups = in->groups, .first = in->first, .step = in->step,
                         .apart = gpu_most(1, in->apart),
                         .bias = gpu_floats(r, in->bias.data, y->shape[2]), .add = in->add };

    if (gpu_ready(r))
        gpu_done(r, "sums of taps", gpu_api(r)->tap_sums(&call));
    arena_release(r->arena, mark);
}

void gpu_best_columns(Run *r, const BestColumns *in, BestResult *out)
{
    ArenaMark       mark = arena_mark(r->arena);
    BestColumnsCall call = { .x = gpu_tensor(r, &in->x), .y = gpu_tensor(r, &in->y), .k = in->k,
                             .x_name = gpu_tensor(r, &in->x_name),
                             .y_name = gpu_tensor(r, &in->y_name), .names = in->names,
                             .value = gpu_result(r, &out->value).data,
                             .index = gpu_result(r, &out->index).data };

    if (gpu_ready(r))
        gpu_done(r, "best columns", gpu_api(r)->best_columns(&call));
    arena_release(r->arena, mark);
}

void gpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots)
{
    ArenaMark    mark = arena_mark(r->arena);
    PairDotsCall call = { .heads = index->shape[0], .n = index->shape[1], .k = index->shape[2],
                          .x = gpu_tensor(r, x), .y = gpu_tensor(r, y),
                          .index = gpu_tensor(r, index).data, .dots = gpu_result(r, dots).data };

    if (gpu_ready(r))
        gpu_done(r, "products with listed rows", gpu_api(r)->pair_dots(&call));
    arena_release(r->arena, mark);
}

void gpu_rounded_attend(Run *r, const RoundedAttend *in)
{
    ArenaMark         mark = arena_mark(r->arena);
    const Precision  *to = precision_of(in->format);
    int64_t           rows = in->out.shape[0] * in->q.shape[1];
    RoundedAttendCall call = { .heads = in->out.shape[0], .n = in->q.shape[1],
                               .m = in->k.shape[1], .blocks = gpu_least(rows, ROUNDED_BLOCKS),
                               .q = gpu_tensor(r, &in->q), .k = gpu_tensor(r, &in->k),
                               .v = gpu_tensor(r, &in->v), .bits = to->bits,
                               .least = to->least, .limit = to->limit, .scale = in->scale,
                               .half_sums = in->half_sums, .half_softmax = in->half_softmax,
                               .causal = in->causal, .offset = in->offset,
                               .out = gpu_result(r, &in->out).data,
                               .top = gpu_result(r, &in->top).data,
                               .total = gpu_result(r, &in->total).data,
                               .weights = gpu_result(r, &in->weights).data,
                               .overflows = gpu_result(r, &in->overflows).data };

    call.scores = gpu_scratch(r, call.blocks * call.m, (int64_t)sizeof(double));
    if (gpu_ready(r))
        gpu_done(r, "rounded attention", gpu_api(r)->rounded_attend(&call));
    gpu_computed(r, ARITHMETIC_F32);
    arena_release(r->arena, mark);
}
