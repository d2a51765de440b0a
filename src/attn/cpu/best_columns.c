/* best_columns.c -- the largest entries of every row, in order, or of the sums of two rows;
 * products of a row with rows by number. */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define PIECE 16384 /* entries of one item of work, at least a row */
#define SUM_LANES 8

typedef struct Best {
    Run               *run;
    const BestColumns *in;
    BestResult        *out;
    int64_t            rows, each; /* of all heads; of an item */
} Best;

/* Puts `value` into the best k so far; ties stay behind those before them. */
static int64_t insert(double value, int32_t index, int64_t have, int64_t k, double *best,
                      int32_t *which)
{
    int64_t at = have < k ? have : k - 1;

    if (have == k && !(value > best[k - 1]))
        return have;
    for (; at > 0 && value > best[at - 1]; at--) {
        best[at] = best[at - 1];
        which[at] = which[at - 1];
    }
    best[at] = value;
    which[at] = index;
    return have < k ? have + 1 : k;
}

static const double *row_of(const Tensor *t, int64_t row)
{
    return (const double *)t->data + row / t->shape[1] * t->stride[0] +
           row % t->shape[1] * t->stride[1];
}

static const int32_t *names_of(const Tensor *t, int64_t row)
{
    return tensor_i32(t) + row / t->shape[1] * t->stride[0] + row % t->shape[1] * t->stride[1];
}

static void call_columns(const BestColumns *in, int64_t row, int64_t others, int32_t *which)
{
    const int32_t *x = names_of(&in->x_name, row), *y = names_of(&in->y_name, row);

    for (int64_t c = 0; c < in->k; c++)
        which[c] = (int32_t)(x[which[c] / others] * in->names + y[which[c] % others]);
}

static void best_row(const Best *job, int64_t row)
{
    const BestColumns *in = job->in;
    const double      *x = row_of(&in->x, row), *y = in->y.data ? row_of(&in->y, row) : NULL;
    int64_t            others = y ? in->y.shape[2] : 1, have = 0;
    double            *best = (double *)job->out->value.data + row * in->k;
    int32_t           *which = tensor_i32(&job->out->index) + row * in->k;

    for (int64_t p = 0; p < in->x.shape[2]; p++)
        for (int64_t c = 0; c < others; c++)
            have = insert(y ? x[p] + y[c] : x[p], (int32_t)(p * others + c), have, in->k, best,
                          which);
    if (in->x_name.data)
        call_columns(in, row, others, which);
}

static void best_item(void *context, int64_t item, int worker)
{
    const Best *job = context;

    (void)worker;
    for (int64_t row = item * job->each;
         row < min_i64(job->rows, (item + 1) * job->each) && !cpu_cancelled(job->run); row++)
        best_row(job, row);
}

void cpu_best_columns(Run *r, const BestColumns *in, BestResult *out)
{
    int64_t columns = in->x.shape[2] * (in->y.data ? in->y.shape[2] : 1);
    Best    job = { .run = r, .in = in, .out = out, .rows = in->x.shape[0] * in->x.shape[1],
                    .each = max_i64(1, PIECE / max_i64(1, columns)) };

    threads_run(r->threads, ceil_div(job.rows, job.each), best_item, &job);
}

/* ---- products of a row with rows by number ------------------------------------------ */

typedef struct Dots {
    Run          *run;
    const Tensor *x, *y, *index;
    Tensor       *dots;
    int64_t       each; /* rows of an item */
} Dots;

/* In several lanes, added up at the end. */
static float dot(const float *x, const float *y, int64_t count)
{
    float   lane[SUM_LANES] = { 0 }, sum = 0;
    int64_t c = 0;

    for (; c + SUM_LANES <= count; c += SUM_LANES)
        for (int t = 0; t < SUM_LANES; t++)
            lane[t] += x[c + t] * y[c + t];
    for (; c < count; c++)
        sum += x[c] * y[c];
    for (int t = 0; t < SUM_LANES; t++)
        sum += lane[t];
    return sum;
}

static void dots_item(void *context, int64_t item, int worker)
{
    const Dots *job = context;
    int64_t     heads = job->index->shape[0], n = job->index->shape[1], k = job->index->shape[2];

    (void)worker;
    for (int64_t row = item * job->each;
         row < min_i64(heads * n, (item + 1) * job->each) && !cpu_cancelled(job->run); row++) {
        const float *x = (const float *)tensor_head(job->x, row / n, heads) +
                         row % n * job->x->stride[1];
        const float *y = tensor_head(job->y, row / n, heads);

        for (int64_t at = row * k; at < (row + 1) * k; at++)
            tensor_f32(job->dots)[at] =
                dot(x, y + tensor_i32(job->index)[at] * job->y->stride[1], job->x->shape[2]);
    }
}

void cpu_pair_dots(Run *r, const Tensor *x, const Tensor *y, const Tensor *index, Tensor *dots)
{
    int64_t work = max_i64(1, index->shape[2] * x->shape[2]);
    Dots    job = { .run = r, .x = x, .y = y, .index = index, .dots = dots,
                    .each = max_i64(1, PIECE / work) };

    threads_run(r->threads, ceil_div(index->shape[0] * index->shape[1], job.each), dots_item,
                &job);
}
