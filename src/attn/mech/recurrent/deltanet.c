/* deltanet.c -- a state that is corrected instead of added to (delta rule).
 *
 *     p = k_i S                        what the state returns for the key now
 *     S <- S + beta_i k_i^T (v_i - p)
 *     output_i = scale q_i S
 *
 *     A = scale tril(Q K^T) T diag(beta),   T = (I + diag(beta) tril(K K^T, -1))^-1
 *
 * A key that is written again replaces its value, where a sum would hold both.
 * (Schlag et al. 2021, arXiv 2102.11174; chunks: Yang et al. 2024; beta up to 2, with negative
 * eigenvalues: Grazzi et al. 2024, arXiv 2411.12537.)
 */
#include "attn/mech/recurrent/delta.h"
#include "attn/run.h"

typedef struct Params {
    DeltaParams     delta;
    RecurrentParams common;
} Params;

static const Param params[] = {
    DELTA_PARAMS(Params, delta),
    RECURRENT_PARAMS(Params, common, "of q; 0: 1/sqrt(d)"),
    PARAM_END
};

static void deltanet_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RecurrentInput in = recurrent_input(r, p->common.scale, 0);
    StateAttend    s = { .form = recurrent_form(r, &p->common, STATE_DELTA, STATE_NO_GATES) };
    StateShow      show = { .surprise = true };
    Tensor         out;

    run_stage(r, RECURRENT_STAGE_GATES);
    delta_inputs(r, &p->delta, &in, recurrent_wide(&p->common), &s);
    delta_show(r, &s);
    run_stage(r, RECURRENT_STAGE_STATE);
    out = op_state_attend(r, &s);
    show.matrix.in = s;
    recurrent_finish(r, &p->common, out, &show);
}

static Flops deltanet_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = recurrent_form(r, &p->common, STATE_DELTA, STATE_NO_GATES);
    Flops         sum = recurrent_flops(r, &p->common, &form);

    sum.overhead += delta_flops(r, &p->delta);
    return sum;
}

static DecodeCost deltanet_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    StateForm     form = recurrent_form(r, &p->common, STATE_DELTA, STATE_NO_GATES);

    return recurrent_decode(r, &p->common, &form, delta_flops(r, &p->delta) / (double)r->n);
}

static const StageNote notes[] = {
    { RECURRENT_STAGE_GATES,
      "Queries and keys get unit length, and each token says how strongly it writes: beta = 0 "
      "leaves no trace, 1 overwrites." },
    { RECURRENT_STAGE_STATE,
      "The state is asked what it returns for the new key, and is corrected by the difference "
      "from the new value." },
    RECURRENT_NOTE_NORM,
    { NULL, NULL }
};

static const ViewPromise views[] = {
    DELTA_VIEWS,
    RECURRENT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_deltanet = {
    .id = "deltanet",
    .title = "DeltaNet",
    .authors = "Yang, Wang, Zhang, Shen, Kim",
    .year = 2024,
    .arxiv = "2406.06484",
    .source = "Schlag et al. 2021, arXiv 2102.11174 (the delta rule); paper, section 3; "
              "fla-org/flash-linear-attention delta_rule",
    .formula = "S_i = S_{i-1} + beta_i k_i^T (v_i - k_i S_{i-1})\n"
               "output_i = scale q_i S_i",
    .problem = "Linear attention only adds: a key that is written twice returns the sum of both "
               "values, and the state fills up.",
    .idea = "The state is first asked for the key, and only the difference between what it "
            "returns and the new value is written.",
    .price = "Each write depends on the writes before it, so a chunk of tokens needs a triangular "
             "system to be solved.",
    .teaches = "Where a key is written again its old column of A ends, and the state returns the "
               "new value: recall of the old one is only the cosine of the two values.  "
               "Orthogonal keys are all recalled; surprise marks what the state did not know.",
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
    .run = deltanet_run,
    .flops = deltanet_flops,
    .decode = deltanet_decode,
};
