/* adaptive_span.c -- every head learns how far it looks.
 *
 *     D        = |i - j|
 *     m_ij     = clamp((R + z - max(D - offset, 0)) / R, 0, 1),  0 beyond S
 *     a_ij     = m_ij exp(s_ij) / sum_j m_ij exp(s_ij)           over cells with m > 0
 *     s_ij     = scale (q_i . k_j + q_i . pos[D])
 *
 * z is the span of the head in tokens; mode=dynamic: z_i = S sigmoid(w_span . x_i + b_span).
 * The mask enters as log m, added to the score; cells with m = 0 are not
 * computed at all.  (Sukhbaatar et al. 2019, section 2; facebookresearch/adaptive-span.)
 */
#include "attn/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_FIXED, MODE_DYNAMIC };
static const char *const modes[] = { "fixed", "dynamic", NULL };

typedef struct Params {
    PerHead z;
    int64_t max_span, offset;
    double  ramp, span_loss, scale;
    bool    include_self;
    int     mode;
    Tensor  w_span, b_span, pos;
} Params;

static const Param params[] = {
    PARAM_PER_HEAD(Params, z, 0, -1e30, 1e30, "span in tokens, clipped to 0 .. max_span"),
    PARAM_INT(Params, max_span, 0, 0, PARAM_COUNT_MAX, "S: pairs farther apart are absent; 0: n"),
    PARAM_POSITIVE(Params, ramp, 32, "R: tokens over which the mask fades from 1 to 0"),
    PARAM_INT(Params, offset, 0, 0, 1, "0: the mask falls from distance 0 on (paper); 1: from "
              "distance 1 on (official code)"),
    PARAM_BOOL(Params, include_self, true, "a token may see itself; the paper leaves it out"),
    PARAM_ENUM(Params, mode, MODE_FIXED, modes, "one span for each head, or one for each token too "
               "(reads x)"),
    PARAM_TENSOR(Params, w_span, "[h,dm]", "N(0, 1/dm)", "dynamic: what makes the spans"),
    PARAM_TENSOR(Params, b_span, "[h]", "0", "its bias"),
    PARAM_TENSOR(Params, pos, "[P,d]", "nothing is added", "vector of each distance below P, added "
                 "to the keys"),
    PARAM_FLOAT(Params, span_loss, 0, 0, 1e30, "factor of the penalty on long spans"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

typedef struct Spans {
    int64_t h, n, m, rows, most; /* rows: 1, dynamic n; most: S */
    int64_t at;               /* position of query 0 among the keys */
    int64_t least, offset;    /* smallest distance: 0 or 1 */
    double  ramp;
    double *z;                /* [h,rows] */
    Tensor  reach;            /* i32 [h,rows] largest distance with m > 0; -1: none */
    bool    causal, dynamic;
} Spans;

static Spans *spans_of(Run *r, const Params *p);
static Pattern *cells_of(Run *r, const Spans *s);
static double longest_span(const Params *p, const Spans *s);
static void dynamic_spans(Run *r, const Params *p, Spans *s);
static void fixed_spans(Run *r, const Params *p, Spans *s);
static double span_clipped(const Spans *s, double z);
static int32_t span_reach_of(const Spans *s, double z);
static double mask_at(const Spans *s, double z, int64_t distance);
static void show_spans(Run *r, const Spans *s);
static double span_head_cells(const Spans *s, int64_t head);
static int64_t row_cells(const Spans *s, int64_t head, int64_t i);
static void show_profile(Run *r, const Spans *s);
static void report(Run *r, const Params *p, const Spans *s);
static double rounded_up(const Spans *s, double z);
static double span_all_cells(const Spans *s);
static void add_distances(Run *r, const Params *p, AttendInput *in);
static double log_mask(const void *context, int64_t head, int64_t i, int64_t j);
static double span_at(const Spans *s, int64_t head, int64_t i);
static Tensor log_masks(Run *r, const Spans *s);
static double distance_flops(const Run *r, const Params *p);
static void read_mask(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out);

static void adaptive_span_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    PatternShape  shape = { .heads = r->h, .n = r->n, .m = r->m, .q_offset = r->q_offset };
    AttendInput   in;
    AttendResult  result;
    Pattern      *cells;
    Spans        *s;

    run_stage(r, "spans");
    s = spans_of(r, p);
    if (!s)
        return;
    show_spans(r, s);
    show_profile(r, s);
    report(r, p, s);
    cells = pattern_finish(r->arena, shape, cells_of(r, s), r->causal);
    in = run_attend_input_within(r, p->scale, cells);
    add_distances(r, p, &in);
    if (s->dynamic) {
        in.cell_term = log_mask;
        in.cell_context = s;
    } else {
        in.distance = log_masks(r, s);
    }
    run_stage(r, "attend");
    result = op_attend(r, &in, cells);
    op_charge(r, FLOP_OVERHEAD, 3 * span_all_cells(s) + distance_flops(r, p));
    r->out = result.out;
    run_last_row(r, cells);
    r->last.rule = NULL; /* its rule is the parameters */
    r->last.span = longest_span(p, s);
    if (run_wants_views(r)) {
        view_pattern(r, cells, false);
        view_reader(r, "mask", VIEW_MASK, DT_F32, read_mask, s, cells);
    }
    view_attention(r, cells, &in, result.lse);
}

/* Those of the queries: the last rows of all positions. */
static Pattern *cells_of(Run *r, const Spans *s)
{
    PatternShape all = { .heads = s->h, .n = s->m, .m = s->m };
    PatternShape own = { .heads = s->h, .n = s->n, .m = s->m, .q_offset = s->at };
    Tensor       reach = s->reach;

    if (s->dynamic && s->at) { /* rows before the queries are not read */
        reach = run_tensor2(r, DT_I32, s->h, s->m);
        for (int64_t t = 0; t < s->h * s->m && !run_failed(r); t++)
            tensor_i32(&reach)[t] = t % s->m < s->at ? -1 : tensor_i32(&s->reach)
                [t / s->m * s->n + t % s->m - s->at];
    }
    return pattern_last_rows(r->arena, own,
                             pattern_spans(r->arena, all, &reach, s->least, COMPONENT_WINDOW));
}

/* Tokens; 0: no bound.  A span that a token decides is bounded by max_span alone. */
static double longest_span(const Params *p, const Spans *s)
{
    int64_t far = 0;

    if (s->dynamic)
        return p->max_span > 0 ? (double)p->max_span + 1 : 0;
    for (int64_t t = 0; t < s->h; t++)
        far = max_i64(far, tensor_i32(&s->reach)[t]);
    return (double)far + 1;
}

static Spans *spans_of(Run *r, const Params *p)
{
    Spans *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return NULL;
    *s = (Spans){ .h = r->h, .n = r->n, .m = r->m, .at = r->q_offset,
                  .rows = p->mode == MODE_DYNAMIC ? r->n : 1,
                  .most = p->max_span > 0 ? p->max_span : r->m, .least = p->include_self ? 0 : 1,
                  .offset = p->offset, .ramp = p->ramp, .causal = r->causal,
                  .dynamic = p->mode == MODE_DYNAMIC };
    s->z = run_alloc(r, s->h * s->rows, sizeof(*s->z));
    s->reach = run_tensor2(r, DT_I32, s->h, s->rows);
    if (p->mode == MODE_DYNAMIC)
        dynamic_spans(r, p, s);
    else
        fixed_spans(r, p, s);
    for (int64_t t = 0; t < s->h * s->rows && !run_failed(r); t++)
        tensor_i32(&s->reach)[t] = span_reach_of(s, s->z[t]);
    return run_failed(r) ? NULL : s;
}

static void dynamic_spans(Run *r, const Params *p, Spans *s)
{
    int64_t dm = r->dm;
    Tensor  w = run_param(r, "w_span", p->w_span, DT_F32, 2, (int64_t[]){ r->h, dm },
                          (Init){ INIT_NORMAL, 1 / sqrt((double)dm) });
    Tensor  b = run_param_given(r, "b_span", p->b_span, DT_F32, 1, (int64_t[]){ r->h });

    for (int64_t t = 0; t < s->h * s->n && !run_failed(r); t++) {
        const float *row = tensor_head(&w, t / s->n, s->h);
        const float *x = tensor_f32(&r->x) + t % s->n * dm;
        double sum = b.data ? (double)*(const float *)tensor_head(&b, t / s->n, s->h) : 0;

        for (int64_t c = 0; c < dm; c++)
            sum += (double)row[c] * (double)x[c];
        s->z[t] = (double)s->most / (1 + exp(-sum));
    }
}

static void fixed_spans(Run *r, const Params *p, Spans *s)
{
    const double *z = run_per_head(r, "z", &p->z);

    for (int64_t t = 0; t < s->h && !run_failed(r); t++)
        s->z[t] = span_clipped(s, z[t]);
}

static double span_clipped(const Spans *s, double z)
{
    return z > (double)s->most ? (double)s->most : z > 0 ? z : 0;
}

static int32_t span_reach_of(const Spans *s, double z)
{
    int64_t far = min_i64(s->most, s->m - 1);
    double  edge = ceil(s->ramp + z) + (double)s->offset;

    if (edge < (double)far)
        far = (int64_t)edge;
    while (far >= 0 && !(mask_at(s, z, far) > 0))
        far--;
    return (int32_t)far;
}

/* The mask m at a distance, also where the cell is not allowed. */
static double mask_at(const Spans *s, double z, int64_t distance)
{
    double from = (double)(distance > s->offset ? distance - s->offset : 0);
    double m = (s->ramp + z - from) / s->ramp;

    return m > 1 ? 1 : m > 0 ? m : 0;
}

static void show_spans(Run *r, const Spans *s)
{
    Tensor span, cells;

    if (!run_wants_views(r))
        return;
    span = s->dynamic ? run_tensor2(r, DT_F32, s->h, s->rows)
                      : run_tensor1(r, DT_F32, s->h);
    cells = run_tensor1(r, DT_F32, s->h);
    for (int64_t t = 0; t < s->h * s->rows && !run_failed(r); t++)
        tensor_f32(&span)[t] = (float)s->z[t];
    for (int64_t t = 0; t < s->h && !run_failed(r); t++)
        tensor_f32(&cells)[t] = (float)(span_head_cells(s, t) / ((double)s->n * (double)s->m));
    view_tensor(r, "span", VIEW_TENSOR, span, span.rank > 1 ? "head" : "span",
                span.rank > 1 ? "query" : "head");
    view_tensor(r, "cells_kept", VIEW_TENSOR, cells, "share of all cells", "head");
}

/* The sum of min(most, first + i), i < count. */
static double sum_up_to(int64_t most, int64_t first, int64_t count)
{
    double rising = (double)max_i64(0, min_i64(most - first, count));

    return rising * (double)first + rising * (rising - 1) / 2 +
           ((double)count - rising) * (double)most;
}

/* Fixed spans grow with a row's place up to the reach, and so need no loop over the rows. */
static double span_head_cells(const Spans *s, int64_t head)
{
    double  sum = 0;
    int64_t far = tensor_i32(&s->reach)[head * s->rows];

    if (s->rows == 1 && far < s->least)
        return 0;
    if (s->rows == 1)
        return sum_up_to(far, s->at, s->n) +
               (s->causal ? 0 : sum_up_to(far, s->m - s->n, s->n)) +
               (s->least ? 0 : (double)s->n);

    for (int64_t i = 0; i < s->n; i++)
        sum += (double)row_cells(s, head, i);
    return sum;
}

/* Number of cells in a row. */
static int64_t row_cells(const Spans *s, int64_t head, int64_t i)
{
    int64_t far = tensor_i32(&s->reach)[head * s->rows + (s->rows > 1 ? i : 0)];
    int64_t back = min_i64(far, s->at + i);
    int64_t ahead = s->causal ? 0 : min_i64(far, s->m - 1 - i);

    return far < s->least ? 0 : back + ahead + (s->least ? 0 : 1);
}

/* View of m over the distance; dynamic: for the longest span of each head. */
static void show_profile(Run *r, const Spans *s)
{
    Tensor profile;

    if (!run_wants_views(r))
        return;
    profile = run_tensor2(r, DT_F32, s->h, s->m);
    for (int64_t t = 0; t < s->h && !run_failed(r); t++) {
        double z = 0;

        for (int64_t i = 0; i < s->rows; i++)
            z = s->z[t * s->rows + i] > z ? s->z[t * s->rows + i] : z;
        for (int64_t x = 0; x < s->m; x++)
            tensor_f32(&profile)[t * s->m + x] =
                x < s->least || x > s->most ? 0 : (float)mask_at(s, z, x);
    }
    view_tensor(r, "profile", VIEW_MASK, profile, "head", "distance");
}

static void report(Run *r, const Params *p, const Spans *s)
{
    double longest = 0, sum = 0, count = (double)s->h * (double)s->rows;

    for (int64_t t = 0; t < s->h * s->rows; t++) {
        longest = s->z[t] > longest ? s->z[t] : longest;
        sum += s->z[t];
    }
    run_figure(r, "max_span", rounded_up(s, longest));
    run_figure(r, "avg_span", rounded_up(s, sum / count));
    run_figure(r, "span_penalty", p->span_loss * sum / count);
    run_figure_int(r, "cells", (int64_t)span_all_cells(s));
}

static double rounded_up(const Spans *s, double z)
{
    double span = ceil(z) + s->ramp;

    return span > (double)s->most ? (double)s->most : span;
}

static double span_all_cells(const Spans *s)
{
    double sum = 0;

    for (int64_t t = 0; t < s->h; t++)
        sum += span_head_cells(s, t);
    return sum;
}

/* ---- scores ----------------------------------------------------------------- */

/* |p_i - j| of entry x of a list of distances (attn/ops/ops.h). */
static int64_t distance_of(int64_t m, int64_t at, int64_t x)
{
    return llabs(x - (m - 1) + at);
}

/* Distances without a vector get one of zeros. */
static void add_distances(Run *r, const Params *p, AttendInput *in)
{
    int64_t  entries = r->n + r->m - 1, d = r->d, given = p->pos.data ? p->pos.shape[0] : 0;
    int64_t  rows = min_i64(given, r->m);
    int32_t *index = given ? run_alloc(r, entries, sizeof(*index)) : NULL;
    Tensor   pos = layer_given(r, "pos", p->pos, 2, (int64_t[]){ given, d }), table;

    if (!index)
        return;
    table = run_tensor3(r, DT_F32, 1, rows + 1, d);
    for (int64_t x = 0; x < (rows + 1) * d && !run_failed(r); x++)
        tensor_f32(&table)[x] = x / d < rows ? tensor_f32(&pos)[x] : 0;
    for (int64_t x = 0; x < entries; x++)
        index[x] = (int32_t)min_i64(distance_of(r->m, r->q_offset, x), rows);
    in->row = (DistanceTerm){ .side = in->q, .table = table, .index = index };
}

static double log_mask(const void *context, int64_t head, int64_t i, int64_t j)
{
    const Spans *s = context;

    return log(mask_at(s, span_at(s, head, i), llabs(s->at + i - j)));
}

static double span_at(const Spans *s, int64_t head, int64_t i)
{
    return s->z[head * s->rows + (s->rows > 1 ? i : 0)];
}

/* Fixed spans: log m is a function of the distance.  Beyond the reach, where it is not read, it is
 * 0. */
static Tensor log_masks(Run *r, const Spans *s)
{
    int64_t entries = s->n + s->m - 1, own = s->m - 1 - s->at; /* own: the entry of distance 0 */
    Tensor  t = run_tensor2(r, DT_F32, s->h, entries);

    for (int64_t head = 0; head < s->h && !run_failed(r); head++) {
        float *to = tensor_f32(&t) + head * entries;

        memset(to, 0, (size_t)entries * sizeof(*to));
        for (int64_t far = 0; far <= tensor_i32(&s->reach)[head]; far++) {
            double m = mask_at(s, s->z[head], far);

            if (own - far >= 0)
                to[own - far] = (float)log(m);
            if (own + far < entries)
                to[own + far] = (float)log(m);
        }
    }
    return t;
}

/* The products q . pos are made once for each distance. */
static double distance_flops(const Run *r, const Params *p)
{
    double rows = p->pos.data ? (double)min_i64(p->pos.shape[0], r->m) : 0;

    return 2 * (double)r->d * (double)r->h * (double)r->n * rows;
}

static void read_mask(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                      int64_t step, float *out)
{
    const Spans *s = view->context;
    double       z = span_at(s, head, i);

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step;

        out[x] = (float)mask_at(s, z, llabs(s->at + i - j));
    }
}

static void adaptive_span_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->pos.data && (p->pos.rank != 2 || p->pos.shape[1] != r->d))
        run_fail(r, ERR_PARAM, "adaptive-span: parameter pos needs shape [P,%lld], a row for each "
                 "distance", (long long)r->d);
    if (p->mode != MODE_DYNAMIC)
        return;
    if (!r->x.data)
        run_fail(r, ERR_DATA, "adaptive-span: mode=dynamic reads the layer input x, which the "
                 "input does not hold");
    else if (r->x.shape[0] != r->n)
        run_fail(r, ERR_DATA, "adaptive-span: mode=dynamic needs one layer input for each token: "
                 "the input has %lld of x and %lld queries", (long long)r->x.shape[0],
                 (long long)r->n);
}

static Flops adaptive_span_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    bool          views = r->spec.views;
    Spans        *s;
    Flops         sum = { 0 };

    r->spec.views = false; /* the views exist already */
    s = spans_of(r, p);
    r->spec.views = views;
    if (views)
        op_wait(r, NULL);
    if (!s)
        return sum;
    sum = run_pattern_flops(r, span_all_cells(s));
    sum.overhead += 3 * span_all_cells(s) + distance_flops(r, p);
    return sum;
}

static DecodeCost adaptive_span_decode(const Run *r, const void *opaque)
{
    DecodeCost cost = decode_cells(r, opaque);

    cost.decode_flops += 3 * r->last.cells + distance_flops(r, opaque) / (double)r->n;
    return cost;
}

static const StageNote notes[] = {
    { "spans", "Each head has a span (dynamic: each token of it), learned with a penalty on its "
               "length; the mask fades to 0 over the ramp behind it." },
    { "attend", "Softmax over the cells whose mask is above 0, each multiplied by its mask; the "
                "others are not computed." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("span", VIEW_TENSOR, "z of each head, in tokens; dynamic: of each token too"),
    VIEW("profile", VIEW_MASK, "mask against the distance; dynamic: of the head's longest span"),
    VIEW("cells_kept", VIEW_TENSOR, "share of all cells that a head computes"),
    VIEW("connectivity", VIEW_PATTERN, "cells whose mask is above 0"),
    VIEW("mask", VIEW_MASK, "what the exponential of a score is multiplied by"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW_PROMISE_END
};

const Mechanism mech_adaptive_span = {
    .id = "adaptive-span",
    .title = "Adaptive attention span",
    .authors = "Sukhbaatar, Grave, Bojanowski, Joulin",
    .year = 2019,
    .arxiv = "1905.07799",
    .source = "paper, section 2; facebookresearch/adaptive-span adaptive_span.py, models.py",
    .formula = "m_ij = clamp((R + z - D) / R, 0, 1), D = |i - j| <= S\n"
               "a_ij = m_ij exp(s_ij) / sum_j m_ij exp(s_ij)\n"
               "output = a V",
    .problem = "All heads pay for the longest span, though most look near.",
    .idea = "Each head learns its own span, with a soft edge so that it can be learned.",
    .price = "Tokens outside a span are lost, and a head that looks far saves nothing.",
    .teaches = "Each head is a band as wide as it needs, with an edge that fades over R cells so "
               "that the width can be learned.  Few heads need a long span; the others compute "
               "only a narrow band.",
    .picture = "mask",
    .example = "ramp=8,z=16",
    .classes = CLASS_FP | CLASS_SP,
    .claim_time = "O(n s), s = span",
    .claim_memory = "O(n s)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .at_end = AT_END_OWN,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = adaptive_span_check,
    .run = adaptive_span_run,
    .flops = adaptive_span_flops,
    .decode = adaptive_span_decode,
};
