/* synthesizer.c -- attention without dot products of tokens: four synthesizers.
 *
 * The logits come from one token at a time through a small network, or from no token at all:
 *
 *     H = relu(U w1 + b1), or relu(U);   F(U) = H w2 + b2
 *
 * with U the layer input x, or q (Tay et al. 2020, arXiv 2005.00743).
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"

typedef enum FirstLayer { FIRST_LAYER_AUTO, FIRST_LAYER_TRUE, FIRST_LAYER_FALSE } FirstLayer;

typedef struct SynthesizerNet {
    const char *w1_name, *b1_name, *w2_name, *b2_name;
    Tensor      w1, b1, w2, b2; /* as given */
    /* Filled in by synthesizer_net. */
    Tensor      u;              /* [1 or h,n,width] */
    bool        first;          /* w1 and b1 are used */
    int64_t     width, hidden, out;
} SynthesizerNet;

#define CELLS 256        /* logits read at once */
#define DRAWING_COST 512 /* of a random number, in multiply-adds */

/* What the four descriptors share. */
#define SYNTHESIZER                                                            \
    .authors = "Tay, Bahri, Metzler, Juan, Zhao, Zheng",                       \
    .year = 2020,                                                              \
    .arxiv = "2005.00743",                                                     \
    .classes = CLASS_LR | CLASS_LP,                                            \
    .claim_time = "O(n^2)",                                                    \
    .claim_decode = "yes",                                                     \
    .claim_exponent = 2,                                                       \
    .causal = true,                                                            \
    .needs_v = true

static const char *const first_layer_names[] = { "auto", "true", "false", NULL };

typedef struct Synthesized {
    LogitAttend in;
    Tensor      lse; /* f64 [h,n] */
    int64_t     heads;
} Synthesized;

/* Every token writes its own row of weights.
 *
 *     H = relu(U w1 + b1)                 U the layer input x
 *     W = softmax(H w2 + b2)              one column of w2 for each key position
 *     output = W V
 *
 * No token is compared with another.  With q in place of x and no first layer (H = relu(q)) this is
 * the official code, whose projection of q is w1.  (Tay et al. 2020, section 3.)
 */

typedef struct DenseParams {
    int    first_layer;
    Tensor w1, b1, w2, b2;
} DenseParams;

static const Param dense_params[] = {
    PARAM_ENUM(DenseParams, first_layer, FIRST_LAYER_AUTO, first_layer_names,
               "whether w1 and b1 come first, or q already is their result; auto: true with x, "
               "false with q alone"),
    PARAM_TENSOR(DenseParams, w1, "[dm,hidden] or [h,dm,hidden]", "glorot", "first layer"),
    PARAM_TENSOR(DenseParams, b1, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(DenseParams, w2, "[hidden,>=n] or [h,hidden,>=n]", "glorot",
                 "second layer, a column for each key position"),
    PARAM_TENSOR(DenseParams, b2, "[>=n] or [h,>=n]", "0", "its bias"),
    PARAM_END
};

static SynthesizerNet synthesizer_network(const Run *r, const DenseParams *p);
static void synthesizer_net(const Run *r, SynthesizerNet *net, FirstLayer first, int64_t out);
static int64_t given_extent(const Tensor *t, int from_end, int64_t otherwise);
static Tensor synthesizer_hidden(Run *r, const SynthesizerNet *net);
static Tensor rectify(Run *r, Tensor x);
static Tensor widened(Run *r, Tensor t);
static Tensor synthesizer_layer(Run *r, Tensor x, Tensor w, Tensor bias);
static void synthesizer_second(Run *r, const SynthesizerNet *net, Tensor *w2, Tensor *b2);
static void synthesizer_attend(Run *r, const LogitAttend *in, bool drawn);
static void synthesizer_show(Run *r, const LogitAttend *in, Tensor lse, bool drawn);
static void read_logits(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out);
static double reading_cost(const LogitAttend *in);
static bool synthesizer_net_drawn(const SynthesizerNet *net);
static void synthesizer_check(Run *r);
static Flops synthesizer_flops(const Run *r, double cost);
static double synthesizer_net_flops(const Run *r, const SynthesizerNet *net, bool second);

static void synthesizer_dense_run(Run *r, const void *opaque)
{
    SynthesizerNet net = synthesizer_network(r, opaque);
    LogitAttend    in = { .kind = LOGITS_PRODUCT, .n = r->n, .v = r->v, .causal = r->causal };

    run_stage(r, "first layer");
    in.left = synthesizer_hidden(r, &net);
    run_stage(r, "second layer's tensors");
    synthesizer_second(r, &net, &in.right, &in.bias);
    synthesizer_attend(r, &in, synthesizer_net_drawn(&net));
}

static SynthesizerNet synthesizer_network(const Run *r, const DenseParams *p)
{
    SynthesizerNet net = { .w1_name = "w1", .b1_name = "b1", .w2_name = "w2", .b2_name = "b2",
                           .w1 = p->w1, .b1 = p->b1, .w2 = p->w2, .b2 = p->b2 };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, r->n);
    return net;
}

/* Sizes of the network; `out` columns of the second layer are used. */
static void synthesizer_net(const Run *r, SynthesizerNet *net, FirstLayer first, int64_t out)
{
    net->first = first == FIRST_LAYER_TRUE || (first == FIRST_LAYER_AUTO && r->x.data);
    net->u = r->x.data && (net->first || !r->q.data) ? tensor_with_rank(r->x, 3) : r->q;
    net->width = net->hidden = net->u.data ? net->u.shape[2] : 0;
    if (net->first)
        net->hidden = given_extent(&net->w1, 1,
                                   given_extent(&net->b1, 1,
                                                given_extent(&net->w2, 2, net->width)));
    net->out = out;
}

static int64_t given_extent(const Tensor *t, int from_end, int64_t otherwise)
{
    return t->data && t->rank >= from_end ? t->shape[t->rank - from_end] : otherwise;
}

/* H f64 [1 or h,n,hidden].  Charges 2 n width hidden per head, nothing without a first layer. */
static Tensor synthesizer_hidden(Run *r, const SynthesizerNet *net)
{
    Init    init = { INIT_GLOROT, (double)(net->width + net->hidden) };
    int64_t shape[3] = { r->h, net->width, net->hidden };
    Tensor  w1, b1;

    if (!net->first)
        return rectify(r, widened(r, net->u));
    w1 = run_param(r, net->w1_name, net->w1, DT_F32, 3, shape, init);
    b1 = run_param_given(r, net->b1_name, net->b1, DT_F32, 2, (int64_t[]){ r->h, net->hidden });
    return rectify(r, synthesizer_layer(r, net->u, w1, b1));
}

static Tensor rectify(Run *r, Tensor x)
{
    op_entries(r, x, ENTRY_RELU, 0, x);
    return x;
}

static Tensor widened(Run *r, Tensor t)
{
    Tensor y = run_tensor3(r, DT_F64, t.shape[0], t.shape[1], t.shape[2]);

    op_entries(r, t, ENTRY_CAST, 0, y);
    return y;
}

/* f64 x w + bias; x f32 or f64 [h',n,in], w f32 [h',in,out], bias f32 [h',out] or absent. */
static Tensor synthesizer_layer(Run *r, Tensor x, Tensor w, Tensor bias)
{
    Tensor y = run_tensor3(r, DT_F64, r->h, x.shape[1], w.shape[2]);

    if (bias.data) {
        bias.rank = 3; /* [h',1,out], which may be cut out of more */
        bias.shape[2] = bias.shape[1];
        bias.stride[2] = bias.stride[1];
        bias.shape[1] = 1;
        op_entries(r, bias, ENTRY_CAST, 0, y);
    }
    op_gemm(r, x, false, w, false, 1, bias.data ? 1 : 0, y, FLOP_OVERHEAD);
    return y;
}

/* w2 [h',hidden,out] and b2 [h',out] (data NULL: none), cut to `out`. */
static void synthesizer_second(Run *r, const SynthesizerNet *net, Tensor *w2, Tensor *b2)
{
    Init init = { INIT_GLOROT, (double)(net->hidden + net->out) };

    *w2 = run_param_cut(r, net->w2_name, net->w2, 3, (int64_t[]){ r->h, net->hidden, net->out }, 4,
                        &init);
    *b2 = run_param_cut(r, net->b2_name, net->b2, 2, (int64_t[]){ r->h, net->out }, 2, NULL);
}

/* Softmax over the logits and the values: r->out, views connectivity, weights,
 * logits.  drawn: a tensor behind the logits was drawn; sets the views' origin. */
static void synthesizer_attend(Run *r, const LogitAttend *in, bool drawn)
{
    LogitResult result;

    run_stage(r, "logits, softmax, mix");
    result = op_logit_attend(r, in);
    r->out = result.out;
    synthesizer_show(r, in, result.lse, drawn);
}

static void synthesizer_show(Run *r, const LogitAttend *in, Tensor lse, bool drawn)
{
    Synthesized *s = run_wants_views(r) ? run_alloc(r, 1, sizeof(*s)) : NULL;
    Pattern     *cells;
    View        *weights, *logits;

    if (!s)
        return;
    *s = (Synthesized){ .in = *in, .lse = lse, .heads = r->h };
    cells = run_allowed_cells(r);
    implicit_connectivity(r, cells);
    weights = view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_logits, s, cells);
    logits = view_reader(r, "logits", VIEW_SIGNED, DT_F32, read_logits, s, NULL);
    if (!weights || !logits)
        return;
    weights->cost = logits->cost = reading_cost(in);
    if (drawn)
        weights->origin = logits->origin = implicit_origin(r);
}

static void read_logits(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Synthesized *s = view->context;
    bool               weights = view->kind == VIEW_WEIGHTS;
    double             lse = ((const double *)s->lse.data)[head * view->shape[1] + i];
    double             logits[CELLS];

    for (int64_t done = 0; done < count; done += CELLS) {
        int64_t part = count - done < CELLS ? count - done : CELLS;

        logit_run(&s->in, s->heads, head, i, start + done * step, part, step, logits);
        for (int64_t c = 0; c < part; c++)
            out[done + c] = (float)(weights ? exp(logits[c] - lse) : logits[c]);
    }
}

/* View.cost of a logit. */
static double reading_cost(const LogitAttend *in)
{
    switch (in->kind) {
    case LOGITS_PRODUCT: return (double)in->left.shape[2];
    case LOGITS_TILED: return (double)in->right.shape[2];
    case LOGITS_UNIFORM: return DRAWING_COST;
    case LOGITS_GIVEN:
    case LOGITS_FOLDED: break;
    }
    return 0;
}

static bool synthesizer_net_drawn(const SynthesizerNet *net)
{
    return !net->w2.data || (net->first && !net->w1.data);
}

static void synthesizer_dense_check(Run *r, const void *params_unused)
{
    (void)params_unused;
    synthesizer_check(r);
}

/* Fails the run if the input has neither x nor q. */
static void synthesizer_check(Run *r)
{
    if (!r->x.data && !r->q.data)
        run_fail(r, ERR_DATA, "%s reads the layer input x, or q, and the input holds neither",
                 r->mechanism->id);
}

static Flops synthesizer_dense_flops(Run *r, const void *opaque)
{
    SynthesizerNet net = synthesizer_network(r, opaque);
    Flops          sum = synthesizer_flops(r, 2 * (double)net.hidden);

    sum.overhead += synthesizer_net_flops(r, &net, false);
    return sum;
}

/* Closed form of synthesizer_attend; cost: FLOPs of one logit. */
static Flops synthesizer_flops(const Run *r, double cost)
{
    double n = (double)r->n, cells = (double)r->h * n * (r->causal ? (n + 1) / 2 : n);

    return (Flops){ .score = cells * cost, .mix = 2 * cells * (double)r->e,
                    .overhead = FLOPS_ROW_SOFTMAX * cells };
}

/* Weights need no keys, but the values of all tokens are mixed. */
static DecodeCost synthesizer_decode(const Run *r, const void *params)
{
    return decode_kept(r, params, (double)(r->v.shape[0] * r->e));
}

static double synthesizer_net_flops(const Run *r, const SynthesizerNet *net, bool second)
{
    double rows = (double)r->h * (double)r->n, hidden = (double)net->hidden;

    return (net->first ? 2 * rows * (double)net->width * hidden : 0) +
           (second ? 2 * rows * hidden * (double)net->out : 0);
}

static Tensor synthesizer_apply(Run *r, const SynthesizerNet *net)
{
    Tensor hidden = synthesizer_hidden(r, net), w2, b2;

    synthesizer_second(r, net, &w2, &b2);
    return synthesizer_layer(r, hidden, w2, b2);
}

static const ViewPromise dense_views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "each row made from its own token alone"),
    VIEW("logits", VIEW_SIGNED, "what the network writes, before the softmax"),
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_dense = {
    .id = "synthesizer-dense",
    .title = "Dense Synthesizer",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(relu(x w1 + b1) w2 + b2),  row i from token i alone\n"
               "output = W V",
    .problem = "It is not clear that tokens must be compared to find good weights.",
    .idea = "Each token makes its whole row of weights from itself alone, by a small network.",
    .price = "The weights cannot depend on the other tokens, and there is a greatest length.",
    .teaches = "Attention weights without any comparison of tokens: shuffle all other tokens and a "
               "row does not move.  Columns stand for positions, so there is a greatest length.",
    .claim_memory = "O(n^2)",
    .views = dense_views,
    .params = dense_params,
    .params_size = sizeof(DenseParams),
    .check = synthesizer_dense_check,
    .run = synthesizer_dense_run,
    .flops = synthesizer_dense_flops,
    .decode = synthesizer_decode,
    SYNTHESIZER,
};

/* One learned, or even fixed, matrix of weights for all inputs.
 *
 *     W = softmax(R[:n,:n]),  output = W V
 *
 * R does not depend on the tokens.  A drawn R that is not trainable is a function of the seed: its
 * rows are drawn again where needed, and nothing n x n is kept.  (Tay et al. 2020, section 3.)
 */

typedef struct RandomParams {
    Tensor r;
    bool   trainable;
} RandomParams;

static const Param random_params[] = {
    PARAM_TENSOR(RandomParams, r, "[>=n,>=n] or [h,>=n,>=n]", "glorot", "the logits R"),
    PARAM_BOOL(RandomParams, trainable, true,
              "R is a parameter that is kept; false: it is fixed, counts "
               "as none, and where it was drawn its rows are drawn again when needed"),
    PARAM_END
};

static LogitAttend logits(Run *r, const RandomParams *p);

static void synthesizer_random_run(Run *r, const void *opaque)
{
    const RandomParams *p = opaque;
    LogitAttend         in;

    run_stage(r, "parameters");
    in = logits(r, p);
    synthesizer_attend(r, &in, !p->r.data);
    run_figure_int(r, "trainable_parameters", p->trainable ? r->h * r->n * r->n : 0);
}

static LogitAttend logits(Run *r, const RandomParams *p)
{
    int64_t     shape[3] = { r->h, r->n, r->n };
    Init        init = { INIT_GLOROT, 2 * (double)r->n };
    Rng         rng = run_rng(r, "r");
    LogitAttend in = { .kind = LOGITS_GIVEN, .n = r->n, .v = r->v, .causal = r->causal };

    if (p->r.data || p->trainable) {
        in.left = run_param_cut(r, "r", p->r, 3, shape, 6, &init);
        return in;
    }
    in.kind = LOGITS_UNIFORM;
    in.seed = rng.seed;
    in.stream = rng.stream;
    in.bound = sqrt(6 / init.a);
    run_origin(r, "r", ORIGIN_DRAWN);
    return in;
}

static Flops synthesizer_random_flops(Run *r, const void *params_unused)
{
    (void)params_unused;
    return synthesizer_flops(r, 0);
}

static const ViewPromise random_views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "the same for every input"),
    VIEW("logits", VIEW_SIGNED, "R"),
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_random = {
    .id = "synthesizer-random",
    .title = "Random Synthesizer",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(R),  R a parameter\n"
               "output = W V",
    .problem = "It is not clear that the weights must depend on the input at all.",
    .idea = "The weights are a matrix of parameters, the same for every input.",
    .price = "It needs as many parameters as there are pairs of positions, and it cannot react "
             "to the text.",
    .teaches = "The same map whatever the input is: how far a fixed mixing of positions gets, at "
               "the price of n^2 parameters.",
    .claim_memory = "O(n^2)",
    .views = random_views,
    .params = random_params,
    .params_size = sizeof(RandomParams),
    .run = synthesizer_random_run,
    .flops = synthesizer_random_flops,
    .decode = synthesizer_decode,
    SYNTHESIZER,
};

/* A row of weights from two short rows.
 *
 *     A = F_A(U) [n,a],  B = F_B(U) [n,b],  a b >= n,  F(U) = relu(U w1 + b1) w2 + b2
 *     hadamard: logits[i,t] = A[i, t mod a] B[i, floor(t/a)]
 *     matmul:   logits[i,j] = sum over t < ab of A[i, t mod a] B[j, floor(t/a)]
 *     output = softmax(logits) V
 *
 * A is tiled and B repeated to length a b, and the surplus cut.  The paper
 * multiplies the two maps cell by cell; the matrix product is what one survey
 * prints, and has rank 1.  (Tay et al. 2020, section 3.)
 */

enum { COMPOSE_HADAMARD, COMPOSE_MATMUL };
static const char *const composes[] = { "hadamard", "matmul", NULL };

typedef struct FactorizedDenseParams {
    int64_t factor_a, factor_b;
    int     first_layer, compose;
    Tensor  w1_a, b1_a, w2_a, b2_a, w1_b, b1_b, w2_b, b2_b;
} FactorizedDenseParams;

static const Param factorized_dense_params[] = {
    PARAM_INT(FactorizedDenseParams, factor_a, 0, 0, INT32_MAX, "width a of A; 0: ceil(sqrt(n))"),
    PARAM_INT(FactorizedDenseParams, factor_b, 0, 0, INT32_MAX, "width b of B; 0: ceil(n/a)"),
    PARAM_ENUM(FactorizedDenseParams, first_layer, FIRST_LAYER_AUTO, first_layer_names,
               "whether w1 and b1 come first, or q already is their result; auto: true with x, "
               "false with q alone"),
    PARAM_ENUM(FactorizedDenseParams, compose, COMPOSE_HADAMARD, composes,
              "how tiled A and repeated B meet: cell "
               "by cell, or in a matrix product, which has rank 1"),
    PARAM_TENSOR(FactorizedDenseParams, w1_a, "[dm,hidden] or [h,dm,hidden]", "glorot",
              "F_A's first layer"),
    PARAM_TENSOR(FactorizedDenseParams, b1_a, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(FactorizedDenseParams, w2_a, "[hidden,>=a] or [h,hidden,>=a]", "glorot",
              "F_A's second layer"),
    PARAM_TENSOR(FactorizedDenseParams, b2_a, "[>=a] or [h,>=a]", "0", "its bias"),
    PARAM_TENSOR(FactorizedDenseParams, w1_b, "[dm,hidden] or [h,dm,hidden]", "glorot",
              "F_B's first layer"),
    PARAM_TENSOR(FactorizedDenseParams, b1_b, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(FactorizedDenseParams, w2_b, "[hidden,>=b] or [h,hidden,>=b]", "glorot",
              "F_B's second layer"),
    PARAM_TENSOR(FactorizedDenseParams, b2_b, "[>=b] or [h,>=b]", "0", "its bias"),
    PARAM_END
};

static SynthesizerNet network_a(const Run *r, const FactorizedDenseParams *p);
static int64_t width_a(const Run *r, const FactorizedDenseParams *p);
static SynthesizerNet network_b(const Run *r, const FactorizedDenseParams *p);
static int64_t width_b(const Run *r, const FactorizedDenseParams *p);

static void synthesizer_factorized_dense_run(Run *r, const void *opaque)
{
    const FactorizedDenseParams  *p = opaque;
    SynthesizerNet net_a = network_a(r, p), net_b = network_b(r, p);
    LogitAttend    in = { .kind = p->compose == COMPOSE_MATMUL ? LOGITS_TILED : LOGITS_FOLDED,
                          .n = r->n, .v = r->v, .causal = r->causal };

    run_size(r, "factor_a", width_a(r, p));
    run_size(r, "factor_b", width_b(r, p));
    run_stage(r, "network A");
    in.left = synthesizer_apply(r, &net_a);
    run_stage(r, "network B");
    in.right = synthesizer_apply(r, &net_b);
    implicit_factor(r, "factor_a", VIEW_VECTORS, in.left, "query", "place in the comb");
    implicit_factor(r, "factor_b", VIEW_VECTORS, in.right, "query", "tooth");
    synthesizer_attend(r, &in, synthesizer_net_drawn(&net_a) || synthesizer_net_drawn(&net_b));
}

static SynthesizerNet network_a(const Run *r, const FactorizedDenseParams *p)
{
    SynthesizerNet net = { .w1_name = "w1_a", .b1_name = "b1_a", .w2_name = "w2_a",
                           .b2_name = "b2_a", .w1 = p->w1_a, .b1 = p->b1_a, .w2 = p->w2_a,
                           .b2 = p->b2_a };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, width_a(r, p));
    return net;
}

static int64_t width_a(const Run *r, const FactorizedDenseParams *p)
{
    int64_t a = p->factor_a;

    while (p->factor_a == 0 && a * a < r->n)
        a++;
    return a;
}

static SynthesizerNet network_b(const Run *r, const FactorizedDenseParams *p)
{
    SynthesizerNet net = { .w1_name = "w1_b", .b1_name = "b1_b", .w2_name = "w2_b",
                           .b2_name = "b2_b", .w1 = p->w1_b, .b1 = p->b1_b, .w2 = p->w2_b,
                           .b2 = p->b2_b };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, width_b(r, p));
    return net;
}

static int64_t width_b(const Run *r, const FactorizedDenseParams *p)
{
    int64_t a = width_a(r, p);

    return p->factor_b ? p->factor_b : (r->n + a - 1) / a;
}

static void synthesizer_factorized_dense_check(Run *r, const void *opaque)
{
    int64_t a = width_a(r, opaque), b = width_b(r, opaque);

    synthesizer_check(r);
    if (a * b < r->n)
        run_fail(r, ERR_PARAM, "synthesizer-factorized-dense: factor_a=%lld times factor_b=%lld is "
                 "%lld, less than the n=%lld positions a row needs", (long long)a, (long long)b,
                 (long long)(a * b), (long long)r->n);
}

static Flops synthesizer_factorized_dense_flops(Run *r, const void *opaque)
{
    const FactorizedDenseParams  *p = opaque;
    SynthesizerNet net_a = network_a(r, p), net_b = network_b(r, p);
    double         ab = (double)net_a.out * (double)net_b.out;
    Flops          sum = synthesizer_flops(r, p->compose == COMPOSE_MATMUL ? 2 * ab : 1);

    sum.overhead += synthesizer_net_flops(r, &net_a, true) + synthesizer_net_flops(r, &net_b, true);
    return sum;
}

static const ViewPromise factorized_dense_views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "each row made from its own token alone"),
    VIEW("logits", VIEW_SIGNED, "combs of period a, their teeth scaled by B"),
    VIEW("factor_a", VIEW_VECTORS, "A: what is tiled"),
    VIEW("factor_b", VIEW_VECTORS, "B: what is repeated"),
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_factorized_dense = {
    .id = "synthesizer-factorized-dense",
    .title = "Factorized Dense Synthesizer",
    .source = "paper, section 3, with the tiling as the survey 2009.06732 writes it",
    .formula = "logits[i,t] = A[i, t mod a] B[i, floor(t/a)],  A = F_A(x), B = F_B(x)\n"
               "output = softmax(logits) V",
    .problem = "A row of n weights from each token needs many parameters.",
    .idea = "Each token makes two short rows, and their products are the long one.",
    .price = "Rows have a comb-like form that not every map can take.",
    .teaches = "A row is a b x a grid folded into n columns: a comb of period a whose teeth are "
               "scaled by B.  Two rows of length sqrt(n) stand for one of length n.",
    .picture = "logits",
    .claim_memory = "O(n^2)",
    .views = factorized_dense_views,
    .params = factorized_dense_params,
    .params_size = sizeof(FactorizedDenseParams),
    .check = synthesizer_factorized_dense_check,
    .run = synthesizer_factorized_dense_run,
    .flops = synthesizer_factorized_dense_flops,
    .decode = synthesizer_decode,
    SYNTHESIZER,
};

/* The random synthesizer's logits at rank k.
 *
 *     W = softmax(R1 R2^T),  R1, R2 [n,k];  output = W V
 *
 * 2nk parameters instead of n^2.  The softmax comes after the product, so the
 * rank is that of the logits, not of the weights.  (Tay et al. 2020, section 3.)
 */

typedef struct FactorizedRandomParams {
    int64_t k;
    Tensor  r1, r2;
} FactorizedRandomParams;

static const Param factorized_random_params[] = {
    PARAM_INT(FactorizedRandomParams, k, 8, 1, INT32_MAX,
              "rank of the logits, when the factors are drawn"),
    PARAM_TENSOR(FactorizedRandomParams, r1, "[>=n,k] or [h,>=n,k]", "glorot",
              "left factor, a row for each query"),
    PARAM_TENSOR(FactorizedRandomParams, r2, "[>=n,k] or [h,>=n,k]", "glorot",
              "right factor, a row for each key"),
    PARAM_END
};

static int64_t synthesizer_rank_of(const FactorizedRandomParams *p);
static Tensor synthesizer_turned(Run *r, Tensor t);
static void synthesizer_show_factors(Run *r, const FactorizedRandomParams *p,
                                     const LogitAttend *in);
static void show_factor(Run *r, const char *name, Tensor t, bool drawn, const char *rows,
                        const char *cols);

static void synthesizer_factorized_random_run(Run *r, const void *opaque)
{
    const FactorizedRandomParams *p = opaque;
    int64_t       shape[3] = { r->h, r->n, synthesizer_rank_of(p) };
    Init          init = { INIT_GLOROT, (double)(r->n + shape[2]) };
    LogitAttend   in = { .kind = LOGITS_PRODUCT, .turned = true, .n = r->n, .v = r->v,
                         .causal = r->causal };

    run_stage(r, "parameters");
    in.left = run_param_cut(r, "r1", p->r1, 3, shape, 2, &init);
    in.right = run_param_cut(r, "r2", p->r2, 3, shape, 2, &init);
    synthesizer_attend(r, &in, !p->r1.data || !p->r2.data);
    synthesizer_show_factors(r, p, &in);
    run_figure_int(r, "trainable_parameters", 2 * r->h * r->n * shape[2]);
}

static int64_t synthesizer_rank_of(const FactorizedRandomParams *p)
{
    const Tensor *given = p->r1.data ? &p->r1 : &p->r2;

    return given->data && given->rank >= 2 ? given->shape[given->rank - 1] : p->k;
}

static Tensor synthesizer_turned(Run *r, Tensor t)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, t.shape[2], t.shape[1]);

    for (int64_t h = 0; h < r->h && !run_failed(r); h++)
        for (int64_t j = 0; j < t.shape[1]; j++)
            for (int64_t c = 0; c < t.shape[2]; c++)
                tensor_f32(&y)[(h * t.shape[2] + c) * t.shape[1] + j] =
                    ((float *)tensor_head(&t, h, r->h))[j * t.stride[1] + c];
    return y;
}

static void synthesizer_show_factors(Run *r, const FactorizedRandomParams *p, const LogitAttend *in)
{
    Tensor right;

    if (!run_wants_views(r))
        return;
    show_factor(r, "factor_left", in->left, !p->r1.data, "query", "rank");
    right = synthesizer_turned(r, in->right);
    show_factor(r, "factor_right", right, !p->r2.data, "rank", "key");
}

/* A view of r1 or r2, which were recorded under their own names. */
static void show_factor(Run *r, const char *name, Tensor t, bool drawn, const char *rows,
                        const char *cols)
{
    int before = r->view_count;

    implicit_parameter(r, name, t, false, rows, cols);
    if (drawn && r->view_count > before)
        r->views[before].origin = implicit_origin(r);
}

static Flops synthesizer_factorized_random_flops(Run *r, const void *opaque)
{
    return synthesizer_flops(r, 2 * (double)synthesizer_rank_of(opaque));
}

static const ViewPromise factorized_random_views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "the same for every input"),
    VIEW("logits", VIEW_SIGNED, "R1 R2^T, of rank k at most"),
    VIEW("factor_left", VIEW_TENSOR, "R1, a factor of the logits"),
    VIEW("factor_right", VIEW_TENSOR, "R2^T, a factor of the logits"),
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_factorized_random = {
    .id = "synthesizer-factorized-random",
    .title = "Factorized Random Synthesizer",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(R1 R2^T),  R1 and R2 [n,k]\n"
               "output = W V",
    .problem = "A free matrix of positions has n^2 parameters.",
    .idea = "The matrix is the product of two narrow ones, before the softmax.",
    .price = "The scores have rank k at most, and they do not react to the text.",
    .teaches = "The same map whatever the input is, from 2nk parameters: the logits show stripes "
               "of rank k, and the softmax lifts the rank of the weights again.",
    .picture = "logits",
    .claim_memory = "O(n^2), 2nk parameters",
    .views = factorized_random_views,
    .size = "k",
    .params = factorized_random_params,
    .params_size = sizeof(FactorizedRandomParams),
    .run = synthesizer_factorized_random_run,
    .flops = synthesizer_factorized_random_flops,
    .decode = synthesizer_decode,
    SYNTHESIZER,
};
