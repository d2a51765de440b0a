/* activate.c -- activations and norms of rows of features. */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>

#define PIECE 16384 /* entries of one item of work, at least a row */

typedef struct Activate {
    Run         *run;
    float       *x;
    const float *bias;
    int64_t      rows, width, each; /* each: rows of an item */
} Activate;

static void gelu_item(void *context, int64_t item, int worker)
{
    const Activate *job = context;
    int64_t         first = item * job->each, end = min_i64(job->rows, first + job->each);

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = first; i < end; i++)
        kernel_at(0)->gelu(job->x + i * job->width, job->bias, job->width);
}

void cpu_gelu(Run *r, Tensor *x, const float *bias)
{
    int64_t  width = x->shape[x->rank - 1];
    Activate job = { .run = r, .x = x->data, .bias = bias, .width = width };

    if (!tensor_count(x))
        return;
    job.rows = tensor_count(x) / width;
    job.each = width < PIECE ? PIECE / width : 1;
    threads_run(r->threads, ceil_div(job.rows, job.each), gelu_item, &job);
}

typedef struct Standardise {
    Run          *run;
    const Tensor *x;
    Tensor       *y;
    double        eps;
    const float  *gain, *bias;
    int64_t       rows, width, each;
} Standardise;

static void standardise_item(void *context, int64_t item, int worker)
{
    const Standardise *job = context;
    int64_t            end = min_i64(job->rows, (item + 1) * job->each);

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = item * job->each; i < end; i++)
        kernel_at(0)->standardise(tensor_f32(job->x) + i * job->width, job->width, job->eps,
                                  job->gain, job->bias, tensor_f32(job->y) + i * job->width);
}

void cpu_standardise(Run *r, const Tensor *x, double eps, const float *gain, const float *bias,
                     Tensor *y)
{
    int64_t     width = x->shape[x->rank - 1];
    Standardise job = { .run = r, .x = x, .y = y, .eps = eps, .gain = gain, .bias = bias,
                        .width = width };

    if (!tensor_count(x))
        return;
    job.rows = tensor_count(x) / width;
    job.each = width < PIECE ? PIECE / width : 1;
    threads_run(r->threads, ceil_div(job.rows, job.each), standardise_item, &job);
}

#define ROWS_AHEAD 8

typedef struct Norms {
    const Tensor *x;
    int64_t       rows, each; /* of all heads; of an item */
    double       *found;      /* [items] the largest sum of squares; NaN stays */
} Norms;

static void norm_item(void *context, int64_t item, int worker)
{
    const Norms  *job = context;
    const Tensor *x = job->x;
    const Kernel *kernel = kernel_at(0);
    int64_t       end = min_i64(job->rows, (item + 1) * job->each);
    double        most = 0;

    (void)worker;
    for (int64_t i = item * job->each; i < end; i++) {
        int64_t      at = i % x->shape[1];
        const float *row = (const float *)x->data + i / x->shape[1] * x->stride[0] +
                           at * x->stride[1];
        double       sum;

        if (at + ROWS_AHEAD < x->shape[1])
            cpu_fetch(row + ROWS_AHEAD * x->stride[1], x->shape[2]);
        sum = (double)kernel->squares_near(row, x->shape[2]);
        most = sum <= most || isnan(most) ? most : sum;
    }
    job->found[item] = most;
}

double cpu_largest_norm(Run *r, const Tensor *x)
{
    ArenaMark mark = arena_mark(r->arena);
    Norms     job = { .x = x, .rows = x->shape[0] * x->shape[1] };
    double    most = 0;
    int64_t   items;

    job.each = x->shape[2] < PIECE ? PIECE / x->shape[2] : 1;
    items = ceil_div(job.rows, job.each);
    job.found = cpu_scratch(r, items, (int64_t)sizeof(*job.found));
    if (job.found)
        threads_run(r->threads, items, norm_item, &job);
    for (int64_t i = 0; i < items && job.found; i++)
        most = job.found[i] <= most || isnan(most) ? most : job.found[i];
    arena_release(r->arena, mark);
    return sqrt(most);
}
