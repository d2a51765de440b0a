/* rows.c -- normalisation of single rows; statistics are taken in double. */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>

#define ROWS 64 /* of one item of work */

typedef struct Normalise {
    const Tensor *x;
    int           kind;
    double        eps;
    Tensor       *y;
} Normalise;

static void normalise_row(const float *x, int64_t count, int kind, double eps, float *y)
{
    const Kernel *kernel = kernel_at(0);
    double        sum, squares, mean = 0, factor = 1;

    kernel->moments(x, count, 0, &sum, &squares);
    if (kind == NORMALISE_LAYER) {
        mean = sum / (double)count;
        kernel->moments(x, count, mean, &sum, &squares);
    }
    if (kind == NORMALISE_RMS || kind == NORMALISE_LAYER)
        factor = 1 / sqrt(squares / (double)count + eps);
    if (kind == NORMALISE_L2)
        factor = 1 / fmax(sqrt(squares), eps);
    kernel->centre(x, count, mean, factor, y);
}

static void normalise_item(void *context, int64_t item, int worker)
{
    const Normalise *job = context;
    int64_t          h = job->y->shape[0], n = job->y->shape[1], d = job->y->shape[2];

    (void)worker;
    for (int64_t i = item * ROWS; i < min_i64(h * n, (item + 1) * ROWS); i++) {
        const float *x = tensor_head(job->x, i / n, h);

        normalise_row(x + i % n * job->x->stride[1], d, job->kind, job->eps,
                      (float *)job->y->data + i * d);
    }
}

void cpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y)
{
    Normalise job = { .x = x, .kind = kind, .eps = eps, .y = y };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], ROWS), normalise_item, &job);
}
