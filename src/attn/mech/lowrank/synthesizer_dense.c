/* synthesizer_dense.c -- every token writes its own row of weights.
 *
 *     H = relu(U w1 + b1)                 U the layer input x
 *     W = softmax(H w2 + b2)              one column of w2 for each key position
 *     output = W V
 *
 * No token is ever compared with another.  With q in the place of x and no
 * first layer (H = relu(q)) this is the official code, whose projection of q
 * is w1.  (Tay et al. 2020, section 3.)
 */
#include "attn/run.h"

typedef struct Params {
    int    first_layer;
    Tensor w1, b1, w2, b2;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, first_layer, FIRST_LAYER_AUTO, first_layer_names, "whether w1 and b1 come "
               "first, or q already is their result; auto: true with x, false with q alone"),
    PARAM_TENSOR(Params, w1, "[dm,hidden] or [h,dm,hidden]", "glorot", "first layer"),
    PARAM_TENSOR(Params, b1, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(Params, w2, "[hidden,>=n] or [h,hidden,>=n]", "glorot",
                 "second layer, a column for each key position"),
    PARAM_TENSOR(Params, b2, "[>=n] or [h,>=n]", "0", "its bias"),
    PARAM_END
};

static SynthesizerNet network(const Run *r, const Params *p)
{
    SynthesizerNet net = { .w1_name = "w1", .b1_name = "b1", .w2_name = "w2", .b2_name = "b2",
                           .w1 = p->w1, .b1 = p->b1, .w2 = p->w2, .b2 = p->b2 };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, r->n);
    return net;
}

static void synthesizer_dense_check(Run *r, const void *params_unused)
{
    (void)params_unused;
    synthesizer_check(r);
}

static void synthesizer_dense_run(Run *r, const void *opaque)
{
    SynthesizerNet net = network(r, opaque);
    LogitAttend    in = { .kind = LOGITS_PRODUCT, .n = r->n, .v = r->v, .causal = r->causal };

    run_stage(r, "first layer");
    in.left = synthesizer_hidden(r, &net);
    run_stage(r, "second layer's tensors");
    synthesizer_second(r, &net, &in.right, &in.bias);
    synthesizer_attend(r, &in, synthesizer_net_drawn(&net));
}

static Flops synthesizer_dense_flops(Run *r, const void *opaque)
{
    SynthesizerNet net = network(r, opaque);
    Flops          sum = synthesizer_flops(r, 2 * (double)net.hidden);

    sum.overhead += synthesizer_net_flops(r, &net, false);
    return sum;
}

static const ViewPromise views[] = {
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "all cells, or the lower triangle" },
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "each row made from its own token alone" },
    { .name = "logits", .kind = VIEW_SIGNED,
      .help = "what the network writes, before the softmax" },
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_dense = {
    .id = "synthesizer-dense",
    .title = "Dense Synthesizer",
    .authors = "Tay, Bahri, Metzler, Juan, Zhao, Zheng",
    .year = 2020,
    .arxiv = "2005.00743",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(relu(x w1 + b1) w2 + b2),  row i from token i alone\n"
               "output = W V",
    .teaches = "Attention weights without any comparison of tokens: shuffle all other tokens and a "
               "row does not move.  Columns stand for positions, so there is a greatest length.",
    .classes = CLASS_LR | CLASS_LP,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2)",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .needs_v = true,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .check = synthesizer_dense_check,
    .run = synthesizer_dense_run,
    .flops = synthesizer_dense_flops,
};
