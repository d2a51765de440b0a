/* dense.c -- see dense.h. */
#include <math.h>
#include <string.h>

#include "attn/ops/dense.h"
#include "attn/run.h"

static const Tensor none = { .rank = 0 };

/* ---- types ------------------------------------------------------------------- */

Tensor dense_wide(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], x.shape[2]);

    op_entries(r, x, ENTRY_CAST, 0, y);
    return y;
}

Tensor dense_rounded(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    Tensor wide = x;

    wide.rank = 3;
    op_entries(r, wide, ENTRY_CAST, 0, y);
    return tensor_of(DT_F32, x.rank, x.shape, y.data);
}

Tensor dense_turned(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, x.dtype, x.shape[0], x.shape[2], x.shape[1]);

    op_entries(r, tensor_turned(x), ENTRY_CAST, 0, y);
    return y;
}

Tensor dense_columns(Run *r, Tensor x, int64_t first, int64_t count)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], count);

    op_entries(r, tensor_columns(x, first, count), ENTRY_CAST, 0, y);
    return y;
}

/* ---- products and sums ------------------------------------------------------- */

/* Sets y to the bias, to base, to their sum, or to 0. */
static void begin_sum(Run *r, Tensor b, Tensor base, Tensor y)
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
        begin_sum(r, b, base, y);
    op_gemm(r, x, false, matrix, false, 1, added ? 1 : 0, y, charge);
    return y;
}

/* A row-major slice as a tensor [1,rows,cols]. */
static Tensor slice(double *data, int64_t rows, int64_t cols)
{
    return tensor_of(DT_F64, 3, (int64_t[]){ 1, rows, cols }, data);
}

Tensor dense_linear(Run *r, Tensor x, Tensor w, Tensor bias, int64_t cols)
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

Tensor dense_add(Run *r, Tensor x, Tensor y)
{
    op_entries_of(r, x, y, ENTRY_SUM, 1, x);
    return x;
}

LogSum log_sum_new(void)
{
    return (LogSum){ .top = -(double)INFINITY };
}

void log_sum_add(LogSum *s, double x)
{
    if (x > s->top) {
        s->sum = s->sum * exp(s->top - x) + 1;
        s->top = x;
    } else if (!(x <= -(double)INFINITY)) { /* NaN stays */
        s->sum += exp(x - s->top);
    }
}

double log_sum_of(const LogSum *s)
{
    return s->top + log(s->sum);
}

#define TALL 4      /* rows of a column, from which squares are the faster way */
#define WIDEST 16384 /* columns: the room of more is no int, as LAPACK takes it */
#define PANEL 128    /* columns whose products are computed at once */

/* x^T x below its diagonal, in the panels of the diagonal above it, too: what LAPACK reads, for
 * little more than half of the products. */
static void lower_gram(Run *r, Tensor x, Tensor gram)
{
    int64_t cols = x.shape[2];

    for (int64_t first = 0; first < cols; first += PANEL) {
        int64_t count = min_i64(PANEL, cols - first), end = first + count;

        op_gemm(r, tensor_columns(x, first, count), true, tensor_columns(x, 0, end), false, 1, 0,
                tensor_columns(tensor_rows(gram, first, count), 0, end), FLOP_NONE);
    }
}

static bool tall_svd(Run *r, Tensor x, int64_t count, DenseSvd *out)
{
    int64_t rows = x.shape[1], cols = x.shape[2];
    Tensor  gram;

    if (cols > WIDEST || rows < TALL * cols)
        return false;
    gram = run_tensor3(r, DT_F64, 1, cols, cols);
    lower_gram(r, x, gram);
    op_wait(r, "the host finds singular values");
    if (run_failed(r) || !cpu_svd_gram(r, &gram, out))
        return false;
    out->turned = run_tensor3(r, DT_F64, 1, rows, count);
    op_gemm(r, x, false, tensor_rows(out->right, 0, count), true, 1, 0, out->turned, FLOP_NONE);
    return true;
}

DenseSvd dense_svd(Run *r, Tensor x, int64_t count)
{
    int64_t  rows = x.shape[1], cols = x.shape[2], least = min_i64(rows, cols);
    DenseSvd out = { .values = run_tensor1(r, DT_F64, least),
                     .right = run_tensor3(r, DT_F64, 1, least, cols) };

    if (run_failed(r) || tall_svd(r, x, count, &out))
        return out;
    op_wait(r, "the host finds singular values");
    out.turned = run_tensor3(r, DT_F64, 1, rows, least);
    if (!run_failed(r))
        cpu_svd(r, &x, &out);
    return out;
}

/* ---- activations ------------------------------------------------------------ */

const char *const gelu_names[] = { "tanh", "erf", NULL };

double gelu_gate(double a, GeluForm form)
{
    if (form == GELU_ERF)
        return 0.5 * erfc(-a * M_SQRT1_2);
    return 0.5 * (1 + tanh(0.5 * gelu_argument(a)));
}

double gelu_slope(double a, GeluForm form)
{
    double g = gelu_gate(a, form);

    if (form == GELU_ERF)
        return g + a * 0.5 * ROOT_2_PI * exp(-0.5 * a * a);
    return g + 2 * a * g * (1 - g) * ROOT_2_PI * (1 + 3 * GELU_CUBE * a * a);
}

Tensor dense_gelu(Run *r, Tensor a, GeluForm form)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], a.shape[2]);

    op_entries(r, a, form == GELU_ERF ? ENTRY_GELU_ERF : ENTRY_GELU_TANH, 0, y);
    op_charge(r, FLOP_OVERHEAD, DENSE_GELU_FLOPS * (double)tensor_count(&y));
    return y;
}

Tensor dense_activate(Run *r, Tensor x, EntryKind kind)
{
    op_entries(r, x, kind, 0, x);
    return x;
}

/* ---- norms ------------------------------------------------------------------ */

Tensor dense_norm(Run *r, Tensor x, Tensor gain, Tensor bias, double eps, FlopClass charge)
{
    int64_t rows[3] = { x.shape[1], 1, x.shape[2] };
    Tensor  y = run_tensor3(r, DT_F64, 1, x.shape[1], x.shape[2]);

    op_standardise64(r, tensor_of(x.dtype, 3, rows, x.data), eps, gain, bias,
                     tensor_of(DT_F64, 3, rows, y.data));
    op_charge(r, charge, DENSE_NORM_FLOPS * (double)tensor_count(&y));
    return y;
}

void dense_normalise_row(double *y, int64_t d, NormaliseKind kind, double eps)
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
