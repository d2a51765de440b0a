/* soft_blocks_mean.c -- scores of blocks without parameters, from the means of their tokens.
 *
 *     R[u,v] = qbar_u . kbar_v / sqrt(d)
 *
 * kbar_v is the mean key of block v, qbar_u the mean query of block u; in a causal run qbar_u
 * is the mean of all queries up to the block's first, and only blocks before u count.
 */
#include "attn/mech/learned/soft_blocks.h"

#include <math.h>

#include "attn/run.h"

double soft_blocks_mean_flops(const SoftBlocks *s)
{
    double h = (double)s->h, d = (double)s->d, nb = (double)s->nb, tokens = (double)s->n;

    if (s->causal) /* queries up to each block's first */
        tokens = nb + (double)s->b * nb * (nb - 1) / 2;
    return h * d * ((double)s->n + tokens + 2 * nb * nb);
}

/* Rows [first, last) of x averaged. */
static void mean_rows(const float *x, int64_t first, int64_t last, int64_t d, double *out)
{
    for (int64_t c = 0; c < d; c++)
        out[c] = 0;
    for (int64_t i = first; i < last; i++)
        for (int64_t c = 0; c < d; c++)
            out[c] += (double)x[i * d + c];
    for (int64_t c = 0; c < d; c++)
        out[c] /= (double)(last - first);
}

Tensor soft_blocks_mean_logits(Run *r, const SoftBlocks *s)
{
    Tensor  logits = run_tensor3(r, DT_F64, r->h, s->nb, s->nb);
    double *q = run_alloc(r, r->d, sizeof(*q)), *k = run_alloc(r, s->nb * r->d, sizeof(*k));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        const float *query = tensor_head(&r->q, t, r->h), *key = tensor_head(&r->k, t, r->h);

        for (int64_t v = 0; v < s->nb; v++)
            mean_rows(key, v * s->b, v * s->b + soft_blocks_length(s, v), r->d, k + v * r->d);
        for (int64_t u = 0; u < s->nb; u++) {
            double *row = (double *)logits.data + (t * s->nb + u) * s->nb;

            mean_rows(query, s->causal ? 0 : u * s->b,
                      u * s->b + (s->causal ? 1 : soft_blocks_length(s, u)), r->d, q);
            for (int64_t v = 0; v < s->nb; v++) {
                row[v] = 0;
                for (int64_t c = 0; c < r->d; c++)
                    row[v] += q[c] * k[v * r->d + c];
                row[v] = (double)(float)(row[v] / sqrt((double)r->d)); /* as it is dumped */
            }
        }
    }
    op_charge(r, FLOP_OVERHEAD, soft_blocks_mean_flops(s));
    return logits;
}
