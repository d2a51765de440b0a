/* mixture.c -- mixtures of experts: Switch, GShard, GLaM and ST-MoE; see experts.h. */
#include "attn/mech/routing/experts.h"
#include "attn/run.h"

/* What the descriptors of all mixtures share. */
#define MIXTURE                                                                \
    .picture = "routing",                                                      \
    .classes = CLASS_SP,                                                       \
    .claim_time = "O(n^2), the attention around it; the layer is O(n)",        \
    .claim_memory = "O(n^2), the attention around it",                         \
    .causal = true,                                                            \
    .needs_x = true,                                                           \
    .notes = experts_notes,                                                    \
    .params_size = sizeof(ExpertParams),                                       \
    .flops_bound = true

/* The Switch layer: one expert for each token.
 *
 *     p_i = softmax(x_i W_r),   e_i = argmax p_i,   gate = p_i[e_i] as it is
 *     cap = floor(capacity_factor * g / E) tokens of a group of g for each expert
 *     y_i = gate * FFN_(e_i)(x_i) while the expert has room, else 0
 *
 * A token that finds no room is carried by the residual connection around the
 * layer (Fedus, Zoph, Shazeer, section 2; mesh moe.py rounds the capacity down).
 */

static const Param switch_params[] = {
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

static const ViewPromise switch_views[] = {
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
    .problem = "A larger feed-forward layer helps, but each token pays for all of it.",
    .idea = "A router sends each token to one of many experts.",
    .price = "Memory grows with the experts, and tokens beyond an expert's capacity are dropped: "
             "such a token keeps only its residual.",
    .teaches = "One expert for each token, so the layer costs as much as one expert however many "
               "there are.  A popular expert fills up: the later tokens it is the first choice of "
               "are dropped, while slots elsewhere stay empty.",
    .claim_decode = "yes",
    .views = switch_views,
    .params = switch_params,
    .run = switch_run,
    .flops = switch_flops,
    .decode = decode_tokenless,
    MIXTURE,
};

/* ---- GShard, GLaM and ST-MoE: two experts for each token ------------------------ */

static void two_experts_run(Run *r, const void *opaque)
{
    experts_run(r, opaque, 2);
}

static Flops two_experts_flops(Run *r, const void *opaque)
{
    return experts_flops(r, opaque, 2);
}

static const ViewPromise two_expert_views[] = {
    EXPERT_VIEWS,
    { .name = "second_uniform", .kind = VIEW_TENSOR, .maybe = true,
      .help = "chances of the second experts, when drawn" },
    VIEW_PROMISE_END
};

#define MIXTURE_OF_TWO                                                         \
    MIXTURE,                                                                   \
    .claim_decode = "yes (a tight capacity looks ahead)",                      \
    .views = two_expert_views,                                                 \
    .run = two_experts_run,                                                    \
    .flops = two_experts_flops,                                                \
    .decode = decode_tokenless

/* The GShard layer: two experts for each token, the second by chance.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     the second is kept when u_i < share of p_2 / threshold, u_i uniform
 *     cap = floor(2 g / E);   y_i = sum of g_c FFN_(e_c)(x_i) over choices with a place
 *
 * With threshold 0.5 the chance of the second expert is twice its gate
 * (Lepikhin et al., Algorithm 1; mesh top-2 gating uses 0.2).
 */

static const Param gshard_params[] = {
    EXPERT_PARAMS_SIZES(2.0),
    EXPERT_PARAMS_SECOND(SECOND_RANDOM, 0.5),
    EXPERT_PARAMS_REST(EXPERT_RELU, false, 0),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
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
    .problem = "A model of many experts must be spread over many devices evenly.",
    .idea = "Each token goes to its two best experts, and each expert takes a limited number of "
            "tokens.",
    .price = "Tokens beyond the limit are dropped, and a slot depends on other tokens.",
    .teaches = "Two experts for each token, the second only as often as its gate is worth it.  "
               "First choices of all tokens take their slots before any second one, so a slot "
               "depends on later tokens too.",
    .params = gshard_params,
    MIXTURE_OF_TWO,
};

/* The GLaM layer: two gated experts for each token.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     FFN_e(x) = (gelu(x W1_e) * x Wg_e) W2_e
 *     y_i = sum of g_c FFN_(e_c)(x_i) over the choices that found a place
 *
 * Both experts are always asked (Du et al., sections 4 and 5).  There is no
 * public code; slots and losses are those of GShard's.
 */

static const Param glam_params[] = {
    EXPERT_PARAMS_SIZES(2.0),
    EXPERT_PARAMS_SECOND(SECOND_ALL, 0),
    EXPERT_PARAMS_REST(EXPERT_GELU, true, 0),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
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
    .problem = "A dense model uses all its parameters for each token.",
    .idea = "Each token uses two of many experts, whose feed-forward networks have gates.",
    .price = "All experts must be stored, though two are used at a time.",
    .teaches = "Every row has two cells whose gates add up to one: two of many experts work on "
               "each token.  With room for two full shares only uneven routing drops a choice.",
    .params = glam_params,
    MIXTURE_OF_TWO,
};

/* The ST-MoE layer: two gated experts, and a loss that keeps logits small.
 *
 *     p_i = softmax(x_i W_r),   e_1, e_2 = the two largest,   g_c = p_c / (p_1 + p_2)
 *     the second is kept when u_i < share of p_2 / 0.2, u_i uniform
 *     z = mean_i (log sum_e exp(x_i W_r)_e)^2        added to the loss with z_coef
 *
 * Zoph et al., equation 5 for z; mesh moe.py; flaxformer's st_moe settings use
 * 1e-4 and raw gates (z_coef=1e-4, normalize_gates=false).
 */

static const Param st_moe_params[] = {
    EXPERT_PARAMS_SIZES(1.25),
    EXPERT_PARAMS_SECOND(SECOND_RANDOM, 0.2),
    EXPERT_PARAMS_REST(EXPERT_GELU, true, 0.001),
    EXPERT_PARAMS_UNIFORM,
    PARAM_END
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
    .problem = "Training of models with experts is unstable.",
    .idea = "Tokens go to two experts, and a penalty keeps the router's numbers small.",
    .price = "There is one more loss to balance, and tokens beyond the capacity are still "
             "dropped.",
    .teaches = "Two experts for each token with room for little more than one: first choices fill "
               "the slots and most of what is crossed out is a second choice.  The z-loss is the "
               "price of large router logits.",
    .params = st_moe_params,
    MIXTURE_OF_TWO,
};
