/* longformer.c -- Longformer: sliding window, global tokens with their own projections.
 *
 * G is the set of global positions, window(i) the (dilated) window of i:
 *
 *     i not in G:  output_i = softmax over window(i) and G of q_i . K / sqrt(d), times V
 *     i in G:      output_i = softmax over all j of q'_i . K' / sqrt(d), times V'
 *
 * q', K', V' are projections of the same tokens for the global rows; where none is
 * given they are q, K, V and all is one softmax over one set of cells.  Other rows
 * see a global token by its ordinary key and value, never by K' and V'.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <string.h>

typedef struct Params {
    int64_t   window;
    IndexList dilation, global;
    Tensor    q_global, k_global, v_global;
    double    scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, window, 7, 0, PARAM_COUNT_MAX,
              "total width, half of it to each side (paper: 512)"),
    PARAM_LIST(Params, dilation, 1, 1, PARAM_COUNT_MAX,
               "distance between the window's cells; one, or one per head: [1,4]"),
    PARAM_LIST(Params, global, 1, 0, PARAM_COUNT_MAX,
               "global tokens: so many leading ones, or a list of positions (-1: the last)"),
    PARAM_TENSOR(Params, q_global, "[h,n,d]", "q itself", "queries of the global rows"),
    PARAM_TENSOR(Params, k_global, "[h,n,d]", "k itself", "keys that the global rows see"),
    PARAM_TENSOR(Params, v_global, "[h,n,e]", "v itself", "values that the global rows take"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static uint8_t *global_flags(Run *r, IndexList global);
static Pattern *longformer_cells_of(Run *r, const Params *p, const uint8_t *flags);
static PatternShape longformer_shape_of(const Run *r);
static bool has_projections(const Params *p);
static void attend_in_two(Run *r, const Params *p, AttentionPart *parts, Pattern *cells,
                          const uint8_t *flags);
static AttendInput global_input(Run *r, const Params *p);
static void copy_global_rows(Run *r, const uint8_t *flags, Tensor from);
static Tensor longformer_listed(Run *r, const uint8_t *flags);

static void longformer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    uint8_t      *flags = global_flags(r, p->global);
    Pattern      *cells = run_last_rows(r, longformer_cells_of(r, p, flags));
    AttentionPart parts[2] = { { .in = run_attend_input_within(r, p->scale, cells) } };
    AttendResult  result;

    window_note_even(r, p->window);
    if (flags)
        flags += r->m - r->n; /* of the queries */
    if (has_projections(p)) {
        attend_in_two(r, p, parts, cells, flags);
    } else {
        run_stage(r, "attend");
        result = op_attend(r, &parts[0].in, cells);
        r->out = result.out;
        parts[0].lse = result.lse;
    }
    run_last_row(r, cells);
    view_pattern(r, cells, true);
    view_attention_parts(r, cells, parts, 2, has_projections(p) ? flags : NULL);
}

/* u8 [n]: 1 for the positions in G. */
static uint8_t *global_flags(Run *r, IndexList global)
{
    uint8_t *flags = run_alloc(r, r->n, 1);
    int64_t  leading = global.count < r->n ? global.count : r->n;

    if (!flags)
        return NULL;
    memset(flags, 0, (size_t)r->n);
    if (!global.is_list)
        memset(flags, 1, (size_t)leading);
    for (int64_t t = 0; global.is_list && t < global.count; t++)
        flags[global.items[t] < 0 ? r->n + global.items[t] : global.items[t]] = 1;
    return flags;
}

static Pattern *longformer_cells_of(Run *r, const Params *p, const uint8_t *flags)
{
    Arena       *a = r->arena;
    PatternShape s = longformer_shape_of(r);
    Pattern     *cells;

    if (run_failed(r))
        return NULL;
    cells = dilated_window(r, p->window, p->dilation);
    cells = pattern_union(a, cells, pattern_rows(a, s, flags));
    cells = pattern_union(a, cells, pattern_cols(a, s, flags));
    return pattern_finish(a, s, cells, r->causal);
}

static PatternShape longformer_shape_of(const Run *r)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = r->n };
}

static bool has_projections(const Params *p)
{
    return p->q_global.data || p->k_global.data || p->v_global.data;
}

/* The rows of G by another softmax: each part visits its own rows' cells only. */
static void attend_in_two(Run *r, const Params *p, AttentionPart *parts, Pattern *cells,
                          const uint8_t *flags)
{
    PatternShape s = { .heads = r->h, .n = r->n, .m = r->m };
    Pattern     *rows = run_failed(r) ? NULL : pattern_rows(r->arena, s, flags);
    AttendResult result;

    run_stage(r, "attend");
    result = op_attend(r, &parts[0].in, pattern_difference(r->arena, cells, rows));
    r->out = result.out;
    parts[0].lse = result.lse;
    parts[1].in = global_input(r, p);
    run_stage(r, "attend from globals");
    result = op_attend(r, &parts[1].in, pattern_intersect(r->arena, cells, rows));
    parts[1].lse = result.lse;
    copy_global_rows(r, flags, result.out);
}

static AttendInput global_input(Run *r, const Params *p)
{
    Tensor q = run_for_each_head(r, extra_tokens_given(r, "q_global", p->q_global, r->q));

    return run_attend_input_of(r, q, extra_tokens_given(r, "k_global", p->k_global, r->k),
                               extra_tokens_given(r, "v_global", p->v_global, r->v), p->scale,
                               NULL);
}

static void copy_global_rows(Run *r, const uint8_t *flags, Tensor from)
{
    Tensor list = longformer_listed(r, flags);

    if (!run_failed(r) && list.shape[1] > 0)
        op_scatter(r, op_gather(r, from, list), list, r->out);
}

/* i32 [1,tokens] of the global ones. */
static Tensor longformer_listed(Run *r, const uint8_t *flags)
{
    int64_t count = 0, at = 0;
    Tensor  list;

    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        count += flags[i];
    list = run_tensor2(r, DT_I32, 1, count);
    run_prepare(r, true);
    for (int64_t i = 0; i < r->n && !run_failed(r); i++)
        if (flags[i])
            tensor_i32(&list)[at++] = (int32_t)i;
    op_toward(r, list.data, tensor_bytes(&list));
    run_prepare(r, false);
    return list;
}

static void longformer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    dilation_check(r, p->dilation);
    for (int64_t t = 0; p->global.is_list && t < p->global.count; t++) {
        int64_t index = p->global.items[t];

        if (index < -r->n || index >= r->n)
            run_fail(r, ERR_PARAM,
                     "longformer: global lists position %lld, but there are %lld positions "
                     "(0..%lld, or -1..-%lld from the end)",
                     (long long)index, (long long)r->n, (long long)r->n - 1, (long long)r->n);
    }
}

/* Window and cross overlap where a global token is near: the set algebra counts. */
static Flops longformer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       n = r->n;
    Pattern      *cells;

    r->n = r->m;
    cells = longformer_cells_of(r, p, global_flags(r, p->global));
    r->n = n;
    return run_pattern_flops(r, run_count_cells(r, cells));
}

/* Tokens of G stay behind the window.  A position counted from the end is another one with every
 * token, and its row reads all before it. */
static DecodeCost longformer_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        span = (double)dilated_window_span(r, p->window, p->dilation);

    for (int64_t t = 0; p->global.is_list && t < p->global.count; t++)
        span = p->global.items[t] < 0 ? 0 : span;
    return decode_span(r, span, (double)p->global.count);
}

static const ViewPromise views[] = { VIEWS_OF_PATTERN, VIEW_PROMISE_END };

const Mechanism mech_longformer = {
    .id = "longformer",
    .title = "Longformer",
    .authors = "Beltagy, Peters, Cohan",
    .year = 2020,
    .arxiv = "2004.05150",
    .source = "paper, section 3.1; allenai/longformer longformer.py (both parts over sqrt(d))",
    .formula = "A = window + rows and columns of the global tokens G\n"
               "rows outside G: softmax over A of Q K^T / sqrt(d), times V\n"
               "rows of G: the same with their own Q', K', V'\n"
               "k: keys of the window; m: global tokens",
    .problem = "Document models need thousands of tokens, and a window alone loses the overview.",
    .idea = "A window for all tokens is joined by a few global tokens that see all and are seen "
            "by all.",
    .price = "Far tokens that are not global meet only through the few global ones or many "
             "layers.",
    .lesson = "globals",
    .teaches = "A band plus a cross for each global token: without a causal mask two hops join "
               "any pair.  In a causal run a global token hands on only what stands before it: "
               "the first token is only a sink.  The cross's rows may come from projections of "
               "their own; its columns never do.",
    .classes = CLASS_FP | CLASS_M,
    .claim_time = "O(n (k + m))",
    .claim_memory = "O(n (k + m))",
    .claim_decode = "yes (causal windows)",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .size = "window",
    .params = params,
    .params_size = sizeof(Params),
    .check = longformer_check,
    .run = longformer_run,
    .flops = longformer_flops,
    .decode = longformer_decode,
};
