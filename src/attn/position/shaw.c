/* shaw.c -- relative position representations, clipped at k.
 *
 *     c(i,j)   = clamp(j - p_i, -k, k) + k
 *     S[i,j]   = s q_i . (k_j + aK[c])
 *     output_i = sum_j W[i,j] (v_j + aV[c])        when pos_value is given
 *
 * With pos_value the output is not weights @ V; the weights are shown all the
 * same.  Without files one table is drawn for all heads, as in the paper.
 */
#include "attn/position/terms.h"

typedef struct Params {
    int64_t pos_k;
    Tensor  pos_key, pos_value;
} Params;

#define K_MAX 1000000000 /* 2k + 1 must fit an int32 index */

static const Param params[] = {
    PARAM_INT(Params, pos_k, 4, 0, K_MAX, "distances beyond this count as this"),
    PARAM_TENSOR(Params, pos_key, "[2k+1,d] or [h,2k+1,d]", "uniform +-sqrt(6/(2k+1+d))",
                 "what each distance adds to a key"),
    PARAM_TENSOR(Params, pos_value, "[2k+1,e] or [h,2k+1,e]", NULL,
                 "what each distance adds to a value; without a file nothing"),
    PARAM_END,
};

static Tensor key_table(Run *r, const Params *p, int64_t h, int64_t rows, int64_t d)
{
    Init   init = { .kind = INIT_GLOROT, .a = (double)(rows + d) };
    Tensor t;

    if (tensor_given(&p->pos_key))
        return run_param_given(r, "pos_key", p->pos_key, DT_F32, 3, (int64_t[]){ h, rows, d });
    t = run_param(r, "pos_key", p->pos_key, DT_F32, 2, (int64_t[]){ rows, d }, init);
    return tensor_with_rank(t, 3);
}

static int64_t clipped(const void *context, int64_t distance)
{
    int64_t k = *(const int64_t *)context;

    return (-distance < -k ? -k : -distance > k ? k : -distance) + k;
}

static void shaw_apply(Run *r, const void *opaque, AttendInput *in)
{
    const Params *p = opaque;
    int64_t       h = in->q.shape[0], n = in->q.shape[1], d = in->q.shape[2];
    int64_t       e = in->v.shape[2], rows = 2 * p->pos_k + 1;

    in->row = (DistanceTerm){ .side = in->q, .table = key_table(r, p, h, rows, d),
                              .index = position_index(r, in, clipped, &p->pos_k) };
    in->cell_flops = 1;
    op_charge(r, FLOP_POSITION, 2 * (double)d * (double)h * (double)n * (double)rows);
    if (!tensor_given(&p->pos_value))
        return;
    in->value.table = run_param_given(r, "pos_value", p->pos_value, DT_F32, 3,
                                      (int64_t[]){ h, rows, e });
    in->value.index = in->row.index;
    in->cell_flops += (double)e;
}

const Position position_shaw = {
    .id = "shaw",
    .title = "Relative position representations",
    .source = "Shaw et al. 2018, arXiv:1803.02155, section 3.2",
    .help = "keys (and values) gain a vector for their clipped distance to the query",
    .class_ = POSITION_BIAS,
    .params = params,
    .params_size = sizeof(Params),
    .apply = shaw_apply,
};
