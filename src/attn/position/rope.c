/* rope.c -- rotary embedding: pairs of dimensions turn with the position.
 *
 *     pair t < R/2 turns by p base^(-2t/R):  (a, b) -> (a cos - b sin, a sin + b cos)
 *
 * q takes p_i, k takes j, v nothing.  A turn keeps norms, and q'_i . k'_j
 * depends on p_i - j only.  Which dimensions make a pair is fixed by the
 * training: interleaved (x[2t], x[2t+1]) in the paper and GPT-J, half
 * (x[t], x[R/2+t]) in GPT-NeoX and LLaMA.
 */
#include "attn/position/terms.h"

#include <math.h>

typedef struct Params {
    double  pos_base;
    int64_t pos_dim;
    int     pos_layout;
} Params;

enum { LAYOUT_INTERLEAVED, LAYOUT_HALF };
static const char *const layouts[] = { "interleaved", "half", NULL };

static const Param params[] = {
    PARAM_POSITIVE(Params, pos_base, 10000, "wavelengths grow from 2 pi to 2 pi times this"),
    PARAM_INT(Params, pos_dim, 0, 0, PARAM_COUNT_MAX,
              "leading dimensions that turn, rounded down to pairs; 0: all of d"),
    PARAM_ENUM(Params, pos_layout, LAYOUT_INTERLEAVED, layouts,
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

static Tensor turned(Run *r, const Params *p, Tensor x, int64_t first)
{
    int64_t   d = x.shape[2], dim = p->pos_dim && p->pos_dim < d ? p->pos_dim : d;
    int64_t   pairs = dim / 2;
    TurnPairs in = { .x = x, .turns = run_tensor3(r, DT_F64, 1, x.shape[1], 2 * pairs), .step = 2,
                     .gap = 1 };
    Angles    angles = { .turns = in.turns.data, .first = first, .pairs = pairs };

    if (p->pos_layout == LAYOUT_HALF) {
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
    const Params *p = opaque;

    in->q = turned(r, p, in->q, r->q_offset);
    in->k = turned(r, p, in->k, 0);
}

const Position position_rope = {
    .id = "rope",
    .title = "Rotary embedding",
    .source = "Su et al. 2021 (RoFormer), arXiv:2104.09864, section 3.2",
    .help = "turns pairs of query and key dimensions by an angle that grows with the position",
    .class_ = POSITION_INPUT,
    .params = params,
    .params_size = sizeof(Params),
    .apply = rope_apply,
};
