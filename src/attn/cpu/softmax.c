/* softmax.c -- softmax over rows, in place.
 *
 *     x_j <- exp(x_j - max x) / sum_j exp(x_j - max x)     over the first entries of a row
 *
 * The sum is in double, so that long rows lose nothing.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define PIECE 16384 /* entries of one item of work, at least a row */
#define PARTS 8     /* chains of a sum, so that an addition need not wait for the one before */

typedef struct Job {
    Run               *run;
    const SoftmaxRows *in;
    int64_t            rows, cols, pitch; /* rows of all heads; of a head; its elements */
    int64_t            per_head, each; /* each: rows of an item */
} Job;

double cpu_exp_row(const Kernel *kernel, float *x, int64_t count)
{
    double part[PARTS] = { 0 }, sum = 0;
    float  top = count > 0 ? x[0] : 0;

    for (int64_t j = 1; j < count; j++)
        top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < count; j++)
        x[j] -= top;
    kernel->exp2(x, count, (float)LOG2_E, 0);
    for (int64_t j = 0; j < count; j++)
        part[j % PARTS] += (double)x[j];
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    return sum;
}

/* Each returns the log of the sum of the exponentials. */
static double row32(float *x, int64_t count, bool asked)
{
    const Kernel *kernel = kernel_at(0);
    double        top = -(double)INFINITY, sum;

    for (int64_t j = 0; asked && j < count; j++)
        top = (double)x[j] > top ? (double)x[j] : top;
    sum = cpu_exp_row(kernel, x, count);
    kernel->scale(x, count, (float)(1 / sum), x);
    return top + log(sum);
}

static double row64(double *x, int64_t count)
{
    double top = -(double)INFINITY, part[PARTS] = { 0 }, sum = 0;

    for (int64_t j = 0; j < count; j++)
        top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < count; j++)
        x[j] -= top;
    kernel_at(0)->exp64(x, count);
    for (int64_t j = 0; j < count; j++)
        part[j % PARTS] += x[j];
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    for (int64_t j = 0; j < count; j++)
        x[j] /= sum;
    return top + log(sum);
}

static void soften(const Job *job, int64_t row)
{
    const SoftmaxRows *in = job->in;
    int64_t            head = row / job->per_head, i = row % job->per_head, count = job->cols;
    int64_t            at = head * job->pitch + i * job->cols;
    int64_t            size = dtype_size(in->x.dtype);
    char              *x = (char *)in->x.data + at * size;
    double             lse;

    if (in->causal)
        count = max_i64(0, min_i64(count, i + in->offset + 1));
    lse = in->x.dtype == DT_F64 ? row64((double *)(void *)x, count)
                                : row32((float *)(void *)x, count, in->lse.data != NULL);
    memset(x + count * size, 0, (size_t)((job->cols - count) * size));
    if (in->lse.data)
        ((double *)in->lse.data)[head * in->lse.stride[0] + i] = lse;
}

static void softmax_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    end = min_i64(job->rows, (item + 1) * job->each);

    (void)worker;
    for (int64_t row = item * job->each; row < end && !cpu_cancelled(job->run); row++)
        soften(job, row);
}

void cpu_softmax(Run *r, const SoftmaxRows *in)
{
    const Tensor *x = &in->x;
    Job           job = { .run = r, .in = in, .cols = x->shape[x->rank - 1] };
    bool          heads = x->rank == 3;

    job.rows = job.cols > 0 ? tensor_count(x) / job.cols : 0;
    job.per_head = heads ? x->shape[1] : job.rows;
    job.pitch = heads ? x->stride[0] : 0;
    job.each = max_i64(1, PIECE / max_i64(1, job.cols));
    threads_run(r->threads, ceil_div(job.rows, job.each), softmax_item, &job);
}
