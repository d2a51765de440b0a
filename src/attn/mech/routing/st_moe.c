/* st_moe.c -- the ST-MoE layer: two gated experts, and a loss that keeps logits small.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     the second is kept when u_i < share of p_2 / 0.2, u_i uniform
 *     z = mean_i (log sum_e exp(x_i W_r)_e)^2        added to the loss with z_coef
 *
 * Zoph et al., equation 5 for z; mesh moe.py; flaxformer's st_moe settings use
 * 1e-4 and raw gates (z_coef=1e-4, normalize_gates=false).
 */
#include "attn/run.h"

static const Param params[] = {
    EXPERT_PARAMS_SIZES(1.25),
    EXPERT_PARAMS_SECOND(SECOND_RANDOM, 0.2),
    EXPERT_PARAMS_REST(EXPERT_GELU, true, 0.001),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
};

static void st_moe_run(Run *r, const void *opaque)
{
    experts_run(r, opaque, 2);
}

static Flops st_moe_flops(Run *r, const void *opaque)
{
    return experts_flops(r, opaque, 2);
}

static const ViewPromise views[] = {
    EXPERT_VIEWS,
    { .name = "second_uniform", .kind = VIEW_TENSOR, .maybe = true,
      .help = "chances of the second experts, when drawn" },
    VIEW_PROMISE_END
};

const Mechanism mech_st_moe = {
    .id = "st-moe",
    .title = "ST-MoE, stable and transferable mixture of experts",
    .authors = "Zoph, Bello, Kumar, Du, Huang, Dean, Shazeer, Fedus",
    .year = 2022,
    .arxiv = "2202.08906",
    .source = "paper (z-loss: equation 5); mesh transformer/moe.py; flaxformer st_moe settings",
    .formula = "e_1, e_2 = two largest of p = softmax(x W_r);  keep e_2 if u < (p_2 share) / 0.2\n"
               "y_i = sum of p_c / (p_1 + p_2) FFN_(e_c)(x_i) over choices with a place\n"
               "loss = aux_coef * balance + z_coef * mean (logsumexp logits)^2",
    .teaches = "Two experts for each token with room for little more than one: first choices fill "
               "the slots and most of what is crossed out is a second choice.  The z-loss is the "
               "price of large router logits.",
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
    .run = st_moe_run,
    .flops = st_moe_flops,
    .flops_bound = true,
};
