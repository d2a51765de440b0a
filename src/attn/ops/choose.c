/* choose.c -- see choose.h. */
#include "attn/ops/choose.h"

#include <math.h>

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
