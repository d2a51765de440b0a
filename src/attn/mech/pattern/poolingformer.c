/* poolingformer.c -- Poolingformer: a sliding window, then a wider pooled level.
 *
 * Level 1:  y_i = window attention, |i - j| <= floor(window / 2).
 * Level 2:  cell s holds the tokens s xi .. s xi + kappa - 1 (kappa = kernel, xi = stride)
 *           and is one key K_s and one value V_s, pooled from them;
 *
 *     z_i = softmax over cells that overlap i +- floor(window2 / 2) of q2_i . K_s / sqrt(d),
 *           times V_s
 *     output = y + z
 *
 * q2, k2, v2 are q, k, v (parallel), or projections of y (sequential, the paper's).
 * Causal: only cells whose last token is not after i; this rule is ours.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { POOLING_MEAN, POOLING_MAX, POOLING_LDCONV };
enum { LEVEL2_PARALLEL, LEVEL2_SEQUENTIAL };

typedef struct Params {
    int64_t window, window2, kernel, stride;
    int     pooling, level2;
    Tensor  w_pool_k, w_pool_v, w_q2, w_k2, w_v2;
    double  scale, softcap;
} Params;

static const char *const poolings[] = { "mean", "max", "ldconv", NULL };
static const char *const levels[] = { "parallel", "sequential", NULL };

static const Param params[] = {
    PARAM_INT(Params, window, 7, 0, PARAM_COUNT_MAX, "total width of level 1"),
    PARAM_INT(Params, window2, 31, 0, PARAM_COUNT_MAX, "total width of level 2, in tokens"),
    PARAM_INT(Params, kernel, 5, 1, PARAM_COUNT_MAX, "tokens pooled into one cell"),
    PARAM_INT(Params, stride, 4, 1, PARAM_COUNT_MAX, "tokens from one cell to the next"),
    PARAM_ENUM(Params, pooling, POOLING_MEAN, poolings,
               "how a cell is made: average, largest, or weights from its centre token"),
    PARAM_ENUM(Params, level2, LEVEL2_PARALLEL, levels,
               "level 2 reads q, k, v, or projections of level 1's output"),
    PARAM_TENSOR(Params, w_pool_k, "[h,d,kernel]", "uniform +-sqrt(6/(d+kernel))",
                 "pooling weights of keys from the centre key (ldconv)"),
    PARAM_TENSOR(Params, w_pool_v, "[h,e,kernel]", "uniform +-sqrt(6/(e+kernel))",
                 "pooling weights of values from the centre value (ldconv)"),
    PARAM_TENSOR(Params, w_q2, "[h e,h d]", "uniform +-sqrt(6/(h e+h d))",
                 "queries of level 2 from level 1 (sequential)"),
    PARAM_TENSOR(Params, w_k2, "[h e,h d]", "uniform +-sqrt(6/(h e+h d))",
                 "keys of level 2 from level 1 (sequential)"),
    PARAM_TENSOR(Params, w_v2, "[h e,h e]", "uniform +-sqrt(6/(h e+h e))",
                 "values of level 2 from level 1 (sequential)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static Slots pooling_slots_of(const Run *r, const Params *p);
static int64_t pooling_within(const Run *r, int64_t count);
static KeyPart attend(Run *r, const AttendInput *in, const Pattern *cells, Tensor *out);
static Pattern *first_cells(Run *r, const Params *p);
static PatternShape pooling_shape_of(const Run *r, int64_t keys);
static AttendInput second_input(Run *r, const Params *p, AttendInput in, Tensor y);
static Tensor pooling_projected(Run *r, Tensor y, Tensor w, int64_t width);
static Tensor pooling_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols);
static AttendInput pool(Run *r, const Params *p, const Slots *s, AttendInput in, Tensor *share);
static Tensor pooling_shares(Run *r, const Params *p, const Slots *s, Tensor x, const char *name,
                             Tensor given);
static Tensor equal_shares(Run *r, const Slots *s);
static Tensor ldconv_shares(Run *r, const Params *p, const Slots *s, Tensor x, Tensor w);
static Tensor middles(Run *r, const Params *p, const Slots *s);
static void cut_ranges(Run *r, const Slots *s, Tensor t, double value);
static double pooling_flops(const Run *r, const Params *p);
static Pattern *pooled_cells(Run *r, const Params *p);
static void pooling_show(Run *r, const Params *p, const SlotAttention *a, Pattern *pooled);

static void poolingformer_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    AttendInput    in = run_attend_input(r, p->scale);
    SlotAttention *a = run_alloc(r, 1, sizeof(*a)); /* views read it later */
    Pattern       *pooled;
    Tensor         y, z;

    if (!a)
        return;
    *a = (SlotAttention){ .slots = pooling_slots_of(r, p), .heads = r->h };
    run_stage(r, "window");
    a->on_tokens = attend(r, &in, first_cells(r, p), &y);
    in = second_input(r, p, in, y);
    in = pool(r, p, &a->slots, in, &a->share);
    run_stage(r, "pooled");
    pooled = pooled_cells(r, p);
    a->on_slots = attend(r, &in, pooled, &z);
    run_last_row(r, pooled);
    r->last.rule = NULL; /* keys are cells of tokens */
    run_stage(r, "add");
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    op_entries_of(r, y, z, ENTRY_SUM, 1, r->out);
    pooling_show(r, p, a, pooled);
    view_tensor(r, "output_first", VIEW_VECTORS, y, "query", "value");
    view_tensor(r, "output_second", VIEW_VECTORS, z, "query", "value");
}

static Slots pooling_slots_of(const Run *r, const Params *p)
{
    return (Slots){ .n = r->n, .ranges = (r->n - 1) / p->stride + 1, .per = 1,
                    .stride = p->stride, .size = pooling_within(r, p->kernel) };
}

static int64_t pooling_within(const Run *r, int64_t count)
{
    return count < r->n ? count : r->n;
}

static KeyPart attend(Run *r, const AttendInput *in, const Pattern *cells, Tensor *out)
{
    AttendResult result = op_attend(r, in, cells);

    *out = result.out;
    return (KeyPart){ .in = *in, .lse = result.lse, .seen = cells,
                      .sums = row_sums_of(r, r->h, 1, cells) };
}

static Pattern *first_cells(Run *r, const Params *p)
{
    PatternShape s = pooling_shape_of(r, r->n);
    int64_t      reach = p->window / 2;

    return pattern_finish(r->arena, s,
                          pattern_band(r->arena, s, -reach, reach, 1, COMPONENT_WINDOW), r->causal);
}

static PatternShape pooling_shape_of(const Run *r, int64_t keys)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = keys };
}

static AttendInput second_input(Run *r, const Params *p, AttendInput in, Tensor y)
{
    int64_t qk = r->h * r->d, v = r->h * r->e;

    if (p->level2 == LEVEL2_PARALLEL)
        return in;
    run_stage(r, "project");
    in.q = pooling_projected(r, y, pooling_matrix(r, "w_q2", p->w_q2, v, qk), r->d);
    in.k = pooling_projected(r, y, pooling_matrix(r, "w_k2", p->w_k2, v, qk), r->d);
    in.v = pooling_projected(r, y, pooling_matrix(r, "w_v2", p->w_v2, v, v), r->e);
    return in;
}

/* [heads of y beside each other] w, cut into h heads [h,n,width] again.  A projection
 * of the layer, like those that made q, k and v: not counted. */
static Tensor pooling_projected(Run *r, Tensor y, Tensor w, int64_t width)
{
    int64_t all = r->h * width;
    Tensor  out = run_tensor3(r, DT_F32, 1, r->n, all);

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        Tensor head = tensor_of(DT_F32, 3, (int64_t[]){ 1, r->n, r->e },
                                tensor_f32(&y) + t * r->n * r->e);
        Tensor rows = tensor_of(DT_F32, 3, (int64_t[]){ 1, r->e, all },
                                tensor_f32(&w) + t * r->e * all);

        op_gemm(r, head, false, rows, false, 1, t > 0, out, FLOP_APART);
    }
    out.shape[0] = r->h;
    out.shape[2] = out.stride[0] = width;
    return out;
}

/* A matrix [rows,cols] without a head axis, seen as [1,rows,cols]. */
static Tensor pooling_matrix(Run *r, const char *name, Tensor given, int64_t rows, int64_t cols)
{
    int64_t shape[3] = { 1, rows, cols };
    Init    init = { INIT_GLOROT, (double)rows + (double)cols };

    if (given.data)
        return run_param_given(r, name, given, DT_F32, 3, shape);
    return tensor_with_rank(run_param(r, name, given, DT_F32, 2, shape + 1, init), 3);
}

/* ---- pooling ----------------------------------------------------------------- */

/* *share: the shares of the pooled values, for the views. */
static AttendInput pool(Run *r, const Params *p, const Slots *s, AttendInput in, Tensor *share)
{
    run_stage(r, "pool");
    in.k = slots_pool(r, s, in.k, pooling_shares(r, p, s, in.k, "w_pool_k", p->w_pool_k));
    *share = pooling_shares(r, p, s, in.v, "w_pool_v", p->w_pool_v);
    in.v = slots_pool(r, s, in.v, *share);
    op_charge(r, FLOP_OVERHEAD, pooling_flops(r, p));
    return in;
}

static Tensor pooling_shares(Run *r, const Params *p, const Slots *s, Tensor x, const char *name,
                             Tensor given)
{
    int64_t shape[3] = { r->h, x.shape[2], p->kernel };
    Init    init = { INIT_GLOROT, (double)x.shape[2] + (double)p->kernel };

    if (p->pooling == POOLING_MAX)
        return (Tensor){ 0 };
    if (p->pooling == POOLING_MEAN)
        return equal_shares(r, s);
    return ldconv_shares(r, p, s, x, run_param(r, name, given, DT_F32, 3, shape, init));
}

static Tensor equal_shares(Run *r, const Slots *s)
{
    Tensor share = run_tensor3(r, DT_F32, 1, s->ranges, s->size);

    for (int64_t c = 0, next; c < s->ranges && !run_failed(r); c = next) {
        int64_t length = slots_end(s, c) - slots_start(s, c);

        for (next = c + 1; next < s->ranges && slots_end(s, next) - slots_start(s, next) == length;
             next++)
            ;
        op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 1 / (double)length,
                   tensor_rows(share, c, next - c));
    }
    return share;
}

/* Each cell's weights come from the token in its middle. */
static Tensor ldconv_shares(Run *r, const Params *p, const Slots *s, Tensor x, Tensor w)
{
    Tensor    share = run_tensor3(r, DT_F32, r->h, s->ranges, s->size), logits;
    ArenaMark mark = arena_mark(r->arena);

    logits = run_tensor3(r, DT_F64, r->h, s->ranges, s->size);
    if (run_failed(r))
        return share;
    op_gemm(r, op_gather(r, x, middles(r, p, s)), false, tensor_columns(w, 0, s->size), false, 1, 0,
            logits, FLOP_APART);
    cut_ranges(r, s, logits, -(double)INFINITY);
    op_softmax_rows(r, &(SoftmaxRows){ .x = logits });
    op_entries(r, logits, ENTRY_CAST, 0, share);
    arena_release(r->arena, mark);
    return share;
}

/* i32 [1,ranges]: the token in the middle of each cell, or its last one. */
static Tensor middles(Run *r, const Params *p, const Slots *s)
{
    Tensor index = run_tensor2(r, DT_I32, 1, s->ranges);

    for (int64_t c = 0; c < s->ranges && !run_failed(r); c++) {
        int64_t middle = slots_start(s, c) + p->kernel / 2, last = slots_end(s, c) - 1;

        tensor_i32(&index)[c] = (int32_t)(middle < last ? middle : last);
    }
    return index;
}

/* Sets the entries past the end of a short range, which are no tokens, to value. */
static void cut_ranges(Run *r, const Slots *s, Tensor t, double value)
{
    for (int64_t c = 0; c < s->ranges && !run_failed(r); c++) {
        int64_t length = slots_end(s, c) - slots_start(s, c);

        if (length < s->size)
            op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, value,
                       tensor_columns(tensor_rows(t, c, 1), length, s->size - length));
    }
}

static double pooling_flops(const Run *r, const Params *p)
{
    Slots  s = pooling_slots_of(r, p);
    double cells = (double)r->h * (double)(r->d + r->e) * (double)slots_tokens(&s);

    return p->pooling == POOLING_LDCONV ? 2 * cells : cells;
}

static Pattern *pooled_cells(Run *r, const Params *p)
{
    Slots s = pooling_slots_of(r, p);

    return slots_near(r->arena, pooling_shape_of(r, s.ranges), &s, p->window2 / 2, r->causal);
}

static void pooling_show(Run *r, const Params *p, const SlotAttention *a, Pattern *pooled)
{
    Arena       *arena = r->arena;
    PatternShape s = pooling_shape_of(r, r->n);
    Pattern     *all;

    if (!run_wants_views(r))
        return;
    all = slots_behind(arena, s, &a->slots, pooled, COMPONENT_OTHER);
    all = pattern_finish(arena, s, pattern_union(arena, first_cells(r, p), all), false);
    if (!all)
        run_fail(r, ERR_NOMEM, "poolingformer: not enough memory for a view");
    view_pattern(r, all, true);
    if (p->pooling != POOLING_MAX && p->level2 == LEVEL2_PARALLEL)
        view_slot_weights(r, a, all);
    view_meaning(r, all, NULL, "pooled cell");
    view_part(r, &a->on_tokens, "connectivity_first", "weights_first", "key");
    view_part(r, &a->on_slots, "connectivity_pooled", "weights_pooled", "cell");
    view_meaning(r, pooled, NULL, "pooled cell");
    if (p->pooling != POOLING_MAX)
        view_shares(r, a, "pool", 3, "cell");
}

static Flops poolingformer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Pattern      *first = first_cells(r, p), *pooled = pooled_cells(r, p);
    Flops         sum = { 0 };

    if (first && pooled)
        sum = run_pattern_flops(r, (double)(pattern_count(first) + pattern_count(pooled)));
    sum.overhead += pooling_flops(r, p);
    return sum;
}

/* Cells from the first that a later query sees to the last that has begun; those that are not over
 * are running sums. */
static double cells_held(const Run *r, const Params *p)
{
    int64_t begun = (r->n - 1) / p->stride, oldest = r->n - p->window2 / 2 - p->kernel;

    return (double)(begun - (oldest > 0 ? (oldest + p->stride - 1) / p->stride : 0) + 1);
}

/* Cells that the last token is in. */
static double cells_of_last(const Run *r, const Params *p)
{
    int64_t begun = (r->n - 1) / p->stride, first = r->n - p->kernel;

    return (double)(begun - (first > 0 ? (first + p->stride - 1) / p->stride : 0) + 1);
}

/* Level 2 is of every head where it reads level 1, and where a cell's weights are its head's own;
 * weights from the token in the middle also need the tokens of a cell. */
static DecodeCost poolingformer_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          weighed = p->pooling == POOLING_LDCONV, deep = p->level2 == LEVEL2_SEQUENTIAL;
    double        b = (double)r->cache_bytes, token = b * decode_token(r), h = (double)r->h;
    double        own = b * h * (double)(r->d + r->e), slot = weighed || deep ? own : token;
    double        window = (double)pooling_within(r, p->window / 2 + 1), seen = r->last.cells / h;
    double        cell = 2 * (double)(r->d + r->e) + decode_cell(r);
    double        kernel = weighed ? (double)pooling_within(r, p->kernel) : 0, tokens;

    tokens = deep ? token * window + own * kernel : token * fmax(window, kernel);
    return (DecodeCost){ .state_bytes = tokens + slot * cells_held(r, p),
                         .step_bytes = token * window + slot * seen,
                         .decode_flops = cell * h * (window + seen) +
                                         (weighed ? 2 : 1) * h * (double)(r->d + r->e) *
                                             cells_of_last(r, p) };
}

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "both levels on tokens, added: a row sums to 2 (not with "
         "pooling=max or level2=sequential)", .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "window, and tokens of visible cells"),
    VIEW("components", VIEW_COMPONENTS, "which level reaches a token"),
    VIEW("weights_first", VIEW_WEIGHTS, "level 1 on tokens"),
    VIEW("weights_pooled", VIEW_WEIGHTS, "level 2 on pooled cells"),
    VIEW("connectivity_first", VIEW_PATTERN, "the window"),
    VIEW("connectivity_pooled", VIEW_PATTERN, "cells that a token sees"),
    VIEW("pool", VIEW_WEIGHTS, "tokens in each cell's value (not with pooling=max)", .maybe = true),
    VIEW("output_first", VIEW_VECTORS, "what level 1 gives"),
    VIEW("output_second", VIEW_VECTORS, "what level 2 adds"),
    VIEW_PROMISE_END
};

const Mechanism mech_poolingformer = {
    .id = "poolingformer",
    .title = "Poolingformer",
    .authors = "Zhang et al.",
    .year = 2021,
    .arxiv = "2105.04371",
    .source = "abstract and secondary descriptions; survey of Tay et al., table 1 (no official "
              "code was found)",
    .formula = "y = softmax over the window of Q K^T / sqrt(d), times V\n"
               "z = softmax over near cells of Q pool(K)^T / sqrt(d), times pool(V)\n"
               "output = y + z",
    .problem = "A wide window is too expensive, and a narrow one sees too little.",
    .idea = "A first level looks at near keys one by one, a second at a wider range of pooled "
            "keys.",
    .price = "Far keys are seen only as averages of several tokens.  The two outputs are added, so "
             "a row of weights sums to 2, and one weight may be above 1.",
    .row_sum = "two softmaxes are added",
    .lesson = "patterns",
    .teaches = "A sharp band inside wide blurred steps: the second level sees far for little, "
               "because one key stands for many tokens.  In the paper the second level reads the "
               "output of the first (level2=sequential).  The default reads q, k, v, so that the "
               "weights stay exact (ours).",
    .picture = "weights",
    .classes = CLASS_FP | CLASS_M,
    .claim_time = "O(n)",
    .claim_memory = "O(n)",
    .claim_decode = "yes, cut to the past (ours)",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "its second level reads what the first made of every position",
    .positions = POSITION_INPUT,
    .views = views,
    .size = "window",
    .params = params,
    .params_size = sizeof(Params),
    .run = poolingformer_run,
    .flops = poolingformer_flops,
    .decode = poolingformer_decode,
};
