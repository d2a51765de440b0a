/* etc.c -- Extended Transformer Construction: global-local attention.
 *
 * g extra global tokens with vectors of their own are put before the n tokens, and the
 * (g + n) x (g + n) matrix falls into four rectangles:
 *
 *     global row:  one softmax over  g2g (all globals)  and  g2l (all tokens)
 *     token row:   one softmax over  l2g (all globals)  and  l2l (|i - j| <= radius)
 *
 * Each rectangle can be switched off or cut by a hard mask (a global that stands for a
 * sentence sees only its tokens).  Globals may be seen by tokens, and tokens by globals,
 * through projections of their own.  A global costs O(n), so all of it is O(g n + n radius).
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <string.h>

typedef struct Params {
    int64_t global, radius;
    bool    g2g, g2l, l2g, l2l;
    Tensor  mask_g2g, mask_g2l, mask_l2g, mask_l2l;
    Tensor  q_global, k_global, v_global;
    Tensor  k_l2g, v_l2g, k_g2l, v_g2l;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, global, 2, 0, PARAM_COUNT_MAX, "extra global tokens"),
    PARAM_INT(Params, radius, 3, 0, PARAM_COUNT_MAX, "tokens seen on each side (l2l)"),
    PARAM_BOOL(Params, g2g, true, "globals see globals"),
    PARAM_BOOL(Params, g2l, true, "globals see tokens"),
    PARAM_BOOL(Params, l2g, true, "tokens see globals"),
    PARAM_BOOL(Params, l2l, true, "tokens see tokens"),
    PARAM_TENSOR(Params, mask_g2g, "[g,g]", "all ones", "0 removes a cell of g2g"),
    PARAM_TENSOR(Params, mask_g2l, "[g,n]", "all ones", "0 removes a cell of g2l"),
    PARAM_TENSOR(Params, mask_l2g, "[n,g]", "all ones", "0 removes a cell of l2g"),
    PARAM_TENSOR(Params, mask_l2l, "[n,n]", "all ones", "0 removes a cell of l2l"),
    PARAM_TENSOR(Params, q_global, "[h,g,d]", "N(0, 0.02^2)", "queries of the globals"),
    PARAM_TENSOR(Params, k_global, "[h,g,d]", "N(0, 0.02^2)", "keys of the globals"),
    PARAM_TENSOR(Params, v_global, "[h,g,e]", "N(0, 0.02^2)", "values of the globals"),
    PARAM_TENSOR(Params, k_l2g, "[h,g,d]", "k_global", "keys of the globals, as tokens see them"),
    PARAM_TENSOR(Params, v_l2g, "[h,g,e]", "v_global", "values of the globals, for tokens"),
    PARAM_TENSOR(Params, k_g2l, "[h,n,d]", "k itself", "keys of the tokens, as globals see them"),
    PARAM_TENSOR(Params, v_g2l, "[h,n,e]", "v itself", "values of the tokens, for globals"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static void etc_gather(Run *r, const Params *p, AttentionPart *parts);
static AttendInput tokens_for_globals(Run *r, const Params *p, AttendInput tokens);
static AttendInput seen_by(Run *r, Tensor q, Tensor raw_q, Tensor k, Tensor v, AttendInput tokens);
static Pattern *global_rows(Run *r, const Params *p);
static PatternShape etc_shape_of(const Run *r, int64_t rows, int64_t cols);
static Pattern *rectangle(Run *r, PatternShape s, int64_t at, bool on, Pattern *cells,
                          const char *name, Tensor mask);
static Pattern *token_rows(Run *r, const Params *p);
static Pattern *etc_all_cells(Run *r, const Params *p, Pattern *globals, Pattern *tokens);
static Tensor etc_attend(Run *r, AttentionPart *part, const Pattern *cells);
static uint8_t *part_of_rows(Run *r, int64_t g);

static void etc_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       g = p->global;
    AttentionPart parts[2] = { { .first = g }, { .first = 0 } };
    Pattern      *globals, *tokens, *all;
    Tensor        global_out = run_tensor3(r, DT_F32, r->h, g, r->e);

    etc_gather(r, p, parts);
    globals = global_rows(r, p);
    tokens = token_rows(r, p);
    all = etc_all_cells(r, p, globals, tokens);
    run_stage(r, "tokens attend");
    r->out = etc_attend(r, &parts[0], tokens);
    run_stage(r, "globals attend");
    if (g > 0)
        global_out = etc_attend(r, &parts[1], globals);
    view_pattern(r, all, true);
    view_attention_parts(r, all, parts, 2, part_of_rows(r, g));
    view_tensor(r, "output_global", VIEW_VECTORS, global_out, "global token", "value");
}

/* ---- keys and values ---------------------------------------------------------- */

/* What the rows attend with: tokens in parts[0], globals in parts[1]. */
static void etc_gather(Run *r, const Params *p, AttentionPart *parts)
{
    const Init  init = { INIT_NORMAL, 0.02 };
    int64_t     qk[3] = { r->h, p->global, r->d }, size[3] = { r->h, p->global, r->e };
    AttendInput tokens = run_attend_input(r, p->scale), keys = tokens_for_globals(r, p, tokens);
    Tensor      q = run_param(r, "q_global", p->q_global, DT_F32, 3, qk, init);
    Tensor      k = run_param(r, "k_global", p->k_global, DT_F32, 3, qk, init);
    Tensor      v = run_param(r, "v_global", p->v_global, DT_F32, 3, size, init);

    run_stage(r, "gather");
    parts[0].in = seen_by(r, tokens.q, tokens.raw_q, extra_tokens_given(r, "k_l2g", p->k_l2g, k),
                          extra_tokens_given(r, "v_l2g", p->v_l2g, v), tokens);
    parts[1].in = parts[0].in;
    parts[1].in.q = parts[1].in.raw_q = q;
    if (p->k_l2g.data || p->v_l2g.data || p->k_g2l.data || p->v_g2l.data)
        parts[1].in = seen_by(r, q, q, k, v, keys);
}

/* Token keys for the global queries.  A position acts on these keys, but on no global query:
 * globals have no position. */
static AttendInput tokens_for_globals(Run *r, const Params *p, AttendInput tokens)
{
    Tensor none = r->q;

    if (!p->k_g2l.data && !p->v_g2l.data)
        return tokens;
    none.shape[1] = 0;
    return run_attend_input_of(r, none, extra_tokens_given(r, "k_g2l", p->k_g2l, r->k),
                               extra_tokens_given(r, "v_g2l", p->v_g2l, r->v), p->scale, NULL);
}

/* Keys and values of one kind of row: [globals, tokens]. */
static AttendInput seen_by(Run *r, Tensor q, Tensor raw_q, Tensor k, Tensor v, AttendInput tokens)
{
    AttendInput in = { .q = q, .raw_q = raw_q, .scale = tokens.scale, .softcap = tokens.softcap,
                       .k = extra_tokens_stack(r, k, tokens.k),
                       .v = extra_tokens_stack(r, v, tokens.v) };

    in.raw_k = in.k;
    if (r->spec.position && run_wants_views(r)) /* what position_bias shows */
        in.raw_k = extra_tokens_stack(r, k, tokens.raw_k);
    return in;
}

/* ---- cells ------------------------------------------------------------------- */

/* g x (g + n) */
static Pattern *global_rows(Run *r, const Params *p)
{
    int64_t      g = p->global;
    PatternShape s = etc_shape_of(r, g, g + r->n);
    Pattern     *g2g = pattern_full(r->arena, etc_shape_of(r, g, g), COMPONENT_GLOBAL);
    Pattern     *g2l = pattern_full(r->arena, etc_shape_of(r, g, r->n), COMPONENT_GLOBAL);

    g2g = rectangle(r, s, 0, p->g2g, g2g, "mask_g2g", p->mask_g2g);
    g2l = rectangle(r, s, g, p->g2l, g2l, "mask_g2l", p->mask_g2l);
    return pattern_union(r->arena, g2g, g2l);
}

static PatternShape etc_shape_of(const Run *r, int64_t rows, int64_t cols)
{
    return (PatternShape){ .heads = r->h, .n = rows, .m = cols };
}

/* One of the four rectangles, from column `at` of s on: `cells` less those that the mask removes;
 * empty when it is off. */
static Pattern *rectangle(Run *r, PatternShape s, int64_t at, bool on, Pattern *cells,
                          const char *name, Tensor mask)
{
    Arena       *a = r->arena;
    PatternShape own;
    Tensor       flags;

    if (!cells || run_failed(r))
        return NULL;
    own = etc_shape_of(r, pattern_queries(cells), pattern_keys(cells));
    if (!on)
        cells = pattern_none(a, own);
    if (mask.data) {
        flags = run_param_given(r, name, mask, mask.dtype, 3, (int64_t[]){ 1, own.n, own.m });
        if (run_failed(r))
            return NULL;
        flags = tensor_nonzero(a, flags);
        cells = pattern_difference(a, cells, pattern_complement(a, pattern_mask(a, own, &flags)));
    }
    return pattern_offset(a, s, 0, at, cells);
}

/* n x (g + n) */
static Pattern *token_rows(Run *r, const Params *p)
{
    int64_t      g = p->global;
    PatternShape s = etc_shape_of(r, r->n, g + r->n), tokens = etc_shape_of(r, r->n, r->n);
    Pattern     *l2g = pattern_full(r->arena, etc_shape_of(r, r->n, g), COMPONENT_GLOBAL);
    Pattern     *l2l = pattern_band(r->arena, tokens, -p->radius, p->radius, 1, COMPONENT_WINDOW);

    l2g = rectangle(r, s, 0, p->l2g, l2g, "mask_l2g", p->mask_l2g);
    l2l = rectangle(r, s, g, p->l2l, l2l, "mask_l2l", p->mask_l2l);
    return pattern_union(r->arena, l2g, l2l);
}

/* (g + n) x (g + n) */
static Pattern *etc_all_cells(Run *r, const Params *p, Pattern *globals, Pattern *tokens)
{
    int64_t      all = p->global + r->n;
    PatternShape s = etc_shape_of(r, all, all);

    return pattern_union(r->arena, pattern_offset(r->arena, s, 0, 0, globals),
                         pattern_offset(r->arena, s, p->global, 0, tokens));
}

static Tensor etc_attend(Run *r, AttentionPart *part, const Pattern *cells)
{
    AttendResult result = op_attend(r, &part->in, cells);

    part->lse = result.lse;
    return result.out;
}

/* u8 [g + n]: the part whose softmax made a row. */
static uint8_t *part_of_rows(Run *r, int64_t g)
{
    uint8_t *part = run_alloc(r, g + r->n, 1);

    if (!part)
        return NULL;
    memset(part, 1, (size_t)g);
    memset(part + g, 0, (size_t)r->n);
    return part;
}

/* g^2 + 2 g n + window cells, less what is off or masked: counted by the set algebra. */
static Flops etc_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Pattern      *globals = global_rows(r, p), *tokens = token_rows(r, p);
    double        cells = 0;

    if (globals && tokens)
        cells = (double)pattern_count(globals) + (double)pattern_count(tokens);
    return run_pattern_flops(r, cells);
}

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "allowed cells, globals first"),
    VIEW("components", VIEW_COMPONENTS, "what allows a cell, globals first"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights, globals first"),
    VIEW("position_bias", VIEW_SIGNED, "what the position adds to the scores (with --position)",
         .maybe = true),
    VIEW("output_global", VIEW_VECTORS, "outputs of the global tokens"),
    VIEW_PROMISE_END
};

const Mechanism mech_etc = {
    .id = "etc",
    .title = "Extended Transformer Construction",
    .authors = "Ainslie et al.",
    .year = 2020,
    .arxiv = "2004.08483",
    .source = "paper, section 2; google-research etcmodel/layers/attention.py (one softmax for "
              "l2l + l2g, one for g2g + g2l)",
    .formula = "X' = [globals, tokens]\n"
               "globals: softmax over globals and tokens; tokens: softmax over globals and window\n"
               "output = softmax(Q K^T / sqrt(d)) V on those cells\n"
               "g: globals; r: radius of the window",
    .problem = "Long inputs have a structure, such as sentences or fields, that plain tokens do "
               "not show.",
    .idea = "Extra global tokens stand for parts of the input, and the long tokens see them and "
            "a window.",
    .price = "Far parts of the text reach each other only through the extra tokens.",
    .lesson = "globals",
    .teaches = "Four rectangles: a small dense square, two thin strips and a band.  Globals are "
               "extra tokens, so the strips stand outside the sequence; a hard mask on g2l shows "
               "which tokens each global stands for.",
    .classes = CLASS_FP | CLASS_M,
    .claim_time = "O(g^2 + g n + r n)",
    .claim_memory = "O(g^2 + g n + r n)",
    .claim_decode = "no",
    .claim_exponent = 1,
    .no_causal = "its global tokens see the whole sequence",
    .positions = POSITION_INPUT,
    .views = views,
    .size = "radius",
    .params = params,
    .params_size = sizeof(Params),
    .run = etc_run,
    .flops = etc_flops,
};
