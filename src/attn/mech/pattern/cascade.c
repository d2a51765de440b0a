/* cascade.c -- Cascade Transformer: windows that grow with the layer.
 *
 * Layer l (the first is 0) sees |i - j| < b m^l: narrow bands below, full attention
 * above.  The paper is causal; the survey mirrors the window.
 */
#include "attn/run.h"

typedef struct Params {
    int64_t base_window, cardinal, layer;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_INT(Params, base_window, 1, 1, PARAM_COUNT_MAX, "b, the window of layer 0"),
    PARAM_INT(Params, cardinal, 2, 1, PARAM_COUNT_MAX, "m, how much wider each layer is"),
    PARAM_INT(Params, layer, 0, 0, PARAM_COUNT_MAX, "l, the layer, from 0"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"), PARAM_END
};

/* b m^l, at most n, without overflow on the way. */
static int64_t width_of(const Run *r, const Params *p)
{
    int64_t width = p->base_window < r->n ? p->base_window : r->n;

    for (int64_t l = 0; l < p->layer && p->cardinal > 1 && width < r->n; l++)
        width = width > r->n / p->cardinal ? r->n : width * p->cardinal;
    return width;
}

static void cascade_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = { .heads = r->h, .n = r->n, .m = r->n };
    int64_t       reach = width_of(r, p) - 1;
    Pattern      *band = pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW);

    run_pattern_attention(r, p->scale, pattern_finish(r->arena, s, band, r->causal));
}

/* k = b m^l - 1: n (2k + 1) - k (k + 1) cells, causal n (k + 1) - k (k + 1) / 2. */
static Flops cascade_flops(Run *r, const void *opaque)
{
    double n = (double)r->n, k = (double)width_of(r, opaque) - 1;
    double cells = r->causal ? n * (k + 1) - k * (k + 1) / 2 : n * (2 * k + 1) - k * (k + 1);

    return run_pattern_flops(r, (double)r->h * cells);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_cascade = {
    .id = "cascade",
    .title = "Cascade Transformer",
    .authors = "Wang et al.",
    .year = 2020,
    .arxiv = "2002.06170",
    .source = "survey of Fournier et al., figure 12",
    .formula = "A_l = { |i - j| < b m^l } in layer l = 0, 1, ...",
    .teaches = "The layer is the slider: with b = 1 and m = 2 the bands are 1, 3, 7, 15 wide and "
               "end in full attention.",
    .classes = CLASS_FP,
    .claim_time = "O(n b m^l)",
    .claim_memory = "O(n b m^l)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .example = "layer=3",
    .causal = true,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = cascade_run,
    .flops = cascade_flops,
};
