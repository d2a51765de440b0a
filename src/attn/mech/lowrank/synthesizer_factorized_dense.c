/* synthesizer_factorized_dense.c -- a row of weights from two short rows.
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
#include "attn/run.h"

enum { COMPOSE_HADAMARD, COMPOSE_MATMUL };
static const char *const composes[] = { "hadamard", "matmul", NULL };

typedef struct Params {
    int64_t factor_a, factor_b;
    int     first_layer, compose;
    Tensor  w1_a, b1_a, w2_a, b2_a, w1_b, b1_b, w2_b, b2_b;
} Params;

static const Param params[] = {
    PARAM_INT(Params, factor_a, 0, 0, INT32_MAX, "width a of A; 0: ceil(sqrt(n))"),
    PARAM_INT(Params, factor_b, 0, 0, INT32_MAX, "width b of B; 0: ceil(n/a)"),
    PARAM_ENUM(Params, first_layer, FIRST_LAYER_AUTO, first_layer_names, "whether w1 and b1 come "
               "first, or q already is their result; auto: true with x, false with q alone"),
    PARAM_ENUM(Params, compose, COMPOSE_HADAMARD, composes, "how tiled A and repeated B meet: cell "
               "by cell, or in a matrix product, which has rank 1"),
    PARAM_TENSOR(Params, w1_a, "[dm,hidden] or [h,dm,hidden]", "glorot", "F_A's first layer"),
    PARAM_TENSOR(Params, b1_a, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(Params, w2_a, "[hidden,>=a] or [h,hidden,>=a]", "glorot", "F_A's second layer"),
    PARAM_TENSOR(Params, b2_a, "[>=a] or [h,>=a]", "0", "its bias"),
    PARAM_TENSOR(Params, w1_b, "[dm,hidden] or [h,dm,hidden]", "glorot", "F_B's first layer"),
    PARAM_TENSOR(Params, b1_b, "[hidden] or [h,hidden]", "0", "its bias"),
    PARAM_TENSOR(Params, w2_b, "[hidden,>=b] or [h,hidden,>=b]", "glorot", "F_B's second layer"),
    PARAM_TENSOR(Params, b2_b, "[>=b] or [h,>=b]", "0", "its bias"),
    PARAM_END
};

static int64_t width_a(const Run *r, const Params *p)
{
    int64_t a = p->factor_a;

    while (p->factor_a == 0 && a * a < r->n)
        a++;
    return a;
}

static int64_t width_b(const Run *r, const Params *p)
{
    int64_t a = width_a(r, p);

    return p->factor_b ? p->factor_b : (r->n + a - 1) / a;
}

static SynthesizerNet network_a(const Run *r, const Params *p)
{
    SynthesizerNet net = { .w1_name = "w1_a", .b1_name = "b1_a", .w2_name = "w2_a",
                           .b2_name = "b2_a", .w1 = p->w1_a, .b1 = p->b1_a, .w2 = p->w2_a,
                           .b2 = p->b2_a };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, width_a(r, p));
    return net;
}

static SynthesizerNet network_b(const Run *r, const Params *p)
{
    SynthesizerNet net = { .w1_name = "w1_b", .b1_name = "b1_b", .w2_name = "w2_b",
                           .b2_name = "b2_b", .w1 = p->w1_b, .b1 = p->b1_b, .w2 = p->w2_b,
                           .b2 = p->b2_b };

    synthesizer_net(r, &net, (FirstLayer)p->first_layer, width_b(r, p));
    return net;
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

static void synthesizer_factorized_dense_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    SynthesizerNet net_a = network_a(r, p), net_b = network_b(r, p);
    LogitAttend    in = { .kind = p->compose == COMPOSE_MATMUL ? LOGITS_TILED : LOGITS_FOLDED,
                          .n = r->n, .v = r->v, .causal = r->causal };

    run_stage(r, "network A");
    in.left = synthesizer_apply(r, &net_a);
    run_stage(r, "network B");
    in.right = synthesizer_apply(r, &net_b);
    implicit_factor(r, "factor_a", VIEW_VECTORS, in.left, "query", "place in the comb");
    implicit_factor(r, "factor_b", VIEW_VECTORS, in.right, "query", "tooth");
    synthesizer_attend(r, &in, synthesizer_net_drawn(&net_a) || synthesizer_net_drawn(&net_b));
}

static Flops synthesizer_factorized_dense_flops(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    SynthesizerNet net_a = network_a(r, p), net_b = network_b(r, p);
    double         ab = (double)net_a.out * (double)net_b.out;
    Flops          sum = synthesizer_flops(r, p->compose == COMPOSE_MATMUL ? 2 * ab : 1);

    sum.overhead += synthesizer_net_flops(r, &net_a, true) + synthesizer_net_flops(r, &net_b, true);
    return sum;
}

static const ViewPromise views[] = {
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "all cells, or the lower triangle" },
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "each row made from its own token alone" },
    { .name = "logits", .kind = VIEW_SIGNED, .help = "combs of period a, their teeth scaled by B" },
    { .name = "factor_a", .kind = VIEW_VECTORS, .help = "A: what is tiled" },
    { .name = "factor_b", .kind = VIEW_VECTORS, .help = "B: what is repeated" },
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_factorized_dense = {
    .id = "synthesizer-factorized-dense",
    .title = "Factorized Dense Synthesizer",
    .authors = "Tay, Bahri, Metzler, Juan, Zhao, Zheng",
    .year = 2020,
    .arxiv = "2005.00743",
    .source = "paper, section 3, with the tiling as the survey 2009.06732 writes it",
    .formula = "logits[i,t] = A[i, t mod a] B[i, floor(t/a)],  A = F_A(x), B = F_B(x)\n"
               "output = softmax(logits) V",
    .teaches = "A row is a b x a grid folded into n columns: a comb of period a whose teeth are "
               "scaled by B.  Two rows of length sqrt(n) stand for one of length n.",
    .picture = "logits",
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
    .check = synthesizer_factorized_dense_check,
    .run = synthesizer_factorized_dense_run,
    .flops = synthesizer_factorized_dense_flops,
};
