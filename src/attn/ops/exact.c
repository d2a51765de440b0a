/* exact.c -- see exact.h. */
#include "attn/ops/exact.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

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
