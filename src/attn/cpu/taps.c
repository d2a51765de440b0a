/* taps.c -- convolutions whose taps may differ by channel and by row; see op_tap_sums.
 *
 * A row's sums are in double, some columns at a time, so that they stay in the nearest cache;
 * a tap that is one number for neighbouring channels multiplies them all.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define COLUMNS 256 /* of a row at a time */
#define PIECE 16384 /* products of one item of work, at least a row */

typedef struct Job {
    Run           *run;
    const TapSums *in;
    Tensor        *y;
    int64_t        heads, rows, width, taps, apart, each; /* each: rows of an item */
} Job;

static void add_floats(const float *x, double tap, int64_t count, double *sum)
{
    for (int64_t c = 0; c < count; c++)
        sum[c] += tap * (double)x[c];
}

static void add_doubles(const double *x, double tap, int64_t count, double *sum)
{
    for (int64_t c = 0; c < count; c++)
        sum[c] += tap * x[c];
}

/* Columns [first, end) of row j of x, times tap. */
static void add(const Job *job, const void *x, int64_t j, int64_t first, int64_t end, double tap,
                double *sum)
{
    int64_t at = j * job->in->x.stride[1] + first;

    if (job->in->x.dtype == DT_F64)
        add_doubles((const double *)x + at, tap, end - first, sum);
    else
        add_floats((const float *)x + at, tap, end - first, sum);
}

static double tap_at(const Tensor *taps, const void *row, int64_t at)
{
    return taps->dtype == DT_F64 ? ((const double *)row)[at] : (double)((const float *)row)[at];
}

/* What the columns begin with. */
static void begin(const Job *job, const void *y, int64_t at, int64_t first, int64_t count,
                  double *sum)
{
    const float *bias = job->in->bias.data;

    for (int64_t c = 0; c < count; c++) {
        sum[c] = bias ? (double)bias[first + c] : 0;
        if (job->in->add)
            sum[c] += job->y->dtype == DT_F64 ? ((const double *)y)[at + c]
                                              : (double)((const float *)y)[at + c];
    }
}

static void keep(const Job *job, void *y, int64_t at, int64_t count, const double *sum)
{
    for (int64_t c = 0; c < count; c++)
        if (job->y->dtype == DT_F64)
            ((double *)y)[at + c] = sum[c];
        else
            ((float *)y)[at + c] = (float)sum[c];
}

static void columns(const Job *job, int64_t head, int64_t i, int64_t first, int64_t end)
{
    const TapSums *in = job->in;
    const Tensor  *taps = &in->taps;
    const void    *x = tensor_head(&in->x, head, job->heads);
    const char    *own = (const char *)tensor_head(taps, head, job->heads);
    void          *y = tensor_head(job->y, head, job->heads);
    int64_t        per = job->width / in->groups, start = in->first + i * in->step;
    int64_t        from = max_i64(0, ceil_div(-start, job->apart));
    int64_t        to = min_i64(job->taps, ceil_div(in->x.shape[1] - start, job->apart));
    double         sum[COLUMNS];

    if (taps->shape[1] > 1)
        own += i * taps->stride[1] * dtype_size(taps->dtype);
    begin(job, y, i * job->y->stride[1] + first, first, end - first, sum);
    for (int64_t s = from; s < to; s++)
        for (int64_t c = first, next; c < end; c = next) {
            next = min_i64(end, (c / per + 1) * per);
            add(job, x, start + s * job->apart, c, next, tap_at(taps, own, c / per * job->taps + s),
                sum + c - first);
        }
    keep(job, y, i * job->y->stride[1] + first, end - first, sum);
}

static void rows_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    int64_t    end = min_i64(job->heads * job->rows, (item + 1) * job->each);

    (void)worker;
    for (int64_t row = item * job->each; row < end && !cpu_cancelled(job->run); row++)
        for (int64_t c = 0; c < job->width; c += COLUMNS)
            columns(job, row / job->rows, row % job->rows, c, min_i64(job->width, c + COLUMNS));
}

void cpu_tap_sums(Run *r, const TapSums *in, Tensor *y)
{
    Job job = { .run = r, .in = in, .y = y, .heads = y->shape[0], .rows = y->shape[1],
                .width = y->shape[2], .taps = in->taps.shape[2] / in->groups,
                .apart = max_i64(1, in->apart) };

    job.each = max_i64(1, PIECE / max_i64(1, job.width * job.taps));
    threads_run(r->threads, ceil_div(job.heads * job.rows, job.each), rows_item, &job);
}
