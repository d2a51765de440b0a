/* lambda.c -- LambdaNetworks: the context becomes a small matrix, applied to each query.
 *
 *     Kbar      = softmax of K over the positions (causal: for each query over its past)
 *     lc[k,e]   = sum_(m,u) Kbar[m,k,u] V[m,e,u]         content lambda, one for all queries
 *     lp_n[k,e] = sum_(m,u) E[n,m,k,u] V[m,e,u]          position lambda of query n
 *     y_n       = q_n^T (lc + lp_n)
 *
 * E[n,m] = pos[m - n + P div 2], or its two-dimensional or absolute form; 0
 * beyond the table.  A causal content lambda is a running sum, rescaled as its
 * maximum grows.  The n x n matrix q_n . (Kbar_m + E_nm), here `weights`, is
 * never formed.  (Bello 2021, section 3.)
 */
#include "attn/ops/dense.h"
#include "attn/ops/lambdas.h"
#include "attn/run.h"

#include <math.h>

static const char *const positions[] = { "relative", "absolute", "none", NULL };

typedef struct Params {
    int     position;
    int64_t scope, grid_h, grid_w, depth_u, heads;
    Tensor  pos, w_q, w_k, w_v, q_scale, q_shift, v_scale, v_shift;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, position, LAMBDA_RELATIVE, positions, "what position lambdas depend on"),
    PARAM_TENSOR(Params, pos, "[P,k,u]; grid: [Ph,Pw,k,u]; absolute: [n,m,k,u]", "N(0, 1)",
                 "position table; P odd"),
    PARAM_INT(Params, scope, 0, 0, INT32_MAX, "P of a table that is drawn, odd; 0: all distances; "
              "the paper uses 23"),
    PARAM_INT(Params, grid_h, 0, 0, INT32_MAX, "rows of the grid; 0: a sequence"),
    PARAM_INT(Params, grid_w, 0, 0, INT32_MAX, "columns of the grid; grid_h grid_w = n"),
    PARAM_INT(Params, depth_u, 1, 1, INT32_MAX, "intra-depth u: channels of a key and of a value "
              "that share a lambda"),
    PARAM_INT(Params, heads, 1, 1, INT32_MAX, "with x only: heads of the queries"),
    PARAM_TENSOR(Params, w_q, "[dm,h k]", "N(0, 1/dm)", "with x only: queries"),
    PARAM_TENSOR(Params, w_k, "[dm,k u]", "N(0, 1/dm)", "with x only: keys, shared by all heads"),
    PARAM_TENSOR(Params, w_v, "[dm,e u]", "N(0, 1/dm)", "with x only: values, shared"),
    PARAM_TENSOR(Params, q_scale, "[h k]", "1", "normalisation of the queries, folded: factor"),
    PARAM_TENSOR(Params, q_shift, "[h k]", "0", "and shift"),
    PARAM_TENSOR(Params, v_scale, "[e u]", "1", "normalisation of the values, folded: factor"),
    PARAM_TENSOR(Params, v_shift, "[e u]", "0", "and shift"),
    PARAM_END
};

#define DRAWN(tensor) \
    { .name = tensor, .kind = VIEW_TENSOR, .maybe = true, .help = "parameter, when drawn" }

static Lambdas lambda_layer_of(Run *r, const Params *p);
static LambdaSizes lambda_sizes(Run *r, const Params *p);
static int pos_rank(const Params *p);
static bool lambda_reads_x(Run *r);
static void sizes_of_x(Run *r, const Params *p, LambdaSizes *s);
static void sizes_of_qkv(Run *r, LambdaSizes *s);
static void take_reach(const Params *p, Lambdas *l);
static void take_inputs(Run *r, const Params *p, Lambdas *l);
static Tensor lambda_projected(Run *r, const char *name, Tensor given, int64_t heads,
                               int64_t width);
static Tensor lambda_split(Run *r, Tensor y, int64_t heads);
static Tensor lambda_scaled(Run *r, Tensor t, Tensor scale, Tensor shift);
static Tensor beside(Tensor vector, int64_t heads, int64_t width);
static Tensor position_table(Run *r, const Params *p, const Lambdas *l);
static void check_odd(Run *r, const char *name, int64_t extent);

static void lambda_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Lambdas      *l = run_alloc(r, 1, sizeof(*l)); /* views read it later */

    if (!l)
        return;
    *l = lambda_layer_of(r, p);
    run_stage(r, l->s.joined ? "project" : "inputs");
    take_inputs(r, p, l);
    l->pos = position_table(r, p, l).data;
    run_stage(r, "content lambda");
    lambdas_content(l);
    run_stage(r, "position lambdas, apply");
    r->out = lambdas_apply(l);
    lambdas_show(l);
}

static Lambdas lambda_layer_of(Run *r, const Params *p)
{
    Lambdas l = { .r = r, .s = lambda_sizes(r, p), .position = (LambdaPosition)p->position,
                  .causal = r->causal };

    take_reach(p, &l);
    lambdas_reach(&l);
    return l;
}

static LambdaSizes lambda_sizes(Run *r, const Params *p)
{
    int   rank = pos_rank(p);
    LambdaSizes s = { .joined = lambda_reads_x(r), .h = 1, .hk = 1, .n = 1, .m = 1, .k = 1,
    .e = 1 };

    s.u = layer_size(r, "depth_u", p->depth_u, 1,
                     (const SizeFrom[]){ { "pos", p->pos, rank, rank - 1, 1 }, { .name = NULL } });
    if (run_failed(r))
        return s;
    if (s.joined)
        sizes_of_x(r, p, &s);
    else
        sizes_of_qkv(r, &s);
    return s;
}

static int pos_rank(const Params *p)
{
    return p->position == LAMBDA_ABSOLUTE || p->grid_w > 0 ? 4 : 3;
}

static bool lambda_reads_x(Run *r)
{
    static const char *const own[] = { "heads", "w_q", "w_k", "w_v" };
    bool qkv = r->q.data && r->k.data && r->v.data;

    for (int t = 0; t < 4; t++) {
        if (run_is_given(r, own[t]) && !r->x.data)
            run_fail(r, ERR_PARAM, "lambda: parameter %s belongs to projections of x, and the "
                     "input holds no x", own[t]);
        qkv = qkv && !run_is_given(r, own[t]);
    }
    return !qkv;
}

static void sizes_of_x(Run *r, const Params *p, LambdaSizes *s)
{
    int64_t part = r->dm / p->heads;

    s->h = p->heads;
    s->hk = 1;
    s->n = s->m = r->x.shape[0];
    s->k = p->w_q.data && p->w_q.rank == 2   ? p->w_q.shape[1] / s->h
           : p->w_k.data && p->w_k.rank == 2 ? p->w_k.shape[1] / s->u
                                             : part;
    s->e = p->w_v.data && p->w_v.rank == 2 ? p->w_v.shape[1] / s->u : part;
    if (s->k < 1 || s->e < 1)
        run_fail(r, ERR_PARAM, "lambda: %lld heads leave a query or a value without a channel (x "
                 "has %lld)", (long long)s->h, (long long)r->dm);
}

static void sizes_of_qkv(Run *r, LambdaSizes *s)
{
    s->h = r->q.shape[0];
    s->hk = r->k.shape[0];
    s->n = r->q.shape[1];
    s->m = r->k.shape[1];
    s->k = r->q.shape[2];
    s->e = r->v.shape[2] / s->u;
    if (r->v.shape[1] != s->m || r->v.shape[0] != s->hk)
        run_fail(r, ERR_DATA, "lambda: k has %lld heads of %lld positions, v %lld of %lld; they "
                 "make lambdas together", (long long)s->hk, (long long)s->m,
                 (long long)r->v.shape[0], (long long)r->v.shape[1]);
    if (s->h % s->hk)
        run_fail(r, ERR_DATA, "lambda: %lld query heads cannot be shared by %lld key heads",
                 (long long)s->h, (long long)s->hk);
    if (r->k.shape[2] != s->k * s->u)
        run_fail(r, ERR_DATA, "lambda: q has head size %lld and k %lld; with depth_u=%lld k needs "
                 "%lld", (long long)s->k, (long long)r->k.shape[2], (long long)s->u,
                 (long long)(s->k * s->u));
    if (s->e < 1 || r->v.shape[2] % s->u)
        run_fail(r, ERR_DATA, "lambda: v has head size %lld, which depth_u=%lld does not divide",
                 (long long)r->v.shape[2], (long long)s->u);
}

/* Rows and columns that the table covers. */
static void take_reach(const Params *p, Lambdas *l)
{
    bool given = p->pos.data && p->pos.rank == pos_rank(p);

    l->width = p->grid_w;
    l->up = p->scope > 0 ? p->scope / 2 : p->grid_h - 1;
    l->side = p->scope > 0 ? p->scope / 2 : (l->width > 0 ? l->width : l->s.n) - 1;
    if (given && l->width > 0)
        l->up = p->pos.shape[0] / 2;
    if (given)
        l->side = p->pos.shape[l->width > 0 ? 1 : 0] / 2;
}

/* ---- queries, keys and values ----------------------------------------------- */

static void take_inputs(Run *r, const Params *p, Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    int64_t      q_size[1] = { s->h * s->k }, v_size[1] = { s->e * s->u };
    Tensor       q_scale = layer_given(r, "q_scale", p->q_scale, 1, q_size);
    Tensor       q_shift = layer_given(r, "q_shift", p->q_shift, 1, q_size);
    Tensor       v_scale = layer_given(r, "v_scale", p->v_scale, 1, v_size);
    Tensor       v_shift = layer_given(r, "v_shift", p->v_shift, 1, v_size);

    l->q = r->q;
    l->key = r->k;
    l->v = r->v;
    if (s->joined) {
        r->n = r->m = s->n;
        l->q = lambda_projected(r, "w_q", p->w_q, s->h, s->k);
        l->key = lambda_projected(r, "w_k", p->w_k, 1, s->k * s->u);
        l->v = lambda_projected(r, "w_v", p->w_v, 1, s->e * s->u);
    }
    run_heads(r, s->h, s->k, s->e);
    l->q = lambda_scaled(r, l->q, q_scale, q_shift);
    l->v = lambda_scaled(r, l->v, v_scale, v_shift);
}

static Tensor lambda_projected(Run *r, const char *name, Tensor given, int64_t heads, int64_t width)
{
    int64_t dm = r->dm;
    Tensor  w = layer_weight(r, name, given, 2, (int64_t[]){ dm, heads * width },
                             (Init){ INIT_NORMAL, 1 / sqrt((double)dm) });
    Tensor  none = { .rank = 0 };

    return lambda_split(r, dense_layer(r, tensor_with_rank(r->x, 3), w, none, none, FLOP_APART),
                        heads);
}

/* f32 [heads,n,width] of f64 [1,n,heads * width]. */
static Tensor lambda_split(Run *r, Tensor y, int64_t heads)
{
    Tensor t = run_tensor3(r, DT_F32, heads, y.shape[1], y.shape[2] / heads);

    op_entries(r, tensor_split(y, heads), ENTRY_CAST, 0, t);
    return t;
}

/* t [heads,n,width] * scale + shift; scale and shift have one row per head, or one for all. */
static Tensor lambda_scaled(Run *r, Tensor t, Tensor scale, Tensor shift)
{
    int64_t width = t.shape[2], n = t.shape[1];
    Tensor  y;

    if (!scale.data && !shift.data)
        return t;
    y = run_tensor3(r, DT_F32, t.shape[0], n, width);
    if (scale.data)
        op_entries_of(r, t, beside(scale, t.shape[0], width), ENTRY_PRODUCT, 1, y);
    if (shift.data)
        op_entries_of(r, scale.data ? y : t, beside(shift, t.shape[0], width), ENTRY_SUM, 1, y);
    return y;
}

/* vector as [heads,1,width], or as [1,1,width] where all heads share one row; it broadcasts over
 * t. */
static Tensor beside(Tensor vector, int64_t heads, int64_t width)
{
    int64_t rows = vector.shape[0] / width;

    return tensor_of(DT_F32, 3, (int64_t[]){ rows == heads ? heads : 1, 1, width }, vector.data);
}

static Tensor position_table(Run *r, const Params *p, const Lambdas *l)
{
    const LambdaSizes *s = &l->s;
    Init         init = { INIT_NORMAL, 1 };

    if (l->position == LAMBDA_NONE)
        return (Tensor){ .rank = 0 };
    if (l->position == LAMBDA_ABSOLUTE)
        return layer_weight(r, "pos", p->pos, 4, (int64_t[]){ s->n, s->m, s->k, s->u }, init);
    if (l->width > 0)
        return layer_weight(r, "pos", p->pos, 4,
                            (int64_t[]){ 2 * l->up + 1, 2 * l->side + 1, s->k, s->u }, init);
    return layer_weight(r, "pos", p->pos, 3, (int64_t[]){ 2 * l->side + 1, s->k, s->u }, init);
}

static void lambda_check(Run *r, const void *opaque)
{
    const Params *p = opaque;
    LambdaSizes   s = lambda_sizes(r, p);
    bool          grid = p->grid_h > 0 || p->grid_w > 0, given = p->pos.data != NULL;

    if (grid && (p->grid_h < 1 || p->grid_w < 1 || p->grid_h * p->grid_w != s.n))
        run_fail(r, ERR_PARAM, "lambda: grid_h=%lld times grid_w=%lld is not n=%lld",
                 (long long)p->grid_h, (long long)p->grid_w, (long long)s.n);
    if (grid && s.m != s.n)
        run_fail(r, ERR_DATA, "lambda: on a grid keys are the queries' own positions, but there "
                 "are %lld keys and %lld queries", (long long)s.m, (long long)s.n);
    if (p->position != LAMBDA_RELATIVE)
        return;
    if (p->scope > 0)
        check_odd(r, "scope", p->scope);
    for (int axis = 0; given && p->pos.rank == pos_rank(p) && axis < pos_rank(p) - 2; axis++) {
        check_odd(r, "parameter pos", p->pos.shape[axis]);
        if (p->scope > 0 && p->scope != p->pos.shape[axis])
            run_fail(r, ERR_PARAM, "lambda: scope=%lld, but parameter pos covers %lld positions; "
                     "leave scope out", (long long)p->scope, (long long)p->pos.shape[axis]);
    }
}

static void check_odd(Run *r, const char *name, int64_t extent)
{
    if (extent % 2 == 0)
        run_fail(r, ERR_PARAM, "lambda: %s covers %lld positions; a table centred on the query "
                 "needs an odd number", name, (long long)extent);
}

static Flops lambda_flops(Run *r, const void *opaque)
{
    Lambdas l = lambda_layer_of(r, opaque);

    return lambdas_flops(&l);
}

/* Values that position lambdas of later queries read. */
static double values_held(const Lambdas *l)
{
    double n = (double)l->s.n, reach = (double)l->side + 1;

    if (l->position == LAMBDA_RELATIVE)
        return fmin(n, l->width > 0 ? (double)l->up * (double)l->width + reach : reach);
    return l->position == LAMBDA_ABSOLUTE ? n : 0;
}

/* The content lambda is a running sum with its maxima and divisors, in float32; position lambdas
 * read the values within reach again. */
static DecodeCost lambda_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    ArenaMark     mark = arena_mark(r->arena);
    Run           sized = *r;
    Lambdas       l = lambda_layer_of(&sized, p);
    double        ku = (double)(l.s.k * l.s.u), hk = (double)l.s.hk, e = (double)l.s.e;
    double        token = (double)r->cache_bytes * hk * e * (double)l.s.u;
    double        sums = 4 * hk * ((double)l.s.k * e + 2 * ku), read = (double)NAN;
    bool          all = l.position == LAMBDA_ABSOLUTE ||
               (l.position == LAMBDA_RELATIVE && p->scope == 0 && !p->pos.data);
    PatternRow row = { 0 };

    if (l.reach) {
        pattern_row(l.reach, 0, l.s.n - 1, &row);
        read = row.failed ? (double)NAN : token * (double)pattern_row_cells(&row);
        pattern_row_free(&row);
    }
    arena_release(r->arena, mark);
    return (DecodeCost){ .state_bytes = sums + token * values_held(&l),
                         .kv_bytes_per_token = all ? token : 0, .step_bytes = sums + read,
                         .decode_flops = decode_gain(r, p) };
}

static const StageNote notes[] = {
    { "project", "Queries for every head, and keys and values that all heads share, from x." },
    { "inputs", "Queries, keys and values as they are given." },
    { "content lambda", "A softmax over the positions turns each key channel into weights; the "
                        "values so weighted make one small matrix for all queries (causal: one "
                        "for each, a running sum)." },
    { "position lambdas, apply", "Each query adds a small matrix of its own, made of the values "
                                 "at each distance, and is multiplied by both: no score is ever "
                                 "computed." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("weights", VIEW_SIGNED, "q_n . (Kbar_m + E_nm), the matrix never formed; rows do not sum "
         "to 1 (depth_u=1)", .maybe = true),
    VIEW("weights_content", VIEW_SIGNED, "its part by content: stripes, the same columns for every "
         "query", .maybe = true),
    VIEW("weights_position", VIEW_SIGNED, "its part by position: bands along the diagonals",
         .maybe = true),
    VIEW("weights_u", VIEW_SIGNED, "the matrix for each depth u (depth_u above 1)", .maybe = true),
    VIEW("content_lambda", VIEW_SIGNED, "one for all queries; causal: one for each"),
    VIEW("position_lambda", VIEW_SIGNED, "one for each query"),
    VIEW("key_softmax", VIEW_WEIGHTS, "keys after the softmax over the positions"),
    VIEW("connectivity", VIEW_PATTERN, "all cells, or the lower triangle"),
    VIEW("components", VIEW_COMPONENTS, "content everywhere, and where the position table reaches"),
    DRAWN("pos"), DRAWN("w_q"), DRAWN("w_k"), DRAWN("w_v"),
    VIEW_PROMISE_END
};

const Mechanism mech_lambda = {
    .id = "lambda",
    .title = "Lambda layer",
    .authors = "Bello",
    .year = 2021,
    .arxiv = "2102.08602",
    .source = "paper, section 3; lucidrains/lambda-networks for the order of axes",
    .formula = "lc = softmax_m(K)^T V,  lp_n = sum_m E[n,m]^T V[m]\n"
               "y_n = q_n^T (lc + lp_n)\n"
               "the matrix never formed: weights[n,m] = q_n . (Kbar_m + E_nm)\n"
               "b inputs; m: keys that a query sees; k, v: widths of keys and values",
    .problem = "Attention maps over large images do not fit into memory.",
    .idea = "The context is summed into small linear functions, and each query is put through "
            "them.",
    .price = "A position function must be made for every query, and no query has a softmax of its "
             "own to pick one token.",
    .teaches = "Small k x e matrices instead of a map: one shared by all queries, one of each "
               "position.  The equivalent n x n matrix is signed: vertical stripes by content, "
               "diagonals by position, shared by a whole batch.",
    .picture = "weights",
    .example = "scope=23",
    .classes = CLASS_MX | CLASS_LR,
    .claim_time = "O(b n m k v / h)",
    .claim_memory = "O(k n m + b n k v / h)",
    .claim_decode = "yes",
    .claim_exponent = 2,
    .causal = true,
    .cross = true,
    .or_x = true,
    .own_sizes = true,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(Params),
    .check = lambda_check,
    .run = lambda_run,
    .flops = lambda_flops,
    .decode = lambda_decode,
};
