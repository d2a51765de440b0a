/* performer.c -- kernel attention with random features (FAVOR+).
 *
 * exp(q . k) is the mean over random directions w of exp(w.q - |q|^2/2) times
 * exp(w.k - |k|^2/2).  With M directions as features phi the softmax becomes a
 * product that can be summed over the keys first:
 *
 *     S = sum_j phi(k_j)^T v_j,   z_i = phi(q_i) . sum_j phi(k_j)
 *     output_i = phi(q_i) S / guarded z_i        (causal: sums over j <= i)
 *
 * The n x n matrix phi(q_i).phi(k_j) / z_i is implicit and only made for the
 * cells somebody looks at.
 */
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "attn/study/row.h"
#include "core/rng.h"

#include <math.h>
#include <string.h>

#define AUTO -1.0             /* eps, denominator_eps: by the kernel */
#define COMPARED (1 << 22)    /* most cells for which exact attention is run beside it */

static const char *const kernels[] = { "positive", "hyperbolic", "relu", "trig", NULL };
static const FeatureKind kinds[] = { FEATURE_POSITIVE, FEATURE_HYPERBOLIC, FEATURE_RELU,
                                     FEATURE_TRIG };
enum { NORMS_CHI, NORMS_SQRT_D };
static const char *const row_norms[] = { "chi", "sqrt-d", NULL };
static const char *const relu_forms[] = { "deterministic", "projected", NULL };
static const char *const denominators[] = { "guard", "add", "add-features", NULL };
static const char *const forms[] = { "auto", "matrix", "recurrent", "chunked", NULL };

typedef struct Params {
    int64_t features, chunk;
    int     kernel, ortho_scaling, relu_features, denominator_form, form;
    bool    orthogonal, stabilize, renormalize;
    double  eps, denominator_eps, scale;
    Tensor  projection;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, kernel, 0, kernels, "feature map; trig can give negative weights"),
    PARAM_INT(Params, features, 256, 1, INT32_MAX, "random directions M, when they are drawn"),
    PARAM_BOOL(Params, orthogonal, true, "draw them orthogonal in blocks of d: less variance"),
    PARAM_ENUM(Params, ortho_scaling, NORMS_CHI, row_norms, "lengths of orthogonal directions: "
               "like Gaussian vectors', or all sqrt(d)"),
    PARAM_TENSOR(Params, projection, "[M,d] or [h,M,d]", "N(0,1), orthogonal in blocks of d rows",
                 "the random directions"),
    PARAM_ENUM(Params, relu_features, 0, relu_forms, "relu: of the vectors themselves or of their "
               "projections"),
    PARAM_BOOL(Params, stabilize, true, "subtract the largest exponent before exp"),
    PARAM_FLOAT(Params, eps, AUTO, AUTO, 1e30, "added to every feature; -1: 1e-6, relu 1e-3"),
    PARAM_FLOAT(Params, denominator_eps, AUTO, AUTO, 1e30, "guard of the denominator; -1: 1e-6, "
                "relu 0"),
    PARAM_ENUM(Params, denominator_form, 0, denominators, "how it enters: only near 0, added, or "
               "added to the summed keys"),
    PARAM_BOOL(Params, renormalize, true, "divide by the denominator at all"),
    PARAM_ENUM(Params, form, 0, forms, "how it is computed; the result is the same to rounding"),
    PARAM_INT(Params, chunk, 64, 1, INT32_MAX, "tokens of a chunk (form=chunked)"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d); relu has none"),
    PARAM_END
};

#define FLAT_FACTOR 2 /* a feature of up to 2 eps says no more than eps does */

static double feature_eps(const Params *p);
static bool is_relu(const Params *p);
static bool projects(const Params *p);
static bool is_wide(const Params *p);
static double guard_eps(const Params *p);
static Tensor performer_directions(Run *r, const Params *p);
static int64_t performer_direction_count(const Params *p);
static void draw_orthogonal(Run *r, const Params *p, Tensor w);
static void orthonormalise(double *rows, int64_t count, int64_t d);
static double performer_dot(const double *a, const double *b, int64_t d);
static double gaussian_length(Rng *rng, int64_t d);
static bool two_waves(const Params *p);
static void performer_show(Run *r, const Params *p, const LinearAttend *in,
                           const LinearResult *result);
static void count_guarded(Run *r, const Params *p, const LinearResult *result);
static void count_flat(Run *r, const Params *p, const Tensor *fk);
static void performer_compare(Run *r, const Implicit *c, double scale);
static void softmax_compare(Run *r, const Implicit *c, const AttendInput *in, int64_t x,
                            double *exact, double *variation, OutputError *error);
static void performer_compare_output(const Run *r, int64_t head, int64_t i, int64_t keys,
                                     const double *w, OutputError *error);

static void performer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    FeatureMap    map = { .kind = kinds[p->kernel], .eps = feature_eps(p),
                          .stabilise = p->stabilize, .project = projects(p), .wide = is_wide(p),
                          .input_scale = is_relu(p) ? 1 : sqrt(run_scale(r, p->scale)) };
    LinearAttend  in = { .v = r->v, .causal = r->causal, .form = (LinearForm)p->form,
                         .chunk = p->chunk, .eps = guard_eps(p),
                         .denominator = p->renormalize ? (DenominatorForm)p->denominator_form
                                                       : DENOMINATOR_NONE };
    LinearResult  result;
    Tensor        w;

    run_stage(r, "directions");
    w = performer_directions(r, p);
    run_size(r, "features", projects(p) ? performer_direction_count(p) : 0);
    if (map.wide && w.data && !run_failed(r)) {
        w = tensor_convert(r->arena, w, DT_F64);
        if (!w.data)
            run_fail(r, ERR_NOMEM, "performer: not enough memory for the directions");
    }
    run_stage(r, "features");
    op_linear_features(r, &in, r->q, w, map, false);
    op_linear_features(r, &in, r->k, w, map, true);
    if (!r->causal && !run_failed(r)) /* the triangle alone may have any rank */
        run_rank(r, in.fq.shape[2], "features");
    implicit_factor(r, "features_q", VIEW_FEATURES, in.fq, "query", "feature");
    implicit_factor(r, "features_k", VIEW_FEATURES, in.fk, "key", "feature");
    run_stage(r, "state and read");
    result = op_linear_attend(r, &in);
    r->out = result.out;
    replay_offer_state(r, &in);
    if (projects(p) && !is_relu(p) && p->renormalize)
        replay_offer_features(r, performer_direction_count(p), two_waves(p) ? 2 : 1,
                              kinds[p->kernel] == FEATURE_TRIG, run_scale(r, p->scale));
    if (r->causal && p->stabilize && !is_relu(p) && map.eps > 0)
        run_warn(r, "performer: the keys' common maximum looks at all keys, so through eps=%g a "
                 "later key can change earlier outputs; stabilize=false or eps=0 is exactly "
                 "causal", map.eps);
    performer_show(r, p, &in, &result);
}

static double feature_eps(const Params *p)
{
    if (kinds[p->kernel] == FEATURE_TRIG)
        return 0;
    return p->eps >= 0 ? p->eps : is_relu(p) ? 1e-3 : 1e-6;
}

static bool is_relu(const Params *p)
{
    return kinds[p->kernel] == FEATURE_RELU;
}

static bool projects(const Params *p)
{
    return !is_relu(p) || p->relu_features == 1;
}

/* In double: waves cancel, and without a maximum or a denominator the features, or
 * what they add up to, can be large. */
static bool is_wide(const Params *p)
{
    return kinds[p->kernel] == FEATURE_TRIG || !p->renormalize || (!is_relu(p) && !p->stabilize);
}

static double guard_eps(const Params *p)
{
    return p->denominator_eps >= 0 ? p->denominator_eps : is_relu(p) ? 0 : 1e-6;
}

/* ---- the random directions -------------------------------------------------- */

/* W [1 or h,M,d]; not drawn when nothing is projected. */
static Tensor performer_directions(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, performer_direction_count(p), r->d };
    Tensor  w = run_param_given(r, "projection", p->projection, DT_F32, 3, shape);
    Rng     rng = run_rng(r, "projection");

    if (!w.data && projects(p)) {
        w = run_tensor3(r, DT_F32, 1, shape[1], r->d);
        run_prepare(r, true);
        if (p->orthogonal)
            draw_orthogonal(r, p, w);
        else if (w.data)
            rng_fill_normal(&rng, w.data, tensor_count(&w), 1);
        op_toward(r, w.data, tensor_bytes(&w));
        run_prepare(r, false);
    }
    implicit_parameter(r, "projection", w, !p->projection.data, "feature", "component");
    return w;
}

static int64_t performer_direction_count(const Params *p)
{
    const Tensor *w = &p->projection;

    return w->data && w->rank >= 2 ? w->shape[w->rank - 2] : p->features;
}

/* Blocks of up to d orthogonal rows with the lengths of Gaussian vectors. */
static void draw_orthogonal(Run *r, const Params *p, Tensor w)
{
    int64_t d = r->d, count = w.shape[1];
    Rng     rng = run_rng(r, "projection");
    double *block = run_alloc(r, d * d, sizeof(*block));

    for (int64_t first = 0; first < count && !run_failed(r); first += d) {
        int64_t rows = count - first < d ? count - first : d;

        for (int64_t x = 0; x < d * d; x++)
            block[x] = rng_normal(&rng);
        orthonormalise(block, rows, d);
        for (int64_t i = 0; i < rows; i++) {
            double size = p->ortho_scaling == NORMS_CHI ? gaussian_length(&rng, d)
                                                        : sqrt((double)d);

            for (int64_t t = 0; t < d; t++)
                tensor_f32(&w)[(first + i) * d + t] = (float)(size * block[i * d + t]);
        }
    }
}

/* Unit rows, each orthogonal to those before it (Gram-Schmidt, twice, which is
 * as good as Householder's QR here). */
static void orthonormalise(double *rows, int64_t count, int64_t d)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * d, size;

        for (int64_t j = 0; j < 2 * i; j++) {
            const double *other = rows + j % i * d;
            double        along = performer_dot(row, other, d);

            for (int64_t t = 0; t < d; t++)
                row[t] -= along * other[t];
        }
        size = sqrt(performer_dot(row, row, d));
        for (int64_t t = 0; t < d; t++)
            row[t] /= size;
    }
}

static double performer_dot(const double *a, const double *b, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++)
        sum += a[t] * b[t];
    return sum;
}

static double gaussian_length(Rng *rng, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++) {
        double x = rng_normal(rng);

        sum += x * x;
    }
    return sqrt(sum);
}

static bool two_waves(const Params *p)
{
    return kinds[p->kernel] == FEATURE_HYPERBOLIC || kinds[p->kernel] == FEATURE_TRIG;
}

/* ---- views ------------------------------------------------------------------ */

static void performer_show(Run *r, const Params *p, const LinearAttend *in,
                           const LinearResult *result)
{
    Implicit        factors = { .left = in->fq, .right = in->fk, .divisor = result->divisor };
    bool            negative = kinds[p->kernel] == FEATURE_TRIG;
    const View     *weights;
    Pattern        *cells;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    view_tensor(r, "memory", VIEW_VECTORS, result->memory, "feature", "value");
    view_tensor(r, "denominator", VIEW_TENSOR, result->denominator, "head", "query");
    implicit_connectivity(r, cells);
    weights = implicit_weights(r, factors, negative ? VIEW_SIGNED : VIEW_WEIGHTS, cells);
    if (!weights)
        return;
    count_guarded(r, p, result);
    count_flat(r, p, &in->fk);
    performer_compare(r, weights->context, run_scale(r, p->scale));
}

/* Rows whose denominator fell under the guard: their weights are not normalised. */
static void count_guarded(Run *r, const Params *p, const LinearResult *result)
{
    int64_t *rows, guarded;

    if (!p->renormalize || p->denominator_form != DENOMINATOR_GUARD)
        return;
    rows = run_head_counts(r, r->h);
    for (int64_t i = 0; rows && i < r->h * r->n; i++)
        rows[i / r->n] += fabs((double)tensor_f32(&result->denominator)[i]) <= guard_eps(p);
    guarded = run_count_by_head(r, rows, r->h, r->n);
    run_figure_int(r, "guarded_rows", guarded);
    if (guarded)
        run_warn(r, "performer: %lld of %lld rows have a denominator within %g of 0 and are "
                 "changed by its guard", (long long)guarded,
                 (long long)(r->h * r->n), guard_eps(p));
}

/* Keys whose every feature has sunk to eps: under the one maximum of all keys they
 * look alike, and the implicit matrix flattens. */
static void count_flat(Run *r, const Params *p, const Tensor *fk)
{
    int64_t heads = fk->shape[0], keys = heads * fk->shape[1], f = fk->shape[2], *sunk, flat;
    double  level = FLAT_FACTOR * feature_eps(p) / sqrt((double)f);

    if (!(feature_eps(p) > 0) ||
        (kinds[p->kernel] != FEATURE_POSITIVE && kinds[p->kernel] != FEATURE_HYPERBOLIC))
        return;
    sunk = run_head_counts(r, heads);
    for (int64_t j = 0; sunk && j < keys; j++) {
        double top = 0;

        for (int64_t c = 0; c < f; c++)
            top = fmax(top, fk->dtype == DT_F64 ? ((const double *)fk->data)[j * f + c]
                                                : (double)tensor_f32(fk)[j * f + c]);
        sunk[j / fk->shape[1]] += top <= level;
    }
    flat = run_count_by_head(r, sunk, heads, fk->shape[1]);
    if (flat > 0)
        run_warn(r, "performer: %lld of %lld keys have sunk to eps=%g in every feature, so the "
                 "weights flatten: their norms differ too much (try stabilize=false, a smaller "
                 "eps, or scale)", (long long)flat, (long long)keys, feature_eps(p));
}

static void performer_compare(Run *r, const Implicit *c, double scale)
{
    AttendInput in = { .q = r->q, .k = r->k, .v = r->v, .scale = scale };
    OutputError error = { 0 };
    double     *exact, variation = 0;

    if ((double)(r->h * r->n) * (double)r->m > COMPARED)
        return;
    exact = run_alloc(r, r->m, sizeof(*exact));
    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++)
        softmax_compare(r, c, &in, x, exact, &variation, &error);
    run_figure(r, "total_variation", variation / (double)(r->h * r->n));
    run_figure(r, "output_error",
               error.norm2 > 0 ? sqrt(error.error2 / error.norm2) : sqrt(error.error2));
}

/* Half the sum of |implicit - softmax| of row x (over all heads); adds its output error. */
static void softmax_compare(Run *r, const Implicit *c, const AttendInput *in, int64_t x,
                            double *exact, double *variation, OutputError *error)
{
    int64_t head = x / r->n, i = x % r->n, keys = r->causal ? i + 1 : r->m;
    double  top = -HUGE_VAL, sum = 0;

    for (int64_t j = 0; j < keys; j++)
        top = fmax(top, exact[j] = attend_score(in, r->h, head, i, j));
    for (int64_t j = 0; j < keys; j++)
        sum += exact[j] = exp(exact[j] - top);
    for (int64_t j = 0; j < keys; j++)
        exact[j] /= sum;
    for (int64_t j = 0; j < keys; j++)
        *variation += fabs(implicit_cell(c, head, i, j) - exact[j]) / 2;
    performer_compare_output(r, head, i, keys, exact, error);
}

/* Output i of a head, and exact attention's with weights w. */
static void performer_compare_output(const Run *r, int64_t head, int64_t i, int64_t keys,
                                     const double *w, OutputError *error)
{
    const float *v = tensor_head(&r->v, head, r->h);
    const float *o = tensor_f32(&r->out) + (head * r->n + i) * r->e;

    for (int64_t x = 0; x < r->e; x++) {
        double value = 0;

        for (int64_t j = 0; j < keys; j++)
            value += w[j] * (double)v[j * r->e + x];
        output_error_add(error, (double)o[x], value);
    }
}

static void performer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if ((p->eps < 0 && p->eps != AUTO) || (p->denominator_eps < 0 && p->denominator_eps != AUTO))
        run_fail(r, ERR_PARAM, "performer: eps=%g, denominator_eps=%g: neither may be negative "
                 "(-1 alone means: by the kernel)", p->eps, p->denominator_eps);
    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "performer: causal needs as many keys as queries: the input has "
                 "n=%lld queries and m=%lld keys", (long long)r->n, (long long)r->m);
}

static int64_t performer_feature_count(const Run *r, const Params *p)
{
    return !projects(p) ? r->d : (two_waves(p) ? 2 : 1) * performer_direction_count(p);
}

/* Of the features of one query or key. */
static double performer_feature_flops(const Run *r, const Params *p)
{
    double directions = projects(p) ? (double)performer_direction_count(p) : 0;

    return 2 * directions * (double)r->d + 5 * (double)performer_feature_count(r, p);
}

static Flops performer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        rows = (double)r->h * (double)(r->n + r->m);
    Flops         features = { .overhead = rows * performer_feature_flops(r, p) };

    return linear_attend_flops(r, performer_feature_count(r, p), r->causal, (LinearForm)p->form,
                               p->chunk, features);
}

static DecodeCost performer_decode(const Run *r, const void *opaque)
{
    return decode_state(r, performer_feature_count(r, opaque),
                        2 * (double)r->h * performer_feature_flops(r, opaque));
}

static const StageNote notes[] = {
    { "directions", "Random directions, drawn once: the axes of the features." },
    { "features",
      "Each query and key becomes a vector of random features; in the mean the product of two "
      "of them is the exponential of their score." },
    { "state and read",
      "Keys and values are summed into one state that every query reads: no pair of tokens is "
      "compared." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("projection", VIEW_TENSOR, "the random directions (not with relu_features=deterministic)",
         .maybe = true),
    VIEW("features_q", VIEW_FEATURES, "phi of the queries"),
    VIEW("features_k", VIEW_FEATURES, "phi of the keys"),
    VIEW("memory", VIEW_VECTORS, "the state S after the last key"),
    VIEW("denominator", VIEW_TENSOR, "z of each query, before the guard"),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "implicit weights; with kernel=trig some are negative"),
    VIEW_PROMISE_END
};

const Mechanism mech_performer = {
    .id = "performer",
    .title = "Performer (FAVOR+)",
    .authors = "Choromanski et al.",
    .year = 2020,
    .arxiv = "2009.14794",
    .source = "paper; google-research performer/fast_attention/jax/fast_attention.py",
    .formula = "phi(x) = exp(W x - |x|^2/2) / sqrt(M),  x = q or k times d^-1/4\n"
               "output_i = phi(q_i) sum_j phi(k_j)^T v_j / (phi(q_i) . sum_j phi(k_j))",
    .problem = "exp(q . k) does not split into a factor of q and a factor of k, so every one of "
               "the n^2 scores must be computed.",
    .idea = "Random features turn each score into a product of two vectors, so keys and values "
            "can be summed first.",
    .price = "The weights carry random noise that falls only slowly with more features.",
    .lesson = "kernels",
    .teaches = "Random features rebuild the softmax map without ever forming it: noisy with few "
               "features, close with many, and the state they are summed into does not grow "
               "with n.",
    .classes = CLASS_KR,
    .claim_time = "O(n M d)",
    .claim_memory = "O(n M + M d + n d)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "features",
    .params = params,
    .params_size = sizeof(Params),
    .check = performer_check,
    .run = performer_run,
    .flops = performer_flops,
    .decode = performer_decode,
};
