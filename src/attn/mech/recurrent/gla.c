/* gla.c -- gated linear attention: each key channel of the state fades by a factor of its own,
 * which the data decide.
 *
 *     S_i = diag(g_i) S_{i-1} + k_i^T v_i,   output_i = scale q_i S_i
 *     A_ij = scale sum over channels c of q_ic k_jc G_ijc,   G_ij = g_{j+1} ... g_i
 *     g_i = sigmoid(u_i W + b)^(1/gate_norm)
 *
 * (Yang et al. 2023; gates as fla-org/flash-linear-attention layers/gla.py computes them.)
 */
#include "attn/mech/recurrent/recurrent.h"

#include "attn/run.h"

typedef struct Params {
    Tensor          gates, gate_weight, gate_bias;
    double          gate_norm;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, gates, "[h,n,d] or [n,d]", "computed",
                 "factors in [0,1] for each token and key channel"),
    PARAM_TENSOR(Params, gate_weight, "[h,du,d] or [du,d]", "N(0, 0.5/sqrt(du))",
                 "weight that gates are computed by, from x (du its width) or q"),
    PARAM_TENSOR(Params, gate_bias, "[h,d] or [d]", "0", "added before the sigmoid"),
    PARAM_POSITIVE(Params, gate_norm, 16, "root that is taken of computed gates: larger ones keep "
                   "longer"),
    RECURRENT_PARAMS(Params, common, "of q; 0: 1/sqrt(d)"),
    PARAM_END
};

static Tensor gla_gates(Run *r, const Params *p, const RecurrentInput *in)
{
    /* sigmoid(x)^(1/norm) = exp(-ln(1 + e^-x) / norm) */
    const EntryStep steps[] = { { .kind = ENTRY_SCALE, .by = -1 },
                                { .kind = ENTRY_SOFTPLUS, .by = 1 },
                                { .kind = ENTRY_SCALE, .by = -1 / p->gate_norm },
                                { .kind = ENTRY_EXP } };
    Tensor          gates = recurrent_given(r, "gates", p->gates, r->d, GATE_SHARE);

    if (!p->gates.data) {
        gates = recurrent_logits(r, in, "gate_weight", p->gate_weight, r->d);
        recurrent_steps(r, gates, recurrent_bias(r, "gate_bias", p->gate_bias, r->d), steps, 4);
    }
    recurrent_show_gates(r, "gates", gates, r->d);
    return gates;
}

static double gate_flops(const Run *r, const Params *p)
{
    return p->gates.data ? 0 : recurrent_logit_flops(r, r->d);
}

static StateForm gla_form(const Run *r, const Params *p)
{
    return recurrent_form(r, &p->common, STATE_ADD, STATE_CHANNEL_GATES);
}

static void gla_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 0);
    StateAttend    s = { .form = gla_form(r, p), .q = in.q, .k = in.k, .v = in.v,
                         .scale = in.scale, .wide = recurrent_wide(&p->common) };
    StateShow      show = { .surprise = false };
    Tensor         out;

    run_stage(r, RECURRENT_STAGE_GATES);
    s.gates = gla_gates(r, p, &in);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    recurrent_finish(r, &p->common, out, &show);
}

static Flops gla_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = gla_form(r, p);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += gate_flops(r, p);
    return sum;
}

static DecodeCost gla_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = gla_form(r, p);

    return recurrent_decode(r, &p->common, &form, gate_flops(r, p) / (double)r->n);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Every token says of each key channel how much of the state it keeps: 1 is all, 0 is "
      "nothing." },
    { RECURRENT_STAGE_STATE,
      "Each token fades the channels of the state by its gates, adds its key and value, and reads "
      "the state with its query." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("gates", VIEW_MASK, "factor of each token and key channel", .quantity = "factor"),
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_gla = {
    .id = "gla",
    .title = "Gated linear attention",
    .authors = "Yang, Wang, Shen, Panda, Kim",
    .year = 2023,
    .arxiv = "2312.06635",
    .source = "paper, sections 3 and 4; fla-org/flash-linear-attention ops/gla and layers/gla.py",
    .formula = "S_i = diag(g_i) S_{i-1} + k_i^T v_i\n"
               "output_i = scale q_i S_i\n"
               "g_i = sigmoid(u_i W + b)^(1/gate_norm)\n"
               "A_ij = scale sum_c q_ic k_jc g_{j+1,c} ... g_ic",
    .problem = "A fixed rate of forgetting keeps useless tokens as long as useful ones.",
    .idea = "Every token computes how much of each key channel of the state is kept, so the text "
            "decides what is forgotten and when.",
    .price = "What a gate has closed is gone for all later tokens, and training needs chunks with "
             "care, since products of gates underflow.",
    .teaches = "Where a token closes its channels an edge appears in the matrix below it: tokens "
               "before the edge are dark for all later queries.  The data decide the span; in "
               "retnet only the head does.",
    .picture = "weights",
    .classes = CLASS_RC | CLASS_KR,
    .claim_time = "O(n d e)",
    .claim_memory = "O(d e)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .always_causal = true,
    .no_at_end = RECURRENT_NO_AT_END,
    .positions = POSITION_INPUT,
    .views = views,
    .lesson = "forgetting",
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = recurrent_check,
    .run = gla_run,
    .flops = gla_flops,
    .decode = gla_decode,
};
