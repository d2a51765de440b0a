/* dense.c -- see dense.h. */
#include <math.h>
#include <string.h>

#include "attn/cpu/cpu.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

const char *const gelu_names[] = { "tanh", "erf", NULL };

void dense_add_product(int64_t rows, int64_t cols, int64_t inner, const double *a, const double *b,
                       double *sums)
{
    cpu_single_blas();
    cpu_dgemm((WideMatrix){ a, inner, false }, (WideMatrix){ b, cols, false }, rows, cols, inner, 1,
              1, sums, cols);
}

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

static const Tensor none = { .rank = 0 };

/* ---- layer ------------------------------------------------------------------ */

/* y begins as the bias, what it is added to, their sum, or 0. */
static void begin(Run *r, Tensor b, Tensor base, Tensor y)
{
    if (!b.data && !base.data)
        op_entries(r, none, ENTRY_FILL, 0, y);
    else if (b.data && base.data)
        op_entries_of(r, base, b, ENTRY_SUM, 1, y);
    else
        op_entries(r, base.data ? base : b, ENTRY_CAST, 0, y);
}

Tensor dense_layer(Run *r, Tensor x, Tensor w, Tensor b, Tensor base, FlopClass charge)
{
    Tensor matrix = tensor_with_rank(w, 3);
    Tensor y = run_tensor3(r, DT_F64, 1, x.shape[1], matrix.shape[2]);
    bool   added = b.data || base.data;

    if (added)
        begin(r, b, base, y);
    op_gemm(r, x, false, matrix, false, 1, added ? 1 : 0, y, charge);
    return y;
}

/* ---- activations ------------------------------------------------------------ */

Tensor dense_gelu(Run *r, Tensor a, GeluForm form)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], a.shape[2]);

    op_entries(r, a, form == GELU_ERF ? ENTRY_GELU_ERF : ENTRY_GELU_TANH, 0, y);
    op_charge(r, FLOP_OVERHEAD, DENSE_GELU_FLOPS * (double)tensor_count(&y));
    return y;
}

Tensor dense_activate(Run *r, Tensor x, DenseActivation activation)
{
    static const EntryKind kinds[] = { [ACTIVATE_RELU] = ENTRY_RELU,
                                       [ACTIVATE_GELU_TANH] = ENTRY_GELU_TANH,
                                       [ACTIVATE_SIGMOID] = ENTRY_SIGMOID };

    op_entries(r, x, kinds[activation], 0, x);
    return x;
}

/* ---- norms ------------------------------------------------------------------ */

static void charge_norm(Run *r, Tensor y, FlopClass charge)
{
    op_charge(r, charge, DENSE_NORM_FLOPS * (double)tensor_count(&y));
}

Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, FlopClass charge)
{
    int64_t rows[3] = { x.shape[1], 1, x.shape[2] };
    Tensor  y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);

    op_standardise64(r, tensor_of(x.dtype, 3, rows, x.data), eps, gain, bias,
                     tensor_of(DT_F64, 3, rows, y.data));
    charge_norm(r, y, charge);
    return y;
}

Tensor dense_group_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps)
{
    Tensor y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);

    op_standardise64(r, x, eps, gain, bias, y);
    charge_norm(r, y, FLOP_OVERHEAD);
    return y;
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
    Tensor y = run_tensor3(r, x.dtype, x.shape[0], x.shape[2], x.shape[1]);

    op_entries(r, tensor_turned(x), ENTRY_CAST, 0, y);
    return y;
}

Tensor dense_add(Run *r, Tensor x, Tensor y)
{
    op_entries_of(r, x, y, ENTRY_SUM, 1, x);
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

/* See dense.h. */

static double *f64(const Tensor *t)
{
    return t->data;
}

/* ---- one entry or one row at a time ------------------------------------------- */

Tensor exact_of(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], x.shape[2]);

    op_entries(r, x, ENTRY_CAST, 0, y);
    return y;
}

Tensor exact_rounded(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    Tensor wide = x;

    wide.rank = 3;
    op_entries(r, wide, ENTRY_CAST, 0, y);
    return tensor_of(DT_F32, x.rank, x.shape, y.data);
}

void exact_normalise(double *y, int64_t d, NormaliseKind kind, double eps)
{
    double mean = 0, squares = 0, size = 1;

    for (int64_t t = 0; t < d && kind == NORMALISE_LAYER; t++)
        mean += y[t];
    mean /= (double)d;
    for (int64_t t = 0; t < d; t++)
        squares += (y[t] - mean) * (y[t] - mean);
    if (kind == NORMALISE_LAYER || kind == NORMALISE_RMS)
        size = sqrt(squares / (double)d + eps);
    if (kind == NORMALISE_L2)
        size = fmax(sqrt(squares), eps);
    for (int64_t t = 0; t < d; t++)
        y[t] = (y[t] - mean) / size;
}

void exact_normalised_row(const float *x, int64_t d, NormaliseKind kind, double eps, double *y)
{
    for (int64_t t = 0; t < d; t++)
        y[t] = (double)x[t];
    exact_normalise(y, d, kind, eps);
}

Tensor exact_normalised(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    Tensor y = op_normalise64(r, x, kind, eps);

    if (kind != NORMALISE_NONE)
        op_charge(r, FLOP_OVERHEAD, 5 * (double)tensor_count(&y));
    return y;
}

Tensor exact_sum(Run *r, Tensor a, Tensor b)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], a.shape[2]);

    op_entries_of(r, a, b, ENTRY_SUM, 1, y);
    return y;
}

void exact_exp(Run *r, Tensor x)
{
    op_entries(r, x, ENTRY_EXP, 0, x);
}

void exact_divide(Run *r, Tensor x, double by)
{
    op_entries(r, x, ENTRY_DIVIDE, by, x);
}

/* ---- products --------------------------------------------------------------- */

/* A row-major slice as a tensor [1,rows,cols]. */
static Tensor slice(double *data, int64_t rows, int64_t cols)
{
    return tensor_of(DT_F64, 3, (int64_t[]){ 1, rows, cols }, data);
}

Tensor exact_linear(Run *r, Tensor x, Tensor w, Tensor bias, int64_t cols)
{
    int64_t rows = x.shape[1], in = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, r->h, rows, cols);
    double *wide = run_alloc(r, in * cols, sizeof(*wide));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        Tensor from = w;

        from.shape[0] = 1;
        from.shape[2] = cols;
        from.data = tensor_head(&w, t, r->h);
        op_entries(r, from, ENTRY_CAST, 0, slice(wide, in, cols));
        op_product64(r, slice(tensor_head(&x, t, r->h), rows, in), slice(wide, in, cols),
                     bias.data ? tensor_head(&bias, t, r->h) : NULL,
                     slice(tensor_head(&y, t, r->h), rows, cols));
    }
    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * rows) * (double)(in * cols));
    return y;
}

Tensor exact_products(Run *r, Tensor x, Tensor y, int64_t head, int64_t first, int64_t count)
{
    int64_t n = x.shape[1], d = x.shape[2];
    Tensor  out = run_tensor3(r, DT_F64, 1, n, count);
    double *turned = run_alloc(r, d * count, sizeof(*turned));
    Tensor  columns;

    if (run_failed(r))
        return out;
    columns = slice(f64(&y) + (head * y.shape[1] + first) * d, d, count);
    columns.stride[1] = 1;
    columns.stride[2] = d;
    op_entries(r, columns, ENTRY_CAST, 0, slice(turned, d, count));
    op_product64(r, slice(f64(&x) + head * n * d, n, d), slice(turned, d, count), NULL, out);
    return out;
}

/* ---- sums of exponentials ------------------------------------------------------- */

LogSum log_sum_new(void)
{
    return (LogSum){ .top = -(double)INFINITY };
}

void log_sum_add(LogSum *s, double x)
{
    if (x > s->top) {
        s->sum = s->sum * exp(s->top - x) + 1;
        s->top = x;
    } else if (!(x <= -(double)INFINITY)) { /* a NaN makes it one */
        s->sum += exp(x - s->top);
    }
}

double log_sum_of(const LogSum *s)
{
    return s->top + log(s->sum);
}
