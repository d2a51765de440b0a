/* image_local_1d.c -- Image Transformer, 1-D local attention.
 *
 * Queries are taken in blocks of l_q; all queries of a block share one strip of
 * memory: with B = l_q floor(i / l_q), i sees j in [B - l_m, B + l_q), and l_m
 * positions after the block too when `both`.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t query_block, memory;
    bool    both;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, query_block, 8, 1, PARAM_COUNT_MAX, "queries that share one memory strip"),
    PARAM_INT(Params, memory, 8, 0, PARAM_COUNT_MAX, "positions before the block they see"),
    PARAM_BOOL(Params, both, false, "as many positions after the block too (encoder form)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static void image_local_1d_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern *cells = pattern_local(r->arena, s, p->query_block, p->memory, p->both ? p->memory : 0);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

static Flops image_local_1d_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        cells = 0, b = (double)p->query_block, n = (double)r->n;
    double        before = (double)p->memory, after = p->both ? before : 0;

    for (double first = 0; first < n; first += b) {
        double last = first + b < n ? first + b : n, rows = last - first;
        double lo = first > before ? first - before : 0;
        double hi = first + b + after < n ? first + b + after : n;

        cells += r->causal ? rows * (first - lo) + rows * (rows + 1) / 2 : rows * (hi - lo);
    }
    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_image_local_1d = {
    .id = "image-local-1d",
    .title = "Image Transformer, 1-D local",
    .authors = "Parmar et al.",
    .year = 2018,
    .arxiv = "1802.05751",
    .source = "paper, section 3.2; tensor2tensor local_attention_1d",
    .formula = "A = { B - l_m <= j < B + l_q }, B = l_q floor(i / l_q)",
    .teaches = "Every query of a block shares one memory strip: steps, not a sliding band.",
    .classes = CLASS_FP,
    .claim_time = "O(n (l_q + l_m))",
    .claim_memory = "O(n (l_q + l_m))",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = image_local_1d_run,
    .flops = image_local_1d_flops,
};
