/* switch.c -- the Switch layer: one expert for each token.
 *
 *     p_i = softmax(x_i W_r),   e_i = argmax p_i,   gate = p_i[e_i] as it is
 *     cap = floor(capacity_factor * g / E) tokens of a group of g for each expert
 *     y_i = gate * FFN_(e_i)(x_i) while the expert has room, else 0
 *
 * A token that finds no room is carried by the residual connection around the
 * layer (Fedus, Zoph, Shazeer, section 2; mesh moe.py rounds the capacity down).
 */
#include "attn/run.h"

static const Param params[] = {
    EXPERT_PARAMS_SIZES(1.25),
    EXPERT_PARAMS_REST(EXPERT_RELU, false, 0),
    PARAM_END
};

static void switch_run(Run *r, const void *opaque)
{
    experts_run(r, opaque, 1);
}

static Flops switch_flops(Run *r, const void *opaque)
{
    return experts_flops(r, opaque, 1);
}

static const ViewPromise views[] = {
    EXPERT_VIEWS,
    VIEW_PROMISE_END
};

const Mechanism mech_switch = {
    .id = "switch",
    .title = "Switch Transformer layer",
    .authors = "Fedus, Zoph, Shazeer",
    .year = 2021,
    .arxiv = "2101.03961",
    .source = "paper, section 2; mesh transformer/moe.py (switch gating); flaxformer "
              "moe/routing.py",
    .formula = "p = softmax(x W_r);  e = argmax p;  cap = floor(capacity_factor g / E)\n"
               "y_i = p_i[e] FFN_e(x_i) while expert e has room, else 0",
    .teaches = "One expert for each token, so the layer costs as much as one expert however many "
               "there are.  A popular expert fills up: the later tokens it is the first choice of "
               "are dropped, while slots elsewhere stay empty.",
    .claim_decode = "yes",
    .picture = "routing",
    .classes = CLASS_SP,
    .claim_time = "O(n^2), the attention around it; the layer is O(n)",
    .claim_memory = "O(n^2), the attention around it",
    .causal = true,
    .needs_x = true,
    .views = views,
    .notes = experts_notes,
    .params = params,
    .params_size = sizeof(ExpertParams),
    .run = switch_run,
    .flops = switch_flops,
    .flops_bound = true,
};
