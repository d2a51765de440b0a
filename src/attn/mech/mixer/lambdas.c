/* lambdas.c -- see lambdas.h. */
#include "attn/mech/mixer/lambdas.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

void lambdas_reach(Lambdas *l)
{
    Run         *r = l->r;
    PatternShape shape = { .heads = 1, .n = l->s.n, .m = l->s.m };
    Pattern     *cells;

    if (run_failed(r))
        return;
    if (l->position == LAMBDA_NONE)
        cells = pattern_none(r->arena, shape);
    else if (l->position == LAMBDA_ABSOLUTE)
        cells = pattern_full(r->arena, shape, COMPONENT_WINDOW);
    else if (l->width > 0)
        cells = pattern_grid(r->arena, shape, l->width, l->up, l->side, COMPONENT_WINDOW);
    else
        cells = pattern_band(r->arena, shape, -l->side, l->side, 1, COMPONENT_WINDOW);
    cells = pattern_finish(r->arena, shape, cells, l->causal);
    if (!cells)
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for the pattern");
    l->contexts = l->causal ? l->s.n : 1;
    l->reach = cells;
}

/* E[i,j], [k,u], of a cell within reach. */
const float *lambdas_entry(const Lambdas *l, int64_t i, int64_t j)
{
    int64_t at = j - i + l->side;

    if (l->position == LAMBDA_ABSOLUTE)
        at = i * l->s.m + j;
    else if (l->width > 0)
        at = (j / l->width - i / l->width + l->up) * (2 * l->side + 1) + j % l->width -
             i % l->width + l->side;
    return l->pos + at * l->s.k * l->s.u;
}

/* ---- costs ------------------------------------------------------------------ */

static Flops content_flops(const Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    double             ku = (double)s->hk * (double)s->k * (double)s->u;

    return (Flops){ .mix = 2 * (double)s->m * ku * (double)s->e,
                    .overhead = FLOPS_ROW_SOFTMAX * (double)s->m * ku +
                                (l->causal ? 2 * (double)s->n * ku * (double)s->e : 0) };
}

static double apply_flops(const Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    double             cells = l->reach ? (double)pattern_count(l->reach) : 0;

    return 2 * (double)s->k * (double)s->e *
           ((double)s->u * (double)s->hk * cells + (double)s->h * (double)s->n);
}

/* ---- content, positions, and the queries through both ------------------------- */

void lambdas_content(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    int64_t            planes = s->hk * l->contexts;
    Tensor             content = run_tensor4(r, DT_F32, s->hk, l->contexts, s->k, s->e);
    Flops              cost = content_flops(l);

    l->content = content.data;
    l->lse = run_alloc(r, planes * s->k * s->u, sizeof(*l->lse));
    op_lambda_content(r, l);
    op_charge(r, FLOP_MIX, cost.mix);
    op_charge(r, FLOP_OVERHEAD, cost.overhead);
    op_traffic(r, (double)tensor_bytes(&l->key) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&content));
}

Tensor lambdas_apply(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    Tensor             out;

    out = s->joined ? run_tensor3(r, DT_F32, 1, s->n, s->h * s->e)
                    : run_tensor3(r, DT_F32, s->h, s->n, s->e);
    op_lambda_apply(r, l, out);
    op_charge(r, FLOP_MIX, apply_flops(l));
    op_traffic(r, (double)tensor_bytes(&l->q) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&out));
    return out;
}

Flops lambdas_flops(const Lambdas *l)
{
    Flops sum = content_flops(l);

    sum.mix += apply_flops(l);
    return sum;
}
