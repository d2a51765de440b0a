/* lambda.c -- lambdas: the content's, and the queries put through both; see attn/lambdas.h.
 *
 * In double.  An item of the content is one channel of the queries, of one key head; of the
 * rest, some rows.
 */
#include "attn/cpu/cpu.h"

#include <math.h>
#include <string.h>

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

typedef struct Content {
    const Lambdas *l;
    double        *scratch; /* [workers][k e] */
} Content;

/* One channel of the queries, of one key head: all contexts. */
static void content_item(void *context, int64_t item, int worker)
{
    const Content     *job = context;
    const Lambdas     *l = job->l;
    const LambdaSizes *s = &l->s;
    int64_t            kk = item % s->k, head = item / s->k, last = l->causal ? s->n : s->m;
    const float       *key = tensor_head(&l->key, head, s->hk);
    const float       *v = tensor_head(&l->v, head, s->hk);

    for (int64_t uu = 0; uu < s->u; uu++) {
        Running run = { .top = -(double)INFINITY, .sum = job->scratch + worker * s->k * s->e };

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

static double *scratch_of(Run *r, const Lambdas *l)
{
    return cpu_scratch(r, l->s.k * l->s.e, threads_count(r->threads) * (int64_t)sizeof(double));
}

void cpu_lambda_content(Run *r, const Lambdas *l)
{
    ArenaMark mark = arena_mark(r->arena);
    Content   job = { .l = l, .scratch = scratch_of(r, l) };

    if (!run_failed(r))
        threads_run(r->threads, l->s.hk * l->s.k, content_item, &job);
    arena_release(r->arena, mark);
}

/* ---- positions, and the queries through both -------------------------------- */

#define ROWS 8 /* of one item of work */

typedef struct Apply {
    const Lambdas *l;
    Tensor         out;
    double        *scratch; /* [workers][k e] */
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
        apply_row(job, item / items, i, job->scratch + worker * s->k * s->e, &row);
    if (row.failed)
        atomic_store(&job->failed, true);
    pattern_row_free(&row);
}

void cpu_lambda_apply(Run *r, const Lambdas *l, Tensor *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Apply     job = { .l = l, .out = *out, .scratch = scratch_of(r, l) };

    if (!run_failed(r))
        threads_run(r->threads, l->s.hk * ceil_div(l->s.n, ROWS), apply_item, &job);
    if (atomic_load(&job.failed))
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for a row of the pattern");
    arena_release(r->arena, mark);
}
