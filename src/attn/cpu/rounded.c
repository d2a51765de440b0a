/* rounded.c -- attention as a narrow format would compute it; see op_rounded_attend. */
#include "attn/cpu/cpu.h"

#include <math.h>

typedef struct Job {
    Run                 *run;
    const RoundedAttend *in;
    const Precision     *format;
    int64_t              heads, n, m;
    double              *work; /* [workers][m] */
} Job;

static const double *row_of(const Job *job, const Tensor *t, int64_t head, int64_t i)
{
    return (const double *)tensor_head(t, head, job->heads) + i * t->stride[1];
}

/* Never fused: a product is a number of its own before it is added. */
static double dot(const Job *job, int64_t count, const double *x, const double *y, int64_t step)
{
    double sum = 0;

    if (job->in->half_sums)
        return precision_dot(job->format, count, x, 1, y, step);
    for (int64_t c = 0; c < count; c++)
        sum += x[c] * y[c * step];
    return precision_round(job->format, sum);
}

static double exponential(const Job *job, double score, double top)
{
    if (!job->in->half_softmax)
        return exp(score - top);
    return precision_round(job->format, exp(precision_round(job->format, score - top)));
}

/* Infinity minus infinity is not a number, and stays so. */
static double largest(const double *x, int64_t count)
{
    double top = -(double)INFINITY;

    for (int64_t j = 0; j < count; j++)
        top = isnan(top) || isnan(x[j]) ? (double)NAN : fmax(top, x[j]);
    return top;
}

/* Scores x become weights. */
static void soften(const Job *job, int64_t row, double *x, int64_t keys)
{
    const RoundedAttend *in = job->in;
    double               top = largest(x, keys), sum = 0, all = 0;

    for (int64_t j = 0; j < keys; j++) {
        x[j] = exponential(job, x[j], top);
        sum += x[j];
    }
    if (in->half_softmax)
        sum = precision_sum(job->format, keys, x);
    for (int64_t j = 0; j < keys; j++) {
        x[j] = precision_round(job->format, x[j] / sum);
        all += x[j];
    }
    ((double *)in->top.data)[row] = top;
    ((double *)in->total.data)[row] = sum;
    ((double *)in->weights.data)[row] = all;
}

static void row_item(void *context, int64_t row, int worker)
{
    const Job           *job = context;
    const RoundedAttend *in = job->in;
    int64_t              head = row / job->n, i = row % job->n, e = in->v.shape[2];
    int64_t              keys = in->causal ? min_i64(job->m, i + in->offset + 1) : job->m;
    double              *x = job->work + worker * job->m, *out = (double *)in->out.data + row * e;
    int32_t              infinite = 0;

    if (cpu_cancelled(job->run))
        return;
    keys = max_i64(0, keys);
    for (int64_t j = 0; j < keys; j++) {
        x[j] = dot(job, in->q.shape[2], row_of(job, &in->q, head, i),
                   row_of(job, &in->k, head, j), 1);
        infinite += isinf(x[j]) != 0;
        x[j] = in->scale > 0 ? precision_round(job->format, x[j] * in->scale) : x[j];
    }
    tensor_i32(&in->overflows)[row] = infinite;
    soften(job, row, x, keys);
    for (int64_t c = 0; c < e; c++)
        out[c] = dot(job, keys, x, row_of(job, &in->v, head, 0) + c, in->v.stride[1]);
}

void cpu_rounded_attend(Run *r, const RoundedAttend *in)
{
    ArenaMark mark = arena_mark(r->arena);
    Job       job = { .run = r, .in = in, .format = precision_of(in->format),
                      .heads = in->out.shape[0], .n = in->q.shape[1], .m = in->k.shape[1] };

    job.work = cpu_scratch(r, threads_count(r->threads) * job.m, (int64_t)sizeof(*job.work));
    if (job.work)
        threads_run(r->threads, job.heads * job.n, row_item, &job);
    arena_release(r->arena, mark);
}
