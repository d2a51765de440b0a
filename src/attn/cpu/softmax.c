/* softmax.c -- softmax over rows, in place.
 *
 *     x_j <- exp(x_j - max x) / sum_j exp(x_j - max x)
 *
 * The sum is in double, so that long rows lose nothing.
 */
#include "attn/cpu/cpu.h"

#include <math.h>

#define ROWS 64 /* of one item of work */
#define PARTS 8 /* chains of a sum, so that an addition need not wait for the one before */

typedef struct Job {
    Run    *run;
    Tensor *x;
    int64_t rows, cols;
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

static void row32(const Job *job, int64_t row)
{
    const Kernel *kernel = kernel_at(0);
    float        *x = (float *)job->x->data + row * job->cols;

    kernel->scale(x, job->cols, (float)(1 / cpu_exp_row(kernel, x, job->cols)), x);
}

static void row64(const Job *job, int64_t row)
{
    double *x = (double *)job->x->data + row * job->cols, top = -(double)INFINITY;
    double  part[PARTS] = { 0 }, sum = 0;

    for (int64_t j = 0; j < job->cols; j++)
        top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < job->cols; j++)
        x[j] -= top;
    kernel_at(0)->exp64(x, job->cols);
    for (int64_t j = 0; j < job->cols; j++)
        part[j % PARTS] += x[j];
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    for (int64_t j = 0; j < job->cols; j++)
        x[j] /= sum;
}

static void softmax_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    end = min_i64(job->rows, (item + 1) * ROWS);

    (void)worker;
    for (int64_t row = item * ROWS; row < end && !cpu_cancelled(job->run); row++)
        (job->x->dtype == DT_F64 ? row64 : row32)(job, row);
}

void cpu_softmax(Run *r, Tensor *x)
{
    Job job = { .run = r, .x = x, .cols = x->shape[x->rank - 1] };

    job.rows = job.cols > 0 ? tensor_count(x) / job.cols : 0;
    threads_run(r->threads, ceil_div(job.rows, ROWS), softmax_item, &job);
}
