/* rounded.c -- attention as a narrow format would compute it; see op_rounded_attend. */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>

typedef struct Job {
    Run                 *run;
    const RoundedAttend *in;
    const Precision     *format;
    int64_t              heads, n, m;
    double              *work; /* [workers][m] */
} Job;

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
        x[j] = rounded_exponential(in, x[j], top);
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
    const double        *v = tensor_head(&in->v, head, job->heads);
    int32_t              infinite = 0;

    if (cpu_cancelled(job->run))
        return;
    keys = max_i64(0, keys);
    for (int64_t j = 0; j < keys; j++) {
        x[j] = rounded_raw_score(in, job->heads, head, i, j);
        infinite += isinf(x[j]) != 0;
        x[j] = rounded_scaled(in, x[j]);
    }
    tensor_i32(&in->overflows)[row] = infinite;
    soften(job, row, x, keys);
    for (int64_t c = 0; c < e; c++)
        out[c] = rounded_dot(in, keys, x, v + c, in->v.stride[1]);
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
