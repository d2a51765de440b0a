/* block_local.c -- blockwise (chunked) local attention.
 *
 * The sequence is cut in blocks of b tokens; i sees j when
 *
 *     floor(i/b) - back <= floor(j/b) <= floor(i/b) + ahead
 *
 * The last block may be short; nothing is padded.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t block, back, ahead;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, block, 8, 1, PARAM_COUNT_MAX, "tokens per block"),
    PARAM_INT(Params, back, 0, 0, PARAM_COUNT_MAX, "whole blocks before its own a token sees"),
    PARAM_INT(Params, ahead, 0, 0, PARAM_COUNT_MAX, "whole blocks after its own a token sees"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static void block_local_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern      *cells = pattern_chunk(r->arena, s, p->block, p->back, p->ahead);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

/* Block by block: its rows times the keys of the blocks it sees; causal rows stop
 * at themselves. */
static Flops block_local_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       blocks = (r->n - 1) / p->block + 1;
    double        cells = 0, b = (double)p->block, n = (double)r->n;

    for (int64_t c = 0; c < blocks; c++) {
        double first = (double)c * b, last = first + b < n ? first + b : n;
        double lo = c > p->back ? (double)(c - p->back) * b : 0;
        double hi = (double)(c + 1) * b + (double)p->ahead * b;
        double rows = last - first;

        cells += r->causal ? rows * (first - lo) + rows * (rows + 1) / 2
                           : rows * ((hi < n ? hi : n) - lo);
    }
    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_block_local = {
    .id = "block-local",
    .title = "Blockwise local attention",
    .authors = "Liu et al.; Parmar et al.",
    .year = 2018,
    .arxiv = "1801.10198",
    .source = "survey of Tay et al., section 3.2.1; tensor2tensor masked_local_attention_1d",
    .formula = "A = { floor(i/b) - back <= floor(j/b) <= floor(i/b) + ahead }",
    .teaches = "Squares on the diagonal and no bridge between them, until neighbours are let in.",
    .classes = CLASS_FP,
    .claim_time = "O(n b)",
    .claim_memory = "O(n b)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = block_local_run,
    .flops = block_local_flops,
};
