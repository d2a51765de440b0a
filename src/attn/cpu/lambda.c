/* lambda.c -- content lambdas, position lambdas and their products with the queries; see
 * attn/ops/lambdas.h.
 *
 * In double.  For content an item of work is one query channel of one key head; for the rest, ROWS
 * rows.  The position lambda of a query is a product of the entries E and the values of its keys,
 * a few keys at a time.
 */
#include "attn/cpu/cpu.h"
#include "attn/ops/lambdas.h"
#include "core/threads.h"

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

/* Stores the context up to this key, of key channel kk u + uu. */
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

/* All contexts of one query channel of one key head. */
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

/* `each` doubles a worker. */
static double *scratch_of(Run *r, int64_t each)
{
    return cpu_scratch(r, each, threads_count(r->threads) * (int64_t)sizeof(double));
}

void cpu_lambda_content(Run *r, const Lambdas *l)
{
    ArenaMark mark = arena_mark(r->arena);
    Content   job = { .l = l, .scratch = scratch_of(r, l->s.k * l->s.e) };

    if (!run_failed(r))
        threads_run(r->threads, l->s.hk * l->s.k, content_item, &job);
    arena_release(r->arena, mark);
}

/* ---- positions, and products with the queries ------------------------------- */

#define ROWS  8   /* of one item of work */
#define INNER 128 /* of one product, and at least one key */

typedef struct Apply {
    const Lambdas *l;
    Tensor         out;
    double        *scratch; /* [workers] lambda [k,e], then E and V of some keys */
    atomic_bool    failed;  /* no memory for a row of the pattern */
} Apply;

/* The position lambda of one query; keys are collected until they fill a product. */
typedef struct Positions {
    const LambdaSizes *s;
    double            *lambda, *e, *v; /* [k,e]; [keys u, k], [keys u, e] */
    int64_t            keys, most;
} Positions;

static int64_t keys_each(const LambdaSizes *s)
{
    return max_i64(1, INNER / s->u);
}

/* Doubles of one worker. */
static int64_t apply_room(const LambdaSizes *s)
{
    return s->k * s->e + keys_each(s) * s->u * (s->k + s->e);
}

/* lambda += E^T V */
static void flush_positions(Positions *p)
{
    const LambdaSizes *s = p->s;

    cpu_dgemm((WideMatrix){ p->e, s->k, true }, (WideMatrix){ p->v, s->e, false }, s->k, s->e,
              p->keys * s->u, 1, 1, p->lambda, s->e);
    p->keys = 0;
}

/* [channels,u] becomes [u,channels]. */
static void widen_values(const float *from, int64_t channels, int64_t u, double *to)
{
    if (u == 1) {
        for (int64_t c = 0; c < channels; c++)
            to[c] = (double)from[c];
        return;
    }
    for (int64_t c = 0; c < channels; c++)
        for (int64_t uu = 0; uu < u; uu++)
            to[uu * channels + c] = (double)from[c * u + uu];
}

static void add_position(Positions *p, const float *e, const float *v)
{
    const LambdaSizes *s = p->s;

    widen_values(e, s->k, s->u, p->e + p->keys * s->u * s->k);
    widen_values(v, s->e, s->u, p->v + p->keys * s->u * s->e);
    if (++p->keys == p->most)
        flush_positions(p);
}

static void multiply_queries(const Apply *job, int64_t head, int64_t i, const double *lambda)
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
    Positions          p = { .s = s, .lambda = lambda, .e = lambda + s->k * s->e,
                             .most = keys_each(s) };
    const float       *v = tensor_head(&l->v, key_head, s->hk);
    const float       *content = l->content + (key_head * l->contexts + (l->causal ? i : 0)) *
                                            s->k * s->e;
    int64_t            group = s->h / s->hk;

    p.v = p.e + p.most * s->u * s->k;
    for (int64_t c = 0; c < s->k * s->e; c++)
        lambda[c] = (double)content[c];
    pattern_row(l->reach, 0, i, row);
    for (int64_t t = 0; t < row->count; t++)
        for (int64_t x = 0; x < row->runs[t].count; x++) {
            int64_t j = row->runs[t].start + x * row->runs[t].step;

            add_position(&p, lambdas_entry(l, i, j), v + j * s->e * s->u);
        }
    if (p.keys)
        flush_positions(&p);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; head++)
        multiply_queries(job, head, i, lambda);
}

static void apply_item(void *context, int64_t item, int worker)
{
    Apply             *job = context;
    const LambdaSizes *s = &job->l->s;
    int64_t            items = ceil_div(s->n, ROWS), first = item % items * ROWS;
    PatternRow         row = { 0 };

    for (int64_t i = first; i < first + ROWS && i < s->n && !run_failed(job->l->r); i++)
        apply_row(job, item / items, i, job->scratch + worker * apply_room(s), &row);
    if (row.failed)
        atomic_store(&job->failed, true);
    pattern_row_free(&row);
}

void cpu_lambda_apply(Run *r, const Lambdas *l, Tensor *out)
{
    ArenaMark mark = arena_mark(r->arena);
    Apply     job = { .l = l, .out = *out, .scratch = scratch_of(r, apply_room(&l->s)) };

    if (!run_failed(r) && cpu_blas(r))
        threads_run(r->threads, l->s.hk * ceil_div(l->s.n, ROWS), apply_item, &job);
    if (atomic_load(&job.failed))
        run_fail(r, ERR_NOMEM, "lambda: not enough memory for a row of the pattern");
    arena_release(r->arena, mark);
}
