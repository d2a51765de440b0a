/* given.c -- finished attention weights from a file: to look at, not to compute.
 *
 *     W is what the file holds; output = W V when it holds V as well
 *
 * Weights exported from a model (Hugging Face's output_attentions, for example)
 * can be compared with what any mechanism makes of the same layer.
 */
#include "attn/run.h"

static const Param params[] = { PARAM_END };

static void given_run(Run *r, const void *params_unused)
{
    (void)params_unused;
    run_stage(r, "mix");
    if (r->v.data && r->v.shape[1] == r->m) {
        r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
        op_gemm(r, r->attn, false, r->v, false, 1, 0, r->out, FLOP_MIX);
    } else {
        r->out = run_tensor3(r, DT_F32, r->h, r->n, 0);
    }
    view_tensor(r, "weights", VIEW_WEIGHTS, r->attn, "query", "key");
}

static Flops given_flops(Run *r, const void *params_unused)
{
    (void)params_unused;
    return (Flops){ .mix = 2 * (double)r->h * (double)r->n * (double)r->m *
                           (double)r->out.shape[2] };
}

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "the weights the file holds"),
    VIEW_PROMISE_END
};

const Mechanism mech_given = {
    .id = "given",
    .title = "Given weights",
    .authors = "the input's model",
    .year = 2026,
    .source = "array attn (or attentions) of the input",
    .formula = "output = W V, W as the file holds it",
    .problem = "One wants to see what a trained model attends to.",
    .idea = "The weights are taken from a file and applied to the values.",
    .price = "It does not show how the weights arose, and the file must hold all n x m weights.",
    .teaches = "What a trained model really attends to, to lay beside any mechanism.",
    .classes = CLASS_LAB,
    .claim_time = "-",
    .claim_memory = "-",
    .claim_decode = "-",
    .no_causal = "the weights are finished: what was masked is zero in them",
    .cross = true,
    .needs_attn = true,
    .views = views,
    .params = params,
    .run = given_run,
    .flops = given_flops,
};
