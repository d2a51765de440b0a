/* funnel.c -- queries pooled over windows, and their results copied back.
 *
 * With windows of `stride` tokens:
 *
 *     Q' = pool of Q over the windows           (n' x d);  K' and V' likewise, or K and V
 *     A = softmax(scale Q' K'^T),  O' = A V'
 *     output_i = O' of the window of i          (upsample), or output = O'
 *
 * so weights = U A P: U copies rows, P averages keys.  separate_cls keeps token 0 by itself;
 * truncate_seq then leaves out the last stride - 1 tokens, whose rows may find no window and
 * are 0.  A window holds later tokens: there is no causal form.
 * (Dai et al. 2020; laiguokun/Funnel-Transformer pytorch/ops.py, tensorflow/modeling.py.)
 */
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

enum { POOLING_MEAN, POOLING_MAX };
static const char *const poolings[] = { "mean", "max", NULL };

typedef struct Params {
    int64_t stride;
    int     pooling;
    bool    pool_q_only, separate_cls, truncate_seq, upsample;
    double  scale;
} Params;

/* Windows of a sequence: token 0 by itself (cls), then runs of `stride` up to `end`. */
typedef struct Windows {
    int64_t length, stride, cls, end, count;
} Windows;

/* What readers need. */
typedef struct Funnel {
    Windows     queries, keys;
    bool        upsample, pool_keys;
    int64_t     heads;
    AttendInput in;
    Tensor      lse; /* [h,n'] */
    RowSums     sums;
} Funnel;

static Windows windows_of(const Params *p, int64_t length);
static void upsample(Run *r, const Windows *w, Tensor small);
static int64_t tokens_served(const Windows *w);
static int64_t funnel_window_of(const Windows *w, int64_t i);
static Tensor funnel_pooled(Run *r, const Params *p, const Windows *w, Tensor x);
static int64_t window_start(const Windows *w, int64_t at);
static int64_t window_end(const Windows *w, int64_t at);
static Pattern *funnel_pooled_cells(Run *r, const Windows *q, int64_t keys);
static void funnel_show(Run *r, const Params *p, const Funnel *s, Tensor small);
static Pattern *seen_cells(Run *r, const Funnel *s);
static void show_factors(Run *r, const Funnel *s);
static View *funnel_matrix_view(Run *r, const char *name, ViewKind kind, ViewReadRun read,
                                const Funnel *s, int64_t planes, int64_t rows, int64_t cols);
static void read_copies(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out);
static void read_pooled(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out);
static void funnel_show_weights(Run *r, const Funnel *s, const Pattern *cells);
static void funnel_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out);
static double cell_weight(const Funnel *s, int64_t head, int64_t row, int64_t col);
static const int64_t *starts_of(Run *r, const Windows *w);

static const Param params[] = {
    PARAM_INT(Params, stride, 2, 1, PARAM_COUNT_MAX, "tokens of a window, and from one to the "
              "next"),
    PARAM_ENUM(Params, pooling, POOLING_MEAN, poolings, "a window becomes its mean, or its largest "
               "entries"),
    PARAM_BOOL(Params, pool_q_only, true, "false: keys and values are pooled too"),
    PARAM_BOOL(Params, separate_cls, false, "token 0 is a window by itself"),
    PARAM_BOOL(Params, truncate_seq, false, "with separate_cls: leave out the last stride - 1 "
               "tokens"),
    PARAM_BOOL(Params, upsample, true, "copy every pooled row to the tokens of its window"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

static void funnel_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Funnel       *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */
    AttendResult  result;
    Pattern      *cells;

    if (!s)
        return;
    *s = (Funnel){ .queries = windows_of(p, r->n), .keys = windows_of(p, r->m),
                   .upsample = p->upsample, .pool_keys = !p->pool_q_only, .heads = r->h,
                   .in = run_attend_input(r, p->scale) };
    s->in.softmax_flops = FLOPS_ROW_SOFTMAX;
    run_stage(r, "pool");
    s->in.q = funnel_pooled(r, p, &s->queries, r->q);
    if (s->pool_keys) {
        s->in.k = funnel_pooled(r, p, &s->keys, r->k);
        s->in.v = funnel_pooled(r, p, &s->keys, r->v);
    }
    run_stage(r, "attend");
    cells = funnel_pooled_cells(r, &s->queries, s->in.k.shape[1]);
    result = op_attend(r, &s->in, cells);
    s->lse = result.lse;
    s->sums = row_sums_of(r, r->h, 1, cells);
    r->out = result.out;
    if (p->upsample)
        upsample(r, &s->queries, result.out);
    funnel_show(r, p, s, result.out);
}

static Windows windows_of(const Params *p, int64_t length)
{
    int64_t stride = p->stride < length ? p->stride : length;
    Windows w = { .length = length, .stride = stride, .cls = p->separate_cls, .end = length };

    if (p->separate_cls && p->truncate_seq) /* the given stride: it may leave token 0 alone */
        w.end = length - p->stride + 1 > 1 ? length - p->stride + 1 : 1;
    w.count = w.cls + (w.end - w.cls + stride - 1) / stride;
    return w;
}

static void upsample(Run *r, const Windows *w, Tensor small)
{
    int64_t served = tokens_served(w);
    Tensor  index;

    run_stage(r, "upsample");
    index = run_tensor2(r, DT_I32, 1, served);
    for (int64_t i = 0; i < served && !run_failed(r); i++)
        tensor_i32(&index)[i] = (int32_t)funnel_window_of(w, i);
    r->out = op_gather(r, small, index);
    if (served == r->n || run_failed(r))
        return;
    small = r->out;
    r->out = run_tensor3(r, DT_F32, r->h, r->n, r->e);
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, r->out);
    if (!run_failed(r))
        op_entries(r, small, ENTRY_CAST, 0, tensor_rows(r->out, 0, served));
}

/* How many tokens have a window: the first ones. */
static int64_t tokens_served(const Windows *w)
{
    int64_t most = w->cls + (w->count - w->cls) * w->stride;

    return most < w->length ? most : w->length;
}

/* The window whose row a token gets; w->count and beyond: none. */
static int64_t funnel_window_of(const Windows *w, int64_t i)
{
    return i < w->cls ? 0 : w->cls + (i - w->cls) / w->stride;
}

/* ---- pooling ---------------------------------------------------------------- */

static Tensor funnel_pooled(Run *r, const Params *p, const Windows *w, Tensor x)
{
    Tensor   y = run_tensor3(r, DT_F32, x.shape[0], w->count, x.shape[2]);
    int32_t *first = run_alloc(r, w->count, sizeof(*first));
    int32_t *end = run_alloc(r, w->count, sizeof(*end));
    PoolWindows in = { .x = x };

    for (int64_t at = 0; at < w->count && !run_failed(r); at++) {
        first[at] = (int32_t)window_start(w, at);
        end[at] = (int32_t)window_end(w, at);
    }
    in.kind = p->pooling == POOLING_MAX ? WINDOW_MAX : WINDOW_MEAN;
    in.first = first;
    in.end = end;
    op_pool_windows(r, &in, y);
    op_charge(r, FLOP_OVERHEAD, (double)r->h * (double)x.shape[1] * (double)x.shape[2]);
    return y;
}

static int64_t window_start(const Windows *w, int64_t at)
{
    return at < w->cls ? 0 : w->cls + (at - w->cls) * w->stride;
}

static int64_t window_end(const Windows *w, int64_t at)
{
    int64_t end = at < w->cls ? 1 : window_start(w, at) + w->stride;

    return end < w->end ? end : w->end;
}

static Pattern *funnel_pooled_cells(Run *r, const Windows *q, int64_t keys)
{
    PatternShape shape = { .heads = r->h, .n = q->count, .m = keys };
    Pattern     *all = run_failed(r) ? NULL : pattern_full(r->arena, shape, COMPONENT_OTHER);

    return all ? pattern_finish(r->arena, shape, all, false) : NULL;
}

/* ---- views ------------------------------------------------------------------ */

static void funnel_show(Run *r, const Params *p, const Funnel *s, Tensor small)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = seen_cells(r, s);
    view_stage(r, "attend", -1);
    show_factors(r, s);
    view_stage(r, NULL, -1);
    implicit_connectivity(r, cells);
    if (p->pooling == POOLING_MEAN || !s->pool_keys)
        funnel_show_weights(r, s, cells);
    view_stage(r, "pool", -1);
    view_tensor(r, "pooled_q", VIEW_VECTORS, s->in.q, "window", "component");
    if (s->pool_keys) {
        view_tensor(r, "pooled_k", VIEW_VECTORS, s->in.k, "window", "component");
        view_tensor(r, "pooled_v", VIEW_VECTORS, s->in.v, "window", "value");
    }
    view_stage(r, "attend", -1);
    view_tensor(r, "pooled_output", VIEW_VECTORS, small, "window", "value");
    view_stage(r, NULL, -1);
}

static Pattern *seen_cells(Run *r, const Funnel *s)
{
    int64_t      rows = s->upsample ? r->n : s->queries.count;
    int64_t      served = s->upsample ? tokens_served(&s->queries) : rows;
    int64_t      keys = s->pool_keys ? s->keys.end : r->m;
    PatternShape shape = { .heads = r->h, .n = rows, .m = r->m }, part = shape;
    Pattern     *cells = NULL;

    part.n = served;
    part.m = keys;
    if (!run_failed(r)) /* the corner that counts, put into the whole */
        cells = pattern_offset(r->arena, shape, 0, 0,
                               pattern_full(r->arena, part, COMPONENT_OTHER));
    cells = cells ? pattern_finish(r->arena, shape, cells, false) : NULL;
    if (!cells)
        run_fail(r, ERR_NOMEM, "funnel: not enough memory for the pattern");
    return cells;
}

static void show_factors(Run *r, const Funnel *s)
{
    int64_t rows = s->upsample ? r->n : s->queries.count;
    View   *copies = funnel_matrix_view(r, "factor_left", VIEW_MASK, read_copies, s, 1, rows,
                                        s->queries.count);
    View   *mixed = funnel_matrix_view(r, "factor_right", VIEW_WEIGHTS, read_pooled, s, r->h,
                                       s->queries.count, s->in.k.shape[1]);

    if (!copies || !mixed)
        return;
    copies->cols = mixed->rows = "window";
    mixed->cost = (double)r->d;
    copies->rows = s->upsample ? "query" : "window";
    mixed->cols = s->pool_keys ? "window" : "key";
}

static View *funnel_matrix_view(Run *r, const char *name, ViewKind kind, ViewReadRun read,
                                const Funnel *s, int64_t planes, int64_t rows, int64_t cols)
{
    View *view = view_add(r, name, kind, DT_F32, 3, (int64_t[]){ planes, rows, cols });

    if (!view)
        return NULL;
    view->read = read;
    view->context = s;
    return view;
}

/* U: which window's row a row of the output is. */
static void read_copies(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Funnel *s = view->context;
    int64_t       window = s->upsample ? funnel_window_of(&s->queries, i) : i;

    (void)head;
    for (int64_t c = 0; c < count; c++)
        out[c] = start + c * step == window;
}

static void read_pooled(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                        int64_t step, float *out)
{
    const Funnel   *s = view->context;
    const WeightRow row = { &s->in, &s->lse, &s->sums, s->heads, head, i, i, 0 };

    attend_weights_run(&row, start, count, step, out);
}

static void funnel_show_weights(Run *r, const Funnel *s, const Pattern *cells)
{
    View *view = view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, funnel_read_weights, s, cells);

    if (!view)
        return;
    view->cost = (double)r->d;
    if (s->upsample) {
        view->row_groups = starts_of(r, &s->queries);
        view->row_group_count = s->queries.count;
    } else {
        view->rows = "window";
    }
    if (s->pool_keys) {
        view->col_groups = starts_of(r, &s->keys);
        view->col_group_count = s->keys.count;
    }
}

static void funnel_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out)
{
    const Funnel *s = view->context;
    int64_t       row = s->upsample ? funnel_window_of(&s->queries, i) : i, last = -1;
    double        weight = 0;

    if (!s->pool_keys) {
        read_pooled(view, head, row, start, count, step, out);
        return;
    }
    for (int64_t c = 0; c < count; c++) {
        int64_t col = funnel_window_of(&s->keys, start + c * step);

        if (col != last)
            weight = cell_weight(s, head, row, col) /
                     (double)(window_end(&s->keys, col) - window_start(&s->keys, col));
        last = col;
        out[c] = (float)weight;
    }
}

/* Row and column in the pooled matrix, and the key's share in its window. */
static double cell_weight(const Funnel *s, int64_t head, int64_t row, int64_t col)
{
    const WeightRow whole = { &s->in, &s->lse, &s->sums, s->heads, head, row, row, 0 };
    float           weight;

    attend_weights_run(&whole, col, 1, 1, &weight);
    return (double)weight;
}

static const int64_t *starts_of(Run *r, const Windows *w)
{
    int64_t *first = run_alloc(r, w->count, sizeof(*first));

    for (int64_t c = 0; c < w->count && first; c++)
        first[c] = window_start(w, c);
    return first;
}

static Flops funnel_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Windows q = windows_of(p, r->n), k = windows_of(p, r->m);
    double  h = (double)r->h, d = (double)r->d, e = (double)r->e;
    double  cells = (double)q.count * (double)(p->pool_q_only ? r->m : k.count);
    double  pooling = (double)r->n * d + (p->pool_q_only ? 0 : (double)r->m * (d + e));

    return (Flops){ .score = 2 * h * cells * d, .mix = 2 * h * cells * e,
                    .overhead = h * (pooling + FLOPS_ROW_SOFTMAX * cells) };
}

static const StageNote notes[] = {
    { "pool",
      "Neighbouring queries become one: their mean, or their largest entries.  With "
      "pool_q_only=false keys and values shrink as well." },
    { "attend", "As many rows as there are windows attend: the cost falls with the stride." },
    { "upsample", "The row of a window is copied to each of its tokens: bands of equal rows." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, but for tokens that truncation leaves out"),
    VIEW("weights", VIEW_WEIGHTS, "U A, or U A P (not when values are pooled by max)",
         .maybe = true),
    VIEW("factor_left", VIEW_MASK, "U: which window's row a token gets"),
    VIEW("factor_right", VIEW_WEIGHTS, "A: windows over keys"),
    VIEW("pooled_q", VIEW_VECTORS, "the pooled queries"),
    VIEW("pooled_k", VIEW_VECTORS, "pooled keys, if they are", .maybe = true),
    VIEW("pooled_v", VIEW_VECTORS, "pooled values, if they are", .maybe = true),
    VIEW("pooled_output", VIEW_VECTORS, "the windows' rows, not yet copied"),
    VIEW_PROMISE_END
};

const Mechanism mech_funnel = {
    .id = "funnel",
    .title = "Funnel-Transformer",
    .authors = "Dai, Lai, Yang, Le",
    .year = 2020,
    .arxiv = "2006.03236",
    .source = "paper, section 2; laiguokun/Funnel-Transformer pytorch/ops.py, "
              "tensorflow/modeling.py",
    .formula = "Q' = pool(Q) over windows of `stride`\n"
               "output_i = row of i's window in softmax(scale Q' K^T) V",
    .problem = "Deep layers keep one vector for each token, though the task often needs a "
               "single one.",
    .idea = "Queries are pooled, so that the sequence becomes shorter from block to block.",
    .price = "Tokens of one window share a row, and what they differ in is lost.",
    .lesson = "low-rank",
    .teaches = "Bands of `stride` equal rows: a window asks once for all of its tokens, so "
               "attention costs n^2/stride, and what the tokens differ in is lost.",
    .picture = "weights",
    .example = "stride=4",
    .classes = CLASS_FP | CLASS_DS,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2)",
    .claim_decode = "yes in the survey; not here: windows hold later tokens",
    .claim_exponent = 2,
    .no_causal = "a window's query is pooled from later tokens too; the model is an encoder",
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "stride",
    .size_falls = true,
    .params = params,
    .params_size = sizeof(Params),
    .run = funnel_run,
    .flops = funnel_flops,
};
