/* select.c -- exact decisions: dot products in double, argmax, top-k, sort.
 *
 * A discrete choice must not depend on where a row lies or on the machine:
 * dot products add in index order, ties go to the lowest index, sorts are
 * stable.
 */
#include "attn/cpu/cpu.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 64 /* of one item of work */

/* ---- dots64 ----------------------------------------------------------------- */

typedef struct Dots {
    Run          *run;
    const Tensor *x; /* f32, or f64 of one head */
    Tensor       *y;
    double       *w;     /* [slices of w][cols / LANES][d][LANES], widened and padded */
    double       *start; /* [cols] the sums of f64 x begin with it; NULL: 0 */
    double       *rows;  /* [workers][ROWS][cols] when y is narrower than cols */
    int64_t       slices, cols, blocks;
} Dots;

static void dots_item(void *context, int64_t item, int worker)
{
    const Dots   *job = context;
    const Tensor *x = job->x;
    int64_t       h = job->y->shape[0], n = job->y->shape[1], out = job->y->shape[2];
    int64_t       head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t       rows = min_i64(ROWS, n - first), d = x->shape[2], ldx = x->stride[1];
    const double *w = job->w + head * job->slices / h * d * job->cols;
    double       *y = tensor_f64(job->y) + (head * n + first) * out;
    double       *padded = out == job->cols ? y : job->rows + worker * ROWS * job->cols;

    if (cpu_cancelled(job->run))
        return;
    if (x->dtype == DT_F64)
        kernel_at(0)->product64(tensor_row_f64(x, head, h, first), ldx, rows, d, job->start, w,
                                job->cols, padded, job->cols);
    else
        kernel_at(0)->dots64(tensor_row_f32(x, head, h, first), ldx, rows, d, w, job->cols,
                             padded, job->cols);
    for (int64_t i = 0; padded != y && i < rows; i++)
        memcpy(y + i * out, padded + i * job->cols, (size_t)out * sizeof(double));
}

/* Columns first .. first + LANES of row t. */
static void widen_strip(const Tensor *w, int64_t slice, int64_t t, int64_t first, double *to)
{
    int64_t at = slice * w->stride[0] + t * w->stride[1] + first;
    int64_t count = min_i64(LANES, w->shape[2] - first);

    floats_widen(w->dtype, w->data, at, count, to);
    for (int64_t c = count; c < LANES; c++)
        to[c] = 0;
}

static void widen_row(const Tensor *w, double *to, int64_t cols)
{
    for (int64_t slice = 0; slice < w->shape[0]; slice++)
        for (int64_t first = 0; first < cols; first += LANES)
            for (int64_t t = 0; t < w->shape[1]; t++, to += LANES)
                widen_strip(w, slice, t, first, to);
}

void cpu_product64(Run *r, const Tensor *x, const Tensor *w, const float *bias, Tensor *y)
{
    ArenaMark mark = arena_mark(r->arena);
    Dots      job = { .run = r, .x = x, .y = y, .slices = w->shape[0],
                      .cols = round_up_to(w->shape[2], LANES),
                      .blocks = ceil_div(y->shape[1], ROWS) };

    job.w = cpu_scratch(r, job.slices * w->shape[1], job.cols * (int64_t)sizeof(double));
    job.start = bias ? cpu_scratch(r, job.cols, sizeof(double)) : NULL;
    job.rows = cpu_scratch(r, threads_count(r->threads) * ROWS,
                           job.cols * (int64_t)sizeof(double));
    if (job.w && job.rows && (job.start || !bias)) {
        widen_row(w, job.w, job.cols);
        for (int64_t c = 0; bias && c < job.cols; c++)
            job.start[c] = c < w->shape[2] ? (double)bias[c] : 0;
        threads_run(r->threads, y->shape[0] * job.blocks, dots_item, &job);
    }
    arena_release(r->arena, mark);
}

void cpu_dots64(Run *r, const Tensor *x, const Tensor *w, Tensor *y)
{
    cpu_product64(r, x, w, NULL, y);
}

/* ---- argmax ----------------------------------------------------------------- */

typedef struct Choose {
    Run          *run;
    const Tensor *x;
    bool          negative;
    int64_t       k;
    Tensor       *index;
    int64_t      *keys; /* [workers][2][n] */
} Choose;

int32_t cpu_argmax_row(const double *x, int64_t count, bool negative)
{
    int64_t best = 0;
    double  top = x[0];

    for (int64_t c = 1; c < count; c++)
        if (x[c] > top) {
            top = x[c];
            best = c;
        }
    for (int64_t c = 0; negative && c < count; c++)
        if (-x[c] > top) {
            top = -x[c];
            best = count + c;
        }
    return (int32_t)best;
}

static void argmax_item(void *context, int64_t item, int worker)
{
    const Choose *job = context;
    int64_t       count = job->x->shape[2], rows = job->x->shape[0] * job->x->shape[1];

    (void)worker;
    for (int64_t i = item * ROWS; i < min_i64(rows, (item + 1) * ROWS); i++)
        tensor_i32(job->index)[i] =
            cpu_argmax_row(tensor_f64(job->x) + i * count, count, job->negative);
}

void cpu_argmax(Run *r, const Tensor *x, bool with_negative, Tensor *index)
{
    Choose job = { .run = r, .x = x, .negative = with_negative, .index = index };

    threads_run(r->threads, ceil_div(x->shape[0] * x->shape[1], ROWS), argmax_item, &job);
}

/* ---- top-k ------------------------------------------------------------------ */

int64_t cpu_order_key(double x)
{
    int64_t bits;

    x += 0.0;
    memcpy(&bits, &x, sizeof(bits));
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

double cpu_order_number(int64_t key)
{
    double x;

    key = key < 0 ? key ^ INT64_MAX : key;
    memcpy(&x, &key, sizeof(x));
    return x;
}

int64_t cpu_kth_largest(int64_t *keys, int64_t count, int64_t k)
{
    int64_t low = 0, high = count - 1;

    while (low < high) {
        int64_t pivot = keys[low + (high - low) / 2], i = low, j = high;

        while (i <= j) {
            while (keys[i] > pivot)
                i++;
            while (keys[j] < pivot)
                j--;
            if (i <= j) {
                int64_t swap = keys[i];

                keys[i++] = keys[j];
                keys[j--] = swap;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return pivot;
    }
    return keys[k];
}

void cpu_largest_places(const int64_t *keys, int64_t *work, int64_t n, int64_t k, int32_t *out)
{
    int64_t bound, equal = k;

    memcpy(work, keys, (size_t)n * sizeof(*keys));
    bound = cpu_kth_largest(work, n, k - 1);
    for (int64_t i = 0; i < n; i++)
        equal -= keys[i] > bound;
    for (int64_t i = 0; i < n; i++)
        if (keys[i] > bound || (keys[i] == bound && equal-- > 0))
            *out++ = (int32_t)i;
}

static void top_k_item(void *context, int64_t item, int worker)
{
    const Choose *job = context;
    int64_t       n = job->x->shape[1], cols = job->x->shape[2], k = job->k;
    const double *x = tensor_f64(job->x) + item / cols * n * cols + item % cols;
    int64_t      *keys = job->keys + worker * 2 * n, *work = keys + n;
    int32_t      *out = tensor_i32(job->index) + item * k;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = 0; i < n; i++)
        keys[i] = cpu_order_key(x[i * cols]);
    cpu_largest_places(keys, work, n, k, out);
}

void cpu_top_k(Run *r, const Tensor *x, int64_t k, Tensor *index)
{
    ArenaMark mark = arena_mark(r->arena);
    Choose    job = { .run = r, .x = x, .k = k, .index = index };

    job.keys = cpu_scratch(r, 2 * threads_count(r->threads),
                           x->shape[1] * (int64_t)sizeof(*job.keys));
    if (job.keys && k > 0)
        threads_run(r->threads, x->shape[0] * x->shape[2], top_k_item, &job);
    arena_release(r->arena, mark);
}

#define MASS_FIRST 32 /* numbers that a share is first sought among */

static int by_decrease(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

int64_t cpu_fewest(const double *e, int64_t count, double wanted, int64_t *order, double *work)
{
    for (int64_t t = min_i64(MASS_FIRST, count);; t = min_i64(4 * t, count)) {
        int64_t bound, kept = 0;
        double  sum = 0;

        for (int64_t j = 0; j < count; j++)
            order[j] = cpu_order_key(e[j]);
        bound = cpu_kth_largest(order, count, t - 1);
        for (int64_t j = 0; j < count; j++)
            if (cpu_order_key(e[j]) >= bound)
                work[kept++] = e[j];
        qsort(work, (size_t)kept, sizeof(*work), by_decrease);
        for (int64_t j = 0; j < kept; j++) {
            sum += work[j];
            if (sum >= wanted)
                return j + 1;
        }
        if (t == count)
            return count;
    }
}

/* ---- sort ------------------------------------------------------------------- */

typedef struct Sort {
    Run          *run;
    const Tensor *key;
    Tensor       *order;
    int64_t       n;
    int32_t      *work; /* [workers][n] */
} Sort;

/* One byte of a least-significant-first radix sort; the sign bit is flipped. */
static bool radix_pass(const int32_t *key, int64_t n, int shift, const int32_t *from,
                       int32_t *to)
{
    int64_t  start[257] = { 0 };
    uint32_t turn = 0x80000000u;

    for (int64_t i = 0; i < n; i++)
        start[((((uint32_t)key[i] ^ turn) >> shift) & 255) + 1]++;
    for (int x = 0; x < 256; x++)
        if (start[x + 1] == n)
            return false; /* all equal: nothing moves */
    for (int x = 0; x < 256; x++)
        start[x + 1] += start[x];
    for (int64_t i = 0; i < n; i++)
        to[start[(((uint32_t)key[from[i]] ^ turn) >> shift) & 255]++] = from[i];
    return true;
}

static void sort_item(void *context, int64_t item, int worker)
{
    const Sort    *job = context;
    const int32_t *key = (const int32_t *)job->key->data + item * job->n;
    int32_t       *out = tensor_i32(job->order) + item * job->n;
    int32_t       *from = out, *to = job->work + worker * job->n;

    if (cpu_cancelled(job->run))
        return;
    for (int64_t i = 0; i < job->n; i++)
        from[i] = (int32_t)i;
    for (int shift = 0; shift < 32; shift += 8)
        if (radix_pass(key, job->n, shift, from, to)) {
            int32_t *swap = from;

            from = to;
            to = swap;
        }
    if (from != out)
        memcpy(out, from, (size_t)job->n * sizeof(*out));
}

void cpu_sort(Run *r, const Tensor *key, Tensor *order)
{
    ArenaMark mark = arena_mark(r->arena);
    Sort      job = { .run = r, .key = key, .order = order, .n = key->shape[key->rank - 1] };

    job.work = cpu_scratch(r, threads_count(r->threads), job.n * (int64_t)sizeof(*job.work));
    if (job.work && job.n > 0)
        threads_run(r->threads, tensor_count(key) / job.n, sort_item, &job);
    arena_release(r->arena, mark);
}
