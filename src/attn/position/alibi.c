/* alibi.c -- attention with linear biases.
 *
 *     S[i,j] = s q_i . k_j - slope_h dist(i, j)
 *     dist = abs(p_i - j) (mirror) or p_i - j (signed: the future is rewarded)
 *
 * The bias is not multiplied by the scale s.  Slopes of h heads, P the largest
 * power of two <= h: the first P are 2^(-8(t+1)/P); the rest are elements 0, 2,
 * 4, ... of the list for 2P heads.  They are not sorted.
 */
#include "attn/position/terms.h"

#include <math.h>

typedef struct Params {
    Tensor pos_slopes;
    int    pos_future;
} Params;

enum { FUTURE_MIRROR, FUTURE_SIGNED };
static const char *const futures[] = { "mirror", "signed", NULL };

static const Param params[] = {
    PARAM_TENSOR(Params, pos_slopes, "[h]", NULL,
                 "slope of each head; without a file the paper's geometric series"),
    PARAM_ENUM(Params, pos_future, FUTURE_MIRROR, futures,
               "later keys: as far as earlier ones, or at a negative distance"),
    PARAM_END,
};

static double slope_default(int64_t h, int64_t t)
{
    int64_t power = 1;

    while (2 * power <= h)
        power *= 2;
    if (t < power)
        return exp2(-8.0 * (double)(t + 1) / (double)power);
    return exp2(-8.0 * (double)(2 * (t - power) + 1) / (double)(2 * power));
}

static Tensor slopes(Run *r, const Params *p, int64_t h)
{
    Tensor t;

    if (tensor_given(&p->pos_slopes))
        return run_param_given(r, "pos_slopes", p->pos_slopes, DT_F32, 1, &h);
    t = run_tensor1(r, DT_F32, h);
    for (int64_t head = 0; head < h && !run_failed(r); head++)
        tensor_f32(&t)[head] = (float)slope_default(h, head);
    return t;
}

/* [h,entries] minus the slope of the head times the distance. */
static void fill(Run *r, const Params *p, const AttendInput *in, const Tensor *slope)
{
    int64_t entries = position_entries(in);

    for (int64_t head = 0; head < slope->shape[0]; head++)
        for (int64_t x = 0; x < entries; x++) {
            int64_t signed_distance = position_distance(r, in, x);
            double  distance = (double)(p->pos_future == FUTURE_MIRROR && signed_distance < 0
                                            ? -signed_distance : signed_distance);

            tensor_f32(&in->distance)[head * entries + x] =
                (float)(-(double)tensor_f32(slope)[head] * distance);
        }
    op_toward(r, in->distance.data, tensor_bytes(&in->distance));
}

static void alibi_apply(Run *r, const void *opaque, AttendInput *in)
{
    const Params *p = opaque;
    Tensor        slope = slopes(r, p, in->q.shape[0]);

    in->distance = run_tensor2(r, DT_F32, slope.shape[0], position_entries(in));
    in->cell_flops = 2;
    run_prepare(r, true);
    if (!run_failed(r))
        fill(r, p, in, &slope);
    run_prepare(r, false);
}

const Position position_alibi = {
    .id = "alibi",
    .title = "Attention with linear biases",
    .source = "Press et al. 2021, arXiv:2108.12409; get_slopes of the authors' transformer.py",
    .help = "subtracts from each score a slope of the head times the distance",
    .class_ = POSITION_BIAS,
    .params = params,
    .params_size = sizeof(Params),
    .apply = alibi_apply,
};
