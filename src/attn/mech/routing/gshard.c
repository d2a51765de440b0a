/* gshard.c -- the GShard layer: two experts for each token, the second by chance.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     the second is kept when u_i < share of p_2 / threshold, u_i uniform
 *     cap = floor(2 g / E);   y_i = sum of g_c FFN_(e_c)(x_i) over choices with a place
 *
 * With threshold 0.5 the chance of the second expert is twice its gate
 * (Lepikhin et al., Algorithm 1; mesh top-2 gating uses 0.2).
 */
#include "attn/run.h"

static const Param params[] = {
    EXPERT_PARAMS_SIZES(2.0),
    EXPERT_PARAMS_SECOND(SECOND_RANDOM, 0.5),
    EXPERT_PARAMS_REST(EXPERT_RELU, false, 0),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
};

static void gshard_run(Run *r, const void *opaque)
{
    experts_run(r, opaque, 2);
}

static Flops gshard_flops(Run *r, const void *opaque)
{
    return experts_flops(r, opaque, 2);
}

static const ViewPromise views[] = {
    EXPERT_VIEWS,
    { .name = "second_uniform", .kind = VIEW_TENSOR, .maybe = true,
      .help = "chances of the second experts, when drawn" },
    VIEW_PROMISE_END
};

const Mechanism mech_gshard = {
    .id = "gshard",
    .title = "GShard mixture of experts",
    .authors = "Lepikhin, Lee, Xu, Chen, Firat, Huang, Krikun, Shazeer, Chen",
    .year = 2020,
    .arxiv = "2006.16668",
    .source = "paper, Algorithm 1; mesh transformer/moe.py (top-2 gating)",
    .formula = "e_1, e_2 = two largest of p = softmax(x W_r);  keep e_2 if u < (p_2 share) / "
               "threshold\n"
               "y_i = sum of p_c / (p_1 + p_2) FFN_(e_c)(x_i) over choices with a place",
    .teaches = "Two experts for each token, the second only as often as its gate is worth it.  "
               "First choices of all tokens take their slots before any second one, so a slot "
               "depends on later tokens too.",
    .claim_decode = "yes (a tight capacity looks ahead)",
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
    .run = gshard_run,
    .flops = gshard_flops,
    .flops_bound = true,
};
