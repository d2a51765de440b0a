/* choose.c -- see choose.h. */
#include "attn/ops/choose.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "attn/cpu/simd/kernel.h"
#include "attn/ops/dispatch.h"
#include "attn/run.h"

static int64_t last_seen(const ChooseKeys *in, int64_t i)
{
    const Tensor *q = in->kind == CHOOSE_INDEX ? &in->q : &in->in.q;
    const Tensor *k = in->kind == CHOOSE_INDEX ? &in->k : &in->in.k;
    int64_t       at = in->causal ? i + k->shape[1] - q->shape[1] : k->shape[1] - 1;

    return at < -1 ? -1 : at;
}

bool choose_pages(const ChooseKeys *in)
{
    return in->kind == CHOOSE_PAGES || in->kind == CHOOSE_MEANS;
}

int64_t choose_candidates(const ChooseKeys *in, int64_t i)
{
    int64_t keys = last_seen(in, i) + 1;

    return choose_pages(in) ? (keys + in->page - 1) / in->page : keys;
}

int64_t choose_fixed(const ChooseKeys *in, int64_t i)
{
    if (in->kind == CHOOSE_MEANS)
        return (in->causal ? last_seen(in, i) : i) / in->page;
    return in->newest ? choose_candidates(in, i) - 1 : -1;
}

static double index_number(const ChooseKeys *in, int64_t i, int64_t j)
{
    int64_t d = in->k.shape[2];
    double  sum = 0;

    for (int64_t t = 0; t < in->heads; t++) {
        double dot = 0;

        for (int64_t c = 0; c < d; c++)
            dot += tensor_float(&in->q, 0, 1, i, t * d + c) * tensor_float(&in->k, 0, 1, j, c);
        sum += tensor_float(&in->w, 0, 1, i, t) * fmax(dot, 0);
    }
    return sum / sqrt((double)(in->heads * d));
}

int64_t choose_bounds_differ(const ChooseKeys *in, int64_t i)
{
    int64_t seen = last_seen(in, i) + 1;

    return in->kind == CHOOSE_PAGES && seen % in->page != 0 && seen < in->in.k.shape[1];
}

/* The larger of q lo and q hi, lo at most hi; 0 times an infinite bound is 0. */
static double larger_product(float q, float lo, float hi)
{
    return q > 0 ? (double)q * (double)hi : q < 0 ? (double)q * (double)lo : (double)q;
}

#define CHANNELS 64 /* bounds held at once */

/* Adds, for channels [at, at + count), the larger product with the least and the largest of keys
 * [first, end). */
static void add_seen_bound(const ChooseKeys *in, int64_t heads, int64_t head, const float *q,
                           int64_t first, int64_t end, int64_t at, int64_t count, double *sum)
{
    float lo[CHANNELS], hi[CHANNELS];

    for (int64_t c = 0; c < count; c++) {
        lo[c] = HUGE_VALF;
        hi[c] = -HUGE_VALF;
    }
    for (int64_t j = first; j < end; j++) {
        const float *k = tensor_row_f32(&in->in.k, head, heads, j) + at;

        for (int64_t c = 0; c < count; c++) {
            lo[c] = k[c] < lo[c] ? k[c] : lo[c];
            hi[c] = k[c] > hi[c] ? k[c] : hi[c];
        }
    }
    for (int64_t c = 0; c < count; c++)
        *sum += larger_product(q[at + c], lo[c], hi[c]);
}

static double page_number(const ChooseKeys *in, int64_t heads, int64_t head, int64_t i, int64_t u)
{
    const float *q = tensor_row_f32(&in->in.q, head, heads, i);
    int64_t      d = in->in.q.shape[2], seen = last_seen(in, i) + 1;
    int64_t      first = u * in->page, end = min_i64(first + in->page, seen);
    double       sum = 0;

    if (end < first + in->page && end < in->in.k.shape[1]) {
        for (int64_t at = 0; at < d; at += CHANNELS)
            add_seen_bound(in, heads, head, q, first, end, at, min_i64(CHANNELS, d - at), &sum);
        return in->in.scale * sum;
    }
    for (int64_t c = 0; c < d; c++)
        sum += larger_product(q[c], tensor_row_f32(&in->lo, head, heads, u)[c],
                              tensor_row_f32(&in->hi, head, heads, u)[c]);
    return in->in.scale * sum;
}

static double mean_number(const ChooseKeys *in, int64_t heads, int64_t head, int64_t i, int64_t u)
{
    const float *q = tensor_row_f32(&in->in.q, head, heads, i);
    double       sum = 0;

    for (int64_t c = 0; c < in->in.q.shape[2]; c++)
        sum += (double)q[c] * tensor_float(&in->mean, head, heads, u, c);
    return sum;
}

double choose_number(const ChooseKeys *in, int64_t heads, int64_t head, int64_t i, int64_t j)
{
    return in->kind == CHOOSE_SCORES ? attend_score(&in->in, heads, head, i, j)
           : in->kind == CHOOSE_INDEX ? index_number(in, i, j)
           : in->kind == CHOOSE_MEANS ? mean_number(in, heads, head, i, j)
                                      : page_number(in, heads, head, i, j);
}

/* ---- many numbers at once ------------------------------------------------------- */

#define DEPTH 64 /* factors at once; even, as bounds of a channel stand side by side */

/* Some rows and candidates, in the order of Kernel.product64. */
typedef struct NumberTile {
    double left[VIEW_ROWS_MOST * DEPTH];
    double right[VIEW_KEYS_MOST * DEPTH];        /* strips [candidates / LANES][depth][LANES] */
    double part[VIEW_ROWS_MOST * VIEW_KEYS_MOST];
    double dot[VIEW_ROWS_MOST * VIEW_KEYS_MOST]; /* CHOOSE_INDEX: of one of its heads */
    double sum[VIEW_ROWS_MOST * VIEW_KEYS_MOST];
} NumberTile;

typedef struct Numbers {
    const ChooseKeys *in;
    int64_t           heads, head;
    int64_t           width; /* factors of a number, or of a head of the index */
    const int64_t    *rows;
    int64_t           row_count, start, count;
} Numbers;

static void put_row(const Tensor *x, int64_t head, int64_t heads, int64_t row, int64_t from,
                    int64_t count, int64_t step, double *to)
{
    const void *at = tensor_head(x, head, heads);
    int64_t     first = row * x->stride[1] + from;

    if (x->dtype == DT_F64)
        for (int64_t c = 0; c < count; c++)
            to[c * step] = ((const double *)at)[first + c];
    else
        for (int64_t c = 0; c < count; c++)
            to[c * step] = (double)((const float *)at)[first + c];
}

void choose_split(const float *q, int64_t count, double *to)
{
    for (int64_t c = 0; c < count; c++) {
        to[2 * c] = q[c] > 0 ? (double)q[c] : 0;
        to[2 * c + 1] = q[c] > 0 ? 0 : (double)q[c];
    }
}

static double choose_bound(double bound)
{
    return bound > DBL_MAX ? DBL_MAX : bound < -DBL_MAX ? -DBL_MAX : bound;
}

static void put_bounds(const float *x, int64_t count, int64_t step, double *to)
{
    for (int64_t c = 0; c < count; c++)
        to[2 * c * step] = choose_bound((double)x[c]);
}

void choose_factors(const ChooseKeys *in, int64_t heads, int64_t head, int64_t j, int64_t from,
                    int64_t count, int64_t step, double *to)
{
    if (in->kind == CHOOSE_PAGES) {
        put_bounds(tensor_row_f32(&in->hi, head, heads, j) + from / 2, count / 2, step, to);
        put_bounds(tensor_row_f32(&in->lo, head, heads, j) + from / 2, count / 2, step, to + step);
    } else if (in->kind == CHOOSE_INDEX) {
        put_row(&in->k, 0, 1, j, from, count, step, to);
    } else {
        put_row(in->kind == CHOOSE_MEANS ? &in->mean : &in->in.k, head, heads, j, from, count,
                step, to);
    }
}

/* Factors [from, from + depth) of the rows; t: head of the index. */
static void put_left(const Numbers *n, int64_t t, int64_t from, int64_t depth, double *to)
{
    const ChooseKeys *in = n->in;

    for (int64_t x = 0; x < n->row_count; x++, to += depth)
        if (in->kind == CHOOSE_PAGES)
            choose_split(tensor_row_f32(&in->in.q, n->head, n->heads, n->rows[x]) + from / 2,
                         depth / 2, to);
        else if (in->kind == CHOOSE_INDEX)
            put_row(&in->q, 0, 1, n->rows[x], t * n->width + from, depth, 1, to);
        else
            put_row(&in->in.q, n->head, n->heads, n->rows[x], from, depth, 1, to);
}

static void put_right(const Numbers *n, int64_t from, int64_t depth, double *right)
{
    for (int64_t x = 0; x < n->count; x++)
        choose_factors(n->in, n->heads, n->head, n->start + x, from, depth, LANES,
                       right + x / LANES * LANES * depth + x % LANES);
}

bool choose_exact(const ChooseKeys *in)
{
    return in->kind == CHOOSE_INDEX ? in->q.dtype == DT_F32 && in->k.dtype == DT_F32
                                    : in->kind != CHOOSE_MEANS;
}

static void multiply_strip(const Numbers *n, const double *left, int64_t depth, const double *strip,
                           double *part)
{
    if (choose_exact(n->in))
        kernel_at(0)->fused64(left, depth, n->row_count, depth, strip, part, VIEW_KEYS_MOST);
    else
        kernel_at(0)->product64(left, depth, n->row_count, depth, NULL, strip, LANES, part,
                                VIEW_KEYS_MOST);
}

/* The products of the rows with the candidates into `dot`; turned: `right` holds the candidates. */
static void multiply_tile(const Numbers *n, int64_t t, bool turned, NumberTile *tile, double *dot)
{
    size_t numbers = (size_t)(n->row_count * VIEW_KEYS_MOST);

    memset(dot, 0, numbers * sizeof(*dot));
    for (int64_t from = 0; from < n->width; from += DEPTH) {
        int64_t depth = min_i64(DEPTH, n->width - from);

        put_left(n, t, from, depth, tile->left);
        if (!turned || n->width > DEPTH)
            put_right(n, from, depth, tile->right);
        for (int64_t c = 0; c < n->count; c += LANES)
            multiply_strip(n, tile->left, depth, tile->right + c * depth, tile->part + c);
        for (size_t x = 0; x < numbers; x++)
            dot[x] += tile->part[x];
    }
}

static void sum_index(const Numbers *n, NumberTile *tile)
{
    const ChooseKeys *in = n->in;
    int64_t           line = VIEW_KEYS_MOST;

    memset(tile->sum, 0, sizeof(tile->sum));
    for (int64_t t = 0; t < in->heads; t++) {
        multiply_tile(n, t, t > 0, tile, tile->dot);
        for (int64_t x = 0; x < n->row_count; x++)
            kernel_at(0)->fold_positive64(tile->dot + x * line, n->count,
                                          tensor_float(&in->w, 0, 1, n->rows[x], t),
                                          tile->sum + x * line);
    }
    for (int64_t x = 0; x < n->row_count; x++)
        kernel_at(0)->over64(tile->sum + x * line, n->count,
                             sqrt((double)(in->heads * n->width)));
}

/* The page of which a row sees a part has other bounds than the whole one; pages that it does not
 * see have no number. */
static void put_last_pages(const Numbers *n, int64_t x, float *out)
{
    int64_t seen = choose_candidates(n->in, n->rows[x]) - n->start, last = seen - 1;

    if (last >= 0 && last < n->count && choose_bounds_differ(n->in, n->rows[x]))
        out[last] = (float)page_number(n->in, n->heads, n->head, n->rows[x], n->start + last);
    for (int64_t c = max_i64(0, seen); c < n->count; c++)
        out[c] = 0;
}

void choose_numbers(const ChooseKeys *in, int64_t heads, int64_t head, const int64_t *rows,
                    int64_t row_count, int64_t start, int64_t count, float *out)
{
    int64_t    d = in->kind == CHOOSE_INDEX ? in->k.shape[2] : in->in.q.shape[2];
    Numbers    n = { .in = in, .heads = heads, .head = head, .rows = rows, .row_count = row_count,
                     .start = start, .count = count,
                     .width = in->kind == CHOOSE_PAGES ? 2 * d : d };
    double     scale = in->kind == CHOOSE_PAGES ? in->in.scale : 1;
    NumberTile tile;

    memset(tile.right, 0, sizeof(tile.right)); /* the rest of the last strip */
    memset(tile.part, 0, sizeof(tile.part));
    if (in->kind == CHOOSE_INDEX)
        sum_index(&n, &tile);
    else
        multiply_tile(&n, 0, false, &tile, tile.sum);
    for (int64_t x = 0; x < row_count; x++) {
        for (int64_t c = 0; c < count; c++)
            out[x * count + c] = (float)(scale * tile.sum[x * VIEW_KEYS_MOST + c]);
        if (choose_pages(in))
            put_last_pages(&n, x, out + x * count);
    }
}

ChosenKeys op_choose(Run *r, const ChooseKeys *in)
{
    bool       together = in->kind == CHOOSE_INDEX;
    int64_t    sets = together ? 1 : r->h, n = together ? in->q.shape[1] : in->in.q.shape[1];
    ChosenKeys out = { .sets = sets, .n = n,
                       .start = run_alloc(r, sets * n + 1, sizeof(*out.start)),
                       .least = run_tensor2(r, DT_F32, sets, n) };

    if (in->mass > 0 || in->sums) {
        out.lse = run_tensor2(r, DT_F64, sets, n);
        out.share = run_tensor2(r, DT_F64, sets, n);
    }
    op_wait(r, "the host chooses the keys of every query");
    if (!run_failed(r))
        cpu_choose(r, in, &out);
    op_traffic(r, bytes_of(in->in.q) + bytes_of(in->q) + bytes_of(in->k) +
                      bytes_of(in->kind == CHOOSE_MEANS ? in->mean : in->in.k),
               bytes_of(out.least));
    return out;
}
