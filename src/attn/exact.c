/* exact.c -- see exact.h. */
#include "attn/exact.h"

#include <math.h>
#include <string.h>

#include "attn/run.h"

#define ROWS 64        /* of one item of work */
#define STRIP 16       /* columns of a product at a time */
#define TILE (1 << 22) /* products with centroids held at a time */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static double *f64(const Tensor *t)
{
    return t->data;
}

Tensor exact_of(Run *r, Tensor x)
{
    int64_t size = x.shape[1] * x.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, r->h, x.shape[1], x.shape[2]);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *from = tensor_head(&x, t, r->h);

        for (int64_t i = 0; i < size; i++)
            f64(&y)[t * size + i] = (double)from[i];
    }
    return y;
}

Tensor exact_rounded(Run *r, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F32, x.shape[0], x.shape[1], x.shape[2]);

    for (int64_t i = 0; i < tensor_count(&y) && !run_failed(r); i++)
        tensor_f32(&y)[i] = (float)f64(&x)[i];
    return y;
}

static void normalise_row(const float *x, int64_t d, NormaliseKind kind, double eps, double *y)
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

Tensor exact_normalised(Run *r, Tensor x, NormaliseKind kind, double eps)
{
    int64_t rows = x.shape[1], d = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, r->h, rows, d);

    for (int64_t i = 0; i < r->h * rows && !run_failed(r); i++)
        normalise_row((float *)tensor_head(&x, i / rows, r->h) + i % rows * d, d, kind, eps,
                      f64(&y) + i * d);
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

/* ---- products --------------------------------------------------------------- */

/* y [rows,cols] = x [rows,in] w [in,cols] + bias, a block of rows per item. */
typedef struct Product {
    const double *x, *w;
    const float  *bias;
    double       *y;
    int64_t       rows, in, cols;
} Product;

/* STRIP columns of a row at a time stay in registers; the order of each sum is the same. */
static void product_strip(const Product *job, int64_t i, int64_t first)
{
    const double *x = job->x + i * job->in, *w = job->w + first;
    double        sum[STRIP];

    for (int c = 0; c < STRIP; c++)
        sum[c] = job->bias ? (double)job->bias[first + c] : 0;
    for (int64_t t = 0; t < job->in; t++)
        for (int c = 0; c < STRIP; c++)
            sum[c] += x[t] * w[t * job->cols + c];
    memcpy(job->y + i * job->cols + first, sum, sizeof(sum));
}

static void product_item(void *context, int64_t item, int worker)
{
    const Product *job = context;
    int64_t        last = min64(job->rows, (item + 1) * ROWS), strips = job->cols / STRIP * STRIP;

    (void)worker;
    for (int64_t c = 0; c < strips; c += STRIP)
        for (int64_t i = item * ROWS; i < last; i++)
            product_strip(job, i, c);
    for (int64_t i = item * ROWS; i < last; i++)
        for (int64_t c = strips; c < job->cols; c++) {
            double sum = job->bias ? (double)job->bias[c] : 0;

            for (int64_t t = 0; t < job->in; t++)
                sum += job->x[i * job->in + t] * job->w[t * job->cols + c];
            job->y[i * job->cols + c] = sum;
        }
}

static void multiply(Run *r, Product *job)
{
    threads_run(r->threads, (job->rows + ROWS - 1) / ROWS, product_item, job);
}

Tensor exact_linear(Run *r, Tensor x, Tensor w, Tensor bias, int64_t cols)
{
    int64_t rows = x.shape[1], in = x.shape[2];
    Tensor  y = run_tensor3(r, DT_F64, r->h, rows, cols);
    double *wide = run_alloc(r, in * cols, sizeof(*wide));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *from = tensor_head(&w, t, r->h);
        Product      job = { .x = tensor_head(&x, t, r->h), .w = wide,
                             .bias = bias.data ? tensor_head(&bias, t, r->h) : NULL,
                             .y = tensor_head(&y, t, r->h), .rows = rows, .in = in,
                             .cols = cols };

        for (int64_t i = 0; i < in * cols; i++)
            wide[i] = (double)from[i / cols * w.shape[2] + i % cols];
        multiply(r, &job);
    }
    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * rows) * (double)(in * cols));
    return y;
}

Tensor exact_products(Run *r, Tensor x, Tensor y, int64_t head, int64_t first, int64_t count)
{
    int64_t n = x.shape[1], d = x.shape[2];
    Tensor  out = run_tensor3(r, DT_F64, 1, n, count);
    double *turned = run_alloc(r, d * count, sizeof(*turned));
    Product job = { .w = turned, .y = out.data, .rows = n, .in = d, .cols = count };

    if (run_failed(r))
        return out;
    for (int64_t c = 0; c < count; c++)
        for (int64_t t = 0; t < d; t++)
            turned[t * count + c] = f64(&y)[(head * y.shape[1] + first + c) * d + t];
    job.x = f64(&x) + head * n * d;
    multiply(r, &job);
    return out;
}

/* ---- centroids -------------------------------------------------------------- */

static int64_t tile_size(Tensor mu, Tensor x)
{
    return min64(mu.shape[1], TILE / x.shape[1] + 1);
}

Tensor centroids_nearest(Run *r, Tensor mu, Tensor x)
{
    int64_t n = x.shape[1], tile = tile_size(mu, x);
    Tensor  index = run_tensor2(r, DT_I32, x.shape[0], n);
    double *best = run_alloc(r, n, sizeof(*best));

    for (int64_t t = 0; t < x.shape[0]; t++)
        for (int64_t first = 0; first < mu.shape[1] && !run_failed(r); first += tile) {
            int64_t   count = min64(tile, mu.shape[1] - first);
            ArenaMark mark = arena_mark(r->arena);
            Tensor    y = exact_products(r, x, mu, t, first, count);

            for (int64_t e = 0; e < n * count && !run_failed(r); e++) {
                int64_t i = e / count, c = first + e % count;

                if (c && !(f64(&y)[e] > best[i]))
                    continue;
                best[i] = f64(&y)[e];
                tensor_i32(&index)[t * n + i] = (int32_t)c;
            }
            arena_release(r->arena, mark);
        }
    return index;
}

Tensor centroids_members(Run *r, Tensor mu, Tensor x, int64_t w)
{
    int64_t clusters = mu.shape[1], tile = tile_size(mu, x);
    Tensor  set = run_tensor2(r, DT_I32, x.shape[0], clusters * w);

    for (int64_t t = 0; t < x.shape[0]; t++)
        for (int64_t first = 0; first < clusters && !run_failed(r); first += tile) {
            int64_t   count = min64(tile, clusters - first);
            ArenaMark mark = arena_mark(r->arena);
            Tensor    top = op_top_k(r, exact_products(r, x, mu, t, first, count), w);

            if (!run_failed(r))
                memcpy(tensor_i32(&set) + (t * clusters + first) * w, top.data,
                       (size_t)tensor_bytes(&top));
            arena_release(r->arena, mark);
        }
    return set;
}

void centroids_gather(Run *r, Tensor x, Tensor nearest, Tensor sum, int64_t *count)
{
    int64_t n = x.shape[1], d = x.shape[2];

    for (int64_t i = 0; i < x.shape[0] * n && !run_failed(r); i++) {
        int64_t c = i / n * sum.shape[1] + tensor_i32(&nearest)[i];

        count[c]++;
        for (int64_t t = 0; t < d; t++)
            f64(&sum)[c * d + t] += f64(&x)[i * d + t];
    }
}
