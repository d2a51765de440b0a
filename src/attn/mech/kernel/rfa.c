/* rfa.c -- random feature attention, with a gate that forgets.
 *
 * For unit vectors exp(q . k / tau^2) is, up to a factor that cancels, the
 * Gaussian kernel, which random waves give in the mean:
 *
 *     W = W~ diag(sigma) / tau,  y = W x / (|x| + norm_eps)
 *     phi(x) = s (sin y_1 .. sin y_D, cos y_1 .. cos y_D),   or s max(y, 0)
 *     output_i = phi(q_i) S / max(phi(q_i) . z, min_denominator)
 *
 * with S, z the sums of phi(k_j)^T v_j and phi(k_j), or with a gate
 *
 *     S <- g_i S + (1 - g_i) phi(k_i)^T v_i,  z <- g_i z + (1 - g_i) phi(k_i)
 *
 * Waves have signs: where denominators come near 0, or waves are fast, or there is a gate, all
 * of it is in double.
 * (Peng et al. 2021; the gate is from the paper's equations.)
 */
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"

#include <math.h>

enum { KERNEL_GAUSSIAN, KERNEL_ARCCOS };
static const char *const kernels[] = { "gaussian", "arccos", NULL };
static const char *const forms[] = { "auto", "matrix", "recurrent", "chunked", NULL };

typedef struct Params {
    int64_t features, chunk;
    int     kernel, form;
    bool    normalize, gate;
    double  tau, norm_eps, feature_scale, min_denominator;
    Tensor  projection, sigma, gates, gate_weight, gate_bias;
} Params;

static const Param params[] = {
    PARAM_INT(Params, features, 64, 1, INT32_MAX / 2, "random directions D, when they are drawn"),
    PARAM_TENSOR(Params, projection, "[D,d] or [h,D,d]", "N(0,1)", "the random directions W~"),
    PARAM_TENSOR(Params, sigma, "[d] or [h,d]", "1", "learned width of each component of q and k"),
    PARAM_POSITIVE(Params, tau, 1, "temperature: smaller is sharper, and noisier"),
    PARAM_ENUM(Params, kernel, KERNEL_GAUSSIAN, kernels, "waves, or rectified projections"),
    PARAM_BOOL(Params, normalize, true, "divide q and k by their length plus norm_eps"),
    PARAM_FLOAT(Params, norm_eps, 1e-3, 0, 1e30, "added to a length before dividing by it"),
    PARAM_FLOAT(Params, feature_scale, 0, 0, 1e30, "amplitude of the features; 0: 1/sqrt(D)"),
    PARAM_FLOAT(Params, min_denominator, 1e-3, 0, 1e30, "a denominator below is raised to it"),
    PARAM_BOOL(Params, gate, false, "let the state fade by a gate for each token (causal only)"),
    PARAM_TENSOR(Params, gates, "[n] or [h,n]", "computed", "the gates themselves, 0 to 1"),
    PARAM_TENSOR(Params, gate_weight, "[du] or [h,du]", "glorot",
                 "gate = sigmoid(u . gate_weight + gate_bias), u = x where there is one, else q"),
    { .name = "gate_bias", .type = PARAM_TYPE_TENSOR, .offset = offsetof(Params, gate_bias),
      .number = true, .shape = "[h], or one number", .drawn = "0", .help = "its bias" },
    PARAM_ENUM(Params, form, LINEAR_AUTO, forms, "how it is computed without a gate; the result is "
               "the same to rounding"),
    PARAM_INT(Params, chunk, 64, 1, INT32_MAX, "tokens of a chunk (form=chunked)"),
    PARAM_END
};

/* Directions this long turn the waves so fast that float no longer knows where they are. */
#define LONGEST 16.0
/* Features add up to at most `least` of what they could, and rounding is so much larger. */
#define LEAST (1.0 / 32)

static Tensor directions(Run *r, const Params *p);
static int64_t direction_count(const Params *p);
static void rfa_attend(Run *r, const Params *p, Tensor w, bool wide, LinearAttend *in,
                       LinearResult *result);
static FeatureMap map_of(const Params *p);
static bool rfa_waves(const Params *p);
static Tensor given_gates(Run *r, const Params *p);
static Tensor computed_gates(Run *r, const Params *p);
static bool holds_in_float(Run *r, const Params *p, const LinearResult *result);
static void rfa_show(Run *r, const Params *p, const LinearAttend *in, const LinearResult *result);
static void show_clamped(Run *r, const Params *p, Tensor denominator);
static int64_t rfa_feature_count(const Params *p);
static double gate_flops(const Run *r, const Params *p);

static void rfa_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    LinearAttend  in = { .v = r->v, .causal = r->causal, .form = (LinearForm)p->form,
                         .chunk = p->chunk, .denominator = DENOMINATOR_FLOOR,
                         .eps = p->min_denominator };
    LinearResult  result;
    Tensor        w, rounded;
    bool          quick;

    run_stage(r, "directions");
    w = directions(r, p);
    if (run_failed(r))
        return;
    rounded = dense_rounded(r, w);
    quick = !run_failed(r) && !p->gate && p->normalize &&
            op_largest_norm(r, rounded) <= LONGEST;
    rfa_attend(r, p, quick ? rounded : w, !quick, &in, &result);
    if (quick && !run_failed(r) && !holds_in_float(r, p, &result)) {
        r->again = true;
        rfa_attend(r, p, w, true, &in, &result);
        r->again = false;
    }
    r->out = result.out;
    replay_offer_state(r, &in);
    rfa_show(r, p, &in, &result);
}

/* ---- directions ------------------------------------------------------------- */

/* W f64 [1 or h,D,d] = W~ diag(sigma) / tau; shows W~. */
static Tensor directions(Run *r, const Params *p)
{
    int64_t count = direction_count(p), d = r->d;
    Tensor  sigma = run_param_given(r, "sigma", p->sigma, DT_F32, 2, (int64_t[]){ r->h, d });
    Tensor  w, scaled;

    w = run_param_given(r, "projection", p->projection, DT_F32, 3, (int64_t[]){ r->h, count, d });
    if (!w.data) {
        Rng rng = run_rng(r, "projection");

        w = run_tensor3(r, DT_F32, 1, count, d);
        run_draw(r, &rng, (Init){ INIT_NORMAL, 1 }, w);
    }
    implicit_parameter(r, "projection", w, !p->projection.data, "feature", "component");
    scaled = run_tensor3(r, DT_F64, r->h, count, d);
    if (sigma.data) {
        sigma = tensor_of(DT_F32, 3, (int64_t[]){ sigma.shape[0], 1, d }, sigma.data);
        op_entries_of(r, w, sigma, ENTRY_PRODUCT, 1, scaled);
    }
    op_entries(r, sigma.data ? scaled : w, ENTRY_DIVIDE, p->tau, scaled);
    return scaled;
}

static int64_t direction_count(const Params *p)
{
    const Tensor *w = &p->projection;

    return w->data && w->rank >= 2 ? w->shape[w->rank - 2] : p->features;
}

static void rfa_attend(Run *r, const Params *p, Tensor w, bool wide, LinearAttend *in,
                       LinearResult *result)
{
    FeatureMap map = map_of(p);

    map.wide = wide;
    run_size(r, "features", direction_count(p));
    run_stage(r, "features");
    op_linear_features(r, in, r->q, w, map, false);
    op_linear_features(r, in, r->k, w, map, true);
    if (p->gate) {
        run_stage(r, "gates");
        in->gates = p->gates.data ? given_gates(r, p) : computed_gates(r, p);
    }
    run_stage(r, "state and read");
    *result = op_linear_attend(r, in);
}

static FeatureMap map_of(const Params *p)
{
    double count = (double)direction_count(p);

    return (FeatureMap){
        .kind = rfa_waves(p) ? FEATURE_SIN_COS : FEATURE_ARC_COS,
        .amplitude = p->feature_scale > 0 ? p->feature_scale : 1 / sqrt(count),
        .input_scale = 1,
        .unit = p->normalize,
        .norm_eps = p->norm_eps,
        .project = true,
    };
}

static bool rfa_waves(const Params *p)
{
    return p->kernel == KERNEL_GAUSSIAN;
}

static Tensor given_gates(Run *r, const Params *p)
{
    Tensor given = run_param_given(r, "gates", p->gates, DT_F32, 2, (int64_t[]){ r->h, r->n });
    Tensor g = run_tensor2(r, DT_F64, r->h, r->n);

    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        double value = (double)((float *)tensor_head(&given, x / r->n, r->h))[x % r->n];

        if (!(value >= 0 && value <= 1))
            run_fail(r, ERR_PARAM, "rfa: parameter gates: head %lld, token %lld is %g; a gate is "
                     "from 0 to 1", (long long)(x / r->n), (long long)(x % r->n), value);
        ((double *)g.data)[x] = value;
    }
    return g;
}

static Tensor computed_gates(Run *r, const Params *p)
{
    Tensor  u = r->x.data ? tensor_with_rank(r->x, 3) : r->q;
    int64_t du = u.shape[2];
    Tensor  w = run_param(r, "gate_weight", p->gate_weight, DT_F32, 2, (int64_t[]){ r->h, du },
                          (Init){ INIT_GLOROT, (double)(du + 1) });
    Tensor  bias = run_param_given(r, "gate_bias", p->gate_bias, DT_F32, 1, (int64_t[]){ r->h });
    Tensor  g = run_tensor2(r, DT_F64, r->h, r->n);

    g.rank = 3;
    if (!run_failed(r)) {
        op_gemm(r, u, false, tensor_of(DT_F32, 3, (int64_t[]){ w.shape[0], du, 1 }, w.data), false,
                1, 0, g, FLOP_APART);
        if (bias.data)
            op_entries_of(r, g, tensor_of(DT_F32, 3, (int64_t[]){ bias.shape[0], 1, 1 }, bias.data),
                          ENTRY_SUM, 1, g);
        op_entries(r, g, ENTRY_SIGMOID, 0, g);
    }
    g.rank = 2;
    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * r->n) * (double)du);
    return g;
}

/* True if no row's products with the keys nearly cancel. */
static bool holds_in_float(Run *r, const Params *p, const LinearResult *result)
{
    double size = map_of(p).amplitude * map_of(p).amplitude * (double)direction_count(p);

    if (rfa_waves(p))
        op_wait(r, "the host looks whether float was exact enough");
    for (int64_t x = 0; x < r->h * r->n && rfa_waves(p); x++) {
        double keys = r->causal ? (double)(x % r->n + 1) : (double)r->m;

        if (!((double)tensor_f32(&result->denominator)[x] >= LEAST * size * keys))
            return false;
    }
    return true;
}

/* ---- views ------------------------------------------------------------------ */

static void rfa_show(Run *r, const Params *p, const LinearAttend *in, const LinearResult *result)
{
    Implicit factors = { .left = in->fq, .right = in->fk, .divisor = result->divisor,
                         .gates = in->gates };
    Pattern *cells;
    Tensor   gates;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    if (!r->causal && !run_failed(r)) /* the triangle alone may have any rank */
        run_rank(r, in->fq.shape[2], "features");
    implicit_factor(r, "features_q", VIEW_FEATURES, in->fq, "query", "feature");
    implicit_factor(r, "features_k", VIEW_FEATURES, in->fk, "key", "feature");
    view_tensor(r, "memory", VIEW_VECTORS, result->memory, "feature", "value");
    view_tensor(r, "denominator", VIEW_TENSOR, result->denominator, "head", "query");
    if (in->gates.data) {
        gates = tensor_convert(r->arena, in->gates, DT_F32);
        if (!gates.data)
            run_fail(r, ERR_NOMEM, "rfa: not enough memory for a view");
        view_tensor(r, "gates", VIEW_TENSOR, gates, "head", "token");
    }
    implicit_connectivity(r, cells);
    implicit_weights(r, factors, rfa_waves(p) ? VIEW_SIGNED : VIEW_WEIGHTS, cells);
    show_clamped(r, p, result->denominator);
}

/* Rows whose denominator was raised: their weights do not sum to 1. */
static void show_clamped(Run *r, const Params *p, Tensor denominator)
{
    Tensor  rows = run_tensor2(r, DT_U8, r->h, r->n);
    int64_t *raised = run_head_counts(r, r->h), count;

    for (int64_t x = 0; x < r->h * r->n && !run_failed(r); x++) {
        bool clamped = !((double)tensor_f32(&denominator)[x] > p->min_denominator);

        tensor_u8(&rows)[x] = clamped;
        raised[x / r->n] += clamped;
    }
    count = run_count_by_head(r, raised, r->h, r->n);
    view_tensor(r, "clamped", VIEW_MEMBERSHIP, rows, "head", "query");
    run_figure_int(r, "clamped_rows", count);
    if (count > 0)
        run_warn(r, "rfa: %lld of %lld rows have a denominator of at most min_denominator=%g, "
                 "which replaces it: their weights do not sum to 1 (view clamped)",
                 (long long)count, (long long)(r->h * r->n), p->min_denominator);
}

static void rfa_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->gate && !r->causal)
        run_fail(r, ERR_USAGE, "rfa: gate=true fades what came before, so it needs --causal");
    if (p->gate && p->form != LINEAR_AUTO && p->form != LINEAR_RECURRENT)
        run_fail(r, ERR_PARAM, "rfa: form=%s has no gated form; with gate=true it is recurrent",
                 forms[p->form]);
    if (p->gates.data && !p->gate)
        run_warn(r, "rfa: gates are given, but gate=false does not read them");
    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "rfa: causal needs as many keys as queries: the input has n=%lld "
                 "queries and m=%lld keys", (long long)r->n, (long long)r->m);
}

static Flops rfa_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        rows = (double)r->h * (double)(r->n + r->m), f = (double)rfa_feature_count(p);
    double        projected = 2 * (double)direction_count(p) * (double)r->d;
    Flops         more = { .overhead = rows * (projected + 4 * f) + gate_flops(r, p) };

    return linear_attend_flops(r, rfa_feature_count(p), r->causal,
                               p->gate ? LINEAR_RECURRENT : (LinearForm)p->form, p->chunk, more);
}

static DecodeCost rfa_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        f = (double)rfa_feature_count(p);
    double        features = 2 * (double)direction_count(p) * (double)r->d + 4 * f;

    return decode_state(r, rfa_feature_count(p),
                        2 * (double)r->h * features + gate_flops(r, p) / (double)r->n);
}

static int64_t rfa_feature_count(const Params *p)
{
    return (rfa_waves(p) ? 2 : 1) * direction_count(p);
}

static double gate_flops(const Run *r, const Params *p)
{
    double rows = (double)r->h * (double)r->n, f = (double)rfa_feature_count(p);
    double du = (double)(r->x.data ? r->dm : r->d);

    if (!p->gate)
        return 0;
    return 3 * rows * f * ((double)r->e + 1) + (p->gates.data ? 0 : 2 * rows * du);
}

static const StageNote notes[] = {
    { "directions", "Random directions, drawn once: the frequencies of the features." },
    { "features",
      "Sines and cosines of each query and key; the product of two of them stands for a "
      "Gaussian kernel." },
    { "gates", "A gate for each token says how much of the past is forgotten before it is added." },
    { "state and read",
      "Keys and values are summed into one state that every query reads: no pair of tokens is "
      "compared." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("projection", VIEW_TENSOR, "the random directions W~"),
    VIEW("features_q", VIEW_FEATURES, "phi of the queries"),
    VIEW("features_k", VIEW_FEATURES, "phi of the keys"),
    VIEW("memory", VIEW_VECTORS, "the state S after the last key"),
    VIEW("denominator", VIEW_TENSOR, "z of each query, before min_denominator"),
    VIEW("clamped", VIEW_MEMBERSHIP, "queries whose denominator was raised"),
    VIEW("gates", VIEW_TENSOR, "how much of the state each token keeps (with gate)", .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_SIGNED, "implicit weights, some negative (none with kernel=arccos)"),
    VIEW_PROMISE_END
};

const Mechanism mech_rfa = {
    .id = "rfa",
    .title = "Random Feature Attention",
    .authors = "Peng, Pappas, Yogatama, Schwartz, Smith, Kong",
    .year = 2021,
    .arxiv = "2103.02143",
    .source = "paper; Noahs-ARK/RFA utils.py, rfa.py, causal_attention.py; gate from the paper",
    .formula = "phi(x) = (sin W x, cos W x) / sqrt(D),  x = q or k at unit length\n"
               "output_i = phi(q_i) S_i / max(phi(q_i) . z_i, min_denominator)\n"
               "gated: S_i = g_i S_(i-1) + (1 - g_i) phi(k_i)^T v_i, z_i likewise",
    .problem = "exp(q . k) does not split into a factor of q and a factor of k: all n^2 scores "
               "must be computed, and a decoder must keep all keys.",
    .idea = "Sines and cosines at random frequencies estimate the softmax of unit vectors, with "
            "a gate that forgets.",
    .price = "The estimate is noisy and can be negative in single cells.",
    .lesson = "kernels",
    .teaches = "Waves at random frequencies agree where query and key are near: before the "
               "division the map is right in the mean, after it only nearly so, and it can be "
               "negative in a cell.  With the gate it fades with distance, and forgets at once "
               "where g drops.",
    .classes = CLASS_KR,
    .claim_time = "O(n D d)",
    .claim_memory = "O(n D + D d)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .size = "features",
    .params = params,
    .params_size = sizeof(Params),
    .check = rfa_check,
    .run = rfa_run,
    .flops = rfa_flops,
    .decode = rfa_decode,
};
