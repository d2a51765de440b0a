/* lambdas.c -- see lambdas.h. */
#include "attn/lambdas.h"

#include <math.h>
#include <stdatomic.h>
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

/* ---- content ---------------------------------------------------------------- */

/* sum of exp(K - top) and of exp(K - top) V of one key channel so far. */
typedef struct Running {
    double top, z, *sum; /* [e] */
} Running;

static void take_key(const Lambdas *l, Running *s, double score, const float *v, int64_t uu)
{
    double weight;

    if (score > s->top) {
        double shrink = exp(s->top - score);

        s->z *= shrink;
        for (int64_t c = 0; c < l->s.e; c++)
            s->sum[c] *= shrink;
        s->top = score;
    }
    weight = exp(score - s->top);
    s->z += weight;
    for (int64_t c = 0; c < l->s.e; c++)
        s->sum[c] += weight * (double)v[c * l->s.u + uu];
}

/* The context that ends here, of key channel kk u + uu. */
static void store_context(const Lambdas *l, const Running *run, int64_t plane, int64_t kk,
                          int64_t uu)
{
    const LambdaSizes *s = &l->s;
    float             *to = l->content + (plane * s->k + kk) * s->e;

    l->lse[plane * s->k * s->u + kk * s->u + uu] = run->top + log(run->z);
    for (int64_t c = 0; c < s->e; c++)
        to[c] = (float)((uu ? (double)to[c] : 0) + run->sum[c] / run->z);
}

/* One channel of the queries, of one key head: all contexts. */
static void content_item(void *context, int64_t item, int worker)
{
    const Lambdas     *l = context;
    const LambdaSizes *s = &l->s;
    int64_t            kk = item % s->k, head = item / s->k, last = l->causal ? s->n : s->m;
    const float       *key = tensor_head(&l->key, head, s->hk);
    const float       *v = tensor_head(&l->v, head, s->hk);

    for (int64_t uu = 0; uu < s->u; uu++) {
        Running run = { .top = -(double)INFINITY, .sum = l->scratch + worker * s->k * s->e };

        memset(run.sum, 0, (size_t)s->e * sizeof(*run.sum));
        for (int64_t j = 0; j < last && !run_failed(l->r); j++) {
            if (j < s->m)
                take_key(l, &run, (double)key[(j * s->k + kk) * s->u + uu], v + j * s->e * s->u,
                         uu);
            if (l->causal)
                store_context(l, &run, head * s->n + j, kk, uu);
        }
        if (!l->causal)
            store_context(l, &run, head, kk, uu);
    }
}

void lambdas_content(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    int64_t            planes = s->hk * l->contexts;
    Tensor             content = run_tensor4(r, DT_F32, s->hk, l->contexts, s->k, s->e);
    Flops              cost = content_flops(l);

    l->content = content.data;
    l->lse = run_alloc(r, planes * s->k * s->u, sizeof(*l->lse));
    l->scratch = run_alloc(r, s->k * s->e,
                           threads_count(r->threads) * (int64_t)sizeof(*l->scratch));
    if (run_failed(r))
        return;
    threads_run(r->threads, s->hk * s->k, content_item, l);
    op_charge(r, FLOP_MIX, cost.mix);
    op_charge(r, FLOP_OVERHEAD, cost.overhead);
    op_traffic(r, (double)tensor_bytes(&l->key) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&content));
}

/* ---- positions, and the queries through both -------------------------------- */

#define ROWS 8 /* of one item of work */

typedef struct Apply {
    const Lambdas *l;
    Tensor         out;
    atomic_bool    failed; /* no memory for a row of the pattern */
} Apply;

/* lambda [k,e] += E[i,j] V[j] */
static void add_position(const LambdaSizes *s, const float *e, const float *v, double *lambda)
{
    for (int64_t x = 0; x < s->k * s->u; x++) {
        double  factor = (double)e[x];
        double *to = lambda + x / s->u * s->e;

        for (int64_t c = 0; c < s->e; c++)
            to[c] += factor * (double)v[c * s->u + x % s->u];
    }
}

static void put_through(const Apply *job, int64_t head, int64_t i, const double *lambda)
{
    const LambdaSizes *s = &job->l->s;
    const float       *q = tensor_f32(&job->l->q) + (head * s->n + i) * s->k;
    float             *out = tensor_f32(&job->out) +
                 (s->joined ? i * s->h + head : head * s->n + i) * s->e;

    for (int64_t c = 0; c < s->e; c++) {
        double sum = 0;

        for (int64_t kk = 0; kk < s->k; kk++)
            sum += (double)q[kk] * lambda[kk * s->e + c];
        out[c] = (float)sum;
    }
}

static void apply_row(const Apply *job, int64_t key_head, int64_t i, double *lambda,
                      PatternRow *row)
{
    const Lambdas     *l = job->l;
    const LambdaSizes *s = &l->s;
    const float       *v = tensor_head(&l->v, key_head, s->hk);
    const float       *content = l->content + (key_head * l->contexts + (l->causal ? i : 0)) *
                                            s->k * s->e;
    int64_t            group = s->h / s->hk;

    for (int64_t c = 0; c < s->k * s->e; c++)
        lambda[c] = (double)content[c];
    pattern_row(l->reach, 0, i, row);
    for (int64_t t = 0; t < row->count; t++)
        for (int64_t x = 0; x < row->runs[t].count; x++) {
            int64_t j = row->runs[t].start + x * row->runs[t].step;

            add_position(s, lambdas_entry(l, i, j), v + j * s->e * s->u, lambda);
        }
    for (int64_t head = key_head * group; head < (key_head + 1) * group; head++)
        put_through(job, head, i, lambda);
}

static void apply_item(void *context, int64_t item, int worker)
{
    Apply             *job = context;
    const LambdaSizes *s = &job->l->s;
    int64_t            items = (s->n + ROWS - 1) / ROWS, first = item % items * ROWS;
    PatternRow         row = { 0 };

    for (int64_t i = first; i < first + ROWS && i < s->n && !run_failed(job->l->r); i++)
        apply_row(job, item / items, i, job->l->scratch + worker * s->k * s->e, &row);
    if (row.failed)
        atomic_store(&job->failed, true);
    pattern_row_free(&row);
}

Tensor lambdas_apply(Lambdas *l)
{
    Run               *r = l->r;
    const LambdaSizes *s = &l->s;
    Apply              job = { .l = l };

    job.out = s->joined ? run_tensor3(r, DT_F32, 1, s->n, s->h * s->e)
                        : run_tensor3(r, DT_F32, s->h, s->n, s->e);
    if (run_failed(r))
        return job.out;
    threads_run(r->threads, s->hk * ((s->n + ROWS - 1) / ROWS), apply_item, &job);
    if (atomic_load(&job.failed))
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for a row of the pattern");
    op_charge(r, FLOP_MIX, apply_flops(l));
    op_traffic(r, (double)tensor_bytes(&l->q) + (double)tensor_bytes(&l->v),
               (double)tensor_bytes(&job.out));
    return job.out;
}

Flops lambdas_flops(const Lambdas *l)
{
    Flops sum = content_flops(l);

    sum.mix += apply_flops(l);
    return sum;
}
