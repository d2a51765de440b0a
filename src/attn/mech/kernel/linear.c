/* linear.c -- attention with a product of features in the place of exp(q . k).
 *
 *     S = sum_j phi(k_j)^T v_j,   z = sum_j phi(k_j)
 *     output_i = phi(q_i) S / (phi(q_i) . z + eps)     (causal: sums over j <= i)
 *
 * phi(x) = elu(x) + 1 is positive, has d features and is nothing but a choice:
 * the map W_ij = phi(q_i) . phi(k_j) / (row sum + eps) is flatter than the
 * softmax's.  It is made only for the cells somebody looks at.  Other maps are
 * choices too: maps.h has those that are made of several operations.
 * (Katharopoulos et al. 2020; efficient: Shen et al. 2018, arXiv 1812.01243.)
 */
#include "attn/mech/kernel/maps.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>

enum { MAP_ELU, MAP_RELU, MAP_EXP, MAP_SOFTMAX, MAP_EFFICIENT, MAP_MADE };
static const char *const feature_maps[] = { "elu", "relu", "exp", "softmax", "efficient", "taylor2",
                                            "hedgehog", "t2r", "dpfp", "identity", NULL };
static const FeatureKind kinds[MAP_MADE] = { FEATURE_ELU, FEATURE_RECTIFIED, FEATURE_EXP,
                                             FEATURE_SOFTMAX, FEATURE_SOFTMAX };
static const char *const forms[] = { "auto", "matrix", "recurrent", "chunked", NULL };
static const char *const hedgehog_norms[] = { "joint", "split", "exp", NULL };

typedef struct Params {
    int     feature_map, form, hedgehog_norm;
    int64_t chunk, nu;
    double  alpha, eps, scale;
    bool    normalize;
    Tensor  fm_weight_q, fm_weight_k, fm_bias_q, fm_bias_k;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, feature_map, MAP_ELU, feature_maps, "phi; efficient: queries' softmax over "
               "features, keys' over positions; taylor2: exp's parabola; hedgehog, t2r: learned"),
    { .name = "alpha", .type = PARAM_TYPE_FLOAT, .offset = offsetof(Params, alpha), .fallback = 1,
      .lo = 0, .hi = 1, .above_lo = true, .help = "of elu; above 1 features could be negative" },
    PARAM_FLOAT(Params, eps, 1e-6, 0, 1e30, "added to every denominator"),
    PARAM_ENUM(Params, form, LINEAR_AUTO, forms, "how it is computed; the result is the same to "
               "rounding"),
    PARAM_INT(Params, chunk, 64, 1, INT32_MAX, "tokens of a chunk (form=chunked)"),
    PARAM_BOOL(Params, normalize, true, "divide by the denominator at all"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "taylor2: factor of the scores, 0: 1/sqrt(d); identity: "
                "of the queries, 0: 1; other maps have none"),
    PARAM_TENSOR(Params, fm_weight_q, "[f0,d] or [h,f0,d]",
                 "hedgehog: the identity; t2r: uniform(+-1/sqrt(d)), f0 = d",
                 "W of the queries' map (hedgehog, t2r)"),
    PARAM_TENSOR(Params, fm_weight_k, "[f0,d] or [h,f0,d]",
                 "hedgehog: the identity; t2r: uniform(+-1/sqrt(d)), f0 = d",
                 "W of the keys' map (hedgehog, t2r)"),
    PARAM_TENSOR(Params, fm_bias_q, "[f0] or [h,f0]", "0", "b of the queries' map"),
    PARAM_TENSOR(Params, fm_bias_k, "[f0] or [h,f0]", "0", "b of the keys' map"),
    PARAM_ENUM(Params, hedgehog_norm, HEDGEHOG_JOINT, hedgehog_norms, "softmax over (2y, -2y), "
               "over y and -y by themselves, or exp alone"),
    PARAM_INT(Params, nu, 1, 1, INT32_MAX, "blocks of products, at most 2d - 1 (dpfp)"),
    PARAM_END
};

static void linear_features(Run *r, const Params *p, LinearAttend *in);
static FeatureKind key_kind(const Run *r, const Params *p);
static Map linear_map(Run *r, const Params *p, bool keys);
static Tensor map_weight(Run *r, const Params *p, bool keys);
static int64_t weight_rows(const Run *r, const Params *p);
static int64_t rows_of(const Run *r, const Tensor *w);
static void linear_tell(Run *r, const Params *p, const LinearAttend *in,
                        const LinearResult *result);
static void linear_show(Run *r, const Params *p, const LinearAttend *in,
                        const LinearResult *result);

static void linear_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    LinearAttend  in = { .v = r->v, .causal = r->causal, .form = (LinearForm)p->form,
                         .chunk = p->chunk, .eps = p->eps,
                         .denominator = p->normalize ? DENOMINATOR_ADD : DENOMINATOR_NONE };
    LinearResult  result;

    run_stage(r, "features");
    linear_features(r, p, &in);
    run_stage(r, "state and read");
    result = op_linear_attend(r, &in);
    r->out = result.out;
    replay_offer_state(r, &in);
    linear_show(r, p, &in, &result);
}

static void linear_features(Run *r, const Params *p, LinearAttend *in)
{
    FeatureMap plain = { .input_scale = 1, .alpha = p->alpha };
    Map        map;

    if (p->feature_map >= MAP_MADE) {
        map = linear_map(r, p, false);
        in->fq = map_features(r, &map, r->q);
        map = linear_map(r, p, true);
        in->fk = map_features(r, &map, r->k);
        return;
    }
    plain.kind = kinds[p->feature_map];
    /* exp spans too many magnitudes for sums in float. */
    plain.wide = key_kind(r, p) == FEATURE_EXP;
    op_linear_features(r, in, r->q, (Tensor){ 0 }, plain, false);
    plain.kind = key_kind(r, p);
    op_linear_features(r, in, r->k, (Tensor){ 0 }, plain, true);
}

/* phi of the keys.  Over positions the keys' softmax would look ahead; its divisor is
 * common to all keys, so exp alone gives the same ratio. */
static FeatureKind key_kind(const Run *r, const Params *p)
{
    if (p->feature_map != MAP_EFFICIENT)
        return kinds[p->feature_map];
    return r->causal ? FEATURE_EXP : FEATURE_COLUMN_SOFTMAX;
}

/* ---- maps made of several operations ------------------------------------------ */

static MapKind made_kind(const Params *p)
{
    return (MapKind)(p->feature_map - MAP_MADE);
}

static bool is_made(const Params *p, MapKind kind)
{
    return p->feature_map >= MAP_MADE && made_kind(p) == kind;
}

static bool has_weights(const Params *p)
{
    return is_made(p, MAP_HEDGEHOG) || is_made(p, MAP_T2R);
}

static Map linear_map(Run *r, const Params *p, bool keys)
{
    Map map = { .kind = made_kind(p), .norm = (HedgehogNorm)p->hedgehog_norm, .nu = p->nu };

    if (is_made(p, MAP_TAYLOR2))
        map.scale = run_scale(r, p->scale);
    else
        map.scale = p->scale > 0 && !keys ? p->scale : 1;
    if (!has_weights(p))
        return map;
    map.weight = map_weight(r, p, keys);
    map.bias = run_param_given(r, keys ? "fm_bias_k" : "fm_bias_q",
                               keys ? p->fm_bias_k : p->fm_bias_q, DT_F32, 2,
                               (int64_t[]){ r->h, weight_rows(r, p) });
    return map;
}

/* W f32 [h',f0,d]: given, drawn, or hedgehog's identity. */
static Tensor map_weight(Run *r, const Params *p, bool keys)
{
    const char *name = keys ? "fm_weight_k" : "fm_weight_q";
    Tensor      given = keys ? p->fm_weight_k : p->fm_weight_q, w;
    int64_t     shape[3] = { r->h, weight_rows(r, p), r->d }, d = r->d;

    if (given.data || is_made(p, MAP_T2R))
        return run_param(r, name, given, DT_F32, 3, shape,
                         (Init){ .kind = INIT_UNIFORM, .a = 1 / sqrt((double)d) });
    w = run_tensor3(r, DT_F32, 1, d, d);
    for (int64_t x = 0; x < d * d && !run_failed(r); x++)
        tensor_f32(&w)[x] = x % (d + 1) == 0;
    op_toward(r, w.data, tensor_bytes(&w));
    return w;
}

/* f0: queries' and keys' features meet, so both maps have as many. */
static int64_t weight_rows(const Run *r, const Params *p)
{
    return rows_of(r, p->fm_weight_q.data ? &p->fm_weight_q : &p->fm_weight_k);
}

static int64_t rows_of(const Run *r, const Tensor *w)
{
    return w->data && w->rank >= 2 ? w->shape[w->rank - 2] : r->d;
}

/* ---- views and figures ---------------------------------------------------------- */

static void linear_show(Run *r, const Params *p, const LinearAttend *in,
                        const LinearResult *result)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    linear_tell(r, p, in, result);
    cells = run_allowed_cells(r);
    if (!r->causal && !run_failed(r)) /* the triangle alone may have any rank */
        run_rank(r, in->fq.shape[2], "features");
    view_stage(r, "features", -1);
    implicit_factor(r, "features_q", VIEW_FEATURES, in->fq, "query", "feature");
    implicit_factor(r, "features_k", VIEW_FEATURES, in->fk, "key", "feature");
    view_stage(r, NULL, -1);
    view_tensor(r, "memory", VIEW_VECTORS, result->memory, "feature", "value");
    view_tensor(r, "denominator", VIEW_TENSOR, result->denominator, "head", "query");
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = in->fq, .right = in->fk, .divisor = result->divisor },
                     is_made(p, MAP_IDENTITY) ? VIEW_SIGNED : VIEW_WEIGHTS, cells);
}

static void linear_tell(Run *r, const Params *p, const LinearAttend *in,
                        const LinearResult *result)
{
    int64_t rows = r->h * r->n, *below;
    double  least = (double)INFINITY;

    if (run_failed(r))
        return;
    if (is_made(p, MAP_TAYLOR2))
        run_say(r, "%lld channels make %lld features: the state is %lld x %lld numbers a head.",
                (long long)r->d, (long long)in->fq.shape[2], (long long)in->fq.shape[2],
                (long long)r->e);
    if (!is_made(p, MAP_IDENTITY) || !p->normalize)
        return;
    below = run_head_counts(r, r->h);
    for (int64_t i = 0; below && i < rows; i++) {
        double z = (double)tensor_f32(&result->denominator)[i];

        below[i / r->n] += !(z > 0);
        least = fmin(least, fabs(z));
    }
    run_warn(r, "linear: features of feature_map=identity have signs, so denominators can be near "
             "0 or negative: %lld of %lld rows are not above 0, the smallest size is %.3g; "
             "normalize=false does not divide",
             (long long)run_count_by_head(r, below, r->h, r->n), (long long)rows, least);
}

/* ---- limits and closed form ------------------------------------------------------ */

static void linear_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    const Tensor *q = &p->fm_weight_q, *k = &p->fm_weight_k;
    const char   *map = feature_maps[p->feature_map];

    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "linear: causal needs as many keys as queries: the input has n=%lld "
                 "queries and m=%lld keys", (long long)r->n, (long long)r->m);
    if (p->scale > 0 && !is_made(p, MAP_TAYLOR2) && !is_made(p, MAP_IDENTITY))
        run_fail(r, ERR_PARAM, "linear: scale=%g: feature_map=%s has no scale; leave it out, or "
                 "take feature_map=taylor2 or identity", p->scale, map);
    if (is_made(p, MAP_DPFP) && p->nu > 2 * r->d - 1)
        run_fail(r, ERR_PARAM, "linear: nu=%lld is beyond 2d - 1 = %lld, where the products repeat",
                 (long long)p->nu, (long long)(2 * r->d - 1));
    if (has_weights(p) && rows_of(r, q) != rows_of(r, k))
        run_fail(r, ERR_PARAM, "linear: the queries' map has %lld features (fm_weight_q) and the "
                 "keys' %lld (fm_weight_k): give both, with as many rows",
                 (long long)rows_of(r, q), (long long)rows_of(r, k));
}

static int64_t linear_feature_count(const Run *r, const Params *p)
{
    return p->feature_map < MAP_MADE ? r->d
                                     : map_count(made_kind(p), r->d, weight_rows(r, p), p->nu);
}

/* Of the features of one query or key. */
static double linear_feature_flops(const Run *r, const Params *p)
{
    return p->feature_map < MAP_MADE ? 3 * (double)r->d
                                     : map_flops(made_kind(p), r->d, weight_rows(r, p), p->nu);
}

static Flops linear_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        rows = (double)r->h * (double)(r->n + r->m);
    Flops         features = { .overhead = rows * linear_feature_flops(r, p) };

    return linear_attend_flops(r, linear_feature_count(r, p), r->causal, (LinearForm)p->form,
                               p->chunk, features);
}

static DecodeCost linear_decode(const Run *r, const void *opaque)
{
    return decode_state(r, linear_feature_count(r, opaque),
                        2 * (double)r->h * linear_feature_flops(r, opaque));
}

static const StageNote notes[] = {
    { "features",
      "Queries and keys go through a positive function, so that their products can stand for "
      "weights." },
    { "state and read",
      "Keys and values are summed into one state that every query reads: no pair of tokens is "
      "compared." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("features_q", VIEW_FEATURES, "phi of the queries"),
    VIEW("features_k", VIEW_FEATURES, "phi of the keys"),
    VIEW("memory", VIEW_VECTORS, "the state S after the last key"),
    VIEW("denominator", VIEW_TENSOR, "z of each query, before eps"),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("weights", VIEW_WEIGHTS, "implicit weights"),
    VIEW_PROMISE_END
};

const Mechanism mech_linear = {
    .id = "linear",
    .title = "Linear Transformer",
    .authors = "Katharopoulos, Vyas, Pappas, Fleuret",
    .year = 2020,
    .arxiv = "2006.16236",
    .source = "paper, section 3; idiap/fast-transformers linear and causal linear attention",
    .formula = "phi(x) = elu(x) + 1\n"
               "output_i = phi(q_i) sum_j phi(k_j)^T v_j / (phi(q_i) . sum_j phi(k_j) + eps)",
    .problem = "exp(q . k) does not split into a factor of q and a factor of k, so every one of "
               "the n^2 scores must be computed.",
    .idea = "A simple positive map of queries and keys replaces the exponential, so keys and "
            "values are summed once for all queries.",
    .price = "The weights are flatter than those of the softmax, so it is hard to pick one "
             "token.",
    .lesson = "kernels",
    .teaches = "Summing keys and values first turns n^2 into a state of d x e numbers, which grows "
               "token by token like that of a recurrent network.  The implicit map is visibly "
               "flatter than the softmax of the same q and k; with feature_map=taylor2, 1 + s + "
             "s^2/2 in the place of e^s, it is sharper, but where s < -1 a weight rises again.",
    .classes = CLASS_KR,
    .claim_time = "O(n d e)",
    .claim_memory = "O(n d + d e)",
    .claim_decode = "yes",
    .claim_exponent = 1,
    .causal = true,
    .cross = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = linear_check,
    .run = linear_run,
    .flops = linear_flops,
    .decode = linear_decode,
};
