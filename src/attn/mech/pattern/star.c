/* star.c -- Star-Transformer: a thin band and one relay token that sees all tokens.
 *
 * Position 0 is the relay: its row and its column are full.  The others (satellites)
 * see |i - j| <= floor(window / 2); ring=true closes their chain, distance
 * min(|i - j|, N-1 - |i - j|).  relay=mean puts an extra relay in front whose q, k, v
 * are the means over the tokens, N = n + 1.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <string.h>

enum { RELAY_TOKEN, RELAY_MEAN };

static const char *const relays[] = { "token", "mean", NULL };

typedef struct Params {
    int     relay;
    bool    ring;
    int64_t window;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, relay, RELAY_TOKEN, relays,
               "token: position 0; mean: an extra node, the mean of the tokens"),
    PARAM_BOOL(Params, ring, false, "close the chain of satellites to a ring"),
    PARAM_INT(Params, window, 3, 0, PARAM_COUNT_MAX, "neighbourhood of a satellite, total width"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static Pattern *star_cells_of(Run *r, PatternShape s, const Params *p);
static int64_t star_reach_of(PatternShape s, const Params *p);
static Pattern *relay_cells(Run *r, PatternShape s);
static Pattern *closing_cells(Run *r, PatternShape s, const Params *p);
static PatternShape star_shape_of(const Run *r, const Params *p);
static Tensor mean_of(Run *r, Tensor tokens);
static double satellite_cells(const Run *r, PatternShape s, const Params *p);

static void star_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Pattern      *cells = run_last_rows(r, star_cells_of(r, star_shape_of(r, p), p));
    AttendInput   in = run_attend_input_within(r, p->scale, cells);
    AttendResult  result;

    if (p->relay == RELAY_MEAN) {
        run_stage(r, "relay");
        extra_tokens_prepend(r, &in, mean_of(r, in.q), mean_of(r, in.k), mean_of(r, in.v));
        if (r->spec.position && run_wants_views(r)) { /* means of q, k before the position */
            in.raw_q = extra_tokens_stack(r, mean_of(r, r->q), r->q);
            in.raw_k = extra_tokens_stack(r, mean_of(r, r->k), r->k);
        }
    }
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    run_last_row(r, cells);
    if (p->relay == RELAY_MEAN)
        extra_tokens_split(r, result.out, 1, "output_relay", "relay");
    view_pattern(r, cells, true);
    view_attention(r, cells, &in, result.lse);
    view_meaning(r, cells, NULL, "ring");
}

static Pattern *star_cells_of(Run *r, PatternShape s, const Params *p)
{
    int64_t  k = p->window / 2;
    Pattern *cells = pattern_band(r->arena, s, -k, k, 1, COMPONENT_WINDOW);

    cells = pattern_union(r->arena, cells, relay_cells(r, s));
    if (p->ring && s.n > 2)
        cells = pattern_union(r->arena, cells, closing_cells(r, s, p));
    return pattern_finish(r->arena, s, cells, r->causal);
}

static int64_t star_reach_of(PatternShape s, const Params *p)
{
    int64_t k = p->window / 2;

    return k < s.n ? k : s.n;
}

static Pattern *relay_cells(Run *r, PatternShape s)
{
    uint8_t *flags = run_alloc(r, s.n, 1);

    if (run_failed(r))
        return NULL;
    memset(flags, 0, (size_t)s.n);
    flags[0] = 1;
    return pattern_union(r->arena, pattern_rows(r->arena, s, flags),
                         pattern_cols(r->arena, s, flags));
}

/* Cells across the joint of the ring: N-1 - |i - j| <= k, that is |i - j| >= N-1 - k, without the
 * diagonal. */
static Pattern *closing_cells(Run *r, PatternShape s, const Params *p)
{
    int64_t      least = s.n - 1 - star_reach_of(s, p);
    PatternShape ring = { .heads = s.heads, .n = s.n - 1, .m = s.n - 1 };
    Pattern     *up, *down;

    least = least < 1 ? 1 : least;
    down = pattern_band(r->arena, ring, -s.n, -least, 1, COMPONENT_OTHER);
    up = pattern_band(r->arena, ring, least, s.n, 1, COMPONENT_OTHER);
    return pattern_offset(r->arena, s, 1, 1, pattern_union(r->arena, down, up));
}

static PatternShape star_shape_of(const Run *r, const Params *p)
{
    int64_t nodes = r->n + (p->relay == RELAY_MEAN);

    return (PatternShape){ .heads = r->h, .n = nodes, .m = nodes };
}

/* [h,1,w]: the mean of the tokens [h',n,w]. */
static Tensor mean_of(Run *r, Tensor tokens)
{
    Tensor out = run_tensor3(r, DT_F32, r->h, 1, tokens.shape[2]);

    op_pool_rows(r, tokens, 0, tokens.shape[1], WINDOW_MEAN, out);
    return out;
}

static void star_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->relay != RELAY_MEAN)
        return;
    if (r->causal)
        run_fail(r, ERR_USAGE, "star: relay=mean has no causal form (the mean is of the whole "
                               "sequence); use relay=token");
    extra_tokens_check(r, "relay=mean");
}

/* The relay's row and column, and the satellites' neighbourhoods. */
static Flops star_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  s = star_shape_of(r, p);
    double        h = (double)r->h, n = (double)s.n;
    double        cells = (r->causal ? n : 2 * n - 1) + satellite_cells(r, s, p);

    return run_pattern_flops(r, h * cells);
}

/* Cells of satellites a and b (numbered from 0 of N-1) that are neighbours, a among the first. */
static double satellite_cells(const Run *r, PatternShape s, const Params *p)
{
    int64_t n = s.n - 1, all = n + r->m - r->n, k = min_i64(p->window / 2, all + 1);
    double  cells = (double)n;

    for (int64_t apart = 1; apart < n; apart++)
        if (apart <= k || (p->ring && all - apart <= k))
            cells += (r->causal ? 1 : 2) * (double)(n - apart);
    return cells;
}

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEW("output_relay", VIEW_VECTORS, "output of the extra relay (relay=mean)", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_star = {
    .id = "star",
    .title = "Star-Transformer",
    .authors = "Guo et al.",
    .year = 2019,
    .arxiv = "1902.09113",
    .source = "survey of Fournier et al., figure 10 (default); paper, section 3 (ring, mean)",
    .formula = "A = { i = 0 or j = 0 } + { |i - j| <= floor(window / 2) }",
    .problem = "Full attention joins every pair, which is quadratic and needs much data to learn.",
    .idea = "Each token sees its neighbours and one relay token, and the relay sees all tokens.",
    .price = "Everything far away must pass through the one relay.",
    .lesson = "globals",
    .teaches = "A thin band and one full row and column: through the relay any two tokens are at "
               "most two hops apart, unless the run is causal.  A causal relay stands first and "
               "sees only itself, so it hands nothing on.",
    .classes = CLASS_FP,
    .claim_time = "O(n)",
    .claim_memory = "O(n)",
    .claim_decode = "yes, cut to the past (ours)",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .size = "window",
    .params = params,
    .params_size = sizeof(Params),
    .check = star_check,
    .run = star_run,
    .flops = star_flops,
    .decode = decode_cells,
};
