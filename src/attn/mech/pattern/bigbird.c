/* bigbird.c -- BigBird: window, global and random blocks.
 *
 * With c(i) = floor(i / block), cell (i, j) is allowed when
 *
 *     |c(i) - c(j)| <= floor(window / 2)           window
 *     c(i) or c(j) is a global block               global (variant itc)
 *     c(j) is one of the random blocks of c(i)     random
 *
 * and one softmax per row runs over the union.  Variant etc has extra global
 * tokens with vectors of their own instead: the sequence becomes
 * [globals, tokens] and a global sees, and is seen by, everything.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { VARIANT_ITC, VARIANT_ETC };
enum { GLOBAL_FIRST, GLOBAL_ENDS };
enum { REPEATS_ONCE, REPEATS_COUNT };

typedef struct Params {
    int     variant, global_position, repeats;
    int64_t block, window, global, random;
    double  scale, softcap;
    Tensor  random_blocks, q_global, k_global, v_global;
} Params;

static const char *const variants[] = { "itc", "etc", NULL };
static const char *const positions[] = { "first", "ends", NULL };
static const char *const repetitions[] = { "once", "count", NULL };

static const Param params[] = {
    PARAM_ENUM(Params, variant, VARIANT_ITC, variants,
               "itc: existing tokens are global; etc: extra global tokens"),
    PARAM_INT(Params, block, 1, 1, PARAM_COUNT_MAX, "tokens per block (paper: 64)"),
    PARAM_INT(Params, window, 3, 0, PARAM_COUNT_MAX, "window in blocks, own block included"),
    PARAM_INT(Params, global, 2, 0, PARAM_COUNT_MAX, "global blocks (itc) or extra tokens (etc)"),
    PARAM_INT(Params, random, 3, 0, PARAM_COUNT_MAX, "random blocks per query block"),
    PARAM_ENUM(Params, global_position, GLOBAL_FIRST, positions,
               "where the global blocks are: all first, or at both ends"),
    PARAM_TENSOR(Params, random_blocks, "[h,nb,r] or [nb,r]",
                 "distinct blocks outside window and globals, uniformly",
                 "random key blocks of each query block; -1: unused"),
    PARAM_ENUM(Params, repeats, REPEATS_ONCE, repetitions,
               "once: a cell enters the softmax once; count: as often as it is listed"),
    PARAM_TENSOR(Params, q_global, "[h,g,d]", "N(0, 0.02^2)", "queries of the extra tokens (etc)"),
    PARAM_TENSOR(Params, k_global, "[h,g,d]", "N(0, 0.02^2)", "keys of the extra tokens (etc)"),
    PARAM_TENSOR(Params, v_global, "[h,g,e]", "N(0, 0.02^2)", "values of the extra tokens (etc)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params),
    PARAM_END
};

/* What decides whether a cell is allowed, in units of blocks. */
typedef struct Layout {
    int64_t  nb, reach; /* blocks; window reach in blocks */
    int64_t  block;
    int64_t  first;     /* position of query 0 */
    uint8_t *global;    /* [nb] flags */
    Tensor   table;     /* i32 [h',nb,r] */
    int64_t  heads;
} Layout;

static Layout *bigbird_make_layout(Run *r, const Params *p);
static void mark_globals(Layout *l, const Params *p);
static void take_table(Run *r, const Params *p, Layout *l);
static void bigbird_check_table(Run *r, const Layout *l);
static PatternShape block_shape(const Run *r, const Layout *l);
static bool outside_candidates(void *context, int64_t i, int64_t j);
static Pattern *bigbird_all_cells(Run *r, const Params *p, const Layout *l);
static Pattern *token_cells(Run *r, const Layout *l);
static void add_globals(Run *r, const Params *p, AttendInput *in);
static double log_repeats(const void *context, int64_t head, int64_t i, int64_t j);

static void bigbird_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    AttendInput   in;
    AttendResult  result;
    Layout       *layout;
    Pattern      *cells;

    run_stage(r, "draw");
    layout = bigbird_make_layout(r, p);
    cells = run_last_rows(r, bigbird_all_cells(r, p, layout));
    if (layout)
        layout->first = r->m - r->n;
    in = run_attend_input_within(r, p->scale, cells);
    if (p->variant == VARIANT_ETC)
        add_globals(r, p, &in);
    if (p->repeats == REPEATS_COUNT) {
        in.cell_term = log_repeats;
        in.cell_context = layout;
    }
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    r->out = result.out;
    if (p->variant == VARIANT_ETC)
        extra_tokens_split(r, result.out, p->global, "output_global", "global token");
    view_pattern(r, cells, true);
    view_attention(r, cells, &in, result.lse);
    replay_offer_attend(r, &in, cells);
    run_last_row(r, cells);
}

static Layout *bigbird_make_layout(Run *r, const Params *p)
{
    Layout *l = run_alloc(r, 1, sizeof(*l));

    if (!l)
        return NULL;
    *l = (Layout){ .block = p->block, .nb = (r->n - 1) / p->block + 1, .reach = p->window / 2,
                   .heads = r->h };
    l->global = run_alloc(r, l->nb, 1);
    if (!l->global)
        return NULL;
    mark_globals(l, p);
    take_table(r, p, l);
    return run_failed(r) ? NULL : l;
}

static void mark_globals(Layout *l, const Params *p)
{
    int64_t g = p->global < l->nb ? p->global : l->nb;
    int64_t tail = p->global_position == GLOBAL_ENDS ? g / 2 : 0;

    memset(l->global, 0, (size_t)l->nb);
    if (p->variant == VARIANT_ETC)
        return;
    memset(l->global, 1, (size_t)(g - tail));
    memset(l->global + l->nb - tail, 1, (size_t)tail);
}

static void take_table(Run *r, const Params *p, Layout *l)
{
    const Tensor *given = &p->random_blocks;
    int64_t       count = p->random < l->nb ? p->random : l->nb;

    if (given->data) {
        int64_t shape[3] = { r->h, l->nb, given->shape[given->rank > 0 ? given->rank - 1 : 0] };

        l->table = run_param_given(r, "random_blocks", *given, DT_I32, 3, shape);
        if (!run_failed(r))
            bigbird_check_table(r, l);
        return;
    }
    run_prepare(r, true);
    l->table = pattern_draw_random(r->arena, block_shape(r, l), count, r->seed, "random_blocks",
                                   outside_candidates, l);
    run_prepare(r, false);
    if (!l->table.data)
        run_fail(r, ERR_NOMEM, "bigbird: not enough memory for the random blocks");
    view_drawn(r, "random_blocks", l->table);
}

static void bigbird_check_table(Run *r, const Layout *l)
{
    for (int64_t c = 0; c < tensor_count(&l->table) && !run_failed(r); c++) {
        int32_t block = tensor_i32(&l->table)[c];

        if (block < -1 || block >= l->nb)
            run_fail(r, ERR_PARAM, "bigbird: random_blocks holds block %d, but there are %lld "
                     "blocks (0..%lld, -1: unused)", block, (long long)l->nb,
                     (long long)l->nb - 1);
    }
}

static PatternShape block_shape(const Run *r, const Layout *l)
{
    return (PatternShape){ .heads = r->h, .n = l->nb, .m = l->nb, .causal = r->causal };
}

static bool outside_candidates(void *context, int64_t i, int64_t j)
{
    const Layout *l = context;

    if (j < 0)
        return l->global[i];
    return l->global[j] || (i > j ? i - j : j - i) <= l->reach;
}

static Pattern *bigbird_all_cells(Run *r, const Params *p, const Layout *l)
{
    bool         extended = p->variant == VARIANT_ETC;
    int64_t      total = extended ? p->global + r->n : r->n;
    PatternShape s = { .heads = r->h, .n = total, .m = total };
    Pattern     *cells = l ? token_cells(r, l) : NULL;

    if (extended && cells)
        cells = extra_tokens_cells(r, p->global, cells);
    return pattern_finish(r->arena, s, cells, r->causal);
}

/* Token-to-token cells, n x n. */
static Pattern *token_cells(Run *r, const Layout *l)
{
    Arena       *a = r->arena;
    PatternShape blocks = block_shape(r, l), tokens = { .heads = r->h, .n = r->n, .m = r->n };
    Pattern     *cells = pattern_band(a, blocks, -l->reach, l->reach, 1, COMPONENT_WINDOW);

    cells = pattern_union(a, cells, pattern_rows(a, blocks, l->global));
    cells = pattern_union(a, cells, pattern_cols(a, blocks, l->global));
    if (tensor_count(&l->table) > 0) /* an empty table would still have no rule */
        cells = pattern_union(a, cells, pattern_table(a, blocks, &l->table, COMPONENT_RANDOM));
    return l->block == 1 ? cells : pattern_tile(a, tokens, l->block, cells);
}

static void add_globals(Run *r, const Params *p, AttendInput *in)
{
    const Init init = { INIT_NORMAL, 0.02 };
    int64_t    qk[3] = { r->h, p->global, r->d }, v[3] = { r->h, p->global, r->e };
    Tensor     q = run_param(r, "q_global", p->q_global, DT_F32, 3, qk, init);
    Tensor     k = run_param(r, "k_global", p->k_global, DT_F32, 3, qk, init);

    extra_tokens_prepend(r, in, q, k, run_param(r, "v_global", p->v_global, DT_F32, 3, v, init));
}

/* log of how often cell (i, j) is listed: once by window or global, and once
 * for each random entry of a row that is not global. */
static double log_repeats(const void *context, int64_t head, int64_t i, int64_t j)
{
    const Layout  *l = context;
    int64_t        bi = (l->first + i) / l->block, bj = j / l->block, r = l->table.shape[2];
    int64_t        apart = bi > bj ? bi - bj : bj - bi;
    int            count = l->global[bi] || l->global[bj] || apart <= l->reach;
    const int32_t *row = (const int32_t *)tensor_head(&l->table, head, l->heads) + bi * r;

    for (int64_t c = 0; c < r && !l->global[bi]; c++)
        count += row[c] == bj;
    return log(count);
}

static void bigbird_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          extended = p->variant == VARIANT_ETC;

    if (extended && p->repeats == REPEATS_COUNT)
        run_fail(r, ERR_PARAM, "bigbird: repeats=count belongs to variant=itc");
    if (extended && r->causal)
        run_fail(r, ERR_USAGE, "bigbird: variant=etc has no causal form (extra global tokens see "
                 "the whole sequence); use variant=itc");
    if (extended)
        extra_tokens_check(r, "variant=etc");
    if (!extended && (p->q_global.data || p->k_global.data || p->v_global.data))
        run_fail(r, ERR_PARAM, "bigbird: q_global, k_global and v_global belong to variant=etc");
    if (r->causal)
        run_warn(r, "bigbird: --causal intersects the pattern with the past; the paper's model is "
                 "an encoder");
}

/* The set has no simple closed form (pieces overlap); this is its exact count. */
static Flops bigbird_flops(Run *r, const void *opaque)
{
    Run           quiet = *r;
    const Params *p = opaque;
    Pattern      *cells;

    quiet.spec.views = false;
    quiet.n = r->m;
    cells = bigbird_all_cells(&quiet, p, bigbird_make_layout(&quiet, p));
    return run_pattern_flops(r, p->variant == VARIANT_ETC
                                    ? (cells ? (double)pattern_count(cells) : 0)
                                    : run_count_cells(r, cells));
}

/* A global block at the end moves with every token, and its rows read all before it. */
static DecodeCost bigbird_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          moves = p->global_position == GLOBAL_ENDS && p->global > 1;

    return moves ? decode_span(r, 0, 0) : decode_cells(r, opaque);
}

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEW("random_blocks", VIEW_TENSOR, "drawn random blocks (when no file gives them)",
         .maybe = true),
    VIEW("output_global", VIEW_VECTORS, "outputs of the extra tokens (variant=etc)", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_bigbird = {
    .id = "bigbird",
    .title = "BigBird",
    .authors = "Zaheer et al.",
    .year = 2020,
    .arxiv = "2007.14062",
    .source = "paper, section 2; google-research/bigbird core/attention.py (simulated sparse path)",
    .formula = "A = window + global + random, in blocks; output = softmax over A of "
               "Q K^T / sqrt(d), times V",
    .problem = "A sparse pattern should still be able to do all that full attention does.",
    .idea = "A window, global tokens and random blocks are put together in blocks of equal size.",
    .price = "A single far pair is mostly missed and needs more than one hop.",
    .lesson = "globals",
    .teaches = "Three parts: the band near the diagonal; the cross of the global tokens, which "
               "without a causal mask keeps every pair within two hops; and scattered random "
               "cells, which keep paths short even without the cross.  In a causal run a global "
               "token hands on only what stands before it.",
    .classes = CLASS_FP | CLASS_M,
    .claim_time = "O(n)",
    .claim_memory = "O(n)",
    .claim_decode = "yes, cut to the past (ours)",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_CELLS,
    .positions = POSITIONS_ALL,
    .views = views,
    .size = "block",
    .params = params,
    .params_size = sizeof(Params),
    .check = bigbird_check,
    .run = bigbird_run,
    .flops = bigbird_flops,
    .decode = bigbird_decode,
};
