/* rows64.c -- rows in double: normalised, standardised. */
#include "attn/cpu/cpu.h"
#include "attn/ops/dense.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define PIECE 16384 /* entries of one item of work, at least a row */
#define PARTS 8     /* chains of a sum, so that an addition need not wait for the one before */

/* ---- normalised -------------------------------------------------------------------- */

typedef struct Rows {
    const Tensor *x;
    Tensor       *y;
    NormaliseKind kind;
    double        eps;
    int64_t       some; /* rows of an item */
} Rows;

static void normalise_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    int64_t     h = job->y->shape[0], rows = job->y->shape[1], d = job->y->shape[2];
    int64_t     end = min_i64(h * rows, (item + 1) * job->some);

    (void)worker;
    for (int64_t i = item * job->some; i < end; i++) {
        const void *x = tensor_head(job->x, i / rows, h);
        int64_t     at = i % rows * job->x->stride[1];
        double     *y = (double *)job->y->data + i * d;

        if (job->x->dtype == DT_F64) {
            memcpy(y, (const double *)x + at, (size_t)d * sizeof(*y));
            exact_normalise(y, d, job->kind, job->eps);
        } else {
            exact_normalised_row((const float *)x + at, d, job->kind, job->eps, y);
        }
    }
}

void cpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    Rows job = { .x = x, .y = y, .kind = kind, .eps = eps, .some = PIECE / y->shape[2] + 1 };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], job.some), normalise_item, &job);
}

/* ---- turned ------------------------------------------------------------------------------ */

typedef struct Turned {
    const TurnPairs *in;
    const Tensor    *y;
    int64_t          some; /* rows of an item */
} Turned;

static void turn_item(void *context, int64_t item, int worker)
{
    const Turned    *job = context;
    const TurnPairs *in = job->in;
    int64_t          n = job->y->shape[1], d = job->y->shape[2], rows = job->y->shape[0] * n;
    int64_t          pairs = in->turns.shape[2] / 2, end = (item + 1) * job->some;

    (void)worker;
    for (int64_t i = item * job->some; i < end && i < rows; i++) {
        const double *turns = (const double *)in->turns.data + i % n * 2 * pairs;
        const float  *x = tensor_f32(&in->x) + i / n * in->x.stride[0] + i % n * in->x.stride[1];
        float        *y = tensor_f32(job->y) + i * d;

        memcpy(y, x, (size_t)d * sizeof(*y));
        for (int64_t t = 0; t < pairs; t++, turns += 2) {
            double a = (double)x[t * in->step], b = (double)x[t * in->step + in->gap];

            y[t * in->step] = (float)(a * turns[0] - b * turns[1]);
            y[t * in->step + in->gap] = (float)(a * turns[1] + b * turns[0]);
        }
    }
}

void cpu_turn_pairs(Run *r, const TurnPairs *in, Tensor *y)
{
    Turned job = { .in = in, .y = y, .some = PIECE / y->shape[2] + 1 };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], job.some), turn_item, &job);
}

/* ---- standardised ---------------------------------------------------------------------- */

typedef struct Standardise {
    Run          *run;
    const Tensor *x, *gain, *bias, *y;
    double        eps;
    int64_t       rows, a, c, each; /* each: of an item, rows, or lines of the one row */
    double       *mean, *factor;    /* [rows] */
} Standardise;

/* Line [i,a,.] of x in double: itself, or in `wide`. */
static const double *line_of(const Tensor *x, int64_t i, int64_t a, double *wide)
{
    int64_t at = i * x->stride[0] + a * x->stride[1], step = x->stride[2];

    if (x->dtype == DT_F64 && step == 1)
        return (const double *)x->data + at;
    for (int64_t c = 0; c < x->shape[2]; c++)
        wide[c] = x->dtype == DT_F64 ? ((const double *)x->data)[at + c * step]
                                     : (double)tensor_f32(x)[at + c * step];
    return wide;
}

static double sum_of(const double *x, int64_t count)
{
    double  part[PARTS] = { 0 }, sum = 0;
    int64_t c = 0;

    for (; c + PARTS <= count; c += PARTS)
        for (int p = 0; p < PARTS; p++)
            part[p] += x[c + p];
    for (; c < count; c++)
        sum += x[c];
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    return sum;
}

static double spread_of(const double *x, int64_t count, double mean)
{
    double  part[PARTS] = { 0 }, sum = 0;
    int64_t c = 0;

    for (; c + PARTS <= count; c += PARTS)
        for (int p = 0; p < PARTS; p++)
            part[p] += (x[c + p] - mean) * (x[c + p] - mean);
    for (; c < count; c++)
        sum += (x[c] - mean) * (x[c] - mean);
    for (int p = 0; p < PARTS; p++)
        sum += part[p];
    return sum;
}

static void statistics(const Standardise *job, int64_t i, double *wide)
{
    double sum = 0, spread = 0, size = (double)(job->a * job->c);

    for (int64_t a = 0; a < job->a; a++)
        sum += sum_of(line_of(job->x, i, a, wide), job->c);
    job->mean[i] = sum / size;
    for (int64_t a = 0; a < job->a; a++)
        spread += spread_of(line_of(job->x, i, a, wide), job->c, job->mean[i]);
    job->factor[i] = 1 / sqrt(spread / size + job->eps);
}

/* Entries of gain or bias for line a; NULL: none. */
static const float *of_line(const Tensor *t, int64_t a)
{
    return !t->data ? NULL : tensor_f32(t) + (t->rank > 1 && t->shape[t->rank - 2] > 1
                                                  ? a * t->shape[t->rank - 1] : 0);
}

static void finish_line(const Standardise *job, int64_t i, int64_t a, double *wide)
{
    const float  *gain = of_line(job->gain, a), *bias = of_line(job->bias, a);
    const double *x = line_of(job->x, i, a, wide);
    const Tensor *y = job->y;
    int64_t       at = i * y->stride[0] + a * y->stride[1], step = y->stride[2];
    double        mean = job->mean[i], factor = job->factor[i];

    for (int64_t c = 0; c < job->c; c++)
        wide[c] = (x[c] - mean) * factor;
    for (int64_t c = 0; c < job->c && gain; c++)
        wide[c] *= (double)gain[c];
    for (int64_t c = 0; c < job->c && bias; c++)
        wide[c] += (double)bias[c];
    for (int64_t c = 0; c < job->c; c++)
        if (y->dtype == DT_F64)
            ((double *)y->data)[at + c * step] = wide[c];
        else
            tensor_f32(y)[at + c * step] = (float)wide[c];
}

/* An item is some rows, or, of a single row, some of its lines. */
static void standardise_item(void *context, int64_t item, int worker)
{
    const Standardise *job = context;
    double            *wide = job->factor + job->rows + worker * job->c;
    bool               one = job->rows == 1;
    int64_t            first = item * job->each;
    int64_t            end = min_i64(one ? job->a : job->rows, first + job->each);

    for (int64_t at = first; at < end && !cpu_cancelled(job->run); at++) {
        if (one) {
            finish_line(job, 0, at, wide);
            continue;
        }
        statistics(job, at, wide);
        for (int64_t a = 0; a < job->a; a++)
            finish_line(job, at, a, wide);
    }
}

void cpu_standardise64(Run *r, const Tensor *x, double eps, const Tensor *gain,
                       const Tensor *bias, Tensor *y)
{
    ArenaMark   mark = arena_mark(r->arena);
    Standardise job = { .run = r, .x = x, .gain = gain, .bias = bias, .y = y, .eps = eps,
                        .rows = x->shape[0], .a = x->shape[1], .c = x->shape[2] };
    int64_t     size = job.rows == 1 ? job.c : job.a * job.c;
    int64_t     work = 2 * job.rows + threads_count(r->threads) * job.c;

    job.each = max_i64(1, PIECE / size);
    job.mean = cpu_scratch(r, work, (int64_t)sizeof(double));
    job.factor = job.mean ? job.mean + job.rows : NULL;
    if (job.mean && job.rows == 1)
        statistics(&job, 0, job.factor + 1);
    if (job.mean)
        threads_run(r->threads, ceil_div(job.rows == 1 ? job.a : job.rows, job.each),
                    standardise_item, &job);
    arena_release(r->arena, mark);
}
