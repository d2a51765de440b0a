/* synthesizer_factorized_random.c -- the random synthesizer's logits at rank k.
 *
 *     W = softmax(R1 R2^T),  R1, R2 [n,k];  output = W V
 *
 * 2nk parameters instead of n^2.  The softmax comes after the product, so the
 * rank is that of the logits, not of the weights.  (Tay et al. 2020, section 3.)
 */
#include "attn/run.h"

#include <string.h>

typedef struct Params {
    int64_t k;
    Tensor  r1, r2;
} Params;

static const Param params[] = {
    PARAM_INT(Params, k, 8, 1, INT32_MAX, "rank of the logits, when the factors are drawn"),
    PARAM_TENSOR(Params, r1, "[>=n,k] or [h,>=n,k]", "glorot", "left factor, a row for each query"),
    PARAM_TENSOR(Params, r2, "[>=n,k] or [h,>=n,k]", "glorot", "right factor, a row for each key"),
    PARAM_END
};

static int64_t rank_of(const Params *p)
{
    const Tensor *given = p->r1.data ? &p->r1 : &p->r2;

    return given->data && given->rank >= 2 ? given->shape[given->rank - 1] : p->k;
}

static Tensor turned(Run *r, Tensor t)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, t.shape[2], t.shape[1]);

    for (int64_t h = 0; h < r->h && !run_failed(r); h++)
        for (int64_t j = 0; j < t.shape[1]; j++)
            for (int64_t c = 0; c < t.shape[2]; c++)
                tensor_f32(&y)[(h * t.shape[2] + c) * t.shape[1] + j] =
                    ((float *)tensor_head(&t, h, r->h))[j * t.stride[1] + c];
    return y;
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

static void show_factors(Run *r, const Params *p, const LogitAttend *in)
{
    Tensor right;

    if (!run_wants_views(r))
        return;
    show_factor(r, "factor_left", in->left, !p->r1.data, "query", "rank");
    right = turned(r, in->right);
    show_factor(r, "factor_right", right, !p->r2.data, "rank", "key");
}

static void synthesizer_factorized_random_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       shape[3] = { r->h, r->n, rank_of(p) };
    Init          init = { INIT_GLOROT, (double)(r->n + shape[2]) };
    LogitAttend   in = { .kind = LOGITS_PRODUCT, .turned = true, .n = r->n, .v = r->v,
                         .causal = r->causal };

    run_stage(r, "parameters");
    in.left = run_param_cut(r, "r1", p->r1, 3, shape, 2, &init);
    in.right = run_param_cut(r, "r2", p->r2, 3, shape, 2, &init);
    synthesizer_attend(r, &in, !p->r1.data || !p->r2.data);
    show_factors(r, p, &in);
    run_figure_int(r, "trainable_parameters", 2 * r->h * r->n * shape[2]);
}

static Flops synthesizer_factorized_random_flops(Run *r, const void *opaque)
{
    return synthesizer_flops(r, 2 * (double)rank_of(opaque));
}

static const ViewPromise views[] = {
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "all cells, or the lower triangle" },
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "the same for every input" },
    { .name = "logits", .kind = VIEW_SIGNED, .help = "R1 R2^T, of rank k at most" },
    { .name = "factor_left", .kind = VIEW_TENSOR, .help = "R1, a factor of the logits" },
    { .name = "factor_right", .kind = VIEW_TENSOR, .help = "R2^T, a factor of the logits" },
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_factorized_random = {
    .id = "synthesizer-factorized-random",
    .title = "Factorized Random Synthesizer",
    .authors = "Tay, Bahri, Metzler, Juan, Zhao, Zheng",
    .year = 2020,
    .arxiv = "2005.00743",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(R1 R2^T),  R1 and R2 [n,k]\n"
               "output = W V",
    .teaches = "The same map whatever the input is, from 2nk parameters: the logits show stripes "
               "of rank k, and the softmax lifts the rank of the weights again.",
    .picture = "logits",
    .classes = CLASS_LR | CLASS_LP,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2), 2nk parameters",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .needs_v = true,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = synthesizer_factorized_random_run,
    .flops = synthesizer_factorized_random_flops,
};
