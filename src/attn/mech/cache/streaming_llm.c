/* streaming_llm.c -- StreamingLLM: attention sinks and a window, with or without a learned sink.
 *
 * Query i stands at p_i; it sees the first tokens (the sinks) and the last ones:
 *
 *     A_i   = { j < sinks, or |p_i - j| < window }          window = 0: all
 *     w_ij  = exp(s_ij) / (sum over A_i of exp(s_i.) + exp(z_a))
 *
 * z_a is a learned logit of head a without a value (absent: exp(z_a) = 0): what the head parks
 * there leaves the matrix.
 *
 * positions=cache: the cache holds sinks + window tokens and positions are places in it.  Keys of
 * the window keep their distance p_i - j; only the sinks move closer.  For them the query stands at
 *
 *     c_i = min(p_i, C),   C = sinks + window - 1
 *
 * A row with p_i > C is `late`.  All late rows stand at C, so that their scores with the sinks are
 * one more attention, joined with that over the window.
 */
#include <math.h>
#include <string.h>

#include "attn/run.h"
#include "attn/run/position.h"

enum { POSITIONS_CACHE, POSITIONS_TEXT };
static const char *const places[] = { "cache", "text", NULL };

typedef struct Params {
    int64_t sinks, window;
    Tensor  sink_logits;
    int     positions;
    double  scale, softcap;
} Params;

static const Param params[] = {
    PARAM_INT(Params, sinks, 4, 0, PARAM_COUNT_MAX, "leading tokens that every query sees"),
    PARAM_INT(Params, window, 8, 0, PARAM_COUNT_MAX,
              "last tokens that a query sees, its own included; 0: all"),
    PARAM_TENSOR(Params, sink_logits, "[h]", "absent",
                 "a logit of each head that joins the softmax without a value"),
    PARAM_ENUM(Params, positions, POSITIONS_CACHE, places,
               "distances that a position sees: places in the cache, or in the text"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_SOFTCAP(Params), PARAM_END
};

/* What a run of it knows; the readers' context. */
typedef struct Streaming {
    int64_t     heads, sinks; /* at most m */
    int64_t     last;         /* C, counted from query 0: late rows are those after it */
    int64_t     late;         /* the first late row; n: none */
    bool        causal;
    AttendInput in;           /* positions of the text */
    AttendInput rolled;       /* of late rows and sinks, for readers: one row, at C */
    Tensor      rolled_q;     /* [h,late rows,d] */
    Tensor      rolled_side;  /* the same of the term by rows; data NULL: there is none */
    Tensor      lse;          /* f32 [h,n] without the learned sink */
    Tensor      z;            /* f32 [h'] or absent */
    const Pattern *cells;
} Streaming;

static Streaming *streaming_of(Run *r, const Params *p);
static Pattern *cells_of(Run *r, const Params *p, const Streaming *s, bool sinks_of_late);
static Pattern *distances_of(Run *r, const Params *p, const Streaming *s);
static void join_sinks(Run *r, Streaming *s);
static void add_sink(Run *r, Streaming *s);
static void show(Run *r, Streaming *s);

static void streaming_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Streaming    *s = streaming_of(r, p);
    AttendResult  result;

    if (run_failed(r))
        return;
    run_stage(r, "attend");
    result = op_attend(r, &s->in, cells_of(r, p, s, false));
    r->out = result.out;
    s->lse = result.lse;
    if (s->late < r->n)
        join_sinks(r, s);
    if (s->z.data)
        add_sink(r, s);
    s->cells = cells_of(r, p, s, true);
    show(r, s);
    run_masses(r, &s->in, s->cells);
    run_cache(r, &s->in, s->cells, 0);
    run_last_row(r, s->cells);
}

/* Whether sinks and queries have other distances than in the text. */
static bool rolls(const Run *r, const Params *p)
{
    return p->positions == POSITIONS_CACHE && r->spec.position && r->causal && p->window > 0 &&
           p->sinks > 0;
}

static Streaming *streaming_of(Run *r, const Params *p)
{
    Streaming *s = run_alloc(r, 1, sizeof(*s));

    if (!s)
        return NULL;
    *s = (Streaming){ .heads = r->h, .sinks = min_i64(p->sinks, r->m), .late = r->n,
                      .causal = r->causal };
    if (rolls(r, p)) {
        s->last = p->sinks + p->window - 1 - r->q_offset;
        s->late = min_i64(max_i64(s->last + 1, 0), r->n);
    }
    s->in = run_attend_input_within(r, p->scale, distances_of(r, p, s));
    if (p->sink_logits.data)
        s->z = run_param_given(r, "sink_logits", p->sink_logits, DT_F32, 1, &r->h);
    return s;
}

static PatternShape shape_of(const Run *r)
{
    return (PatternShape){ .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
}

/* u8 [n]: 1 of each late row. */
static uint8_t *late_flags(Run *r, const Streaming *s)
{
    uint8_t *flags = run_alloc(r, r->n, 1);

    for (int64_t i = 0; flags && i < r->n; i++)
        flags[i] = i >= s->late;
    return flags;
}

/* Cells whose distances are all that a score has: late rows are as far from the sinks as the row
 * before them.  NULL: every distance, where there is no such row. */
static Pattern *distances_of(Run *r, const Params *p, const Streaming *s)
{
    return s->late > 0 && r->spec.position ? cells_of(r, p, s, false) : NULL;
}

/* sinks_of_late: with the sinks of late rows. */
static Pattern *cells_of(Run *r, const Params *p, const Streaming *s, bool sinks_of_late)
{
    PatternShape shape = shape_of(r);
    Arena       *a = r->arena;
    uint8_t     *late = late_flags(r, s);
    int64_t      reach = p->window - 1;
    Pattern     *near, *sinks;

    if (run_failed(r))
        return NULL;
    near = p->window ? pattern_band(a, shape, r->q_offset - reach, r->q_offset + reach, 1,
                                    COMPONENT_WINDOW)
                     : pattern_full(a, shape, COMPONENT_WINDOW);
    sinks = pattern_first_cols(a, shape, s->sinks);
    if (!sinks_of_late && s->late < r->n)
        sinks = pattern_difference(a, sinks, pattern_rows(a, shape, late));
    return pattern_finish(a, shape, pattern_union(a, near, sinks), r->causal);
}

/* ---- sinks that the query stands closer to ----------------------------------------- */

/* A copy of rows from `first` on. */
static Tensor rows_from(Run *r, Tensor t, int64_t first)
{
    Tensor rows = tensor_rows(t, first, t.shape[1] - first);
    Tensor out = run_tensor3(r, DT_F32, t.shape[0], rows.shape[1], t.shape[2]);

    op_entries(r, rows, ENTRY_CAST, 0, out);
    return out;
}

/* [h,rows,w] as h x rows heads of one row. */
static Tensor as_heads(Tensor t)
{
    return tensor_of(t.dtype, 3, (int64_t[]){ t.shape[0] * t.shape[1], 1, t.shape[2] }, t.data);
}

/* Late queries turned by C, where a position changes q and k themselves. */
static Tensor turned_at_last(Run *r, const Streaming *s, Tensor q)
{
    int64_t     offset = r->q_offset;
    AttendInput in;

    r->q_offset = s->last + offset;
    in = run_attend_input_of(r, as_heads(q), tensor_rows(r->k, 0, s->sinks),
                             tensor_rows(r->v, 0, s->sinks), s->in.scale, NULL);
    r->q_offset = offset;
    return tensor_of(DT_F32, 3, q.shape, in.q.data);
}

/* One row that stands at C, and the sinks: its distances are those of every late row. */
static AttendInput input_at_last(const Streaming *s)
{
    AttendInput in = attend_input_part(&s->in, 0, 1, 0, s->sinks);

    if (tensor_given(&in.distance))
        in.distance.data = tensor_f32(&in.distance) + s->last;
    if (tensor_given(&in.row.table))
        in.row.index += s->last;
    if (tensor_given(&in.col.table))
        in.col.index += s->last;
    if (tensor_given(&in.value.table))
        in.value.index += s->last;
    return in;
}

/* Rows [from, from + count) of head `head` (-1: of every head, one after another, each as a head
 * of its own). */
static AttendInput late_input(const Streaming *s)
{
    AttendInput in = s->rolled;

    in.q = as_heads(s->rolled_q);
    if (tensor_given(&s->rolled_side))
        in.row.side = as_heads(s->rolled_side);
    return in;
}

/* Every late row as a head of its own, since distances do not depend on the row. */
static AttendResult attend_late(Run *r, const Streaming *s)
{
    int64_t      heads = r->h, rows = s->rolled_q.shape[1];
    PatternShape shape = { .heads = heads * rows, .n = 1, .m = s->sinks };
    AttendInput  in = late_input(s);
    AttendResult result;

    r->h = heads * rows;
    result = op_attend(r, &in, pattern_full(r->arena, shape, COMPONENT_GLOBAL));
    r->h = heads;
    result.out = tensor_of(DT_F32, 3, (int64_t[]){ heads, rows, r->e }, result.out.data);
    result.lse = tensor_of(DT_F32, 2, (int64_t[]){ heads, rows }, result.lse.data);
    return result;
}

/* The same where the position is in q and k already: an attention like any other. */
static AttendResult attend_turned(Run *r, const Streaming *s)
{
    PatternShape shape = { .heads = r->h, .n = s->rolled_q.shape[1], .m = s->sinks };
    AttendInput  in = s->rolled;

    in.q = s->rolled_q;
    return op_attend(r, &in, pattern_full(r->arena, shape, COMPONENT_GLOBAL));
}

/* i32 [h,rows]: first, first + 1, ... */
static Tensor row_numbers(Run *r, int64_t first, int64_t rows)
{
    Tensor index = run_tensor2(r, DT_I32, r->h, rows);

    run_prepare(r, true);
    for (int64_t x = 0; x < r->h * rows && !run_failed(r); x++)
        tensor_i32(&index)[x] = (int32_t)(first + x % rows);
    op_toward(r, index.data, tensor_bytes(&index));
    run_prepare(r, false);
    return index;
}

static void join_sinks(Run *r, Streaming *s)
{
    bool         in_q = r->spec.position->class_ == POSITION_INPUT;
    AttendResult result;

    s->rolled = input_at_last(s);
    s->rolled_q = rows_from(r, in_q ? r->q : s->in.q, s->late);
    if (in_q)
        s->rolled_q = turned_at_last(r, s, s->rolled_q);
    if (tensor_given(&s->in.row.table))
        s->rolled_side = rows_from(r, s->in.row.side, s->late);
    run_stage(r, "attend to sinks");
    result = in_q ? attend_turned(r, s) : attend_late(r, s);
    op_merge_rows(r, &(MergeRows){ .rows = result.out, .lse = result.lse,
                                   .index = row_numbers(r, s->late, s->rolled_q.shape[1]),
                                   .lists = 1, .out = r->out, .z = s->lse });
}

/* ---- the learned sink ------------------------------------------------------------------ */

/* out sum / (sum + exp(z)) = out / (1 + exp(-(lse - z))) */
static void add_sink(Run *r, Streaming *s)
{
    Tensor lse = tensor_of(DT_F32, 3, (int64_t[]){ r->h, r->n, 1 }, s->lse.data);
    Tensor z = tensor_of(DT_F32, 3, (int64_t[]){ s->z.shape[0], 1, 1 }, s->z.data);
    Tensor above = run_tensor3(r, DT_F32, r->h, r->n, 1);

    run_stage(r, "learned sink");
    op_entries_of(r, lse, z, ENTRY_SUM, -1, above);
    op_entries_of(r, r->out, above, ENTRY_GATE, 0, r->out);
    op_charge(r, FLOP_OVERHEAD, 5 * (double)r->h * (double)r->n);
}

static double sink_of(const Streaming *s, int64_t head)
{
    return s->z.data ? (double)*(const float *)tensor_head(&s->z, head, s->heads)
                     : (double)-INFINITY;
}

/* ---- views ------------------------------------------------------------------------------- */

/* Row i as an input of its own: score (0, j) of it is that of cell (i, j), j < sinks. */
static AttendInput late_row(const Streaming *s, int64_t i)
{
    AttendInput in = s->rolled;

    in.q = tensor_rows(s->rolled_q, i - s->late, 1);
    if (tensor_given(&s->rolled_side))
        in.row.side = tensor_rows(s->rolled_side, i - s->late, 1);
    return in;
}

/* A cell's score, with its position in the cache, in double. */
static double score_of(const Streaming *s, int64_t head, int64_t i, int64_t j)
{
    AttendInput late;

    if (i < s->late || j >= s->sinks)
        return attend_score(&s->in, s->heads, head, i, j);
    late = late_row(s, i);
    return attend_score(&late, s->heads, head, 0, j);
}

/* Log-sum-exps are floats: at this size their rounding would show in the weights. */
#define COARSE 32

/* Log of the sum that weights of row i are divided by. */
static double divisor_of(const Streaming *s, int64_t head, int64_t i)
{
    double     lse = (double)tensor_f32(&s->lse)[head * s->in.q.shape[1] + i], z = sink_of(s, head);
    double     most = lse, sum = 0;
    PatternRow row = { 0 };

    if (isfinite(lse) && fabs(lse) > COARSE) {
        pattern_row(s->cells, head, i, &row);
        for (int64_t x = 0; x < row.count; x++)
            for (int64_t t = 0; t < row.runs[x].count; t++)
                sum += exp(score_of(s, head, i, row.runs[x].start + t * row.runs[x].step) - most);
        lse = most + log(sum);
        pattern_row_free(&row);
    }
    most = fmax(lse, z);
    return isfinite(most) ? most + log(exp(lse - most) + exp(z - most)) : most;
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Streaming *s = view->context;
    double           divisor = divisor_of(s, head, i);

    for (int64_t c = 0; c < count; c++)
        out[c] = (float)exp(score_of(s, head, i, start + c * step) - divisor);
}

static void read_bias(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    Streaming   s = *(const Streaming *)view->context;
    AttendInput raw = { .q = s.in.raw_q, .k = s.in.raw_k, .v = s.in.v, .scale = s.in.scale };

    s.in.softcap = s.rolled.softcap = 0; /* what the position adds, before any cap */
    for (int64_t c = 0; c < count; c++)
        out[c] = (float)(score_of(&s, head, i, start + c * step) -
                         attend_score(&raw, s.heads, head, i, start + c * step));
}

/* Shares of each row that lie on the sinks, and on the learned sink. */
static void show_masses(Run *r, const Streaming *s)
{
    Tensor sink = run_tensor2(r, DT_F32, r->h, r->n), logit = run_tensor2(r, DT_F32, r->h, r->n);
    double on_sinks = 0, on_logit = 0, rows = (double)(r->h * r->n);

    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        int64_t head = x / r->n, i = x % r->n, seen = s->sinks;
        double  divisor = divisor_of(s, head, i), sum = 0, z = sink_of(s, head);

        seen = s->causal ? min_i64(seen, i + r->q_offset + 1) : seen;
        for (int64_t j = 0; j < seen; j++)
            sum += exp(score_of(s, head, i, j) - divisor);
        tensor_f32(&sink)[x] = (float)sum;
        tensor_f32(&logit)[x] = isfinite(z) ? (float)exp(z - divisor) : 0;
        on_sinks += sum;
        on_logit += (double)tensor_f32(&logit)[x];
    }
    view_tensor(r, "sink_mass", VIEW_TENSOR, sink, "head", "query");
    view_tensor(r, "logit_mass", VIEW_TENSOR, logit, "head", "query");
    run_figure(r, "mean_sink_mass", on_sinks / rows);
    run_figure(r, "mean_logit_mass", on_logit / rows);
}

static const char *const kinds[8] = { NULL, "sink" };

static void show(Run *r, Streaming *s)
{
    if (!run_wants_views(r) || run_failed(r))
        return;
    view_pattern(r, s->cells, true);
    view_meanings(r, s->cells, kinds);
    if (s->late >= r->n && !s->z.data) {
        view_attention(r, s->cells, &s->in, s->lse);
        replay_offer_attend(r, &s->in, s->cells);
    } else {
        view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, s, s->cells);
        if (r->spec.position)
            view_reader(r, "position_bias", VIEW_SIGNED, DT_F32, read_bias, s, NULL);
    }
    show_masses(r, s);
}

/* ---- the rest ---------------------------------------------------------------------------- */

static void streaming_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (rolls(r, p) && r->spec.position->added)
        run_fail(r, ERR_PARAM, "streaming-llm: position=%s adds the place to the vectors "
                 "themselves, which cannot move with the cache (positions=cache): use "
                 "positions=text", r->spec.position->id);
}

/* Keys that query at p sees: two ranges, the sinks and the window. */
static int64_t keys_of(const Run *r, const Params *p, int64_t at)
{
    int64_t end = r->causal ? max_i64(min_i64(at + 1, r->m), 0) : r->m;
    int64_t sinks = min_i64(p->sinks, end);
    int64_t from = p->window ? max_i64(at - p->window + 1, 0) : 0;
    int64_t to = p->window ? min_i64(at + p->window, end) : end;

    return from >= to ? sinks : sinks + to - from - max_i64(min_i64(sinks, to) - from, 0);
}

static Flops streaming_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        cells = 0;
    Flops         f;

    for (int64_t i = 0; i < r->n; i++)
        cells += (double)keys_of(r, p, i + r->q_offset);
    f = run_pattern_flops(r, (double)r->h * cells);
    if (p->sink_logits.data)
        f.overhead += 5 * (double)r->h * (double)r->n;
    return f;
}

static DecodeCost streaming_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double token = (double)r->cache_bytes * decode_token(r);
    double held = p->window ? fmin((double)r->m, (double)p->sinks + (double)p->window)
                            : (double)r->m;

    return (DecodeCost){ .state_bytes = token * held, .kv_bytes_per_token = p->window ? 0 : token,
                         .step_bytes = decode_read(r),
                         .decode_flops = decode_row(r) +
                                         (p->sink_logits.data ? 5 * (double)r->h : 0) };
}

static const StageNote notes[] = {
    { "attend",
      "Each query attends to the first tokens and to the last ones: what a cache of fixed size "
      "still holds." },
    { "attend to sinks",
      "Late queries attend to the first tokens once more by themselves.  The cache is full, so "
      "for them the sinks lie as near as their places in the cache, not as in the text." },
    { "learned sink",
      "A learned number of each head joins the sum that a row is divided by.  It has no value, so "
      "a head can leave part of its attention unused." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEWS_OF_PATTERN,
    VIEWS_OF_MASSES,
    VIEWS_OF_CACHE,
    VIEW("sink_mass", VIEW_TENSOR, "share of each query's attention on the first tokens",
         .curve = { .x = "query", .y = "share on the sinks", .by_rows = true }),
    VIEW("logit_mass", VIEW_TENSOR, "share that the learned sink takes, which goes to no key"),
    VIEW_PROMISE_END
};

const Mechanism mech_streaming_llm = {
    .id = "streaming-llm",
    .title = "StreamingLLM: attention sinks",
    .authors = "Xiao, Tian, Chen, Han, Lewis",
    .year = 2023,
    .arxiv = "2309.17453",
    .source = "paper, section 3; learned sink: gpt-oss (arXiv:2508.10925), after Miller 2023",
    .formula = "A = { j < sinks } + { |i - j| < window }\n"
               "output = softmax over A (and z, without a value) of Q K^T / sqrt(d), times V",
    .problem = "A window over an endless text fails as soon as the first tokens leave it, because "
               "heads that have nothing to look for put their attention there.",
    .idea = "The first few tokens stay in the cache for ever, beside the window.  A learned sink "
            "(gpt-oss) is one more number in the denominator of each head, and needs no token.",
    .price = "What lies between the sinks and the window is forgotten.",
    .lesson = "eviction",
    .teaches = "A band and a strip at the left edge.  The cache stays the same however long the "
               "text is.  A learned sink empties the strip: its share leaves the matrix.",
    .classes = CLASS_FP,
    .claim_time = "O(n (s + w))",
    .claim_memory = "O(s + w) cache",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .positions = POSITIONS_ALL,
    .views = views,
    .notes = notes,
    .size = "window",
    .params = params,
    .params_size = sizeof(Params),
    .check = streaming_check,
    .run = streaming_run,
    .flops = streaming_flops,
    .decode = streaming_decode,
};
