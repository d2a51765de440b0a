/* precise.c -- see precise.h. */
#include "attn/precise.h"

#include <math.h>

#include "attn/run.h"

#define ROWS 64 /* of one item of work */

static double *f64(const Tensor *t)
{
    return t->data;
}

static double value(const Tensor *t, int64_t at)
{
    return t->dtype == DT_F64 ? f64(t)[at] : (double)tensor_f32(t)[at];
}

Tensor precise_linear(Run *r, Tensor x, Tensor w, Tensor b, FlopClass charge)
{
    int64_t cols = w.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, 1, x.shape[1], cols);

    for (int64_t c = 0; c < tensor_count(&y) && !run_failed(r); c++)
        f64(&y)[c] = b.data ? (double)tensor_f32(&b)[c % cols] : 0;
    op_gemm(r, x, false, w, false, 1, 1, y, charge);
    return y;
}

Tensor precise_product(Run *r, Tensor a, Tensor b)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], b.shape[2]);

    op_gemm(r, a, false, b, false, 1, 0, y, FLOP_MIX);
    return y;
}

Tensor precise_turned(Run *r, Tensor x)
{
    int64_t rows = x.shape[1], cols = x.shape[2], size = rows * cols;
    Tensor  y = run_tensor3(r, DT_F64, x.shape[0], cols, rows);

    for (int64_t c = 0; c < tensor_count(&x) && !run_failed(r); c++)
        f64(&y)[c / size * size + c % cols * rows + c / cols % rows] = f64(&x)[c];
    return y;
}

Tensor precise_output(Run *r, Tensor x)
{
    return run_failed(r) ? (Tensor){ .rank = 0 } : exact_rounded(r, x);
}

/* ---- by rows ---------------------------------------------------------------- */

typedef struct Rows {
    Tensor            x, g, b, y;
    double            eps;
    PreciseActivation activation;
    int64_t           rows, cols;
} Rows;

static void norm_row(const Rows *job, int64_t row)
{
    int64_t at = row * job->cols;
    double  mean = 0, variance = 0, by;

    for (int64_t c = 0; c < job->cols; c++)
        mean += value(&job->x, at + c);
    mean /= (double)job->cols;
    for (int64_t c = 0; c < job->cols; c++)
        variance += (value(&job->x, at + c) - mean) * (value(&job->x, at + c) - mean);
    by = 1 / sqrt(variance / (double)job->cols + job->eps);
    for (int64_t c = 0; c < job->cols; c++)
        f64(&job->y)[at + c] = (value(&job->x, at + c) - mean) * by *
                                   (job->g.data ? (double)tensor_f32(&job->g)[c] : 1) +
                               (job->b.data ? (double)tensor_f32(&job->b)[c] : 0);
}

static void norm_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;

    (void)worker;
    for (int64_t row = item * ROWS; row < job->rows && row < (item + 1) * ROWS; row++)
        norm_row(job, row);
}

static double activated(double x, PreciseActivation activation)
{
    const double root = 0.79788456080286535588; /* sqrt(2/pi) */

    switch (activation) {
    case ACTIVATE_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACTIVATE_GELU_TANH: return 0.5 * x * (1 + tanh(root * (x + 0.044715 * x * x * x)));
    case ACTIVATE_SIGMOID: break;
    }
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static void activate_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;
    int64_t     end = (item + 1) * ROWS < job->rows ? (item + 1) * ROWS : job->rows;

    (void)worker;
    for (int64_t at = item * ROWS * job->cols; at < end * job->cols; at++)
        f64(&job->y)[at] = activated(f64(&job->y)[at], job->activation);
}

static void by_rows(Run *r, Rows job, void (*work)(void *, int64_t, int))
{
    job.rows = job.y.shape[1];
    job.cols = job.y.shape[2];
    if (!run_failed(r))
        threads_run(r->threads, (job.rows + ROWS - 1) / ROWS, work, &job);
}

Tensor precise_norm(Run *r, Tensor x, Tensor g, Tensor b, double eps)
{
    Tensor y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);

    by_rows(r, (Rows){ .x = x, .g = g, .b = b, .y = y, .eps = eps }, norm_item);
    return y;
}

Tensor precise_activate(Run *r, Tensor x, PreciseActivation activation)
{
    by_rows(r, (Rows){ .y = x, .activation = activation }, activate_item);
    return x;
}

Tensor precise_add(Run *r, Tensor x, Tensor y)
{
    for (int64_t c = 0; c < tensor_count(&x) && !run_failed(r); c++)
        f64(&x)[c] += value(&y, c);
    return x;
}

/* ---- parameters ------------------------------------------------------------- */

Tensor precise_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols,
                      double bound)
{
    Init init = { INIT_GLOROT, (double)rows + (double)cols };

    if (bound > 0)
        init = (Init){ INIT_UNIFORM, bound };
    return tensor_with_rank(layer_weight(r, name, given, 2, (int64_t[]){ rows, cols }, init), 3);
}

Tensor precise_vector(Run *r, const char *name, Tensor given, int64_t count)
{
    return layer_given(r, name, given, 1, &count);
}
