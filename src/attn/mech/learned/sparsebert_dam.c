/* sparsebert_dam.c -- SparseBERT's differentiable attention mask.
 *
 * Which pairs may attend is learned: a logit for each distance (or each pair), made
 * a mask by a threshold, or, while it is trained, by a sigmoid:
 *
 *     x_ij = alpha_|i-j| (+ g1 - g2, Gumbel noise)
 *     M_ij = [x_ij >= 0]   or   1 / (1 + exp(-x_ij / tau))
 *     additive: softmax over the pairs with M_ij = 1,
 *               or of scale * q_i . k_j - 10000 (1 - M_ij)
 *     multiply: softmax_j(scale * q_i . k_j) M_ij, not normalised again
 *
 * The first and last row and column stay on; the diagonal can be dropped.  A hard
 * additive mask runs as a pattern; a soft one in double, row by row, because
 * 10000 (1 - M) would swallow the digits of a float score.
 */
#include "attn/ops/dense.h"
#include "attn/run.h"

#include <math.h>

#define PENALTY 10000.0
#define COARSE 16 /* a log-sum-exp as large as this is not exact enough in float */
#define DRAWN_DEVIATION 1.4142135623730951e-3 /* difference of two class logits of 1e-3 */

enum { SOURCE_PARAMS, SOURCE_SCORES };
enum { APPLY_ADDITIVE, APPLY_MULTIPLY };

static const char *const sources[] = { "params", "scores", NULL };
static const char *const applies[] = { "additive", "multiply", NULL };

typedef struct Params {
    bool   structured, symmetric, sample, hard, keep_special, drop_diagonal;
    int    mask_source, apply;
    double tau, lambda, scale;
    Tensor alphas, g1, g2;
} Params;

static const Param params[] = {
    PARAM_BOOL(Params, structured, true, "one logit for each distance |i-j|; else one for each "
               "pair"),
    PARAM_BOOL(Params, symmetric, true, "structured=false: pair (i,j) uses the logit of (j,i), "
               "j < i"),
    PARAM_ENUM(Params, mask_source, SOURCE_PARAMS, sources, "where the logits come from: learned "
               "ones, or the attention scores"),
    PARAM_BOOL(Params, sample, false, "add Gumbel noise g1 - g2 to the logits"),
    PARAM_POSITIVE(Params, tau, 1, "temperature of a soft mask; small: nearly hard"),
    PARAM_BOOL(Params, hard, true, "a mask of 0 and 1; else a sigmoid"),
    PARAM_ENUM(Params, apply, APPLY_ADDITIVE, applies, "how the mask acts: on the scores, or on "
               "the weights after softmax"),
    PARAM_BOOL(Params, keep_special, true, "first and last row and column are always on"),
    PARAM_BOOL(Params, drop_diagonal, false, "then clear the diagonal"),
    PARAM_FLOAT(Params, lambda, 1e-4, 0, 1e30, "weight of the mask's sum in the loss"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_TENSOR(Params, alphas, "[h,L] or [L], L >= n; structured=false: [h,n,n] or [n,n]",
                 "N(0, 2e-6)", "the mask's logits"),
    PARAM_TENSOR(Params, g1, "as alphas; mask_source=scores: [h,n,n] or [n,n]", "-ln(-ln U)",
                 "noise that is added"),
    PARAM_TENSOR(Params, g2, "as g1", "-ln(-ln U)", "noise that is subtracted"),
    PARAM_END
};

typedef struct Dam {
    int64_t     h, n;
    bool        by_distance, by_score, sample;
    Tensor      alphas, g1, g2; /* f32 [h',L] or [h',n,n] */
    RowMask     mask;
    AttendInput in;             /* the scores */
    double     *z;              /* [h*n] log-sum-exp of the rows */
    bool        causal;
} Dam;

static Dam dam_shape(const Run *r, const Params *p);
static void learn(Run *r, const Params *p, Dam *s);
static Tensor dam_table(Run *r, const Dam *s, const char *name, Tensor given, Init init);
static void make_mask(Run *r, Dam *s);
static double dam_number(const Dam *s, const Tensor *t, int64_t head, int64_t at);
static void show_mask(Run *r, const Params *p, const Dam *s);
static double mask_cell(const Dam *s, int64_t head, int64_t i, int64_t j);
static void dam_read_mask(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out);
static Pattern *dam_cells_of(Run *r, const Dam *s);
static Pattern *distance_cells(Run *r, const Dam *s, PatternShape shape);
static bool always_on(const Dam *s, int64_t i);
static Pattern *pair_cells(Run *r, const Dam *s, PatternShape shape);
static void show_cells(Run *r, Pattern *cells);
static void attend_rows(Run *r, Dam *s);
static void attend_cells(Run *r, Dam *s, const Pattern *cells);
static void refine(Run *r, Dam *s, const Pattern *cells, Tensor lse);
static void dam_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                             int64_t count, int64_t step, float *out);

static void sparsebert_dam_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Dam          *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */
    Pattern      *cells = NULL;
    bool          rows;

    if (!s)
        return;
    *s = dam_shape(r, p);
    rows = !s->mask.hard || s->mask.multiply || s->by_score;
    learn(r, p, s);
    make_mask(r, s);
    show_mask(r, p, s);
    if (!rows || run_wants_views(r))
        cells = dam_cells_of(r, s);
    show_cells(r, cells);
    run_stage(r, "attend");
    if (rows)
        attend_rows(r, s);
    else
        attend_cells(r, s, cells);
    if (!rows)
        run_last_row(r, cells);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, dam_read_weights, s,
                s->mask.hard ? cells : NULL);
}

static Dam dam_shape(const Run *r, const Params *p)
{
    bool by_score = p->mask_source == SOURCE_SCORES;

    return (Dam){ .h = r->h, .n = r->n, .by_distance = p->structured && !by_score,
                  .by_score = by_score, .sample = p->sample, .causal = r->causal,
                  .mask = { .n = r->n, .m = r->n, .symmetric = p->symmetric && !by_score,
                            .hard = p->hard, .tau = p->tau, .borders = p->keep_special,
                            .no_diagonal = p->drop_diagonal,
                            .multiply = p->apply == APPLY_MULTIPLY, .penalty = PENALTY },
                  .in = { .q = r->q, .k = r->k, .v = r->v, .scale = run_scale(r, p->scale) } };
}

static void learn(Run *r, const Params *p, Dam *s)
{
    run_stage(r, "logits");
    if (!s->by_score)
        s->alphas = dam_table(r, s, "alphas", p->alphas, (Init){ INIT_NORMAL, DRAWN_DEVIATION });
    if (s->sample) {
        s->g1 = dam_table(r, s, "g1", p->g1, (Init){ INIT_GUMBEL, 0 });
        s->g2 = dam_table(r, s, "g2", p->g2, (Init){ INIT_GUMBEL, 0 });
    }
}

/* Which numbers are logits: [h,L] by distance, [h,n,n] by pair. */
static Tensor dam_table(Run *r, const Dam *s, const char *name, Tensor given, Init init)
{
    int64_t shape[3] = { s->h, s->n, s->n };
    int     rank = s->by_distance ? 2 : 3;
    int64_t length = given.data && given.rank >= 1 ? given.shape[given.rank - 1] : s->n;

    if (s->by_distance && length < s->n)
        run_fail(r, ERR_PARAM, "sparsebert-dam: parameter %s has %lld distances, but there are "
                 "n=%lld (0..%lld); give a longer one or a smaller n", name, (long long)length,
                 (long long)s->n, (long long)s->n - 1);
    shape[1] = s->by_distance ? length : s->n; /* what is longer than n is not used */
    return run_param(r, name, given, DT_F32, rank, shape, init);
}

/* The mask of each distance, where M depends on the distance alone; else the logits of the cells.
 */
static void make_mask(Run *r, Dam *s)
{
    run_stage(r, "mask");
    op_charge(r, FLOP_OVERHEAD, (double)(s->h * s->n) * (s->by_distance ? 1 : (double)s->n));
    if (!s->by_distance) {
        s->mask.logits = s->alphas;
        s->mask.plus = s->g1;
        s->mask.minus = s->g2;
        return;
    }
    s->mask.distance = run_tensor2(r, DT_F64, s->h, s->n);
    for (int64_t x = 0; x < s->h * s->n && !run_failed(r); x++) {
        int64_t head = x / s->n, at = x % s->n;
        double  noise = s->sample ? dam_number(s, &s->g1, head, at) -
                                      dam_number(s, &s->g2, head, at) : 0;

        ((double *)s->mask.distance.data)[x] =
            row_mask_of(&s->mask, dam_number(s, &s->alphas, head, at) + noise);
    }
    op_traffic(r, (double)tensor_bytes(&s->alphas), (double)tensor_bytes(&s->mask.distance));
}

static double dam_number(const Dam *s, const Tensor *t, int64_t head, int64_t at)
{
    return (double)((float *)tensor_head(t, head, s->h))[at];
}

/* Views mask, sparsity and loss, over the whole square whether causal or not. */
static void show_mask(Run *r, const Params *p, const Dam *s)
{
    double sum = 0, zeros = 0;
    Tensor sparsity, loss;

    if (!run_wants_views(r))
        return;
    sparsity = run_tensor1(r, DT_F32, s->h);
    loss = run_tensor1(r, DT_F32, 1);
    for (int64_t row = 0; row < s->h * s->n && !run_failed(r); row++) {
        int64_t head = row / s->n, i = row % s->n;

        zeros = i ? zeros : 0;
        for (int64_t j = 0; j < s->n; j++) {
            double m = mask_cell(s, head, i, j);

            zeros += !(m > 0);
            sum += m;
        }
        tensor_f32(&sparsity)[head] = (float)(zeros / ((double)s->n * (double)s->n));
    }
    if (run_failed(r))
        return;
    tensor_f32(&loss)[0] = (float)(p->lambda * sum);
    view_reader(r, "mask", VIEW_MASK, DT_F32, dam_read_mask, s, NULL);
    view_tensor(r, "sparsity", VIEW_TENSOR, sparsity, "share", "head");
    view_tensor(r, "loss", VIEW_TENSOR, loss, "loss", "all heads");
    run_figure(r, "loss", p->lambda * sum);
}

static double mask_cell(const Dam *s, int64_t head, int64_t i, int64_t j)
{
    return row_mask(&s->mask, s->h, head, i, j,
                    s->by_score ? attend_score(&s->in, s->h, head, i, j) : 0);
}

static void dam_read_mask(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                          int64_t step, float *out)
{
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)mask_cell(view->context, head, i, start + x * step);
}

/* M_ij > 0, and not later in causal runs. */
static Pattern *dam_cells_of(Run *r, const Dam *s)
{
    PatternShape shape = { .heads = s->h, .n = s->n, .m = s->n };
    Pattern     *p = s->by_distance ? distance_cells(r, s, shape) : pair_cells(r, s, shape);

    if (s->by_distance && s->mask.no_diagonal)
        p = pattern_difference(r->arena, p, pattern_band(r->arena, shape, 0, 0, 1, 0));
    p = pattern_finish(r->arena, shape, p, s->causal);
    if (!p)
        run_fail(r, ERR_NOMEM, "sparsebert-dam: not enough memory for the pattern");
    return run_failed(r) ? NULL : p;
}

/* Before the diagonal is dropped. */
static Pattern *distance_cells(Run *r, const Dam *s, PatternShape shape)
{
    Tensor   on = run_tensor2(r, DT_U8, s->h, s->n);
    uint8_t *always = run_alloc(r, s->n, 1);

    for (int64_t x = 0; x < s->h * s->n && !run_failed(r); x++)
        tensor_u8(&on)[x] = ((double *)s->mask.distance.data)[x] > 0;
    for (int64_t i = 0; i < s->n && !run_failed(r); i++)
        always[i] = always_on(s, i);
    return run_failed(r) ? NULL : pattern_distances(r->arena, shape, &on, always);
}

static bool always_on(const Dam *s, int64_t i)
{
    return s->mask.borders && (i == 0 || i == s->n - 1);
}

/* A byte for each of the pairs, which have a number each anyhow. */
static Pattern *pair_cells(Run *r, const Dam *s, PatternShape shape)
{
    Tensor on = run_tensor3(r, DT_U8, s->h, s->n, s->n);

    for (int64_t x = 0; x < tensor_count(&on) && !run_failed(r); x++)
        tensor_u8(&on)[x] = mask_cell(s, x / (s->n * s->n), x / s->n % s->n, x % s->n) > 0;
    return run_failed(r) ? NULL : pattern_mask(r->arena, shape, &on);
}

static void show_cells(Run *r, Pattern *cells)
{
    View *view = view_cells(r, "connectivity", cells);

    if (view)
        view->other = "on";
}

static void attend_rows(Run *r, Dam *s)
{
    Entmax   *form = run_alloc(r, s->h, sizeof(*form));
    RowAttend in = { .q = r->q, .k = r->k, .v = r->v, .scale = s->in.scale, .causal = s->causal,
                     .form = form, .mask = &s->mask,
                     .negligible = s->mask.hard ? 0 : -1 }; /* a soft mask mixes every pair */
    RowResult result;

    for (int64_t t = 0; t < s->h && !run_failed(r); t++)
        form[t] = (Entmax){ .form = ENTMAX_SOFTMAX, .alpha = 1 };
    result = op_row_attend(r, &in);
    r->out = result.out;
    s->z = result.tau.data;
}

/* ---- attention over the cells ----------------------------------------------- */

static void attend_cells(Run *r, Dam *s, const Pattern *cells)
{
    AttendResult result = op_attend(r, &s->in, cells);

    r->out = result.out;
    if (run_wants_views(r))
        refine(r, s, cells, result.lse);
}

/* Recomputes large log-sum-exps in double: float rounding would show in the weights. */
static void refine(Run *r, Dam *s, const Pattern *cells, Tensor lse)
{
    PatternRow row = { 0 };

    s->z = run_alloc(r, s->h * s->n, sizeof(*s->z));
    for (int64_t x = 0; x < s->h * s->n && !run_failed(r); x++) {
        LogSum sum = log_sum_new();

        s->z[x] = (double)tensor_f32(&lse)[x];
        if (fabs(s->z[x]) < COARSE || !isfinite(s->z[x]))
            continue;
        pattern_row(cells, x / s->n, x % s->n, &row);
        for (int64_t y = 0; y < row.count; y++)
            for (int64_t c = 0; c < row.runs[y].count; c++)
                log_sum_add(&sum, attend_score(&s->in, s->h, x / s->n, x % s->n,
                                               row.runs[y].start + c * row.runs[y].step));
        if (row.failed)
            run_fail(r, ERR_NOMEM, "sparsebert-dam: not enough memory for a row of the pattern");
        s->z[x] = log_sum_of(&sum);
    }
    pattern_row_free(&row);
}

static void dam_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                             int64_t count, int64_t step, float *out)
{
    const Dam *s = view->context;

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step;
        double  m = mask_cell(s, head, i, j), z = attend_score(&s->in, s->h, head, i, j);

        z -= s->mask.multiply || s->mask.hard ? 0 : PENALTY * (1 - m);
        out[x] = (s->causal && j > i) || (s->mask.hard && !(m > 0))
                     ? 0 : (float)(exp(z - s->z[head * s->n + i]) * (s->mask.multiply ? m : 1));
    }
}

static Flops sparsebert_dam_flops(Run *r, const void *opaque)
{
    Dam    s = dam_shape(r, opaque);
    double n = (double)s.n, cells = (double)s.h * n * (s.causal ? (n + 1) / 2 : n);

    return (Flops){ .score = 2 * cells * (double)r->d, .mix = 2 * cells * (double)r->e,
                    .overhead = FLOPS_SOFTMAX * cells +
                                (double)s.h * n * (s.by_distance ? 1 : n) };
}

/* All keys and values are held.  A hard mask that is known before the scores reads the open cells
 * of the last row; of one that depends on them, or that is multiplied, the step is not known. */
static DecodeCost sparsebert_dam_decode(const Run *r, const void *opaque)
{
    Dam        s = dam_shape(r, opaque);
    DecodeCost cost = decode_dense(r);

    if (s.mask.hard) {
        cost.step_bytes = decode_read(r);
        cost.decode_flops = decode_row(r);
    }
    cost.decode_flops += (double)s.h * (s.by_distance ? 1 : (double)s.n);
    return cost;
}

static const StageNote notes[] = {
    { "logits",
      "Every pair of tokens, or every distance, has a learned number: how much it wants to be "
      "connected." },
    { "mask",
      "The numbers become a mask: shares between 0 and 1, or, when it is hard, in or out." },
    { "attend", "Attention goes through the mask: what a hard mask closes is not seen at all." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("mask", VIEW_MASK, "the mask, before causality"),
    VIEW("sparsity", VIEW_TENSOR, "share of the mask that is exactly 0"),
    VIEW("loss", VIEW_TENSOR, "lambda times the sum of the mask"),
    VIEW("connectivity", VIEW_PATTERN, "cells the mask lets through"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW("alphas", VIEW_TENSOR, "logits, when drawn", .maybe = true),
    VIEW("g1", VIEW_TENSOR, "noise, when drawn", .maybe = true),
    VIEW("g2", VIEW_TENSOR, "noise, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_sparsebert_dam = {
    .id = "sparsebert-dam",
    .title = "Differentiable attention mask (SparseBERT)",
    .authors = "Shi, Gao, Ren, Xu, Liang, Li, Kwok",
    .year = 2021,
    .arxiv = "2102.12871",
    .source = "paper, section 4; han-shi/SparseBERT modeling.py",
    .formula = "M_ij = [alpha_|i-j| >= 0] or sigmoid(alpha_|i-j| / tau), borders on\n"
               "output_i = softmax over M_ij = 1 of scale * q_i . k_j, times v_j",
    .picture = "mask",
    .problem = "It is not known which cells of the attention matrix a model needs.",
    .idea = "A mask over distances is learned together with the model, for each head.",
    .price = "A soft mask, as training needs it, is computed in full: only a hard one saves work.",
    .teaches = "A mask that is learned for each head: stripes along the diagonals inside a frame "
               "that is always on.  A small tau turns the grey of a soft mask to black and "
               "white.  A soft mask is computed in full; of a hard one only the open cells are.",
    .classes = CLASS_LP,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2)",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .no_at_end = "its mask has a number for every pair of positions",
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = sparsebert_dam_run,
    .flops = sparsebert_dam_flops,
    .flops_bound = true,
    .decode = sparsebert_dam_decode,
};
