/* window.c -- sliding windows: window, dilated, cascade. */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

/* Sliding-window (local) attention.
 *
 * Token i sees the keys j with |i - j| <= k, k = floor(window / 2):
 *
 *     S[i,j]   = q_i . k_j / sqrt(d)          only for seen pairs
 *     output_i = sum_j softmax_j(S[i,:]) v_j
 *
 * Causal keeps the left half and the diagonal.  Rows at both ends are shorter.
 */

typedef struct WindowParams {
    int64_t window;
    double  scale, softcap;
} WindowParams;

static const Param window_params[] = {
    PARAM_INT(WindowParams, window, 7, 0, PARAM_COUNT_MAX,
              "total width; reach to each side is half of it, rounded down"),
    PARAM_FLOAT(WindowParams, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(WindowParams), PARAM_END
};

static void window_run(Run *r, const void *opaque)
{
    const WindowParams *p = opaque;
    PatternShape        s = { .heads = r->h, .n = r->n, .m = r->m };
    int64_t             reach = p->window / 2;
    Pattern            *band = pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);
    Pattern            *seen = pattern_finish(r->arena, s, band, r->causal);
    AttendInput         in;

    window_note_even(r, p->window);
    seen = run_last_rows(r, seen);
    in = run_pattern_attention(r, p->scale, seen);
    run_cache(r, &in, seen, 0);
}

/* k' = min(k, n-1): n (2k' + 1) - k' (k' + 1) cells, causal n (k' + 1) - k' (k' + 1) / 2. */
static Flops window_flops(Run *r, const void *opaque)
{
    const WindowParams *p = opaque;
    double        n = (double)r->n, h = (double)r->h;
    double        k = (double)(p->window / 2 < r->n ? p->window / 2 : r->n - 1);
    double cells = h * (r->causal ? n * (k + 1) - k * (k + 1) / 2 : n * (2 * k + 1) - k * (k + 1));

    return run_pattern_flops(r, cells);
}

static const ViewPromise window_views[] = { VIEWS_OF_PATTERN, VIEWS_OF_CACHE, VIEW_PROMISE_END };

const Mechanism mech_window = {
    .id = "window",
    .title = "Sliding window",
    .authors = "Beltagy, Peters, Cohan",
    .year = 2020,
    .arxiv = "2004.05150",
    .source = "paper, section 3.1 (total width, as its released model counts it)",
    .formula = "A = { |i - j| <= floor(window / 2) }\n"
               "output = softmax over A of Q K^T / sqrt(d), times V",
    .problem = "Full attention compares every pair, though much of what a token needs is near.",
    .idea = "Each query sees only the keys within half a window to its left and right.",
    .price = "Far tokens meet only through many layers.",
    .lesson = "patterns",
    .teaches = "A band along the diagonal whose width does not grow with n: far tokens meet only "
               "through many layers.",
    .classes = CLASS_FP,
    .claim_time = "O(n w)",
    .claim_memory = "O(n w)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = window_views,
    .size = "window",
    .params = window_params,
    .params_size = sizeof(WindowParams),
    .run = window_run,
    .flops = window_flops,
    .decode = decode_cells,
};

/* Dilated sliding window.
 *
 * Token i of head h sees j = i + t delta_h for t = -k..k, k = floor(window / 2):
 * parallel diagonals delta apart.  Positions of different i mod delta never meet;
 * heads with different delta cover different ranges at equal cost.
 */

typedef struct DilatedParams {
    int64_t   window;
    IndexList dilation;
    double    scale, softcap;
} DilatedParams;

static const Param dilated_params[] = {
    PARAM_INT(DilatedParams, window, 7, 0, PARAM_COUNT_MAX,
              "cells per row: half of it to each side"),
    PARAM_LIST(DilatedParams, dilation, 2, 1, PARAM_COUNT_MAX,
               "distance between the cells; one, or one per head: [1,4]"),
    PARAM_FLOAT(DilatedParams, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(DilatedParams), PARAM_END
};

static void dilated_run(Run *r, const void *opaque)
{
    const DilatedParams *p = opaque;
    PatternShape         s = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern             *cells = dilated_window(r, p->window, p->dilation);

    window_note_even(r, p->window);
    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, cells, r->causal));
}

static void dilated_check(Run *r, const void *opaque)
{
    const DilatedParams *p = opaque;

    dilation_check(r, p->dilation);
}

static Flops dilated_flops(Run *r, const void *opaque)
{
    const DilatedParams *p = opaque;

    return run_pattern_flops(r, dilated_window_cells(r, p->window, p->dilation));
}

static const ViewPromise dilated_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_dilated = {
    .id = "dilated",
    .title = "Dilated sliding window",
    .authors = "Beltagy, Peters, Cohan",
    .year = 2020,
    .arxiv = "2004.05150",
    .source = "paper, sections 3.1 and 3.2",
    .formula = "A = { j = i + t delta, |t| <= floor(window / 2) }",
    .problem = "A window of few keys reaches only a few tokens far.",
    .idea = "The keys of the window are spread out with equal gaps between them.",
    .price = "What lies in the gaps is not seen, and within one head tokens whose positions "
             "differ by no multiple of the dilation never meet.",
    .lesson = "patterns",
    .teaches =
        "Parallel diagonals: the same number of cells reaches further, but tokens of different "
        "phase never meet.",
    .classes = CLASS_FP,
    .claim_time = "O(n w)",
    .claim_memory = "O(n w)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = dilated_views,
    .size = "window",
    .params = dilated_params,
    .params_size = sizeof(DilatedParams),
    .check = dilated_check,
    .run = dilated_run,
    .flops = dilated_flops,
    .decode = decode_cells,
};

/* Cascade Transformer: windows that grow with the layer.
 *
 * Layer l (the first is 0) sees |i - j| < b m^l: narrow bands below, full attention
 * above.  The paper is causal; the survey mirrors the window.
 */

typedef struct CascadeParams {
    int64_t base_window, cardinal, layer;
    double  scale, softcap;
} CascadeParams;

static const Param cascade_params[] = {
    PARAM_INT(CascadeParams, base_window, 1, 1, PARAM_COUNT_MAX, "b, the window of layer 0"),
    PARAM_INT(CascadeParams, cardinal, 2, 1, PARAM_COUNT_MAX, "m, how much wider each layer is"),
    PARAM_INT(CascadeParams, layer, 0, 0, PARAM_COUNT_MAX, "l, the layer, from 0"),
    PARAM_FLOAT(CascadeParams, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(CascadeParams), PARAM_END
};

static int64_t width_of(const CascadeParams *p);

static void cascade_run(Run *r, const void *opaque)
{
    const CascadeParams *p = opaque;
    PatternShape         s = { .heads = r->h, .n = r->n, .m = r->n };
    int64_t              reach = width_of(p) - 1;
    Pattern             *band = pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, band, r->causal));
}

#define WIDEST ((int64_t)1 << 60) /* no sequence is as long */

/* b m^l, whatever the length, without overflow on the way. */
static int64_t width_of(const CascadeParams *p)
{
    int64_t width = p->base_window;

    for (int64_t l = 0; l < p->layer && p->cardinal > 1 && width < WIDEST; l++)
        width = width > WIDEST / p->cardinal ? WIDEST : width * p->cardinal;
    return width;
}

/* k = b m^l - 1: n (2k + 1) - k (k + 1) cells, causal n (k + 1) - k (k + 1) / 2. */
static Flops cascade_flops(Run *r, const void *opaque)
{
    int64_t width = width_of(opaque);
    double  n = (double)r->n, k = (double)(width < r->n ? width : r->n) - 1;
    double cells = r->causal ? n * (k + 1) - k * (k + 1) / 2 : n * (2 * k + 1) - k * (k + 1);

    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise cascade_views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_cascade = {
    .id = "cascade",
    .title = "Cascade Transformer",
    .authors = "Wang et al.",
    .year = 2020,
    .arxiv = "2002.06170",
    .source = "survey of Fournier et al., figure 12",
    .formula = "A_l = { |i - j| < b m^l } in layer l = 0, 1, ...",
    .problem = "Low layers rarely need a wide view, yet full attention gives it to all of them.",
    .idea = "The window grows by a constant factor from layer to layer, so that low layers look "
            "near and high ones far.",
    .price = "The high layers approach the price of full attention.",
    .lesson = "patterns",
    .teaches = "The layer is the slider: with b = 1 and m = 2 the bands are 1, 3, 7, 15 wide and "
               "end in full attention.",
    .classes = CLASS_FP,
    .claim_time = "O(n b m^l)",
    .claim_memory = "O(n b m^l)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .example = "layer=3",
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = cascade_views,
    .size = "base_window",
    .params = cascade_params,
    .params_size = sizeof(CascadeParams),
    .run = cascade_run,
    .flops = cascade_flops,
    .decode = decode_cells,
};
