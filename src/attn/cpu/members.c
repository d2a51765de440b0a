/* members.c -- what the members of clusters have in common: sums of vectors, counts of bits.
 *
 *     sum_c = sum of x_i, or of x_i / |x_i|, over index_i = c        in double, in row order
 *     ones_ct = how many codes of cluster c have bit t
 *
 * An item of the sums is a head, so that they are the same for any number of threads.
 */
#include "attn/cpu/columns.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

#define ROWS 1024 /* codes of one item of work */

typedef struct Sums {
    const Tensor *x, *index;
    bool          unit;
    Tensor       *sum;
} Sums;

/* Rows in double, as they are. */
static void add_doubles(const Sums *job, int64_t head)
{
    int64_t        h = job->sum->shape[0], clusters = job->sum->shape[1], d = job->sum->shape[2];
    int64_t        n = job->index->shape[1];
    const double  *x = tensor_head(job->x, head, h);
    const int32_t *index = tensor_i32(job->index) + head * n;

    for (int64_t i = 0; i < n; i++, x += job->x->stride[1]) {
        double *sum = (double *)job->sum->data + (head * clusters + index[i]) * d;

        for (int64_t t = 0; t < d; t++)
            sum[t] += x[t];
    }
}

static void sums_item(void *context, int64_t head, int worker)
{
    const Sums    *job = context;
    const Kernel  *kernel = kernel_at(0);
    int64_t        h = job->sum->shape[0], clusters = job->sum->shape[1], d = job->sum->shape[2];
    int64_t        n = job->index->shape[1];
    const float   *x = tensor_head(job->x, head, h);
    const int32_t *index = tensor_i32(job->index) + head * n;
    double        *sum = (double *)job->sum->data + head * clusters * d;

    (void)worker;
    memset(sum, 0, (size_t)(clusters * d) * sizeof(*sum));
    if (job->x->dtype == DT_F64) {
        add_doubles(job, head);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += job->x->stride[1]) {
        double factor = 1, total, squares;

        if (job->unit) {
            kernel->moments(x, d, 0, &total, &squares);
            factor = 1 / fmax(sqrt(squares), LENGTH_LEAST);
        }
        kernel->fold_scaled(x, d, factor, sum + index[i] * d);
    }
}

void cpu_member_sums(Run *r, const Tensor *x, const Tensor *index, bool unit, Tensor *sum)
{
    Sums job = { .x = x, .index = index, .unit = unit, .sum = sum };

    threads_run(r->threads, sum->shape[0], sums_item, &job);
}

typedef struct Tally {
    const Tensor *index;
    Tensor       *count;
} Tally;

static void tally_item(void *context, int64_t head, int worker)
{
    const Tally *job = context;
    int64_t      n = job->index->shape[1], size = job->count->shape[1];
    int32_t     *count = tensor_i32(job->count) + head * size;

    (void)worker;
    memset(count, 0, (size_t)size * sizeof(*count));
    for (int64_t i = 0; i < n; i++)
        count[tensor_i32(job->index)[head * n + i]]++;
}

void cpu_tally(Run *r, const Tensor *index, Tensor *count)
{
    Tally job = { .index = index, .count = count };

    threads_run(r->threads, count->shape[0], tally_item, &job);
}

/* ---- codes ------------------------------------------------------------------ */

typedef struct Search {
    const Tensor *codes, *centres;
    Tensor       *cluster;
    int64_t       blocks; /* of a head */
} Search;

static void nearest_item(void *context, int64_t item, int worker)
{
    const Search *job = context;
    int64_t      n = job->codes->shape[1], count = job->centres->shape[1];
    int64_t      head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t      at = head * n + first;

    (void)worker;
    kernel_at(0)->nearest_codes((const int64_t *)job->codes->data + at, min_i64(ROWS, n - first),
                                (const int64_t *)job->centres->data + head * count, count,
                                tensor_i32(job->cluster) + at);
}

void cpu_nearest_codes(Run *r, const Tensor *codes, const Tensor *centres, Tensor *cluster)
{
    Search job = { .codes = codes, .centres = centres, .cluster = cluster,
                  .blocks = ceil_div(codes->shape[1], ROWS) };

    threads_run(r->threads, codes->shape[0] * job.blocks, nearest_item, &job);
}

typedef struct BitSums {
    const Tensor *codes, *cluster;
    Tensor       *ones;
} BitSums;

static void bits_item(void *context, int64_t head, int worker)
{
    const BitSums *job = context;
    int64_t        n = job->codes->shape[1], size = job->ones->shape[1] * CODE_BITS;
    int32_t       *ones = tensor_i32(job->ones) + head * size;

    (void)worker;
    memset(ones, 0, (size_t)size * sizeof(*ones));
    kernel_at(0)->bit_sums((const int64_t *)job->codes->data + head * n,
                           tensor_i32(job->cluster) + head * n, n, ones);
}

void cpu_bit_sums(Run *r, const Tensor *codes, const Tensor *cluster, Tensor *ones)
{
    BitSums job = { .codes = codes, .cluster = cluster, .ones = ones };

    threads_run(r->threads, codes->shape[0], bits_item, &job);
}
