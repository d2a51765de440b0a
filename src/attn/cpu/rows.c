/* rows.c -- normalisation, standardisation, softmax and activation of rows; statistics are in
 * double. */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/ops/dense.h"
#include "core/threads.h"

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

static void normalise_floats_item(void *context, int64_t item, int worker)
{
    const Normalise *job = context;
    int64_t          h = job->y->shape[0], n = job->y->shape[1], d = job->y->shape[2];

    (void)worker;
    for (int64_t i = item * ROWS; i < min_i64(h * n, (item + 1) * ROWS); i++) {
        normalise_row(tensor_row_f32(job->x, i / n, h, i % n), d, job->kind, job->eps,
                      tensor_f32(job->y) + i * d);
    }
}

void cpu_normalise(Run *r, const Tensor *x, int kind, double eps, Tensor *y)
{
    Normalise job = { .x = x, .kind = kind, .eps = eps, .y = y };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], ROWS), normalise_floats_item, &job);
}

/* Normalisation and standardisation in double. */

#define PIECE 16384 /* entries of one item of work, at least a row */
#define PARTS 8     /* independent sums: an addition need not wait for the one before */

/* ---- normalised -------------------------------------------------------------------- */

typedef struct Rows {
    const Tensor *x;
    Tensor       *y;
    NormaliseKind kind;
    double        eps;
    int64_t       some; /* rows of an item */
} Rows;

#define TOGETHER 4 /* rows whose sums are computed side by side, each in order */

/* NORMALISE_RMS of TOGETHER rows y[.][d]: the same bits as row by row. */
static void rms_rows(double *y, int64_t d, double eps)
{
    double squares[TOGETHER] = { 0 };

    for (int64_t t = 0; t < d; t++)
        for (int64_t r = 0; r < TOGETHER; r++)
            squares[r] += y[r * d + t] * y[r * d + t];
    for (int64_t r = 0; r < TOGETHER; r++)
        kernel_at(0)->over64(y + r * d, d, sqrt(squares[r] / (double)d + eps));
}

static void normalise_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    int64_t     h = job->y->shape[0], rows = job->y->shape[1], d = job->y->shape[2];
    int64_t     end = min_i64(h * rows, (item + 1) * job->some), some;

    (void)worker;
    for (int64_t i = item * job->some; i < end; i += some) {
        double *y = tensor_f64(job->y) + i * d;
        bool    together = job->kind == NORMALISE_RMS && i + TOGETHER <= end;

        some = together ? TOGETHER : 1;
        for (int64_t r = 0; r < some; r++)
            floats_widen(job->x->dtype, tensor_head(job->x, (i + r) / rows, h),
                         (i + r) % rows * job->x->stride[1], d, y + r * d);
        if (together)
            rms_rows(y, d, job->eps);
        else
            dense_normalise_row(y, d, job->kind, job->eps);
    }
}

void cpu_normalise64(Run *r, const Tensor *x, NormaliseKind kind, double eps, Tensor *y)
{
    Rows job = { .x = x, .y = y, .kind = kind, .eps = eps, .some = PIECE / y->shape[2] + 1 };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], job.some), normalise_item, &job);
}

static void unit_item(void *context, int64_t item, int worker)
{
    const Rows   *job = context;
    const Kernel *kernel = kernel_at(0);
    int64_t       h = job->y->shape[0], n = job->y->shape[1], d = job->y->shape[2];
    int64_t       end = min_i64(h * n, (item + 1) * job->some);

    (void)worker;
    for (int64_t i = item * job->some; i < end; i++) {
        const float *x = tensor_row_f32(job->x, i / n, h, i % n);

        kernel->centre(x, d, 0, 1 / sqrt(kernel->squares(x, d) + job->eps),
                       tensor_f32(job->y) + i * d);
    }
}

void cpu_unit_rows(Run *r, const Tensor *x, double eps, Tensor *y)
{
    Rows job = { .x = x, .y = y, .eps = eps, .some = PIECE / y->shape[2] + 1 };

    threads_run(r->threads, ceil_div(y->shape[0] * y->shape[1], job.some), unit_item, &job);
}

/* ---- pairs rotated ------------------------------------------------------------------------ */

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
        const double *turns = tensor_f64(&in->turns) + i % n * 2 * pairs;
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
        return tensor_f64(x) + at;
    for (int64_t c = 0; c < x->shape[2]; c++)
        wide[c] = float_at(x->dtype, x->data, at + c * step);
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
            tensor_f64(y)[at + c * step] = wide[c];
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

/* Softmax over rows, in place.
 *
 *     x_j <- exp(x_j - max x) / sum_j exp(x_j - max x)     over the first entries of a row
 *
 * The sum is in double, for long rows.
 */

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

/* Both return the log-sum-exp of the row; row32 only when asked for it. */
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
        tensor_f64(&in->lse)[head * in->lse.stride[0] + i] = lse;
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

/* Activations of rows of features. */

typedef struct Features {
    Run         *run;
    Tensor      *x;
    const float *bias;
    int64_t      rows, width, each; /* each: rows of an item */
} Features;

static void features_item(void *context, int64_t item, int worker)
{
    const Features *job = context;
    int64_t         first = item * job->each, end = min_i64(job->rows, first + job->each);

    (void)worker;
    if (cpu_cancelled(job->run))
        return;
    for (int64_t at = first * job->width; at < end * job->width; at += job->width)
        kernel_at(0)->gelu(tensor_f32(job->x) + at, job->bias, job->width);
}

void cpu_gelu(Run *r, Tensor *x, const float *bias)
{
    Features job = { .run = r, .x = x, .bias = bias, .width = x->shape[x->rank - 1] };

    if (!tensor_count(x))
        return;
    job.rows = tensor_count(x) / job.width;
    job.each = job.width < PIECE ? PIECE / job.width : 1;
    threads_run(r->threads, ceil_div(job.rows, job.each), features_item, &job);
}

#define NORM_ROWS 8 /* whose squares are summed at once */

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
    for (int64_t i = item * job->each, rows; i < end; i += rows) {
        int64_t      at = i % x->shape[1], below = x->shape[1] - at;
        const float *row = tensor_f32(x) + i / x->shape[1] * x->stride[0] +
                           at * x->stride[1];

        rows = min_i64(min_i64(NORM_ROWS, below), end - i);
        for (int64_t r = rows; r < min_i64(2 * rows, below); r++)
            cpu_fetch(row + r * x->stride[1], x->shape[2]);
        most = larger_or_nan(most, (double)kernel->most_squares(row, x->stride[1], rows,
                                                                x->shape[2]));
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
        most = larger_or_nan(most, job.found[i]);
    arena_release(r->arena, mark);
    return sqrt(most);
}
