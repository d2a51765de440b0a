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

static double page_number(const ChooseKeys *in, int64_t heads, int64_t head, int64_t i, int64_t u)
{
    const float *q = tensor_row_f32(&in->in.q, head, heads, i);
    int64_t      first = u * in->page, end = min_i64(first + in->page, last_seen(in, i) + 1);
    double       sum = 0;

    for (int64_t c = 0; c < in->in.q.shape[2] && end == first + in->page; c++)
        sum += fmax((double)q[c] * (double)tensor_row_f32(&in->lo, head, heads, u)[c],
                    (double)q[c] * (double)tensor_row_f32(&in->hi, head, heads, u)[c]);
    for (int64_t c = 0; c < in->in.q.shape[2] && end < first + in->page; c++) {
        double lo = HUGE_VAL, hi = -HUGE_VAL;

        for (int64_t j = first; j < end; j++) {
            double x = (double)tensor_row_f32(&in->in.k, head, heads, j)[c];

            lo = fmin(lo, x);
            hi = fmax(hi, x);
        }
        sum += fmax((double)q[c] * lo, (double)q[c] * hi);
    }
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
