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
               "distance between the cells; one value, or a list with one per head"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

static int64_t dilation_of(const Params *p, int64_t head)
{
    if (!p->dilation.is_list)
        return p->dilation.count;
    return p->dilation.items[p->dilation.count == 1 ? 0 : head];
}

static void dilated_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->dilation.is_list && p->dilation.count != 1 && p->dilation.count != r->h)
        run_fail(r, ERR_PARAM,
                 "dilated: dilation lists %lld values for %lld heads; give one, or "
                 "one per head",
                 (long long)p->dilation.count, (long long)r->h);
    for (int64_t t = 0; p->dilation.is_list && t < p->dilation.count; t++)
        if (p->dilation.items[t] < 1)
            run_fail(r, ERR_PARAM, "dilated: dilation must be at least 1, got %lld",
                     (long long)p->dilation.items[t]);
}

/* Distances are compared with the sequence first, so that no product overflows. */
static int64_t reach_of(const Run *r, const Params *p, int64_t dilation)
{
    int64_t most = (r->n - 1) / dilation, k = p->window / 2;

    return k < most ? k : most;
}

static Pattern *band_of(Run *r, PatternShape s, const Params *p, int64_t head)
{
    int64_t dilation = dilation_of(p, head), reach = reach_of(r, p, dilation) * dilation;

    return pattern_band(r->arena, s, -reach, reach, dilation,
                        dilation > 1 ? COMPONENT_STRIDED : COMPONENT_WINDOW);
}

static void dilated_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    int64_t       kinds = p->dilation.is_list && p->dilation.count > 1 ? r->h : 1;
    Pattern     **bands = run_alloc(r, kinds, sizeof(*bands));
    Pattern      *cells;

    if (run_failed(r))
        return;
    for (int64_t head = 0; head < kinds; head++)
        bands[head] = band_of(r, s, p, head);
    cells = pattern_by_head(r->arena, s, bands, kinds);
    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

/* Per head n + 2 sum_t (n - t delta) over the t that fit; causal: once. */
static Flops dilated_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        cells = 0, n = (double)r->n;

    for (int64_t head = 0; head < r->h; head++) {
        int64_t dilation = dilation_of(p, head);
        double  k = (double)reach_of(r, p, dilation);
        double  side = k * n - (double)dilation * k * (k + 1) / 2;

        cells += n + (r->causal ? 1 : 2) * side;
    }
    return run_pattern_flops(r, cells);
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
