/* gated_deltanet.c -- a delta rule on a state that also fades.
 *
 *     S' = diag(g_i) S                          the decay comes first
 *     S <- S' + beta_i k_i^T (v_i - k_i S')
 *     output_i = scale q_i S
 *
 * g is one factor a token (gate=scalar), or one for each key channel (gate=channel, Kimi Delta
 * Attention).  With G_ij the product of the gates of tokens j+1 .. i inside the sums over channels,
 *
 *     A = scale tril(Q K^T) T diag(beta),   T = (I + diag(beta) tril(K K^T, -1))^-1
 *
 * Computed gates are g = exp(-exp(a_log) softplus(u . w + dt_bias)).
 * (Yang, Kautz, Hatamizadeh 2024; gates by channel: Kimi Team 2025, arXiv 2510.26692.)
 */
#include "attn/mech/recurrent/delta.h"
#include "attn/run.h"

enum { GATE_SCALAR, GATE_CHANNEL };
static const char *const gate_kinds[] = { "scalar", "channel", NULL };

typedef struct Params {
    int             gate;
    Tensor          gates, gate_weight, dt_bias, a_log;
    DeltaParams     delta;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, gate, GATE_SCALAR, gate_kinds, "one factor a token, or one for each key "
               "channel"),
    PARAM_TENSOR(Params, gates, "[n] or [h,n]; channel: [n,d] or [h,n,d]",
                 "computed from gate_weight", "the factors themselves, in [0,1]"),
    PARAM_TENSOR(Params, gate_weight, "[du] or [h,du]; channel: [du,d] or [h,du,d]",
                 "N(0, 1/(4 du))", "g = exp(-exp(a_log) softplus(u . w + dt_bias)); u: x, or the "
                 "head's own q"),
    PARAM_TENSOR(Params, dt_bias, "[h]; channel: [d] or [h,d]",
                 "softplus(b) = exp(uniform(ln 0.001, ln 0.1))", "bias of it"),
    PARAM_TENSOR(Params, a_log, "[h]", "ln uniform(1,16)", "log of a head's rate of decay"),
    DELTA_PARAMS(Params, delta),
    RECURRENT_PARAMS(Params, common, "of q; 0: 1/sqrt(d)"),
    PARAM_END
};

/* Axis of channels of the gates; 0: none. */
static int64_t gate_channels(const Run *r, const Params *p)
{
    return p->gate == GATE_CHANNEL ? r->d : 0;
}

static StateForm gated_form(const Run *r, const Params *p)
{
    return recurrent_form(r, &p->common, STATE_DELTA, p->gate == GATE_CHANNEL ? STATE_CHANNEL_GATES
                                                        : STATE_TOKEN_GATES);
}

/* f64 [h',n,1 or d] */
static Tensor gated_gates(Run *r, const Params *p, const RecurrentInput *in)
{
    int64_t channels = gate_channels(r, p);
    Tensor  gates = recurrent_given(r, "gates", p->gates, channels, GATE_SHARE);

    if (gates.data || run_failed(r))
        return gates;
    gates = recurrent_logits(r, in, "gate_weight", p->gate_weight, channels);
    recurrent_decay(r, gates, recurrent_step_bias(r, "dt_bias", p->dt_bias, channels), true,
                    recurrent_a_log(r, "a_log", p->a_log), gates);
    return gates;
}

/* Of all tokens and heads, beside the state's and the norm's own. */
static double gated_overhead(const Run *r, const Params *p)
{
    return delta_flops(r, &p->delta) +
           (p->gates.data ? 0 : recurrent_logit_flops(r, gate_channels(r, p)));
}

static void gated_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 0);
    StateAttend    s = { .form = gated_form(r, p) };
    StateShow      show = { .surprise = true };
    Tensor         out;

    run_stage(r, RECURRENT_STAGE_GATES);
    s.gates = gated_gates(r, p, &in);
    delta_inputs(r, &p->delta, &in, recurrent_wide(&p->common), &s);
    recurrent_show_gates(r, "gates", s.gates, gate_channels(r, p));
    delta_show(r, &s);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    recurrent_finish(r, &p->common, out, &show);
}

static Flops gated_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = gated_form(r, p);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += gated_overhead(r, p);
    return sum;
}

static DecodeCost gated_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = gated_form(r, p);

    return recurrent_decode(r, &p->common, &form, gated_overhead(r, p) / (double)r->n);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Each token makes a factor by which the state fades, and how strongly it writes.  Queries "
      "and keys get unit length." },
    { RECURRENT_STAGE_STATE,
      "The state fades first.  Then it is asked what it returns for the new key, and is corrected "
      "by the difference from the new value." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("gates", VIEW_MASK, "factor by which each token fades the state",
         .quantity = "factor"),
    DELTA_VIEWS,
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_gated_deltanet = {
    .id = "gated-deltanet",
    .title = "Gated DeltaNet",
    .authors = "Yang, Kautz, Hatamizadeh",
    .year = 2024,
    .arxiv = "2412.06464",
    .source = "paper, section 3; transformers Qwen3-Next; gate=channel: Kimi Linear, and "
              "fla-org/flash-linear-attention kda",
    .formula = "S' = diag(g_i) S_{i-1}\n"
               "S_i = S' + beta_i k_i^T (v_i - k_i S')\n"
               "output_i = scale q_i S_i",
    .problem = "A delta rule erases only along keys that are written again: all else stays in the "
               "state for ever.",
    .idea = "Before the correction the whole state fades by a gate that the token makes, one "
            "factor or one for each key channel.",
    .price = "What has faded cannot be asked for again, whether it was needed or not.",
    .teaches = "Two ways to forget: a gate fades all columns of A from its row on, a key that is "
               "written again ends one column.  Gates of 1 give deltanet; a gate of 0 starts the "
               "state again.",
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
    .run = gated_run,
    .flops = gated_flops,
    .decode = gated_decode,
};
