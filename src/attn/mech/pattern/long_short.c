/* long_short.c -- Transformer-LS: window attention and a dynamic projection, one softmax.
 *
 * Each of r slots is a mixture of tokens, whose weights are computed from the tokens:
 *
 *     logits = K w_p + b_p  (or X w_p + b_p, or given),   P[s,:] = softmax over tokens
 *     K' = P K,  V' = P V
 *     output_i = softmax over [slots, window(i)] of q_i . [K', K] / sqrt(d), times [V', V]
 *
 * The window is of segments: i sees its own segment and half a segment to each side.
 * Causal: every chunk of tokens has r slots of its own, i sees those of the chunks
 * before its own, and the window is the last `segment` tokens.
 *
 * dual_ln normalises the tokens' keys and values (over all heads of a token) with one
 * gain and bias and the slots' with another, because mixtures have smaller norms than tokens.
 */
#include "attn/mech/pattern/keys.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

#define LN_EPS 1e-5

enum { ORDER_AFTER, ORDER_BEFORE };

typedef struct Params {
    int64_t segment, rank, chunk;
    bool    short_, dual_ln;
    int     ln_order;
    Tensor  p_logits, w_p, b_p;
    Tensor  ln_window_gain, ln_window_bias, ln_compressed_gain, ln_compressed_bias;
    double  scale, softcap;
} Params;

static const char *const orders[] = { "after", "before", NULL };

static const Param params[] = {
    PARAM_INT(Params, segment, 8, 1, PARAM_COUNT_MAX,
              "tokens of a segment (the paper's w); causal: last tokens that are seen"),
    PARAM_INT(Params, rank, 4, 1, PARAM_COUNT_MAX, "slots; causal: slots of each chunk"),
    PARAM_INT(Params, chunk, 16, 1, PARAM_COUNT_MAX, "tokens of a chunk (causal only)"),
    { .name = "short", .type = PARAM_TYPE_BOOL, .offset = offsetof(Params, short_), .fallback = 1,
      .hi = 1, .help = "include the window; false: slots alone" },
    PARAM_TENSOR(Params, p_logits, "[h,n,r]", "K w_p + b_p", "ready logits of the projection"),
    PARAM_TENSOR(Params, w_p, "[h,d,r], or [h,dm,r] for the layer input",
                 "uniform +-1/sqrt(rows)", "what makes logits of a key, or of the layer input"),
    PARAM_TENSOR(Params, b_p, "[h,r]", "uniform +-1/sqrt(rows of w_p)",
                 "added to the logits (one number a slot: the softmax cancels it)"),
    PARAM_BOOL(Params, dual_ln, false, "normalise window and slots, each in its own way"),
    PARAM_ENUM(Params, ln_order, ORDER_AFTER, orders,
               "slots are mixed from raw tokens (after), or from normalised ones (before)"),
    PARAM_TENSOR(Params, ln_window_gain, "[h d]", "ones", "gain of the window's norm (dual_ln)"),
    PARAM_TENSOR(Params, ln_window_bias, "[h d]", "zeros", "bias of the window's norm (dual_ln)"),
    PARAM_TENSOR(Params, ln_compressed_gain, "[h d]", "ones", "gain of the slots' norm (dual_ln)"),
    PARAM_TENSOR(Params, ln_compressed_bias, "[h d]", "zeros", "bias of the slots' norm (dual_ln)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

static Tensor logits_of(Run *r, const Params *p);
static int64_t rank_of(const Params *p);
static int64_t last_extent(const Tensor *t);
static bool reads_x(const Run *r, const Params *p);
static void long_short_add_bias(Run *r, Tensor logits, Tensor bias);
static Slots long_short_slots_of(const Run *r, const Params *p);
static Tensor projection(Run *r, const Slots *s, Tensor logits);
static void take_shares(Run *r, const Slots *s, Tensor logits, Tensor share);
static void fill_shares(Run *r, const Slots *s, Tensor logits, Tensor share, int64_t first,
                        int64_t count, int64_t length);
static AttendInput compress(Run *r, const Params *p, const Slots *s, AttendInput in, Tensor share);
static Tensor with_tokens(Run *r, int64_t slots, Tensor x);
static void normalise_tokens(Run *r, const Params *p, const AttendInput *in, int64_t slots);
static void long_short_normalise(Run *r, const AttendInput *in, int64_t first, int64_t count,
                                 Tensor gain, Tensor bias);
static void normalise_rows(Run *r, Tensor x, int64_t first, int64_t count, Tensor gain,
                           Tensor bias);
static Tensor norm_param(Run *r, const char *name, Tensor given);
static Tensor long_short_rows_from(Tensor y, int64_t first);
static void long_short_mix(Run *r, const Slots *s, Tensor share, Tensor x, Tensor y);
static Tensor slot_rows(const Slots *s, Tensor y);
static void mix_ranges(Run *r, const Slots *s, Tensor share, Tensor x, Tensor y, int64_t first,
                       int64_t count, int64_t length);
static void normalise_slots(Run *r, const Params *p, const AttendInput *in, int64_t slots);
static Pattern *window_cells(Run *r, const Params *p);
static PatternShape long_short_shape_of(const Run *r, int64_t keys);
static Pattern *long_short_slot_cells(Run *r, const Slots *s);
static Pattern *all_cells(Run *r, const Slots *s, Pattern *window, Pattern *slots);
static void long_short_show(Run *r, const Params *p, const SlotAttention *a, Pattern *window,
                            Pattern *slots);
static bool given_norms(const Params *p);

static void long_short_run(Run *r, const void *opaque)
{
    const Params  *p = opaque;
    AttendInput    in = run_attend_input(r, p->scale);
    SlotAttention *a = run_alloc(r, 1, sizeof(*a)); /* views read it later */
    Pattern       *window, *slots, *all;
    AttendResult   result;
    RowSums        sums;
    Tensor         logits;

    if (!a)
        return;
    *a = (SlotAttention){ .heads = r->h };
    run_stage(r, "project");
    logits = logits_of(r, p);
    if (run_failed(r))
        return; /* the rank may be too large to count slots */
    a->slots = long_short_slots_of(r, p);
    a->share = projection(r, &a->slots, logits);
    run_stage(r, "compress");
    in = compress(r, p, &a->slots, in, a->share);
    window = window_cells(r, p);
    slots = long_short_slot_cells(r, &a->slots);
    run_stage(r, "attend");
    all = all_cells(r, &a->slots, window, slots);
    result = op_attend(r, &in, all);
    r->out = result.out;
    run_last_row(r, all);
    r->last.rule = NULL; /* keys are slots and tokens */
    sums = row_sums_of(r, r->h, 1, all);
    a->on_slots = (KeyPart){ .in = in, .lse = result.lse, .seen = slots, .sums = sums };
    a->on_tokens = (KeyPart){ .in = in, .lse = result.lse, .seen = window, .sums = sums,
                              .first = slots_count(&a->slots) };
    long_short_show(r, p, a, window, slots);
}

/* Logits [h,n,r] of x, or of the keys before a position is applied. */
static Tensor logits_of(Run *r, const Params *p)
{
    int64_t rank = rank_of(p), all[3] = { r->h, r->n, rank };
    bool    from_x = reads_x(r, p);
    Tensor  source = from_x ? tensor_with_rank(r->x, 3) : r->k, logits, w, b;
    int64_t rows = source.shape[2], shape[3] = { r->h, rows, rank }, line[2] = { r->h, rank };
    Init    init = { INIT_UNIFORM, 1 / sqrt((double)rows) };

    if (p->p_logits.data)
        return run_param_given(r, "p_logits", p->p_logits, DT_F32, 3, all);
    w = run_param(r, "w_p", p->w_p, DT_F32, 3, shape, init);
    b = run_param(r, "b_p", p->b_p, DT_F32, 2, line, init);
    logits = run_tensor3(r, DT_F32, r->h, r->n, rank);
    op_gemm(r, source, false, w, false, 1, 0, logits, FLOP_OVERHEAD);
    long_short_add_bias(r, logits, b);
    return logits;
}

/* r: the extent of a given tensor, else the parameter `rank`. */
static int64_t rank_of(const Params *p)
{
    if (p->p_logits.data)
        return last_extent(&p->p_logits);
    if (p->w_p.data)
        return last_extent(&p->w_p);
    return p->b_p.data ? last_extent(&p->b_p) : p->rank;
}

static int64_t last_extent(const Tensor *t)
{
    return t->shape[t->rank > 0 ? t->rank - 1 : 0];
}

/* Whether logits come from the layer input: when the input has one, unless w_p is
 * made for keys. */
static bool reads_x(const Run *r, const Params *p)
{
    int64_t rows = p->w_p.data && p->w_p.rank >= 2 ? p->w_p.shape[p->w_p.rank - 2] : r->dm;

    return r->x.data && r->x.shape[0] == r->n && rows == r->dm;
}

static void long_short_add_bias(Run *r, Tensor logits, Tensor bias)
{
    bias.rank = 3; /* [h',1,r] */
    bias.shape[2] = bias.shape[1];
    bias.stride[2] = 1;
    bias.shape[1] = 1;
    op_entries_of(r, logits, bias, ENTRY_SUM, 1, logits);
}

static Slots long_short_slots_of(const Run *r, const Params *p)
{
    int64_t whole = r->causal ? p->chunk : r->n, size = whole < r->n ? whole : r->n;

    return (Slots){ .n = r->n, .ranges = (r->n - 1) / whole + 1, .per = rank_of(p),
                    .stride = whole, .size = size };
}

/* P as [h,slots,size]: the shares of each slot over the tokens of its range. */
static Tensor projection(Run *r, const Slots *s, Tensor logits)
{
    int64_t count = slots_count(s);
    Tensor  share = run_tensor3(r, DT_F32, r->h, count, s->size);
    double  tokens = (double)(r->h * r->n) * (double)s->per;

    take_shares(r, s, logits, share);
    op_softmax(r, share);
    /* Entries past the end of a short range are no tokens, so they are not charged. */
    op_charge(r, FLOP_OVERHEAD,
              FLOPS_SOFTMAX * tokens - FLOPS_ROW_SOFTMAX * (double)tensor_count(&share));
    return share;
}

/* The logits of each slot over the tokens of its range; absent past the end of a short range. */
static void take_shares(Run *r, const Slots *s, Tensor logits, Tensor share)
{
    int64_t whole = r->n / s->size, left = r->n - whole * s->size;

    if (left)
        op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, -(double)INFINITY,
                   tensor_rows(share, whole * s->per, share.shape[1] - whole * s->per));
    fill_shares(r, s, logits, share, 0, whole, s->size);
    fill_shares(r, s, logits, share, whole, left > 0, left);
}

/* For `count` ranges of `length` tokens from range `first` on: share[slot,t] = the slot's logit of
 * token t of its range. */
static void fill_shares(Run *r, const Slots *s, Tensor logits, Tensor share, int64_t first,
                        int64_t count, int64_t length)
{
    for (int64_t head = 0; head < r->h && !run_failed(r) && count > 0; head++) {
        const float *from = tensor_head(&logits, head, r->h);
        float       *to = tensor_head(&share, head, r->h);
        Tensor       x = tensor_of(DT_F32, 3, (int64_t[]){ count, s->per, length },
                                   (float *)(uintptr_t)from + first * s->stride * s->per);
        Tensor       y = tensor_of(DT_F32, 3, x.shape, to + first * s->per * s->size);

        x.stride[0] = s->stride * s->per;
        x.stride[1] = 1;
        x.stride[2] = s->per;
        y.stride[0] = s->per * s->size;
        y.stride[1] = s->size;
        op_entries(r, x, ENTRY_CAST, 0, y);
    }
}

static AttendInput compress(Run *r, const Params *p, const Slots *s, AttendInput in, Tensor share)
{
    int64_t count = slots_count(s);
    Tensor  k = in.k, v = in.v;

    in.k = with_tokens(r, count, k);
    in.v = with_tokens(r, count, v);
    if (p->ln_order == ORDER_BEFORE) {
        normalise_tokens(r, p, &in, count);
        k = long_short_rows_from(in.k, count);
        v = long_short_rows_from(in.v, count);
    }
    long_short_mix(r, s, share, k, in.k);
    long_short_mix(r, s, share, v, in.v);
    if (p->ln_order == ORDER_AFTER)
        normalise_tokens(r, p, &in, count);
    normalise_slots(r, p, &in, count);
    return in;
}

/* [h,slots+n,w] with x in the rows of the tokens; rows of the slots are not set. */
static Tensor with_tokens(Run *r, int64_t slots, Tensor x)
{
    Tensor y = run_tensor3(r, DT_F32, r->h, slots + r->n, x.shape[2]);

    if (!run_failed(r))
        op_entries(r, x, ENTRY_CAST, 0, tensor_rows(y, slots, r->n));
    return y;
}

static void normalise_tokens(Run *r, const Params *p, const AttendInput *in, int64_t slots)
{
    if (p->dual_ln)
        long_short_normalise(r, in, slots, r->n, norm_param(r, "ln_window_gain", p->ln_window_gain),
                             norm_param(r, "ln_window_bias", p->ln_window_bias));
}

/* Normalises rows of keys and values with one gain and bias [h,d].  Charges no FLOPs, as in the
 * specification's count. */
static void long_short_normalise(Run *r, const AttendInput *in, int64_t first, int64_t count,
                                 Tensor gain, Tensor bias)
{
    normalise_rows(r, in->k, first, count, gain, bias);
    normalise_rows(r, in->v, first, count, gain, bias);
}

/* Rows [first, first+count) of all heads beside each other, in place. */
static void normalise_rows(Run *r, Tensor x, int64_t first, int64_t count, Tensor gain, Tensor bias)
{
    Tensor rows = x;

    if (run_failed(r))
        return;
    rows.shape[0] = count;
    rows.shape[1] = x.shape[0];
    rows.stride[0] = x.stride[1];
    rows.stride[1] = x.stride[0];
    rows.data = tensor_f32(&x) + first * x.stride[1];
    op_standardise64(r, rows, LN_EPS, gain, bias, rows);
}

static Tensor norm_param(Run *r, const char *name, Tensor given)
{
    int64_t shape[2] = { 1, r->h * r->d };
    Tensor  t = { .rank = 0 };

    if (given.data)
        t = run_param_given(r, name, given, DT_F32, 2, shape);
    return t.data ? tensor_of(DT_F32, 2, (int64_t[]){ r->h, r->d }, t.data) : t;
}

static Tensor long_short_rows_from(Tensor y, int64_t first)
{
    y.data = tensor_f32(&y) + first * y.stride[1];
    y.shape[1] -= first;
    return y;
}

/* P x into the first rows of y [h,slots+n,w]; the last range may be short. */
static void long_short_mix(Run *r, const Slots *s, Tensor share, Tensor x, Tensor y)
{
    int64_t whole = r->n / s->size, left = r->n - whole * s->size;

    if (s->ranges == 1)
        op_gemm(r, share, false, x, false, 1, 0, slot_rows(s, y), FLOP_OVERHEAD);
    for (int64_t t = 0; t < r->h && s->ranges > 1 && !run_failed(r); t++) {
        Tensor p = share, from = x, to = y;

        p.data = tensor_head(&share, t, r->h);
        from.data = tensor_head(&x, t, r->h);
        to.data = tensor_head(&y, t, r->h);
        mix_ranges(r, s, p, from, to, 0, whole, s->size);
        if (left)
            mix_ranges(r, s, p, from, to, whole, 1, left);
    }
}

/* Rows of the slots in y [h,slots+n,w]. */
static Tensor slot_rows(const Slots *s, Tensor y)
{
    y.shape[1] = slots_count(s);
    return y;
}

/* For one head: shares of `count` ranges of `length` tokens from range `first` on, as a
 * batch [count,per,length]; their tokens [count,length,w]; and their slots. */
static void mix_ranges(Run *r, const Slots *s, Tensor share, Tensor x, Tensor y, int64_t first,
                       int64_t count, int64_t length)
{
    int64_t w = x.shape[2], slot = first * s->per;
    Tensor  a = tensor_of(DT_F32, 3, (int64_t[]){ count, s->per, length },
                          tensor_f32(&share) + slot * s->size);
    Tensor  b = tensor_of(DT_F32, 3, (int64_t[]){ count, length, w },
                          tensor_f32(&x) + first * s->stride * x.stride[1]);
    Tensor  c = tensor_of(DT_F32, 3, (int64_t[]){ count, s->per, w }, tensor_f32(&y) + slot * w);

    a.stride[0] = s->per * s->size;
    a.stride[1] = s->size;
    b.stride[0] = s->stride * x.stride[1];
    b.stride[1] = x.stride[1];
    op_gemm(r, a, false, b, false, 1, 0, c, FLOP_OVERHEAD);
}

static void normalise_slots(Run *r, const Params *p, const AttendInput *in, int64_t slots)
{
    if (p->dual_ln)
        long_short_normalise(r, in, 0, slots, norm_param(r, "ln_compressed_gain",
                                                         p->ln_compressed_gain),
                             norm_param(r, "ln_compressed_bias", p->ln_compressed_bias));
}

/* ---- cells ------------------------------------------------------------------- */

static Pattern *window_cells(Run *r, const Params *p)
{
    Arena       *a = r->arena;
    PatternShape s = long_short_shape_of(r, r->n);
    int64_t      side = p->segment > 1 ? p->segment / 2 : 1;

    if (!p->short_)
        return pattern_none(a, s);
    if (r->causal)
        return pattern_band(a, s, 1 - p->segment, 0, 1, COMPONENT_WINDOW);
    return pattern_marked(a, pattern_local(a, s, p->segment, side, side), COMPONENT_WINDOW);
}

static PatternShape long_short_shape_of(const Run *r, int64_t keys)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = keys };
}

static Pattern *long_short_slot_cells(Run *r, const Slots *s)
{
    PatternShape shape = long_short_shape_of(r, slots_count(s));

    return r->causal ? slots_before(r->arena, shape, s)
                     : pattern_full(r->arena, shape, COMPONENT_OTHER);
}

/* Keys are [slots, tokens]. */
static Pattern *all_cells(Run *r, const Slots *s, Pattern *window, Pattern *slots)
{
    int64_t      count = slots_count(s);
    PatternShape shape = long_short_shape_of(r, count + r->n);

    return pattern_union(r->arena, pattern_offset(r->arena, shape, 0, 0, slots),
                         pattern_offset(r->arena, shape, 0, count, window));
}

static void long_short_show(Run *r, const Params *p, const SlotAttention *a, Pattern *window,
                            Pattern *slots)
{
    PatternShape s = long_short_shape_of(r, r->n);
    Pattern     *all;

    if (!run_wants_views(r))
        return;
    all = slots_behind(r->arena, s, &a->slots, slots, COMPONENT_OTHER);
    all = pattern_finish(r->arena, s, pattern_union(r->arena, window, all), false);
    if (!all)
        run_fail(r, ERR_NOMEM, "long-short: not enough memory for a view");
    view_pattern(r, all, true);
    if (!p->dual_ln)
        view_slot_weights(r, a, all);
    view_meaning(r, all, NULL, "compressed");
    view_part(r, &a->on_tokens, "connectivity_window", "weights_window", "key");
    view_part(r, &a->on_slots, "connectivity_compressed", "weights_compressed", "slot");
    view_meaning(r, slots, NULL, "compressed");
    view_shares(r, a, "projection", 3, "slot");
}

static void long_short_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->p_logits.data && (p->w_p.data || p->b_p.data))
        run_fail(r, ERR_PARAM,
                 "long-short: give p_logits, or w_p and b_p that make them, not both");
    if (rank_of(p) < 1)
        run_fail(r, ERR_PARAM, "long-short: the projection has no slots (rank 0)");
    if (p->dual_ln && r->e != r->d)
        run_fail(r, ERR_PARAM, "long-short: dual_ln normalises keys and values alike and needs "
                 "values of the keys' size; they have %lld and %lld", (long long)r->e,
                 (long long)r->d);
    if (!p->dual_ln && given_norms(p))
        run_warn(r, "long-short: ln_ tensors are used with dual_ln=true only");
}

static bool given_norms(const Params *p)
{
    return p->ln_window_gain.data || p->ln_window_bias.data || p->ln_compressed_gain.data ||
           p->ln_compressed_bias.data;
}

static Flops long_short_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Slots         s = long_short_slots_of(r, p);
    Pattern      *window = window_cells(r, p), *slots = long_short_slot_cells(r, &s);
    double        mixed = (double)(r->h * r->n) * (double)s.per;
    double        rows = (double)(reads_x(r, p) ? r->dm : r->d);
    Flops         sum = { 0 };

    if (window && slots)
        sum = run_pattern_flops(r, (double)(pattern_count(window) + pattern_count(slots)));
    sum.overhead += mixed * (2 * (double)(r->d + r->e) + FLOPS_SOFTMAX);
    if (!p->p_logits.data)
        sum.overhead += 2 * mixed * rows;
    return sum;
}

/* The window's tokens are held and, for every head, the slots, the last of them as running sums of
 * the chunk that is not over. */
static DecodeCost long_short_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    Slots         s = long_short_slots_of(r, p);
    double        h = (double)r->h, b = (double)r->cache_bytes, sizes = (double)(r->d + r->e);
    double        window = p->short_ ? (double)(p->segment < r->n ? p->segment : r->n) : 0;
    double        slot = b * h * sizes, seen = r->last.cells / h - window;
    double        made = h * (double)s.per * (2 * sizes + FLOPS_SOFTMAX);

    if (!p->p_logits.data)
        made += 2 * h * (double)s.per * (double)(reads_x(r, p) ? r->dm : r->d);
    return (DecodeCost){
        .state_bytes = b * decode_token(r) * window + slot * (double)slots_count(&s),
        .kv_bytes_per_token = slot * (double)s.per / (double)p->chunk,
        .step_bytes = b * decode_token(r) * window + slot * seen,
        .decode_flops = decode_row(r) + made };
}

static const ViewPromise views[] = {
    VIEW("weights", VIEW_WEIGHTS, "window and slots, both on tokens (not with dual_ln)",
         .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "window, and tokens behind slots"),
    VIEW("components", VIEW_COMPONENTS, "window, or behind a slot"),
    VIEW("weights_window", VIEW_WEIGHTS, "weights on the window's tokens"),
    VIEW("weights_compressed", VIEW_WEIGHTS, "weights on the slots"),
    VIEW("projection", VIEW_WEIGHTS, "what each slot collects"),
    VIEW("connectivity_window", VIEW_PATTERN, "the window"),
    VIEW("connectivity_compressed", VIEW_PATTERN, "slots that a token sees"),
    VIEW_PROMISE_END
};

const Mechanism mech_long_short = {
    .id = "long-short",
    .title = "Long-Short Transformer",
    .authors = "Zhu et al.",
    .year = 2021,
    .arxiv = "2107.02192",
    .source = "paper, section 3; NVIDIA/transformer-ls attention_transformer_ls.py and "
              "model_lib/layer.py (dual_ln: before there, after here)",
    .formula = "P = softmax over tokens of K w_p;  K' = P K,  V' = P V\n"
               "output = softmax over slots and window of Q [K', K]^T / sqrt(d), times [V', V]\n"
               "k: keys of the window and slots, together",
    .problem = "A window loses what is far, and a summary loses what is near.",
    .idea = "Each query sees a window of single keys and a few mixtures of all keys in the same "
            "softmax.",
    .price = "Far tokens are blended into few slots, so single far tokens cannot be told apart.",
    .lesson = "low-rank",
    .teaches = "A block-stepped band over a smooth background: near tokens one by one, all others "
               "through a few mixtures whose rows show what each slot collects.",
    .picture = "connectivity",
    .classes = CLASS_FP | CLASS_LR,
    .claim_time = "O(k n)",
    .claim_memory = "O(k n)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "its segments are of queries and keys together",
    .positions = POSITION_INPUT,
    .views = views,
    .size = "segment",
    .params = params,
    .params_size = sizeof(Params),
    .check = long_short_check,
    .run = long_short_run,
    .flops = long_short_flops,
    .decode = long_short_decode,
};
