/* absolute.c -- positions that turn or shift q and k: sinusoidal, rope. */
#include <math.h>

#include "attn/position/terms.h"
#include "attn/run/position.h"

/* Absolute sinusoids added to queries and keys.
 *
 *     PE(p)[2t] = sin(p / base^(2t/D)),  PE(p)[2t+1] = cos(p / base^(2t/D))
 *     q_i := q_i + pos_scale PE(p_i),    k_j := k_j + pos_scale PE(j)
 *
 * The paper adds PE to the embedding before the projections.  With ready q, k
 * and v that is past, so only q and k take it and the values stay clean;
 * pos_target=qkv adds it to v too (then output = weights @ (V + PE)).
 */

typedef struct SinusoidalParams {
    double pos_base, pos_scale;
    int    pos_layout, pos_target;
} SinusoidalParams;

enum { LAYOUT_INTERLEAVED, LAYOUT_CONCAT };
enum { TARGET_QK, TARGET_QKV };
static const char *const sinusoidal_layouts[] = { "interleaved", "concat", NULL };
static const char *const targets[] = { "qk", "qkv", NULL };

static const Param sinusoidal_params[] = {
    PARAM_POSITIVE(SinusoidalParams, pos_base, 10000,
              "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_ENUM(SinusoidalParams, pos_layout, LAYOUT_INTERLEAVED, sinusoidal_layouts,
               "sines and cosines in turn, or all sines first"),
    PARAM_FLOAT(SinusoidalParams, pos_scale, 1, -1e30, 1e30, "amplitude of the sinusoids"),
    PARAM_ENUM(SinusoidalParams, pos_target, TARGET_QK, targets, "which inputs take the sinusoids"),
    PARAM_END,
};

static Tensor with_sinusoid(Run *r, const SinusoidalParams *p, Tensor x, int64_t first)
{
    Sinusoids in = { .rows = x.shape[1], .width = x.shape[2], .first = first, .base = p->pos_base,
                     .amplitude = p->pos_scale, .concat = p->pos_layout == LAYOUT_CONCAT };

    return position_added(r, x, position_sinusoids(r, &in));
}

static void sinusoidal_apply(Run *r, const void *opaque, AttendInput *in)
{
    const SinusoidalParams *p = opaque;

    in->q = with_sinusoid(r, p, in->q, r->q_offset);
    in->k = with_sinusoid(r, p, in->k, 0);
    if (p->pos_target == TARGET_QKV)
        in->v = with_sinusoid(r, p, in->v, 0);
}

const Position position_sinusoidal = {
    .id = "sinusoidal",
    .name = "sinusoids",
    .title = "Absolute sinusoids",
    .source = "Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    .help = "adds sines and cosines of the position to queries and keys",
    .note = "The paper adds them to the embeddings, before the projections. With ready q and k "
            "this is the nearest.",
    .class_ = POSITION_INPUT,
    .added = true,
    .params = sinusoidal_params,
    .params_size = sizeof(SinusoidalParams),
    .apply = sinusoidal_apply,
};

/* Rotary embedding: pairs of dimensions turn with the position.
 *
 *     pair t < R/2 turns by p base^(-2t/R):  (a, b) -> (a cos - b sin, a sin + b cos)
 *
 * q takes p_i, k takes j, v nothing.  A turn keeps norms, and q'_i . k'_j
 * depends on p_i - j only.  Which dimensions make a pair is fixed by the
 * training: interleaved (x[2t], x[2t+1]) in the paper and GPT-J, half
 * (x[t], x[R/2+t]) in GPT-NeoX and LLaMA.
 */

typedef struct RopeParams {
    double  pos_base;
    int64_t pos_dim;
    int     pos_layout;
} RopeParams;

enum { ROPE_INTERLEAVED, ROPE_HALF };
static const char *const rope_layouts[] = { "interleaved", "half", NULL };

static const Param rope_params[] = {
    PARAM_POSITIVE(RopeParams, pos_base, 10000, "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_INT(RopeParams, pos_dim, 0, 0, PARAM_COUNT_MAX,
              "leading dimensions that turn, rounded down to pairs; 0: all of d"),
    PARAM_ENUM(RopeParams, pos_layout, ROPE_INTERLEAVED, rope_layouts,
               "pairs are neighbours, or half the dimensions apart"),
    PARAM_END,
};

typedef struct Angles {
    double       *turns; /* [rows][pairs] cosine, sine */
    const double *period;
    int64_t       first, pairs;
} Angles;

static void turn_row(const void *context, int64_t i)
{
    const Angles *a = context;

    for (int64_t t = 0; t < a->pairs; t++) {
        double angle = (double)(a->first + i) / a->period[t];

        a->turns[2 * (i * a->pairs + t)] = cos(angle);
        a->turns[2 * (i * a->pairs + t) + 1] = sin(angle);
    }
}

static Tensor turned(Run *r, const RopeParams *p, Tensor x, int64_t first)
{
    int64_t   d = x.shape[2], dim = p->pos_dim && p->pos_dim < d ? p->pos_dim : d;
    int64_t   pairs = dim / 2;
    TurnPairs in = { .x = x, .turns = run_tensor3(r, DT_F64, 1, x.shape[1], 2 * pairs), .step = 2,
                     .gap = 1 };
    Angles    angles = { .turns = in.turns.data, .first = first, .pairs = pairs };

    if (p->pos_layout == ROPE_HALF) {
        in.step = 1;
        in.gap = pairs;
    }
    run_prepare(r, true);
    angles.period = position_periods(r, p->pos_base, 2 * pairs, pairs);
    position_rows(r, x.shape[1], turn_row, &angles);
    op_toward(r, in.turns.data, tensor_bytes(&in.turns));
    run_prepare(r, false);
    op_charge(r, FLOP_POSITION, 6.0 * (double)(pairs * x.shape[0] * x.shape[1]));
    return op_turn_pairs(r, &in);
}

static void rope_apply(Run *r, const void *opaque, AttendInput *in)
{
    const RopeParams *p = opaque;
    int64_t           d = in->q.shape[2], dim = p->pos_dim && p->pos_dim < d ? p->pos_dim : d;

    if (dim % 2)
        run_note(r, "rope turns pairs: of %lld dimensions%s the last one does not turn",
                 (long long)dim, dim < d ? " (pos_dim)" : "");
    in->q = turned(r, p, in->q, r->q_offset);
    in->k = turned(r, p, in->k, 0);
}

const Position position_rope = {
    .id = "rope",
    .name = "RoPE",
    .title = "Rotary embedding",
    .source = "Su et al. 2021 (RoFormer), arXiv:2104.09864, section 3.2",
    .help = "turns pairs of query and key dimensions by an angle that grows with the position",
    .class_ = POSITION_INPUT,
    .params = rope_params,
    .params_size = sizeof(RopeParams),
    .apply = rope_apply,
};
