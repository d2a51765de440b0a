/* entmax.c -- adaptively sparse attention: alpha-entmax in place of softmax.
 *
 *     z_ij     = scale * q_i . k_j
 *     w_i      = argmax over distributions p of p . z_i + H_alpha(p)
 *              = max((alpha-1) z_ij - tau_i, 0)^(1/(alpha-1))
 *     output_i = sum_j w_ij v_j
 *
 * tau_i makes the row sum to 1.  alpha = 1 is softmax, alpha = 2 sparsemax, and each
 * head has its own alpha, which training may learn (attn/ops/ops.h has the forms).
 * Rows are computed one at a time in double; no row is kept.
 */
#include "attn/run.h"

#include <math.h>
#include <string.h>

#define NEGLIGIBLE 1e-6 /* a weight that counts as support is larger */
#define SNAPSHOTS 16    /* steps of the bisection whose threshold is shown */
#define COMPARED (1 << 22) /* most cells for which softmax is run beside it */

enum { METHOD_AUTO, METHOD_BISECT, METHOD_SORT };

static const char *const methods[] = { "auto", "bisect", "sort", NULL };

typedef struct Params {
    PerHead alpha;
    Tensor  alpha_raw;
    int     method;
    int64_t n_iter;
    bool    ensure_sum_one;
    double  scale;
} Params;

static const Param params[] = {
    PARAM_PER_HEAD(Params, alpha, 1.5, 1, 1e30, "1: softmax, 2: sparsemax; larger: sparser"),
    PARAM_TENSOR(Params, alpha_raw, "[h]", "alpha is used",
                 "learned a: alpha = 1 + 1/(1 + e^-a), between 1 and 2"),
    PARAM_ENUM(Params, method, METHOD_AUTO, methods, "auto: sort where alpha is 1.5 or 2, else "
               "bisect"),
    PARAM_INT(Params, n_iter, 50, 1, 1e6, "steps of the bisection"),
    PARAM_BOOL(Params, ensure_sum_one, true, "divide the bisection's weights by their sum"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_END
};

typedef struct Rows {
    RowAttend in;
    RowResult result;
    int64_t   h, n, offset;
} Rows;

/* Softmax on the same scores, for runs that are not too long to look at. */
typedef struct Softmax {
    const Rows *rows;
    AttendInput in;
    double     *z;        /* [h*n] log-sum-exp */
    double     *outside;  /* [h] mass on keys that have no weight here, summed over rows */
    double      size;     /* keys with a weight, summed over all rows */
    int64_t    *offset;   /* [h*n+1] of the supports' keys */
    int32_t    *key;
} Softmax;

static const Entmax *entmax_forms_of(Run *r, const Params *p);
static const double *alphas_of(Run *r, const Params *p);
static EntmaxForm entmax_form_of(Run *r, const Params *p, double alpha);
static void show_alpha(Run *r, const Entmax *form);
static bool bisects(const Run *r, const Entmax *form);
static void entmax_show_steps(Run *r, const Rows *s);
static void show_tau(Run *r, const double *tau, int64_t stride);
static void entmax_show(Run *r, Rows *s);
static void read_support(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static double entmax_weight_of(const Rows *s, int64_t head, int64_t i, int64_t j);
static const ViewLoad *support_load(Run *r, const Rows *s);
static void entmax_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out);
static void compare_softmax(Run *r, const Rows *s, const Pattern *cells);
static int64_t entmax_softmax_row(Run *r, Softmax *o, int64_t row, double *z);
static void show_softmax(Run *r, Softmax *o, const Pattern *cells);
static void read_softmax(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out);
static const char *const *outside_words(Run *r, const Softmax *o);

static void entmax_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Rows         *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return;
    run_stage(r, "alpha");
    *s = (Rows){ .h = r->h, .n = r->n, .offset = r->q_offset,
                 .in = { .q = r->q, .k = r->k, .v = r->v, .scale = run_scale(r, p->scale),
                         .causal = r->causal, .form = entmax_forms_of(r, p),
                         .negligible = NEGLIGIBLE } };
    show_alpha(r, s->in.form);
    run_stage(r, "attend");
    if (run_wants_views(r) && bisects(r, s->in.form)) {
        int64_t steps = p->n_iter < SNAPSHOTS ? p->n_iter : SNAPSHOTS;

        s->in.trace = run_tensor3(r, DT_F64, r->h, r->n, steps);
        for (int64_t x = 0; x < tensor_count(&s->in.trace) && !run_failed(r); x++)
            ((double *)s->in.trace.data)[x] = 0; /* heads that do not bisect */
    }
    s->result = op_row_attend(r, &s->in);
    r->out = s->result.out;
    entmax_show_steps(r, s);
    if (run_wants_views(r))
        run_stage(r, "thresholds");
    entmax_show(r, s);
}

/* ---- alpha ------------------------------------------------------------------ */

/* What each head does with a row; the closed form needs it too, so nothing is shown. */
static const Entmax *entmax_forms_of(Run *r, const Params *p)
{
    const double *alpha = alphas_of(r, p);
    Entmax       *form = run_alloc(r, r->h, sizeof(*form));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        form[t] = (Entmax){ .form = entmax_form_of(r, p, alpha[t]), .alpha = alpha[t],
                            .iterations = p->n_iter, .divide = p->ensure_sum_one };
    return run_failed(r) ? NULL : form;
}

static const double *alphas_of(Run *r, const Params *p)
{
    Tensor        raw = run_param_given(r, "alpha_raw", p->alpha_raw, DT_F64, 1,
                                        (int64_t[]){ r->h });
    const double *given = run_per_head(r, "alpha", &p->alpha);
    double       *alpha = run_alloc(r, r->h, sizeof(*alpha));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        double a = raw.data ? *(double *)tensor_head(&raw, t, r->h) : 0;

        if (!isfinite(a))
            run_fail(r, ERR_PARAM, "entmax: parameter alpha_raw: head %lld has %g, not a number",
                     (long long)t, a);
        alpha[t] = raw.data ? 1 + 1 / (1 + exp(-a)) : given[t];
    }
    return run_failed(r) ? NULL : alpha;
}

static EntmaxForm entmax_form_of(Run *r, const Params *p, double alpha)
{
    if (alpha == 1)
        return ENTMAX_SOFTMAX;
    if (p->method != METHOD_BISECT && alpha == 2)
        return ENTMAX_SPARSEMAX;
    if (p->method != METHOD_BISECT && alpha == 1.5)
        return ENTMAX_SQUARE;
    if (p->method == METHOD_SORT)
        run_fail(r, ERR_PARAM, "entmax: method=sort has a closed form for alpha 1.5 and 2 only, "
                 "but alpha is %g; use method=bisect or auto", alpha);
    return ENTMAX_BISECT;
}

static void show_alpha(Run *r, const Entmax *form)
{
    Tensor alpha;

    if (!run_wants_views(r))
        return;
    alpha = run_tensor1(r, DT_F32, r->h);
    for (int64_t t = 0; t < r->h && !run_failed(r); t++)
        tensor_f32(&alpha)[t] = (float)form[t].alpha;
    view_tensor(r, "alpha", VIEW_TENSOR, alpha, "alpha", "head");
}

static bool bisects(const Run *r, const Entmax *form)
{
    bool any = false;

    for (int64_t t = 0; form && t < r->h; t++)
        any |= form[t].form == ENTMAX_BISECT;
    return any;
}

/* The thresholds the bisection tried, a step at a time. */
static void entmax_show_steps(Run *r, const Rows *s)
{
    int64_t steps = s->in.trace.data ? s->in.trace.shape[2] : 0;

    for (int64_t t = 0; t < steps && run_wants_views(r); t++) {
        run_iteration(r, "bisect", t);
        show_tau(r, (double *)s->in.trace.data + t, steps);
    }
}

static void show_tau(Run *r, const double *tau, int64_t stride)
{
    Tensor t = run_tensor2(r, DT_F32, r->h, r->n);

    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++)
        tensor_f32(&t)[x] = (float)tau[x * stride];
    view_tensor(r, "tau", VIEW_TENSOR, t, "head", "query");
}

static void entmax_show(Run *r, Rows *s)
{
    Pattern *cells;
    View    *support;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    show_tau(r, s->result.tau.data, 1);
    view_tensor(r, "support_size", VIEW_COUNT, s->result.support, "head", "query");
    support = view_reader(r, "support", VIEW_PATTERN, DT_U8, read_support, s, NULL);
    if (support) {
        support->other = "weight above 1e-6";
        support->row_load = support_load(r, s);
    }
    view_pattern(r, cells, false);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, entmax_read_weights, s, cells);
    compare_softmax(r, s, cells);
}

/* Reads any keys; those later than row i of a causal run have no weight. */
static void read_support(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Rows *s = view->context;

    for (int64_t x = 0; x < count; x++) {
        int64_t j = start + x * step;
        bool    allowed = !s->in.causal || j <= i + s->offset;

        out[x] = allowed && entmax_weight_of(s, head, i, j) > NEGLIGIBLE;
    }
}

static double entmax_weight_of(const Rows *s, int64_t head, int64_t i, int64_t j)
{
    AttendInput in = { .q = s->in.q, .k = s->in.k, .v = s->in.v, .scale = s->in.scale };
    int64_t     at = head * s->n + i;
    EntmaxRow   row = { .tau = ((double *)s->result.tau.data)[at],
                        .total = ((double *)s->result.total.data)[at] };

    return entmax_weight(&s->in.form[head], row, attend_score(&in, s->h, head, i, j));
}

static const ViewLoad *support_load(Run *r, const Rows *s)
{
    ViewLoad *load = run_alloc(r, 1, sizeof(*load));

    if (load)
        *load = (ViewLoad){ .used = s->result.support, .used_name = "keys in the support" };
    return load;
}

static void entmax_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                int64_t count, int64_t step, float *out)
{
    for (int64_t x = 0; x < count; x++)
        out[x] = (float)entmax_weight_of(view->context, head, i, start + x * step);
}

/* Mean support of a row, and that of softmax on the same scores. */
static void compare_softmax(Run *r, const Rows *s, const Pattern *cells)
{
    Softmax *o = run_alloc(r, 1, sizeof(*o)); /* the reader keeps it */
    double  *z, own = 0;
    int64_t  rows = r->h * r->n;
    Tensor   size;

    if ((double)rows * (double)r->m > COMPARED || !o)
        return;
    for (int64_t x = 0; x < rows; x++)
        own += (double)tensor_i32(&s->result.support)[x];
    *o = (Softmax){ .rows = s, .in = { .q = r->q, .k = r->k, .v = r->v, .scale = s->in.scale } };
    z = run_alloc(r, r->m, sizeof(*z));
    size = run_tensor2(r, DT_I32, r->h, r->n);
    o->z = run_alloc(r, rows, sizeof(*o->z));
    o->outside = run_alloc(r, r->h, sizeof(*o->outside));
    o->offset = run_alloc(r, rows + 1, sizeof(*o->offset));
    o->key = run_alloc(r, rows * r->m, sizeof(*o->key));
    if (run_failed(r))
        return;
    memset(o->outside, 0, (size_t)r->h * sizeof(*o->outside));
    o->offset[0] = 0;
    for (int64_t x = 0; x < rows; x++) {
        int64_t found = entmax_softmax_row(r, o, x, z);

        tensor_i32(&size)[x] = (int32_t)found;
        o->size += (double)found;
    }
    view_tensor(r, "softmax_size", VIEW_COUNT, size, "head", "query");
    show_softmax(r, o, cells);
    run_figure(r, "mean_support", own / (double)rows);
    run_figure(r, "mean_softmax_support", o->size / (double)rows);
}

/* The row's softmax, and which of its keys have a weight here. */
static int64_t entmax_softmax_row(Run *r, Softmax *o, int64_t row, double *z)
{
    static const Entmax softmax = { .form = ENTMAX_SOFTMAX, .alpha = 1 };
    const Rows *s = o->rows;
    int64_t     head = row / r->n, i = row % r->n, found = 0, count, at = o->offset[row];
    EntmaxRow   form;

    count = row_attend_keys(r, &s->in, i);
    for (int64_t j = 0; j < count; j++)
        z[j] = attend_score(&o->in, r->h, head, i, j);
    form = entmax_row(&softmax, z, count, NULL, NULL, 0);
    o->z[row] = form.tau;
    for (int64_t j = 0; j < count; j++) {
        double mass = entmax_weight(&softmax, form, z[j]);

        found += mass > NEGLIGIBLE;
        if (entmax_weight_of(s, head, i, j) > NEGLIGIBLE)
            o->key[at++] = (int32_t)j;
        else
            o->outside[head] += mass;
    }
    o->offset[row + 1] = at;
    return found;
}

/* Softmax's weights with a ring around each cell that is in the support. */
static void show_softmax(Run *r, Softmax *o, const Pattern *cells)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->m };
    View        *view = view_reader(r, "softmax", VIEW_WEIGHTS, DT_F32, read_softmax, o, cells);
    ViewMarks   *marks = view ? run_alloc(r, 1, sizeof(*marks)) : NULL;

    if (!marks)
        return;
    *marks = (ViewMarks){ .name = "in the support", .chosen = true };
    marks->cells = pattern_lists(r->arena, shape, o->offset, o->key, COMPONENT_OTHER);
    if (!marks->cells)
        run_fail(r, ERR_NOMEM, "entmax: not enough memory for the support");
    view->marks = marks;
    view->summary = outside_words(r, o);
}

static void read_softmax(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const Softmax *o = view->context;
    int64_t        h = o->rows->in.q.shape[0], n = o->rows->in.q.shape[1];

    for (int64_t x = 0; x < count; x++)
        out[x] = (float)exp(attend_score(&o->in, h, head, i, start + x * step) -
                            o->z[head * n + i]);
}

static const char *const *outside_words(Run *r, const Softmax *o)
{
    const char **words = run_alloc(r, r->h, sizeof(*words));

    for (int64_t t = 0; t < r->h && !run_failed(r); t++) {
        words[t] = arena_printf(r->arena, "%.3g %% of softmax lies outside the support",
                                100 * o->outside[t] / (double)r->n);
        if (!words[t])
            run_fail(r, ERR_NOMEM, "entmax: not enough memory for a view");
    }
    return words;
}

static Flops entmax_flops_bound(Run *r, const void *opaque)
{
    const Params *p = opaque;
    const Entmax *form = entmax_forms_of(r, p);
    RowAttend     in = { .k = r->k, .causal = r->causal };
    double        cells = 0, overhead = 0;

    for (int64_t x = 0; form && x < r->h * r->n; x++) {
        int64_t count = row_attend_keys(r, &in, x % r->n);

        cells += (double)count;
        overhead += entmax_flops(&form[x / r->n], count);
    }
    return (Flops){ .score = 2 * cells * (double)r->d, .mix = 2 * cells * (double)r->e,
                    .overhead = overhead };
}

/* Which keys get nothing is known once all were read. */
static DecodeCost entmax_decode(const Run *r, const void *params_unused)
{
    (void)params_unused;
    return decode_dense(r);
}

static const StageNote notes[] = {
    { "alpha", "Each head has its alpha: 1 is softmax, 2 is sparsemax, more is sparser." },
    { "attend",
      "In each row a threshold is found; scores below it get exactly 0, the others share what "
      "is left." },
    { "bisect",
      "Halving the interval in which the threshold lies: the weights above it must sum to 1." },
    { "thresholds", "The threshold of each row, and how many keys stand above it." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("alpha", VIEW_TENSOR, "alpha of each head"),
    VIEW("tau", VIEW_TENSOR, "threshold of each row"),
    VIEW("support", VIEW_PATTERN, "cells with a weight above 1e-6"),
    VIEW("support_size", VIEW_COUNT, "how many of them a row has"),
    VIEW("softmax_size", VIEW_COUNT, "how many softmax would have on the same scores (up to 4 "
         "million cells)", .maybe = true),
    VIEW("softmax", VIEW_WEIGHTS, "softmax on the same scores, the support ringed (up to 4 million "
         "cells)", .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "allowed cells"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights, many exactly 0"),
    VIEW_PROMISE_END
};

const Mechanism mech_entmax = {
    .id = "entmax",
    .title = "Adaptively sparse attention (alpha-entmax)",
    .authors = "Correia, Niculae, Martins",
    .year = 2019,
    .arxiv = "1909.00015",
    .source = "paper, section 3; Peters et al. 1905.05702 and Martins, Astudillo 1602.02068; "
              "deep-spin/entmax root_finding.py, activations.py",
    .formula = "S[i,j] = scale * q_i . k_j\n"
               "w_ij = max((alpha-1) S[i,j] - tau_i, 0)^(1/(alpha-1)), tau_i: rows sum to 1\n"
               "output_i = sum_j w_ij v_j",
    .picture = "support",
    .problem = "Softmax gives every key some weight, even those of no use.",
    .idea = "Alpha-entmax, a relative of softmax, gives exact zeros, and how many depends on "
            "the scores and on alpha.",
    .price = "All scores are still computed: zeros save only the sum over the values.",
    .lesson = "sparsity",
    .teaches = "Every pair may attend, yet most weights are exactly 0 and it is the data that "
               "decide which.  Heads differ: alpha near 1 is dense like softmax, and a larger "
               "alpha leaves fewer keys.",
    .classes = CLASS_SP,
    .claim_time = "O(n^2)",
    .claim_memory = "O(n^2)",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .at_end = AT_END_OWN,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .run = entmax_run,
    .flops = entmax_flops_bound,
    .flops_bound = true,
    .decode = entmax_decode,
};
