/* dense.c -- see dense.h. */
#include "attn/dense.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

#define ROWS 32 /* of one item of work */

const char *const gelu_names[] = { "tanh", "erf", NULL };

#define ROOT_2_PI 0.79788456080286535588 /* sqrt(2/pi) */
#define CUBE 0.044715

double gelu_gate(double a, GeluForm form)
{
    if (form == GELU_ERF)
        return 0.5 * erfc(-a * M_SQRT1_2);
    return 0.5 * (1 + tanh(ROOT_2_PI * (a + CUBE * a * a * a)));
}

double gelu_slope(double a, GeluForm form)
{
    double g = gelu_gate(a, form);

    if (form == GELU_ERF)
        return g + a * 0.5 * ROOT_2_PI * exp(-0.5 * a * a);
    return g + 2 * a * g * (1 - g) * ROOT_2_PI * (1 + 3 * CUBE * a * a);
}

/* What elementwise work reads and writes; one item is ROWS rows. */
typedef struct Rows {
    Tensor      x;          /* f32 or f64 [.,n,c]; data NULL: absent */
    const float *gain, *bias; /* [c] or NULL */
    double     *out;        /* [n,c] */
    int64_t     n, c;
    double      eps, mean, factor; /* of all rows together (group norm) */
    bool        together;
    GeluForm    form;
    DenseActivation activation;
} Rows;

static void on_rows(Run *r, ThreadsFn work, Rows *job)
{
    if (run_failed(r))
        return;
    threads_run(r->threads, (job->n + ROWS - 1) / ROWS, work, job);
}

static int64_t last_row(const Rows *job, int64_t item)
{
    return job->n < (item + 1) * ROWS ? job->n : (item + 1) * ROWS;
}

/* ---- layer ------------------------------------------------------------------ */

static void start_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;

    (void)worker;
    for (int64_t i = item * ROWS; i < last_row(job, item); i++)
        for (int64_t c = 0; c < job->c; c++)
            job->out[i * job->c + c] = (job->bias ? (double)job->bias[c] : 0) +
                                       (job->x.data ? dense_at(&job->x, i * job->c + c) : 0);
}

Tensor dense_layer(Run *r, Tensor x, Tensor w, Tensor b, Tensor base, FlopClass charge)
{
    Tensor  matrix = tensor_with_rank(w, 3);
    int64_t n = x.shape[1], out = matrix.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, 1, n, out);
    Rows    job = { .x = base, .bias = b.data, .out = y.data, .n = n, .c = out };

    on_rows(r, start_item, &job);
    op_gemm(r, x, false, matrix, false, 1, 1, y, charge);
    return y;
}

/* ---- activations ------------------------------------------------------------ */

static void gelu_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;

    (void)worker;
    for (int64_t x = item * ROWS * job->c; x < last_row(job, item) * job->c; x++) {
        double a = dense_at(&job->x, x);

        job->out[x] = a * gelu_gate(a, job->form);
    }
}

Tensor dense_gelu(Run *r, Tensor a, GeluForm form)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], a.shape[2]);
    Rows   job = { .x = a, .out = y.data, .n = a.shape[0] * a.shape[1], .c = a.shape[2],
                   .form = form };

    on_rows(r, gelu_item, &job);
    op_charge(r, FLOP_OVERHEAD, DENSE_GELU_FLOPS * (double)tensor_count(&y));
    op_traffic(r, (double)tensor_bytes(&a), (double)tensor_bytes(&y));
    return y;
}

static double activated(double x, DenseActivation activation)
{
    switch (activation) {
    case ACTIVATE_RELU: return x < 0 ? 0 : x; /* NaN stays */
    case ACTIVATE_GELU_TANH: return x * gelu_gate(x, GELU_TANH);
    case ACTIVATE_SIGMOID: break;
    }
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static void activate_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;

    (void)worker;
    for (int64_t x = item * ROWS * job->c; x < last_row(job, item) * job->c; x++)
        job->out[x] = activated(job->out[x], job->activation);
}

Tensor dense_activate(Run *r, Tensor x, DenseActivation activation)
{
    Rows job = { .out = x.data, .n = x.shape[0] * x.shape[1], .c = x.shape[2],
                 .activation = activation };

    on_rows(r, activate_item, &job);
    return x;
}

/* ---- norms ------------------------------------------------------------------ */

/* Entries [at, at + count) in double; the type is asked for once, not once an entry. */
static void widen(const Tensor *x, int64_t at, int64_t count, double *to)
{
    if (x->dtype == DT_F64)
        memcpy(to, (const double *)x->data + at, (size_t)count * sizeof(*to));
    else
        for (int64_t c = 0; c < count; c++)
            to[c] = (double)tensor_f32(x)[at + c];
}

#define PARTS 8 /* chains of a sum, so that an addition need not wait for the one before */

/* Mean and 1 / sqrt(var + eps) of `count` numbers. */
static void statistics(const Tensor *x, int64_t first, int64_t count, double eps, double *mean,
                       double *factor)
{
    double sum[PARTS] = { 0 }, squares[PARTS] = { 0 }, total = 0, spread = 0;

    for (int64_t c = 0; c < count; c++)
        sum[c % PARTS] += dense_at(x, first + c);
    for (int p = 0; p < PARTS; p++)
        total += sum[p];
    *mean = total / (double)count;
    for (int64_t c = 0; c < count; c++) {
        double off = dense_at(x, first + c) - *mean;

        squares[c % PARTS] += off * off;
    }
    for (int p = 0; p < PARTS; p++)
        spread += squares[p];
    *factor = 1 / sqrt(spread / (double)count + eps);
}

static void norm_item(void *context, int64_t item, int worker)
{
    const Rows *job = context;

    (void)worker;
    for (int64_t i = item * ROWS; i < last_row(job, item); i++) {
        double mean = job->mean, factor = job->factor, *row = job->out + i * job->c;
        Tensor wide = tensor_of(DT_F64, 1, (int64_t[]){ job->c }, row);

        widen(&job->x, i * job->c, job->c, row);
        if (!job->together)
            statistics(&wide, 0, job->c, job->eps, &mean, &factor);
        for (int64_t c = 0; c < job->c; c++)
            row[c] = (row[c] - mean) * factor;
        for (int64_t c = 0; c < job->c && job->gain; c++)
            row[c] *= (double)job->gain[c];
        for (int64_t c = 0; c < job->c && job->bias; c++)
            row[c] += (double)job->bias[c];
    }
}

static Tensor norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, bool together,
                   FlopClass charge)
{
    Tensor y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);
    Rows   job = { .x = x, .gain = gain.data, .bias = bias.data, .out = y.data, .n = x.shape[1],
                   .c = x.shape[2], .eps = eps, .together = together };

    if (together && !run_failed(r))
        statistics(&x, 0, job.n * job.c, eps, &job.mean, &job.factor);
    on_rows(r, norm_item, &job);
    if (charge != FLOP_NONE) {
        op_charge(r, charge, DENSE_NORM_FLOPS * (double)tensor_count(&y));
        op_traffic(r, (double)tensor_bytes(&x), (double)tensor_bytes(&y));
    }
    return y;
}

Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, FlopClass charge)
{
    return norm(r, x, gain, bias, eps, false, charge);
}

Tensor dense_group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps)
{
    return norm(r, x, gain, bias, eps, true, FLOP_OVERHEAD);
}

/* ---- products and sums ------------------------------------------------------- */

Tensor dense_product(Run *r, Tensor a, Tensor b)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], b.shape[2]);

    op_gemm(r, a, false, b, false, 1, 0, y, FLOP_MIX);
    return y;
}

Tensor dense_turned(Run *r, Tensor x)
{
    int64_t       rows = x.shape[1], cols = x.shape[2], size = rows * cols;
    Tensor        y = run_tensor3(r, DT_F64, x.shape[0], cols, rows);
    const double *from = x.data;
    double       *to = y.data;

    for (int64_t c = 0; c < tensor_count(&x) && !run_failed(r); c++)
        to[c / size * size + c % cols * rows + c / cols % rows] = from[c];
    return y;
}

Tensor dense_add(Run *r, Tensor x, Tensor y)
{
    double *sum = x.data;

    for (int64_t c = 0; c < tensor_count(&x) && !run_failed(r); c++)
        sum[c] += dense_at(&y, c);
    return x;
}

Tensor dense_output(Run *r, Tensor x)
{
    return run_failed(r) ? (Tensor){ .rank = 0 } : exact_rounded(r, x);
}

/* ---- parameters ------------------------------------------------------------- */

Tensor dense_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols,
                    double bound)
{
    Init init = { INIT_GLOROT, (double)rows + (double)cols };

    if (bound > 0)
        init = (Init){ INIT_UNIFORM, bound };
    return tensor_with_rank(layer_weight(r, name, given, 2, (int64_t[]){ rows, cols }, init), 3);
}

Tensor dense_vector(Run *r, const char *name, Tensor given, int64_t count)
{
    return layer_given(r, name, given, 1, &count);
}
