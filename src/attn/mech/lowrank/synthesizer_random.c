/* synthesizer_random.c -- one learned, or even fixed, matrix of weights for all inputs.
 *
 *     W = softmax(R[:n,:n]),  output = W V
 *
 * R does not look at the tokens at all.  When it is drawn and not trainable it
 * is a function of the seed: its rows are drawn again where they are needed,
 * and nothing n x n is kept.  (Tay et al. 2020, section 3.)
 */
#include "attn/run.h"

#include <math.h>

typedef struct Params {
    Tensor r;
    bool   trainable;
} Params;

static const Param params[] = {
    PARAM_TENSOR(Params, r, "[>=n,>=n] or [h,>=n,>=n]", "glorot", "the logits R"),
    PARAM_BOOL(Params, trainable, true, "R is a parameter that is kept; false: it is fixed, counts "
               "as none, and where it was drawn its rows are drawn again when needed"),
    PARAM_END
};

static LogitAttend logits(Run *r, const Params *p)
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

static void synthesizer_random_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    LogitAttend   in;

    run_stage(r, "parameters");
    in = logits(r, p);
    synthesizer_attend(r, &in, !p->r.data);
    run_figure_int(r, "trainable_parameters", p->trainable ? r->h * r->n * r->n : 0);
}

static Flops synthesizer_random_flops(Run *r, const void *params_unused)
{
    (void)params_unused;
    return synthesizer_flops(r, 0);
}

static const ViewPromise views[] = {
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "all cells, or the lower triangle" },
    { .name = "weights", .kind = VIEW_WEIGHTS, .help = "the same for every input" },
    { .name = "logits", .kind = VIEW_SIGNED, .help = "R" },
    VIEW_PROMISE_END
};

const Mechanism mech_synthesizer_random = {
    .id = "synthesizer-random",
    .title = "Random Synthesizer",
    .authors = "Tay, Bahri, Metzler, Juan, Zhao, Zheng",
    .year = 2020,
    .arxiv = "2005.00743",
    .source = "paper, section 3; mesh-tensorflow transformer/attention.py (synthetic attention)",
    .formula = "W = softmax(R),  R a parameter\n"
               "output = W V",
    .teaches = "The same map whatever the input is: how far a fixed mixing of positions gets, at "
               "the price of n^2 parameters.",
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
    .run = synthesizer_random_run,
    .flops = synthesizer_random_flops,
};
