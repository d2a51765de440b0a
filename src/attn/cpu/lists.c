/* lists.c -- rows by lists of indices: gathered, scattered, merged, summed; windows pooled.
 *
 * An item of work is ROWS rows of one head.  Merged lists are taken one after another, since rows
 * of different lists may go to the same row of the result.
 */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/cpu/simd/kernel.h"
#include "core/threads.h"

#define ROWS 256 /* of one item of work */
#define AHEAD 8  /* rows by which scattered ones are fetched beforehand */

static int64_t items(int64_t heads, int64_t rows)
{
    return heads * ceil_div(rows, ROWS);
}

/* The rows of one item. */
typedef struct Span {
    int64_t head, first, end;
} Span;

static Span span_of(int64_t item, int64_t rows)
{
    int64_t pieces = ceil_div(rows, ROWS), first = item % pieces * ROWS;

    return (Span){ item / pieces, first, min_i64(first + ROWS, rows) };
}

/* y <- factor y + the sum of w[x] rows index[x] of v, whose rows are ld apart.  Kernels mix whole
 * LANES; what lies behind a row of another length is another row. */
static void add_rows(const float *w, const float *v, int64_t ld, const int32_t *index,
                     int64_t count, int64_t e, float factor, float *y)
{
    if (e % LANES == 0) {
        kernel_at(0)->mix_row(w, v, ld, index, count, e, factor, y);
        return;
    }
    for (int64_t c = 0; c < e; c++)
        y[c] *= factor;
    for (int64_t x = 0; x < count; x++)
        for (int64_t c = 0; c < e; c++)
            y[c] += w[x] * v[index[x] * ld + c];
}

/* ---- gather, scatter ---------------------------------------------------------- */

typedef struct Move {
    const Tensor *x, *index;
    Tensor       *y;
    bool          scatter;
} Move;

static void move_item(void *context, int64_t item, int worker)
{
    const Move    *job = context;
    int64_t        h = job->y->shape[0], size = dtype_size(job->y->dtype);
    Span           s = span_of(item, job->index->shape[1]);
    const char    *from = tensor_head(job->x, s.head, h);
    char          *to = tensor_head(job->y, s.head, h);
    const int32_t *index = tensor_head(job->index, s.head, h);
    size_t         width = (size_t)(job->y->shape[2] * size);

    (void)worker;
    for (int64_t i = s.first; i < s.end; i++) {
        int64_t a = job->scatter ? i : index[i], b = job->scatter ? index[i] : i;

        memcpy(to + b * job->y->stride[1] * size, from + a * job->x->stride[1] * size, width);
    }
}

static void move_rows(Run *r, Move job)
{
    int64_t heads = job.y->shape[0], rows = job.index->shape[1];

    threads_run(cpu_threads_for(r, rows * heads * job.y->shape[2]), items(heads, rows), move_item,
                &job);
}

void cpu_gather(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move_rows(r, (Move){ .x = x, .index = index, .y = y });
}

void cpu_scatter(Run *r, const Tensor *x, const Tensor *index, Tensor *y)
{
    move_rows(r, (Move){ .x = x, .index = index, .y = y, .scatter = true });
}

/* ---- softmaxes joined --------------------------------------------------------- */

typedef struct Merge {
    const MergeRows *in;
    int64_t          list;
} Merge;

/* One softmax over the keys of out and those of row. */
static void merge_row(float *out, float *z, const float *row, float z_row, int64_t e)
{
    static const int32_t only = 0;

    double apart = (double)z_row - (double)*z, lesser = exp(-fabs(apart));
    float  now = (float)((apart > 0 ? 1 : lesser) / (1 + lesser)), before = 1 - now;

    if (!(z_row > -INFINITY))
        return;
    add_rows(&now, row, e, &only, 1, e, before, out);
    *z = (float)(fmax((double)*z, (double)z_row) + log1p(lesser));
}

static void merge_item(void *context, int64_t item, int worker)
{
    const Merge     *job = context;
    const MergeRows *in = job->in;
    int64_t          h = in->out.shape[0], rows = in->rows.shape[1] / in->lists;
    int64_t          e = in->out.shape[2];
    Span             s = span_of(item, rows);
    const int32_t   *index = (int32_t *)tensor_head(&in->index, s.head, h) + job->list * rows;
    const float     *from = (float *)tensor_head(&in->rows, s.head, h) + job->list * rows * e;
    const float     *lse = (float *)tensor_head(&in->lse, s.head, h) + job->list * rows;
    float           *out = tensor_head(&in->out, s.head, h), *z = tensor_head(&in->z, s.head, h);

    (void)worker;
    for (int64_t x = s.first; x < s.end; x++) {
        cpu_fetch(out + index[min_i64(x + AHEAD, s.end - 1)] * e, e);
        merge_row(out + index[x] * e, z + index[x], from + x * e, lse[x], e);
    }
}

void cpu_merge_rows(Run *r, const MergeRows *in)
{
    int64_t rows = in->rows.shape[1] / in->lists;

    for (int64_t list = 0; list < in->lists; list++) {
        Merge job = { .in = in, .list = list };

        threads_run(cpu_threads_for(r, rows * in->out.shape[0] * in->out.shape[2]),
                    items(in->out.shape[0], rows), merge_item, &job);
    }
}

/* ---- sums of lists ------------------------------------------------------------- */

typedef struct Sums {
    const SumLists *in;
    Tensor         *y;
} Sums;

/* The sum of one row's list; weights [count]. */
static void sum_list(const SumLists *in, const float *x, const int32_t *entry, const float *weight,
                     int64_t count, int64_t w, float *to)
{
    float ones[AHEAD];

    for (int c = 0; c < AHEAD; c++)
        ones[c] = 1;
    memset(to, 0, (size_t)w * sizeof(*to));
    for (int64_t at = 0; at < count; at += AHEAD)
        add_rows(weight ? weight + at : ones, x, in->x.stride[1], entry + at,
                 min_i64(AHEAD, count - at), w, 1, to);
}

static void sum_lists_item(void *context, int64_t item, int worker)
{
    const Sums     *job = context;
    const SumLists *in = job->in;
    int64_t         h = job->y->shape[0], n = job->y->shape[1], w = job->y->shape[2];
    Span            s = span_of(item, n);
    const float    *x = tensor_head(&in->x, s.head, h);
    int64_t         end = in->start[s.head * n + s.end];

    (void)worker;
    for (int64_t row = s.head * n + s.first; row < s.head * n + s.end; row++) {
        float  *to = tensor_f32(job->y) + row * w;
        int64_t at = in->start[row], next = in->start[row + 1];

        for (int64_t y = at + AHEAD; y < min_i64(next + AHEAD, end); y++)
            cpu_fetch(x + in->entry[y] * in->x.stride[1], w);
        sum_list(in, x, in->entry + at, in->weight ? in->weight + at : NULL, next - at, w, to);
        if (in->share)
            kernel_at(0)->scale(to, w, in->share[row], to);
    }
}

void cpu_sum_lists(Run *r, const SumLists *in, Tensor *y)
{
    Sums job = { .in = in, .y = y };

    threads_run(r->threads, items(y->shape[0], y->shape[1]), sum_lists_item, &job);
}

/* ---- windows ------------------------------------------------------------------- */

#define WINDOW_NUMBERS 16384 /* that an item of work reads, at least those of a window */

typedef struct Pool {
    const PoolWindows *in;
    Tensor            *y;
    int64_t            each; /* windows of an item, of all heads */
} Pool;

/* sum += row, LANES columns at a time, which compilers vectorise. */
static void add_row64(const double *x, int64_t count, double *sum)
{
    int64_t c = 0;

    for (; c + LANES <= count; c += LANES)
        for (int64_t l = 0; l < LANES; l++)
            sum[c + l] += x[c + l];
    for (; c < count; c++)
        sum[c] += x[c];
}

/* best <- row where that is `beyond` it, or NaN. */
#define EXTREME_ROW(name, type, beyond)                                                        \
    static void name(const type *x, int64_t count, double *best)                               \
    {                                                                                          \
        int64_t c = 0;                                                                         \
                                                                                               \
        for (; c + LANES <= count; c += LANES)                                                 \
            for (int64_t l = 0; l < LANES; l++) {                                              \
                double y = (double)x[c + l], z = best[c + l];                                  \
                                                                                               \
                best[c + l] = ((y beyond z) | (y != y)) ? y : z;                               \
            }                                                                                  \
        for (; c < count; c++)                                                                 \
            if ((double)x[c] beyond best[c] || isnan(x[c]))                                    \
                best[c] = (double)x[c];                                                        \
    }
EXTREME_ROW(most_row, float, >)
EXTREME_ROW(most_row64, double, >)
EXTREME_ROW(least_row, float, <)
EXTREME_ROW(least_row64, double, <)

static void take_window(const PoolWindows *in, const void *x, int64_t at, int64_t w, double *out)
{
    const float  *row = (const float *)x + at;
    const double *row64 = (const double *)x + at;
    bool          wide = in->x.dtype == DT_F64;

    if (in->kind == WINDOW_MAX)
        wide ? most_row64(row64, w, out) : most_row(row, w, out);
    else if (in->kind == WINDOW_MIN)
        wide ? least_row64(row64, w, out) : least_row(row, w, out);
    else
        wide ? add_row64(row64, w, out) : kernel_at(0)->fold(row, w, out);
}

/* x: from the first column on. */
static void pool_window(const PoolWindows *in, const void *x, int64_t row, int64_t w, double *out)
{
    int64_t first = in->first[row], end = in->end[row], stride = in->x.stride[1];

    if (first < end)
        floats_widen(in->x.dtype, x, first * stride, w, out);
    else
        memset(out, 0, (size_t)w * sizeof(*out));
    for (int64_t i = first + 1; i < end; i++)
        take_window(in, x, i * stride, w, out);
    if (in->kind == WINDOW_MEAN)
        kernel_at(0)->over64(out, w, (double)(end - first));
}

/* COLUMNS at a time, so that a window's sums stay in the first-level cache. */
#define COLUMNS 64

static void pool_row(const Pool *job, int64_t head, int64_t row)
{
    Tensor     *y = job->y;
    int64_t     h = y->shape[0], w = y->shape[2], at = row * y->stride[1];
    const char *x = tensor_head(&job->in->x, head, h);
    double      sums[COLUMNS];

    for (int64_t c = 0; c < w; c += COLUMNS) {
        int64_t count = min_i64(COLUMNS, w - c);
        bool    wide = y->dtype == DT_F64;
        double *sum = wide ? (double *)tensor_head(y, head, h) + at + c : sums;
        float  *to = wide ? NULL : (float *)tensor_head(y, head, h) + at + c;

        pool_window(job->in, x + c * dtype_size(job->in->x.dtype), row, count, sum);
        if (to) /* rounded: a mean of no rows and the sums */
            kernel_at(0)->mean_rows(NULL, 0, sums, 1, NULL, to, count, to);
    }
}

static void pool_item(void *context, int64_t item, int worker)
{
    const Pool *job = context;
    int64_t     windows = job->y->shape[1], all = job->y->shape[0] * windows;

    (void)worker;
    for (int64_t u = item * job->each; u < min_i64(all, (item + 1) * job->each); u++)
        pool_row(job, u / windows, u % windows);
}

void cpu_pool_windows(Run *r, const PoolWindows *in, Tensor *y)
{
    Pool    job = { .in = in, .y = y };
    int64_t rows = 0, windows = y->shape[1], all = y->shape[0] * windows;

    for (int64_t u = 0; u < windows; u++)
        rows += in->end[u] - in->first[u];
    job.each = max_i64(1, WINDOW_NUMBERS * windows / max_i64(1, rows * y->shape[2]));
    threads_run(cpu_threads_for(r, rows * y->shape[0] * y->shape[2]), ceil_div(all, job.each),
                pool_item, &job);
}

/* Equal shares of the rows that a pattern allows.
 *
 *     y_i = 1 / |N(i)| sum of x_j over j in N(i),  less x_i when asked
 *
 * Sums are in double and in the order of the row's runs, so threads change no bit.  A row of y
 * is written once, so the bandwidth of memory is the limit.
 */

#define MEAN_ROWS 64      /* of one item of work */
#define ROWS_AHEAD 2      /* behind the last row that is read: prefetched */
#define LIST_ROWS 64      /* rows whose sum stays in registers */

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

/* Adds the listed rows to w->sum; `begun` false: zeroes it first. */
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

/* As mean_row, for rows in double. */
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
    int64_t    end = min_i64(job->h * job->n, (item + 1) * MEAN_ROWS);

    for (int64_t at = item * MEAN_ROWS; at < end; at++) {
        int64_t head = at / job->n, i = at % job->n;

        if (cpu_cancelled(job->run) || w->row.failed)
            return;
        pattern_row(job->pattern, head, i, &w->row);
        if (job->in->x.dtype == DT_F64)
            mean_row64(job, w, tensor_head(&job->in->x, head, job->h), i,
                       tensor_f64(job->y) + at * job->width);
        else
            mean_row(job, w, tensor_head(&job->in->x, head, job->h), i,
                     tensor_f32(job->y) + at * job->width);
    }
}

static bool means_workers_init(Job *job, int count)
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

    if (means_workers_init(&job, threads))
        threads_run(r->threads, ceil_div(job.h * job.n, MEAN_ROWS), means_item, &job);
    for (int x = 0; job.workers && x < threads; x++) {
        *cells += job.workers[x].cells;
        if (job.workers[x].row.failed)
            run_fail(r, ERR_NOMEM, "no memory for the pattern's rows");
        pattern_row_free(&job.workers[x].row);
    }
    arena_release(r->arena, mark);
}
