/* full.c -- scaled dot-product attention, self or cross.
 *
 *     S[i,j]   = q_i . k_j / sqrt(d)
 *     W[i,:]   = softmax over the allowed j of S[i,:]
 *     output_i = sum_j W[i,j] v_j
 *
 * Causal: query i is position i + q_offset among the keys and sees j up to
 * itself.  Computed tile by tile with an online softmax, so memory is O(n);
 * cells of the n x n matrix are computed only for views.
 */
#include "attn/run.h"

typedef struct Params {
    double  scale, softcap;
    int64_t q_offset;
} Params;

static const Param params[] = {
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_INT(Params, q_offset, PARAM_AUTO, -1e9, 1e9,
              "position of query 0 among the keys; auto: m - n when causal, else 0"),
    PARAM_END
};

static Pattern *full_pattern(Run *r);
static void name_cells(Run *r);
static double full_cells(const Run *r);

static void full_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    AttendInput   in;
    AttendResult  result;
    Pattern      *all;

    if ((double)p->q_offset > PARAM_AUTO)
        r->q_offset = p->q_offset;
    all = full_pattern(r);
    in = run_attend_input_within(r, p->scale, all);
    run_stage(r, "attend");
    result = op_attend(r, &in, all);
    r->out = result.out;
    run_last_row(r, all);
    view_pattern(r, all, false);
    name_cells(r);
    view_attention(r, all, &in, result.lse);
    replay_offer_attend(r, &in, all);
}

/* The model of the input may have exact attention within a sliding window. */
static bool has_window(const Run *r)
{
    return r->spec.window > 0;
}

static Pattern *full_pattern(Run *r)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
    int64_t      reach = r->spec.window - 1;
    Pattern     *all = has_window(r) ? pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW)
                                     : pattern_full(r->arena, s, COMPONENT_OTHER);

    return pattern_finish(r->arena, s, all, r->causal);
}

/* Cells belong to no component here; the legend calls them "every pair". */
static void name_cells(Run *r)
{
    for (int i = 0; i < r->view_count; i++)
        if (r->views[i].kind == VIEW_PATTERN && !has_window(r))
            r->views[i].other = "every pair";
}

static Flops full_flops(Run *r, const void *opaque)
{
    double cells = (double)r->h * full_cells(r);

    (void)opaque;
    return run_pattern_flops(r, cells);
}

/* Keys of row i from its window's first to its last, or to itself when causal. */
static double window_cells(const Run *r)
{
    double cells = 0;

    for (int64_t i = 0; i < r->n; i++) {
        int64_t at = i + r->q_offset, low = max_i64(0, at - r->spec.window + 1);
        int64_t high = min_i64(r->m, at + (r->causal ? 1 : r->spec.window));

        cells += (double)max_i64(0, high - low);
    }
    return cells;
}

/* Row i has min(m, i + q_offset + 1) keys when causal, m otherwise. */
static double full_cells(const Run *r)
{
    double cells = 0;

    if (has_window(r))
        return window_cells(r);
    if (!r->causal)
        return (double)r->n * (double)r->m;
    if (r->q_offset == r->m - r->n && r->m >= r->n)
        return (double)r->n * (double)r->m - (double)r->n * (double)(r->n - 1) / 2;
    for (int64_t i = 0; i < r->n; i++) {
        int64_t keys = i + r->q_offset + 1;

        cells += (double)(keys < 0 ? 0 : keys > r->m ? r->m : keys);
    }
    return cells;
}

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_full = {
    .id = "full",
    .title = "Full attention",
    .authors = "Vaswani et al.",
    .year = 2017,
    .arxiv = "1706.03762",
    .source = "paper, section 3.2.1",
    .formula = "output = softmax(Q K^T / sqrt(d)) V",
    .problem = "Each token must be able to use every other token.",
    .idea = "Every query is compared with every key, and a softmax turns the scores into shares "
            "of the values.",
    .price = "Time and, when the matrix is kept, memory grow with the square of the length.",
    .lesson = "n-squared",
    .teaches = "Everything sees everything: the square whose area, quadratic in n, every other "
               "mechanism tries not to pay for.",
    .classes = CLASS_BASELINE,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2), O(n) tiled",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .positions = POSITIONS_ALL,
    .views = views,
    .params = params,
    .params_size = sizeof(Params),
    .run = full_run,
    .flops = full_flops,
    .decode = decode_cells,
};
