/* exact.c -- see exact.h. */
#include "attn/exact.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static double *f64(const Tensor *t)
{
    return t->data;
}

/* ---- one entry or one row at a time ------------------------------------------- */

#define PIECE 32768 /* entries of one item of work */

typedef struct Entries {
    Run          *run;
    Tensor        x;
    void         *out;
    int64_t       count, rows, d; /* entries, or rows of d, in all */
    NormaliseKind kind;
    double        eps; /* of kind, or what is divided by */
} Entries;

static void on_entries(Run *r, ThreadsFn work, Entries *job)
{
    if (!run_failed(r))
        threads_run(r->threads, (job->count + PIECE - 1) / PIECE, work, job);
}

static void widen_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        per_head = job->rows * job->d;
    int64_t        end = min64(job->count, (item + 1) * PIECE);

    (void)worker;
    for (int64_t i = item * PIECE, next; i < end; i = next) {
        int64_t      t = i / per_head;
        const float *from = (const float *)tensor_head(&job->x, t, job->run->h) - t * per_head;

        for (next = min64(end, (t + 1) * per_head); i < next; i++)
            ((double *)job->out)[i] = (double)from[i];
    }
}

Tensor exact_of(Run *r, Tensor x)
{
    Tensor  y = run_tensor3(r, DT_F64, r->h, x.shape[1], x.shape[2]);
    Entries job = { .run = r, .x = x, .out = y.data, .count = tensor_count(&y),
                    .rows = x.shape[1], .d = x.shape[2] };

    on_entries(r, widen_item, &job);
    return y;
}

static void round_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        end = min64(job->count, (item + 1) * PIECE);

    (void)worker;
    for (int64_t i = item * PIECE; i < end; i++)
        ((float *)job->out)[i] = (float)f64(&job->x)[i];
}

Tensor exact_rounded(Run *r, Tensor x)
{
    Tensor  y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);
    Entries job = { .run = r, .x = x, .out = y.data, .count = tensor_count(&y) };

    on_entries(r, round_item, &job);
    return tensor_of(DT_F32, x.rank, x.shape, y.data);
}

void exact_normalised_row(const float *x, int64_t d, NormaliseKind kind, double eps, double *y)
{
    double mean = 0, squares = 0, size = 1;

    for (int64_t t = 0; t < d && kind == NORMALISE_LAYER; t++)
        mean += (double)x[t];
    mean /= (double)d;
    for (int64_t t = 0; t < d; t++)
        squares += ((double)x[t] - mean) * ((double)x[t] - mean);
    if (kind == NORMALISE_LAYER || kind == NORMALISE_RMS)
        size = sqrt(squares / (double)d + eps);
    if (kind == NORMALISE_L2)
        size = fmax(sqrt(squares), eps);
    for (int64_t t = 0; t < d; t++)
        y[t] = ((double)x[t] - mean) / size;
}

static void normalise_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        some = PIECE / job->d + 1, end = min64(job->run->h * job->rows,
                                                          (item + 1) * some);

    (void)worker;
    for (int64_t i = item * some; i < end; i++)
        exact_normalised_row((const float *)tensor_head(&job->x, i / job->rows, job->run->h) +
                                 i % job->rows * job->d,
                             job->d, job->kind, job->eps, (double *)job->out + i * job->d);
}

Tensor exact_normalised(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    int64_t rows = x.shape[1], d = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, r->h, rows, d);
    Entries job = { .run = r, .x = x, .out = y.data, .rows = rows, .d = d, .kind = kind,
                    .eps = eps, .count = tensor_count(&y) };

    on_entries(r, normalise_item, &job);
    if (kind != NORMALISE_NONE)
        op_charge(r, FLOP_OVERHEAD, 5 * (double)tensor_count(&y));
    return y;
}

Tensor exact_sum(Run *r, Tensor a, Tensor b)
{
    Tensor y = run_tensor3(r, DT_F64, a.shape[0], a.shape[1], a.shape[2]);

    for (int64_t i = 0; i < tensor_count(&y) && !run_failed(r); i++)
        f64(&y)[i] = f64(&a)[i] + f64(&b)[i];
    return y;
}

static void exp_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        end = min64(job->count, (item + 1) * PIECE);

    (void)worker;
    for (int64_t i = item * PIECE; i < end; i++)
        f64(&job->x)[i] = exp(f64(&job->x)[i]);
}

void exact_exp(Run *r, Tensor x)
{
    on_entries(r, exp_item, &(Entries){ .run = r, .x = x, .count = tensor_count(&x) });
}

static void divide_item(void *context, int64_t item, int worker)
{
    const Entries *job = context;
    int64_t        end = min64(job->count, (item + 1) * PIECE);

    (void)worker;
    for (int64_t i = item * PIECE; i < end; i++)
        f64(&job->x)[i] /= job->eps;
}

void exact_divide(Run *r, Tensor x, double by)
{
    on_entries(r, divide_item,
               &(Entries){ .run = r, .x = x, .count = tensor_count(&x), .eps = by });
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
        const float *from = tensor_head(&w, t, r->h);

        for (int64_t i = 0; i < in * cols; i++)
            wide[i] = (double)from[i / cols * w.shape[2] + i % cols];
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

    if (run_failed(r))
        return out;
    for (int64_t c = 0; c < count; c++)
        for (int64_t t = 0; t < d; t++)
            turned[t * count + c] = f64(&y)[(head * y.shape[1] + first + c) * d + t];
    op_product64(r, slice(f64(&x) + head * n * d, n, d), slice(turned, d, count), NULL, out);
    return out;
}
