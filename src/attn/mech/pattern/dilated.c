/* dilated.c -- dilated sliding window.
 *
 * Token i of head h sees j = i + t delta_h for t = -k..k, k = floor(window / 2):
 * parallel diagonals delta apart.  Positions of different i mod delta never meet;
 * heads with different delta cover different ranges at equal cost.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t   window;
    IndexList dilation;
    double    scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, window, 7, 0, PARAM_COUNT_MAX, "cells per row: half of it to each side"),
    PARAM_LIST(Params, dilation, 2, 1, PARAM_COUNT_MAX,
               "distance between the cells; one, or one per head: [1,4]"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static void dilated_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    dilation_check(r, p->dilation);
}

static void dilated_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern      *cells = dilated_window(r, p->window, p->dilation);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

static Flops dilated_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;

    return run_pattern_flops(r, dilated_window_cells(r, p->window, p->dilation));
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_dilated = {
    .id = "dilated",
    .title = "Dilated sliding window",
    .authors = "Beltagy, Peters, Cohan",
    .year = 2020,
    .arxiv = "2004.05150",
    .source = "paper, sections 3.1 and 3.2",
    .formula = "A = { j = i + t delta, |t| <= floor(window / 2) }",
    .teaches =
        "Parallel diagonals: the same number of cells reaches further, but tokens of different "
        "phase never meet.",
    .classes = CLASS_FP,
    .claim_time = "O(n w)",
    .claim_memory = "O(n w)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .check = dilated_check,
    .run = dilated_run,
    .flops = dilated_flops,
};
