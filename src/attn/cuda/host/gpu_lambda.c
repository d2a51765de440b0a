/* gpu_lambda.c -- lambdas on the device; see attn/lambdas.h. */
#include "attn/cuda/host/gpu.h"
#include "attn/ops/lambdas.h"

#define BLOCK_GROUPS 64 /* heads that share a key head, for what a block holds of them */
#define BLOCK_HEADS 65535

void gpu_lambda_content(Run *r, const Lambdas *l)
{
    ArenaMark         mark = arena_mark(r->arena);
    LambdaContentCall call = {
        .heads = l->s.hk, .m = l->s.m, .k = l->s.k, .u = l->s.u, .e = l->s.e,
        .contexts = l->contexts, .key = gpu_tensor(r, &l->key), .v = gpu_tensor(r, &l->v),
        .lse = l->lse, .content = l->content,
    };

    if (gpu_ready(r))
        gpu_done(r, "content lambdas", gpu_api(r)->lambda_content(&call));
    arena_release(r->arena, mark);
}

/* Of the table of E. */
static int64_t entries(const Lambdas *l)
{
    if (l->position == LAMBDA_NONE)
        return 0;
    if (l->position == LAMBDA_ABSOLUTE)
        return l->s.n * l->s.m;
    return (l->width > 0 ? 2 * l->up + 1 : 1) * (2 * l->side + 1);
}

static const float *table_of(Run *r, const Lambdas *l)
{
    Tensor t = tensor_of(DT_F32, 2, (int64_t[]){ entries(l), l->s.k * l->s.u },
                         (void *)(uintptr_t)l->pos);

    return entries(l) ? gpu_tensor(r, &t).data : NULL;
}

static void check_limits(Run *r, const Lambdas *l)
{
    int64_t room = gpu_kind(r)->device->info.shared / LAMBDA_GROUP_BYTES;
    int64_t most = room < BLOCK_GROUPS ? room : BLOCK_GROUPS;

    if (l->s.h / l->s.hk > most || l->s.hk > BLOCK_HEADS)
        run_fail(r, ERR_UNSUPPORTED, "lambda: %lld heads over %lld key heads; on this GPU at most "
                 "%lld may share one, and there may be %d key heads; use --device cpu",
                 (long long)l->s.h, (long long)l->s.hk, (long long)most, BLOCK_HEADS);
}

void gpu_lambda_apply(Run *r, const Lambdas *l, Tensor *out)
{
    ArenaMark       mark = arena_mark(r->arena);
    double          cells;
    LambdaApplyCall call = {
        .heads = l->s.hk, .group = l->s.h / l->s.hk, .n = l->s.n, .m = l->s.m, .k = l->s.k,
        .u = l->s.u, .e = l->s.e, .contexts = l->contexts, .joined = l->s.joined,
        .v = gpu_tensor(r, &l->v), .q = gpu_tensor(r, &l->q).data, .content = l->content,
        .table = table_of(r, l), .out = out->data,
        .entry = { .width = l->width, .up = l->up, .side = l->side,
                   .absolute = l->position == LAMBDA_ABSOLUTE },
    };

    check_limits(r, l);
    call.reach = gpu_row_runs(r, l->reach, &cells);
    if (gpu_ready(r))
        gpu_done(r, "lambdas", gpu_api(r)->lambda_apply(&call));
    arena_release(r->arena, mark);
}
