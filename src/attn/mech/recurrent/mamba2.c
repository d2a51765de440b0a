/* mamba2.c -- Mamba-2: a state space model that is also attention.
 *
 *     S_i = g_i S_{i-1} + k_i^T (dt_i v_i),   output_i = scale q_i S_i + D v_i
 *     A_ij = scale dt_j (q_i . k_j) g_{j+1} ... g_i,   D more on the diagonal
 *     dt = softplus(u . w + b),   g = exp(-exp(a_log) dt)
 *
 * q is the paper's C, k its B, v its x; one step size dt writes and forgets.
 * (Dao, Gu 2024; state-spaces/mamba ssd_minimal.py and mamba2_simple.py.)
 */
#include "attn/mech/recurrent/recurrent.h"

#include "attn/run.h"

typedef struct Params {
    Tensor          dt, dt_weight, dt_bias, a_log, gates, d_skip;
    double          dt_min, dt_max;
    RecurrentParams common;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, dt, "[h,n] or [n]", "computed", "step sizes, at least 0, taken as they "
                 "are"),
    PARAM_TENSOR(Params, dt_weight, "[h,du] or [du]", "N(0, 0.5/sqrt(du))",
                 "weight that steps are computed by, from x (du its width) or q"),
    PARAM_TENSOR(Params, dt_bias, "[h]", "softplus(b) = exp(U(ln 0.001, ln 0.1))",
                 "added before the softplus"),
    PARAM_FLOAT(Params, dt_min, 0, 0, 1e30, "least computed step; 0: none"),
    PARAM_FLOAT(Params, dt_max, 0, 0, 1e30, "largest computed step; 0: none"),
    PARAM_TENSOR(Params, a_log, "[h]", "ln U(1, 16)", "log of the rate of forgetting: gate = "
                 "exp(-exp(a_log) dt)"),
    PARAM_TENSOR(Params, gates, "[h,n] or [n]", "by a_log", "gates in [0,1], in the place of "
                 "a_log; dt still scales what is written"),
    { .name = "d_skip", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, d_skip),
      .shape = "[h]", .drawn = "none", .number = true,
      .help = "D: adds D v_i to the output; the published start is 1" },
    RECURRENT_PARAMS(Params, common, "of q; 0: 1"),
    PARAM_END
};

/* f64 [h',n,1] */
static Tensor mamba2_steps(Run *r, const Params *p, const RecurrentInput *in)
{
    const EntryStep softplus = { .kind = ENTRY_SOFTPLUS, .by = 1 };
    Tensor          dt = recurrent_given(r, "dt", p->dt, 0, GATE_STEP);

    if (p->dt.data)
        return dt;
    dt = recurrent_logits(r, in, "dt_weight", p->dt_weight, 0);
    recurrent_steps(r, dt, recurrent_step_bias(r, "dt_bias", p->dt_bias, 0), &softplus, 1);
    if (p->dt_min > 0)
        op_entries(r, dt, ENTRY_MOST, p->dt_min, dt);
    if (p->dt_max > 0)
        op_entries(r, dt, ENTRY_LEAST, p->dt_max, dt);
    return dt;
}

static Tensor mamba2_gates(Run *r, const Params *p, Tensor dt)
{
    Tensor gates = recurrent_given(r, "gates", p->gates, 0, GATE_SHARE);

    if (p->gates.data)
        return gates;
    gates = run_tensor3(r, DT_F64, r->h, r->n, 1);
    recurrent_decay(r, dt, (Tensor){ .rank = 0 }, false, recurrent_a_log(r, "a_log", p->a_log),
                    gates);
    return gates;
}

/* Of one head and token, beside the state. */
static double mamba2_token_flops(const Run *r, const Params *p)
{
    double flops = (double)r->e;

    flops += p->gates.data ? 0 : 2;
    flops += p->dt.data ? 0 : 2 * (double)recurrent_u_width(r) + 4;
    return flops + (p->d_skip.data ? 2 * (double)r->e : 0);
}

/* Charges what recurrent_logits has not. */
static void charge_tokens(Run *r, const Params *p)
{
    double all = (double)r->h * (double)r->n * mamba2_token_flops(r, p);

    op_charge(r, FLOP_OVERHEAD, all - (p->dt.data ? 0 : recurrent_logit_flops(r, 0)));
}

static Tensor with_skip(Run *r, Tensor out, Tensor v, Tensor skip)
{
    if (!skip.data)
        return out;
    op_entries_of(r, out, recurrent_times(r, v, skip), ENTRY_SUM, 1, out);
    return out;
}

static StateForm mamba2_form(const Run *r, const Params *p)
{
    return recurrent_form(r, &p->common, STATE_ADD, STATE_TOKEN_GATES);
}

static void mamba2_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 1);
    StateAttend    s = { .form = mamba2_form(r, p), .q = in.q, .k = in.k, .scale = in.scale,
                         .wide = recurrent_wide(&p->common) };
    StateShow      show = { .surprise = false };
    Tensor         dt, skip, out;

    run_stage(r, RECURRENT_STAGE_GATES);
    dt = mamba2_steps(r, p, &in);
    s.gates = mamba2_gates(r, p, dt);
    skip = recurrent_bias(r, "d_skip", p->d_skip, 0);
    s.v = recurrent_times(r, in.v, dt);
    recurrent_show_gates(r, "gates", s.gates, 0);
    recurrent_show_numbers(r, "dt", dt, 0);
    charge_tokens(r, p);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = with_skip(r, op_state_attend(r, &s), in.v, skip);
    show.matrix = (StateMatrix){ .in = s, .write = dt, .before = skip, .values = in.v };
    show.matrix.before.stride[1] = 0;
    recurrent_finish(r, &p->common, out, &show);
}

static void mamba2_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    recurrent_check(r, p);
    if (p->dt_max > 0 && p->dt_min > p->dt_max)
        run_fail(r, ERR_PARAM, "mamba2: dt_min=%g is above dt_max=%g", p->dt_min, p->dt_max);
}

static Flops mamba2_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = mamba2_form(r, p);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += (double)r->h * (double)r->n * mamba2_token_flops(r, p);
    return sum;
}

static DecodeCost mamba2_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = mamba2_form(r, p);

    return recurrent_decode(r, &p->common, &form, (double)r->h * mamba2_token_flops(r, p));
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Every token computes one step size for each head.  A large step writes the token strongly "
      "and forgets the past strongly." },
    { RECURRENT_STAGE_STATE,
      "Each token fades the state by its gate, adds its key and its value times the step, and "
      "reads the state with its query." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("gates", VIEW_MASK, "factor of each token",
         .curve = { .x = "token", .y = "gate", .by_rows = true }),
    VIEW("dt", VIEW_TENSOR, "step size of each token",
         .curve = { .x = "token", .y = "step", .by_rows = true }),
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_mamba2 = {
    .id = "mamba2",
    .title = "Mamba-2",
    .authors = "Dao, Gu",
    .year = 2024,
    .arxiv = "2405.21060",
    .source = "paper, sections 5 and 6; state-spaces/mamba ssd_minimal.py, mamba2_simple.py",
    .formula = "S_i = g_i S_{i-1} + k_i^T (dt_i v_i)\n"
               "output_i = scale q_i S_i + D v_i\n"
               "dt = softplus(u . w + b),  g = exp(-exp(a_log) dt)\n"
               "A_ij = scale dt_j (q_i . k_j) g_{j+1} ... g_i",
    .problem = "State space models scan token by token, and an accelerator's matrix units have "
               "nothing to do.",
    .idea = "With one gate for a whole head the scan is also a matrix of attention, cut into "
            "blocks, so chunks are products of matrices.",
    .price = "One step size decides both how strongly a token is written and how much is "
             "forgotten, for all channels of a head.",
    .lesson = "forgetting",
    .teaches = "Queries times keys under a mask of products of gates.  Any block below the "
               "diagonal has a rank of at most d.  The gate falls where the step rises: the two "
               "curves mirror each other.",
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
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = mamba2_check,
    .run = mamba2_run,
    .flops = mamba2_flops,
    .decode = mamba2_decode,
};
