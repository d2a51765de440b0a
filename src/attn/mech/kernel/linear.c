/* linear.c -- attention with a product of features in the place of exp(q . k).
 *
 *     S = sum_j phi(k_j)^T v_j,   z = sum_j phi(k_j)
 *     output_i = phi(q_i) S / (phi(q_i) . z + eps)     (causal: sums over j <= i)
 *
 * phi(x) = elu(x) + 1 is positive, has d features and is nothing but a choice:
 * the map W_ij = phi(q_i) . phi(k_j) / (row sum + eps) is flatter than the
 * softmax's.  It is made only for the cells somebody looks at.
 * (Katharopoulos et al. 2020; efficient: Shen et al. 2018, arXiv 1812.01243.)
 */
#include "attn/ops/weights.h"
#include "attn/run.h"

enum { MAP_ELU, MAP_RELU, MAP_EXP, MAP_SOFTMAX, MAP_EFFICIENT };
static const char *const feature_maps[] = { "elu", "relu", "exp", "softmax", "efficient", NULL };
static const FeatureKind kinds[] = { FEATURE_ELU, FEATURE_RECTIFIED, FEATURE_EXP, FEATURE_SOFTMAX,
                                     FEATURE_SOFTMAX };
static const char *const forms[] = { "auto", "matrix", "recurrent", "chunked", NULL };

typedef struct Params {
    int     feature_map, form;
    int64_t chunk;
    double  alpha, eps;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, feature_map, MAP_ELU, feature_maps, "phi; efficient: queries' softmax over "
               "features, keys' over positions"),
    { .name = "alpha", .type = PARAM_TYPE_FLOAT, .offset = offsetof(Params, alpha), .fallback = 1,
      .lo = 0, .hi = 1, .above_lo = true, .help = "of elu; above 1 features could be negative" },
    PARAM_FLOAT(Params, eps, 1e-6, 0, 1e30, "added to every denominator"),
    PARAM_ENUM(Params, form, LINEAR_AUTO, forms, "how it is computed; the result is the same to "
               "rounding"),
    PARAM_INT(Params, chunk, 64, 1, INT32_MAX, "tokens of a chunk (form=chunked)"),
    PARAM_END
};

static FeatureKind key_kind(const Run *r, const Params *p);
static void linear_show(Run *r, const LinearAttend *in, const LinearResult *result);

static void linear_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    FeatureMap    map = { .kind = kinds[p->feature_map], .input_scale = 1, .alpha = p->alpha };
    LinearAttend  in = { .v = r->v, .causal = r->causal, .form = (LinearForm)p->form,
                         .chunk = p->chunk, .denominator = DENOMINATOR_ADD, .eps = p->eps };
    LinearResult  result;

    /* exp spans too many magnitudes for sums in float. */
    map.wide = key_kind(r, p) == FEATURE_EXP;
    run_stage(r, "features");
    in.fq = op_features(r, r->q, (Tensor){ 0 }, map, false);
    map.kind = key_kind(r, p);
    in.fk = op_features(r, r->k, (Tensor){ 0 }, map, true);
    run_stage(r, "state and read");
    result = op_linear_attend(r, &in);
    r->out = result.out;
    replay_offer_state(r, &in);
    linear_show(r, &in, &result);
}

/* phi of the keys.  Over positions the keys' softmax would look ahead; its divisor is
 * common to all keys, so exp alone gives the same ratio. */
static FeatureKind key_kind(const Run *r, const Params *p)
{
    if (p->feature_map != MAP_EFFICIENT)
        return kinds[p->feature_map];
    return r->causal ? FEATURE_EXP : FEATURE_COLUMN_SOFTMAX;
}

static void linear_show(Run *r, const LinearAttend *in, const LinearResult *result)
{
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    cells = implicit_cells(r);
    if (!r->causal && in->fq.data) /* the triangle alone may have any rank */
        run_rank(r, in->fq.shape[2], "features");
    view_stage(r, "features", -1);
    implicit_factor(r, "features_q", VIEW_FEATURES, in->fq, "query", "feature");
    implicit_factor(r, "features_k", VIEW_FEATURES, in->fk, "key", "feature");
    view_stage(r, NULL, -1);
    view_tensor(r, "memory", VIEW_VECTORS, result->memory, "feature", "value");
    view_tensor(r, "denominator", VIEW_TENSOR, result->denominator, "head", "query");
    implicit_connectivity(r, cells);
    implicit_weights(r, (Implicit){ .left = in->fq, .right = in->fk, .divisor = result->divisor },
                     VIEW_WEIGHTS, cells);
}

static void linear_check(Run *r, const void *params_unused)
{
    (void)params_unused;
    if (r->causal && r->m != r->n)
        run_fail(r, ERR_DATA, "linear: causal needs as many keys as queries: the input has n=%lld "
                 "queries and m=%lld keys", (long long)r->n, (long long)r->m);
}

static Flops linear_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    double        h = (double)r->h, n = (double)r->n, m = (double)r->m, d = (double)r->d;

    return linear_attend_flops(r, r->d, r->causal, (LinearForm)p->form, p->chunk,
                               (Flops){ .overhead = 3 * h * (n + m) * d });
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
    .problem = "The softmax needs all n^2 scores before it can be normalised.",
    .idea = "A simple positive map of queries and keys replaces the exponential, so keys and "
            "values are summed once for all queries.",
    .price = "The weights are flatter than those of the softmax, so it is hard to pick one "
             "token.",
    .lesson = "kernels",
    .teaches = "Summing keys and values first turns n^2 into a state of d x e numbers, which grows "
               "token by token like that of a recurrent network.  The implicit map is visibly "
               "flatter than the softmax of the same q and k.",
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
};
