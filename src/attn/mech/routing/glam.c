/* glam.c -- the GLaM layer: two gated experts for each token.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     FFN_e(x) = (gelu(x W1_e) * x Wg_e) W2_e
 *     y_i = sum of g_c FFN_(e_c)(x_i) over the choices that found a place
 *
 * Both experts are always asked (Du et al., sections 4 and 5).  There is no
 * public code; slots and losses are those of GShard's.
 */
#include "attn/run.h"

static const Param params[] = {
    EXPERT_PARAMS_SIZES(2.0),
    EXPERT_PARAMS_SECOND(SECOND_ALL, 0),
    EXPERT_PARAMS_REST(EXPERT_GELU, true, 0),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
};

static void glam_run(Run *r, const void *opaque)
{
    experts_run(r, opaque, 2);
}

static Flops glam_flops(Run *r, const void *opaque)
{
    return experts_flops(r, opaque, 2);
}

static const ViewPromise views[] = {
    EXPERT_VIEWS,
    { .name = "second_uniform", .kind = VIEW_TENSOR, .maybe = true,
      .help = "chances of the second experts, when drawn" },
    VIEW_PROMISE_END
};

const Mechanism mech_glam = {
    .id = "glam",
    .title = "GLaM mixture of experts",
    .authors = "Du, Huang, Dai, Tong, Lepikhin, Xu et al.",
    .year = 2021,
    .arxiv = "2112.06905",
    .source = "paper, sections 4 and 5; slots and losses as in GShard's code",
    .formula = "e_1, e_2 = two largest of p = softmax(x W_r)\n"
               "FFN_e(x) = (gelu(x W1_e) * x Wg_e) W2_e\n"
               "y_i = sum of p_c / (p_1 + p_2) FFN_(e_c)(x_i) over choices with a place",
    .teaches = "Every row has two cells whose gates add up to one: two of many experts work on "
               "each token.  Room for two full shares makes drops rare until routing is uneven.",
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
    .run = glam_run,
    .flops = glam_flops,
    .flops_bound = true,
};
