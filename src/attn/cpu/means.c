/* means.c -- equal shares of the rows that a pattern allows.
 *
 *     y_i = 1 / |N(i)| sum of x_j over j in N(i),  less x_i when asked
 *
 * Sums are in double and in the order of the row's runs, so threads change no bit.  A row of y
 * is written once and nothing lies between: the memory's speed is what bounds it.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <string.h>

#define ROWS 64      /* of one item of work */
#define ROWS_AHEAD 2 /* of the last one that a row reads: fetched meanwhile */
#define LIST_ROWS 64 /* rows that are added without their sum going to memory */

typedef struct Worker {
    PatternRow   row;
    const float *list[LIST_ROWS];
    double      *sum; /* [width] of lists before */
    double       cells;
} Worker;

typedef struct Job {
    Run                *run;
    const Kernel       *kernel;
    const PatternMeans *in;
    const Pattern      *pattern;
    Tensor             *y;
    int64_t             h, n, width;
    Worker             *workers;
} Job;

/* y += x, LANES columns at a time, which the compiler turns into vectors. */
static void add_row64(const double *x, int64_t count, double *y)
{
    int64_t c = 0;

    for (; c + LANES <= count; c += LANES)
        for (int64_t l = 0; l < LANES; l++)
            y[c + l] += x[c + l];
    for (; c < count; c++)
        y[c] += x[c];
}

/* Adds the list to the sums; `begun`: they hold some already. */
static void put_away(const Job *job, Worker *w, int64_t count, bool begun)
{
    if (!begun)
        memset(w->sum, 0, (size_t)job->width * sizeof(*w->sum));
    for (int64_t x = 0; x < count; x++)
        job->kernel->fold(w->list[x], job->width, w->sum);
}

static void mean_row(const Job *job, Worker *w, const float *x, int64_t i, float *y)
{
    int64_t stride = job->in->x.stride[1], count = 0, cells = 0, last = 0;
    double  divisor;

    for (int64_t t = 0; t < w->row.count; t++)
        for (int64_t c = 0; c < w->row.runs[t].count; c++) {
            if (count == LIST_ROWS) {
                put_away(job, w, count, cells > count);
                count = 0;
            }
            last = w->row.runs[t].start + c * w->row.runs[t].step;
            w->list[count++] = x + last * stride;
            cells++;
        }
    divisor = job->in->divisor > 0 ? job->in->divisor : cells > 0 ? (double)cells : 1;
    last = min_i64(last + ROWS_AHEAD, job->in->x.shape[1] - 1);
    job->kernel->mean_rows(w->list, count, cells > count ? w->sum : NULL, 1 / divisor,
                            job->in->less_own ? x + i * stride : NULL, x + last * stride,
                           job->width, y);
    w->cells += (double)cells;
}

/* The same of rows in double. */
static void mean_row64(const Job *job, Worker *w, const double *x, int64_t i, double *y)
{
    int64_t stride = job->in->x.stride[1], cells = 0;
    double  factor;

    memset(y, 0, (size_t)job->width * sizeof(*y));
    for (int64_t t = 0; t < w->row.count; t++)
        for (int64_t c = 0; c < w->row.runs[t].count; c++, cells++)
            add_row64(x + (w->row.runs[t].start + c * w->row.runs[t].step) * stride, job->width, y);
    factor = 1 / (job->in->divisor > 0 ? job->in->divisor : cells > 0 ? (double)cells : 1);
    for (int64_t c = 0; c < job->width; c++)
        y[c] = y[c] * factor - (job->in->less_own ? x[i * stride + c] : 0);
    w->cells += (double)cells;
}

static void means_item(void *context, int64_t item, int worker)
{
    const Job *job = context;
    Worker    *w = &job->workers[worker];

    for (int64_t at = item * ROWS; at < min_i64(job->h * job->n, (item + 1) * ROWS); at++) {
        int64_t head = at / job->n, i = at % job->n;

        if (cpu_cancelled(job->run) || w->row.failed)
            return;
        pattern_row(job->pattern, head, i, &w->row);
        if (job->in->x.dtype == DT_F64)
            mean_row64(job, w, tensor_head(&job->in->x, head, job->h), i,
                       (double *)job->y->data + at * job->width);
        else
            mean_row(job, w, tensor_head(&job->in->x, head, job->h), i,
                     tensor_f32(job->y) + at * job->width);
    }
}

static bool workers_init(Job *job, int count)
{
    job->workers = arena_zalloc(job->run->arena, count, sizeof(*job->workers));
    for (int x = 0; job->workers && x < count; x++) {
        job->workers[x].sum = cpu_scratch(job->run, job->width, sizeof(double));
        if (!job->workers[x].sum)
            return false;
    }
    return job->workers != NULL;
}

void cpu_pattern_means(Run *r, const PatternMeans *in, const Pattern *pattern, Tensor *y,
                       double *cells)
{
    ArenaMark mark = arena_mark(r->arena);
    int       threads = threads_count(r->threads);
    Job       job = { .run = r, .kernel = kernel_at(0), .in = in, .pattern = pattern, .y = y,
                      .h = y->shape[0], .n = y->shape[1], .width = y->shape[2] };

    if (workers_init(&job, threads))
        threads_run(r->threads, ceil_div(job.h * job.n, ROWS), means_item, &job);
    for (int x = 0; job.workers && x < threads; x++) {
        *cells += job.workers[x].cells;
        if (job.workers[x].row.failed)
            run_fail(r, ERR_NOMEM, "no memory for the pattern's rows");
        pattern_row_free(&job.workers[x].row);
    }
    arena_release(r->arena, mark);
}
