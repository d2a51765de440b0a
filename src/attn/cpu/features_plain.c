/* features_plain.c -- feature maps of the vectors themselves, f = d (spec: linear).
 *
 *     elu             x + 1 for x >= 0, alpha (e^x - 1) + 1 below
 *     rectified       max(x, 0)
 *     exp             e^x
 *     softmax         over the d features of a row
 *     column softmax  over the n rows of a head, separately for each feature
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 128
#define PIECE 512 /* columns of a column softmax at once */

typedef struct Job {
    Run              *run;
    const Tensor     *x;
    const FeatureMap *map;
    Tensor           *y;
    int64_t           h, n, d, blocks;
} Job;

static const float *row_of(const Job *job, int64_t head, int64_t i)
{
    return (const float *)tensor_head(job->x, head, job->h) + i * job->x->stride[1];
}

static float *out_of(const Job *job, int64_t head, int64_t i)
{
    return (float *)job->y->data + (head * job->n + i) * job->d;
}

static void map_row(const Job *job, int64_t head, int64_t i)
{
    const Kernel *kernel = kernel_at(0);
    const float  *x = row_of(job, head, i);
    float        *y = out_of(job, head, i);

    switch (job->map->kind) {
    case FEATURE_ELU:
        kernel->elu(x, job->d, (float)job->map->alpha, y);
        break;
    case FEATURE_RECTIFIED:
        for (int64_t c = 0; c < job->d; c++)
            y[c] = 0 > x[c] ? 0 : x[c];
        break;
    case FEATURE_EXP:
        memcpy(y, x, (size_t)job->d * sizeof(*y));
        kernel->exp2(y, job->d, (float)LOG2_E, 0);
        break;
    default:
        memcpy(y, x, (size_t)job->d * sizeof(*y));
        kernel->scale(y, job->d, (float)(1 / cpu_exp_row(kernel, y, job->d)), y);
        break;
    }
}

static void map_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t    end = min_i64(job->n, first + ROWS);

    (void)worker;
    for (int64_t i = first; i < end && !cpu_cancelled(job->run); i++)
        map_row(job, head, i);
}

/* One head, PIECE features: maximum, exponentials and their sums, division. */
static void column_piece(const Job *job, int64_t head, int64_t first, int64_t count)
{
    const Kernel *kernel = kernel_at(0);
    float         top[PIECE];
    double        sum[PIECE] = { 0 };

    for (int64_t c = 0; c < count; c++)
        top[c] = row_of(job, head, 0)[first + c];
    for (int64_t i = 1; i < job->n; i++) {
        const float *x = row_of(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            top[c] = x[c] > top[c] ? x[c] : top[c];
    }
    for (int64_t i = 0; i < job->n && !cpu_cancelled(job->run); i++) {
        const float *x = row_of(job, head, i) + first;
        float       *y = out_of(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = x[c] - top[c];
        kernel->exp2(y, count, (float)LOG2_E, 0);
        kernel->fold(y, count, sum);
    }
    for (int64_t i = 0; i < job->n; i++) {
        float *y = out_of(job, head, i) + first;

        for (int64_t c = 0; c < count; c++)
            y[c] = (float)((double)y[c] / sum[c]);
    }
}

static void column_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    pieces = ceil_div(job->d, PIECE), first = item % pieces * PIECE;

    (void)worker;
    column_piece(job, item / pieces, first, min_i64(PIECE, job->d - first));
}

void cpu_features_plain(Run *r, const Tensor *x, const FeatureMap *map, Tensor *y)
{
    Job job = { .run = r, .x = x, .map = map, .y = y, .h = y->shape[0], .n = y->shape[1],
                .d = y->shape[2], .blocks = ceil_div(y->shape[1], ROWS) };

    if (map->kind == FEATURE_COLUMN_SOFTMAX)
        threads_run(r->threads, job.h * ceil_div(job.d, PIECE), column_item, &job);
    else
        threads_run(r->threads, job.h * job.blocks, map_item, &job);
}
