/* sinusoidal.c -- absolute sinusoids added to queries and keys.
 *
 *     PE(p)[2t] = sin(p / base^(2t/D)),  PE(p)[2t+1] = cos(p / base^(2t/D))
 *     q_i := q_i + pos_scale PE(p_i),    k_j := k_j + pos_scale PE(j)
 *
 * The paper adds PE to the embedding before the projections.  With ready q, k
 * and v that is past, so only q and k take it and the values stay clean;
 * pos_target=qkv adds it to v too (then output = weights @ (V + PE)).
 */
#include "attn/position/terms.h"

typedef struct Params {
    double pos_base, pos_scale;
    int    pos_layout, pos_target;
} Params;

enum { LAYOUT_INTERLEAVED, LAYOUT_CONCAT };
enum { TARGET_QK, TARGET_QKV };
static const char *const layouts[] = { "interleaved", "concat", NULL };
static const char *const targets[] = { "qk", "qkv", NULL };

static const Param params[] = {
    PARAM_POSITIVE(Params, pos_base, 10000, "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_ENUM(Params, pos_layout, LAYOUT_INTERLEAVED, layouts,
               "sines and cosines in turn, or all sines first"),
    PARAM_FLOAT(Params, pos_scale, 1, -1e30, 1e30, "amplitude of the sinusoids"),
    PARAM_ENUM(Params, pos_target, TARGET_QK, targets, "which inputs take the sinusoids"),
    PARAM_END,
};

static Tensor with_sinusoid(Run *r, const Params *p, Tensor x, int64_t first)
{
    Sinusoids in = { .rows = x.shape[1], .width = x.shape[2], .first = first, .base = p->pos_base,
                     .amplitude = p->pos_scale, .concat = p->pos_layout == LAYOUT_CONCAT };

    return position_added(r, x, position_sinusoids(r, &in));
}

static void sinusoidal_apply(Run *r, const void *opaque, AttendInput *in)
{
    const Params *p = opaque;

    in->q = with_sinusoid(r, p, in->q, r->q_offset);
    in->k = with_sinusoid(r, p, in->k, 0);
    if (p->pos_target == TARGET_QKV)
        in->v = with_sinusoid(r, p, in->v, 0);
}

const Position position_sinusoidal = {
    .id = "sinusoidal",
    .title = "Absolute sinusoids",
    .source = "Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    .help = "adds sines and cosines of the position to queries and keys",
    .class_ = POSITION_INPUT,
    .params = params,
    .params_size = sizeof(Params),
    .apply = sinusoidal_apply,
};
