/* set_isab.c -- sets attend through inducing points; pooling by seeds.
 *
 * MAB is multihead attention with a residual and a feed-forward (attn/mech/memory/set_isab.c):
 *
 *     H = MAB_0(I, X)        k inducing points read the set     (k x dim)
 *     Y = MAB_1(X, H)        the set reads what they hold       (n x dim)
 *     pooled = MAB_p(S, Y)   with seeds S                       (s x dim)
 *
 * With q, k and v only the attention is left (mab=core; attn/mech/lowrank/latents.h):
 *
 *     A_in = softmax(scale I K^T),  H_K = A_in K,  H_V = A_in V
 *     output = softmax(scale Q H_K^T) H_V = A_out H_V
 *
 * which is linear in V: A_out A_in are its weights.  A block is not; the same product is
 * there only the way attention flows through the points.
 * (Lee et al. 2019; official: juho-lee/set_transformer modules.py.)
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "attn/mech/lowrank/latents.h"
#include "attn/ops/dense.h"
#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef struct MabTensors {
    Tensor wq, bq, wk, bk, wv, bv, wo, bo; /* as given; data NULL: not */
    Tensor wf, bf;                         /* feed-forward of the paper's */
    Tensor ln0_g, ln0_b, ln1_g, ln1_b;
} MabTensors;

typedef struct Mab {
    MabTensors  given;
    const char *suffix; /* of the parameters' names: "_0" */
    bool        paper, norm, ff;
    int64_t     heads, dim;
    double      scale;
} Mab;

typedef struct MabResult {
    Tensor out;     /* f64 [1,rows,dim] */
    Tensor weights; /* f64 [heads,rows,keys] */
} MabResult;

enum { MAB_AUTO, MAB_OFFICIAL, MAB_PAPER, MAB_CORE };
static const char *const mabs[] = { "auto", "official", "paper", "core", NULL };
enum { CHOICE_AUTO, CHOICE_TRUE, CHOICE_FALSE };
static const char *const choices[] = { "auto", "true", "false", NULL };

typedef struct Params {
    int        mab, layer_norm, pma_ff;
    int64_t    n_inducing, heads, dim;
    bool       ff;
    double     scale;
    Tensor     inducing, seeds, wff_p, bff_p;
    MabTensors mab_0, mab_1, mab_p;
} Params;

#define MATRIX_DRAWN "uniform +-1/sqrt(rows)"
#define MAB_TENSOR(set, field, number, dims, init, text)                                       \
    { .name = #field "_" number, .type = PARAM_TYPE_TENSOR,                                    \
      .offset = offsetof(Params, set) + offsetof(MabTensors, field), .shape = (dims),          \
      .drawn = (init), .help = (text) }
#define MAB_PARAMS(set, t, query, key)                                                         \
    MAB_TENSOR(set, wq, t, "[" query ",dim]", MATRIX_DRAWN, "queries of MAB " t),              \
    MAB_TENSOR(set, bq, t, "[dim]", "0", "their bias"),                                        \
    MAB_TENSOR(set, wk, t, "[" key ",dim]", MATRIX_DRAWN, "keys of MAB " t),                   \
    MAB_TENSOR(set, bk, t, "[dim]", "0", "their bias"),                                        \
    MAB_TENSOR(set, wv, t, "[" key ",dim]", MATRIX_DRAWN, "values of MAB " t),                 \
    MAB_TENSOR(set, bv, t, "[dim]", "0", "their bias"),                                        \
    MAB_TENSOR(set, wo, t, "[dim,dim]", MATRIX_DRAWN,                                          \
               "feed-forward of MAB " t " (paper: what joins its heads)"),                     \
    MAB_TENSOR(set, bo, t, "[dim]", "0", "its bias"),                                          \
    MAB_TENSOR(set, wf, t, "[dim,dim]", MATRIX_DRAWN, "feed-forward of MAB " t " (paper)"),    \
    MAB_TENSOR(set, bf, t, "[dim]", "0", "its bias"),                                          \
    MAB_TENSOR(set, ln0_g, t, "[dim]", "1", "first layer norm of MAB " t ": factor"),          \
    MAB_TENSOR(set, ln0_b, t, "[dim]", "0", "and what it adds"),                               \
    MAB_TENSOR(set, ln1_g, t, "[dim]", "1", "last layer norm of MAB " t ": factor"),           \
    MAB_TENSOR(set, ln1_b, t, "[dim]", "0", "and what it adds")

static const Param params[] = {
    PARAM_ENUM(Params, mab, MAB_AUTO, mabs, "the official code's block, the paper's, or the bare "
               "attention; auto: official with x, core with q, k and v"),
    PARAM_INT(Params, n_inducing, 16, 1, INT32_MAX, "inducing points when they are drawn"),
    PARAM_TENSOR(Params, inducing, "[n_inducing,dim]; core: [n_inducing,d] or [h,n_inducing,d]",
                 "glorot", "the inducing points I"),
    PARAM_INT(Params, heads, 4, 1, INT32_MAX, "heads of a block; divide dim"),
    PARAM_INT(Params, dim, PARAM_AUTO, 1, INT32_MAX, "width of a block; auto: that of the tensors, "
              "else that of x"),
    PARAM_ENUM(Params, layer_norm, CHOICE_AUTO, choices, "norms in a block; auto: only the "
               "paper's has them"),
    PARAM_BOOL(Params, ff, true, "feed-forward in a block"),
    PARAM_TENSOR(Params, seeds, "[s,dim]", "no pooling", "seeds that pool the set's output"),
    PARAM_ENUM(Params, pma_ff, CHOICE_AUTO, choices, "a layer before the pooling; auto: only the "
               "paper has one"),
    PARAM_TENSOR(Params, wff_p, "[dim,dim]", MATRIX_DRAWN, "that layer"),
    PARAM_TENSOR(Params, bff_p, "[dim]", "0", "its bias"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(dim), paper: "
                "1/sqrt(dim/heads), core: 1/sqrt(d)"),
    MAB_PARAMS(mab_0, "0", "dim", "dm"),
    MAB_PARAMS(mab_1, "1", "dm", "dim"),
    MAB_PARAMS(mab_p, "p", "dim", "dim"),
    PARAM_END
};

#define LAYER_EPS 1e-5

static int isab_form_of(const Run *r, const Params *p);
static void run_core(Run *r, const Params *p);
static int64_t points_of(const Params *p);
static void run_block(Run *r, const Params *p);
static Mab mab_of(Run *r, const Params *p, const MabTensors *given, const char *suffix);
static int64_t block_width(Run *r, const Params *p);
static Tensor norm(Run *r, const Mab *m, const char *g_name, Tensor g, const char *b_name,
                   Tensor b, Tensor x);
static Tensor vector(Run *r, const Mab *m, const char *name, Tensor given);
static bool isab_chosen(int choice, bool otherwise);
static MabResult mab_apply(Run *r, const Mab *m, Tensor xq, Tensor xkv);
static Tensor layer(Run *r, const Mab *m, const char *w_name, Tensor w, const char *b_name,
                    Tensor b, Tensor x);
static Tensor isab_matrix(Run *r, const Mab *m, const char *name, Tensor given, int64_t rows);
static MabResult isab_attend(Run *r, const Mab *m, Tensor q, Tensor k, Tensor v);
static Tensor by_head(const Mab *m, Tensor x);
static void show_block(Run *r, const MabResult *in, const MabResult *out);
static void isab_pool(Run *r, const Params *p, Tensor y);
static bool layer_before_pooling(const Run *r, const Params *p);
static void check_block(Run *r, const Params *p);
static Flops mab_flops(const Mab *m, int64_t rows, int64_t width, int64_t keys, int64_t key_width,
                Flops sum);

static void set_isab_run(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (isab_form_of(r, p) == MAB_CORE)
        run_core(r, p);
    else
        run_block(r, p);
}

static int isab_form_of(const Run *r, const Params *p)
{
    if (p->mab != MAB_AUTO)
        return p->mab;
    return r->x.data ? MAB_OFFICIAL : MAB_CORE;
}

static void run_core(Run *r, const Params *p)
{
    int64_t shape[3] = { r->h, points_of(p), r->d };
    Init    init = { INIT_GLOROT, (double)shape[1] + (double)shape[2] };
    Nested  s = { .keys = r->k, .with_keys = true, .scale = run_scale(r, p->scale),
                  .latent = "point", .pack = "points read the set",
                  .unpack = "the set reads the points" };

    run_stage(r, "inducing points");
    s.latents = run_param(r, "inducing", p->inducing, DT_F32, 3, shape, init);
    if (!run_failed(r))
        latents_nested(r, &s);
}

static int64_t points_of(const Params *p)
{
    const Tensor *t = &p->inducing;

    return t->data && t->rank >= 2 ? t->shape[t->rank - 2] : p->n_inducing;
}

static void run_block(Run *r, const Params *p)
{
    Mab       first = mab_of(r, p, &p->mab_0, "_0"), second = mab_of(r, p, &p->mab_1, "_1");
    int64_t   dim = first.dim;
    Tensor    points, x;
    MabResult in, out;

    run_read_x(r);
    run_heads(r, p->heads, dim / p->heads, dim / p->heads);
    x = tensor_with_rank(r->x, 3);
    run_stage(r, "points read the set");
    points = dense_matrix(r, "inducing", p->inducing, points_of(p), dim, 0);
    in = mab_apply(r, &first, points, x);
    run_stage(r, "the set reads the points");
    out = mab_apply(r, &second, x, in.out);
    r->out = dense_rounded(r, out.out);
    show_block(r, &in, &out);
    isab_pool(r, p, out.out);
}

static Mab mab_of(Run *r, const Params *p, const MabTensors *given, const char *suffix)
{
    bool    paper = isab_form_of(r, p) == MAB_PAPER;
    int64_t dim = block_width(r, p), size = paper ? dim / p->heads : dim;

    return (Mab){ .given = *given, .suffix = suffix, .paper = paper, .ff = p->ff, .dim = dim,
                  .norm = isab_chosen(p->layer_norm, paper), .heads = p->heads,
                  .scale = p->scale > 0 ? p->scale : 1 / sqrt((double)size) };
}

static int64_t block_width(Run *r, const Params *p)
{
    const SizeFrom from[] = {
        { "inducing", p->inducing, 2, 1, 0 }, { "seeds", p->seeds, 2, 1, 0 },
        { "wq_0", p->mab_0.wq, 2, 1, 0 },     { "wk_0", p->mab_0.wk, 2, 1, 0 },
        { "wv_0", p->mab_0.wv, 2, 1, 0 },     { "wo_0", p->mab_0.wo, 2, 1, 0 },
        { "wq_1", p->mab_1.wq, 2, 1, 0 },     { "wk_1", p->mab_1.wk, 2, 1, 0 },
        { "wv_1", p->mab_1.wv, 2, 1, 0 },     { "wo_1", p->mab_1.wo, 2, 1, 0 },
        { NULL, { .rank = 0 }, 0, 0, 0 }
    };

    return layer_size(r, "dim", p->dim, r->x.shape[1], from);
}

static Tensor norm(Run *r, const Mab *m, const char *g_name, Tensor g, const char *b_name,
                   Tensor b, Tensor x)
{
    return m->norm ? dense_norm(r, x, vector(r, m, g_name, g), vector(r, m, b_name, b), LAYER_EPS,
                                FLOP_APART)
                   : x;
}

static Tensor vector(Run *r, const Mab *m, const char *name, Tensor given)
{
    char full[32];

    snprintf(full, sizeof(full), "%s%s", name, m->suffix);
    return dense_vector(r, full, given, m->dim);
}

static bool isab_chosen(int choice, bool otherwise)
{
    return choice == CHOICE_AUTO ? otherwise : choice == CHOICE_TRUE;
}

/* xq and xkv f32 or f64 [1,.,.].  Charges scores, softmax and mix as attention does and the
 * layers' products to overhead. */
static MabResult mab_apply(Run *r, const Mab *m, Tensor xq, Tensor xkv)
{
    const MabTensors *t = &m->given;
    Tensor    q = layer(r, m, "wq", t->wq, "bq", t->bq, xq);
    Tensor    k = layer(r, m, "wk", t->wk, "bk", t->bk, xkv);
    Tensor    v = layer(r, m, "wv", t->wv, "bv", t->bv, xkv), inner;
    MabResult result = isab_attend(r, m, q, k, v);
    Tensor    o = result.out;

    if (m->paper)
        o = dense_add(r, layer(r, m, "wo", t->wo, "bo", t->bo, o), xq);
    else
        o = dense_add(r, o, q);
    o = norm(r, m, "ln0_g", t->ln0_g, "ln0_b", t->ln0_b, o);
    if (m->ff) {
        inner = m->paper ? layer(r, m, "wf", t->wf, "bf", t->bf, o)
                         : layer(r, m, "wo", t->wo, "bo", t->bo, o);
        o = dense_add(r, dense_activate(r, inner, ENTRY_RELU), o);
    }
    result.out = norm(r, m, "ln1_g", t->ln1_g, "ln1_b", t->ln1_b, o);
    return result;
}

static Tensor layer(Run *r, const Mab *m, const char *w_name, Tensor w, const char *b_name,
                    Tensor b, Tensor x)
{
    return dense_layer(r, x, isab_matrix(r, m, w_name, w, x.shape[2]), vector(r, m, b_name, b),
                       (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
}

static Tensor isab_matrix(Run *r, const Mab *m, const char *name, Tensor given, int64_t rows)
{
    char full[32];

    snprintf(full, sizeof(full), "%s%s", name, m->suffix);
    return dense_matrix(r, full, given, rows, m->dim, 1 / sqrt((double)rows));
}

static MabResult isab_attend(Run *r, const Mab *m, Tensor q, Tensor k, Tensor v)
{
    MabResult out = { .out = run_tensor3(r, DT_F64, 1, q.shape[1], m->dim),
                      .weights = run_tensor3(r, DT_F64, m->heads, q.shape[1], k.shape[1]) };

    op_gemm(r, by_head(m, q), false, by_head(m, k), true, m->scale, 0, out.weights, FLOP_SCORE);
    op_softmax(r, out.weights);
    op_gemm(r, out.weights, false, by_head(m, v), false, 1, 0, by_head(m, out.out), FLOP_MIX);
    return out;
}

/* [1,rows,dim] seen as [heads,rows,dim/heads]; borrows. */
static Tensor by_head(const Mab *m, Tensor x)
{
    x.shape[0] = m->heads;
    x.shape[2] = x.stride[0] = m->dim / m->heads;
    return x;
}

static void show_block(Run *r, const MabResult *in, const MabResult *out)
{
    Implicit product = { .left = out->weights };
    Pattern *cells;
    View    *flow;

    if (!run_wants_views(r))
        return;
    cells = run_allowed_cells(r);
    product.right = dense_turned(r, in->weights);
    implicit_factor(r, "factor_left", VIEW_WEIGHTS, out->weights, "token", "point");
    implicit_connectivity(r, cells);
    flow = implicit_product(r, "flow", product, VIEW_FLOW, cells);
    if (flow)
        flow->rows = flow->cols = "token";
    view_stage(r, "points read the set", -1);
    implicit_factor(r, "factor_right", VIEW_WEIGHTS, in->weights, "point", "token");
    implicit_factor(r, "memory", VIEW_VECTORS, in->out, "point", "value");
    view_stage(r, NULL, -1);
}

static void isab_pool(Run *r, const Params *p, Tensor y)
{
    Mab       mab = mab_of(r, p, &p->mab_p, "_p");
    Tensor    seeds;
    MabResult result;

    if (!p->seeds.data)
        return;
    run_stage(r, "seeds pool the set");
    seeds = layer_given(r, "seeds", p->seeds, 2, (int64_t[]){ p->seeds.shape[0], mab.dim });
    if (layer_before_pooling(r, p)) {
        Tensor w = dense_matrix(r, "wff_p", p->wff_p, mab.dim, mab.dim,
                                1 / sqrt((double)mab.dim));

        y = dense_layer(r, y, w, dense_vector(r, "bff_p", p->bff_p, mab.dim),
                        (Tensor){ .rank = 0 }, FLOP_OVERHEAD);
        y = dense_activate(r, y, ENTRY_RELU);
    }
    result = mab_apply(r, &mab, tensor_with_rank(seeds, 3), y);
    implicit_factor(r, "pooling_weights", VIEW_WEIGHTS, result.weights, "seed", "token");
    implicit_factor(r, "pooled", VIEW_VECTORS, result.out, "seed", "value");
}

static bool layer_before_pooling(const Run *r, const Params *p)
{
    return isab_chosen(p->pma_ff, isab_form_of(r, p) == MAB_PAPER);
}

static void set_isab_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (isab_form_of(r, p) != MAB_CORE) {
        check_block(r, p);
        return;
    }
    if (!r->q.data || !r->k.data || !r->v.data)
        run_fail(r, ERR_DATA, "set-isab: mab=core reads q, k and v, and the input does not hold "
                 "all of them%s", r->x.data ? "; mab=official reads x" : "");
    if (p->seeds.data)
        run_fail(r, ERR_PARAM, "set-isab: seeds pool the output of a block; mab=core has none (use "
                 "official or paper, and an input with x)");
}

static void check_block(Run *r, const Params *p)
{
    int64_t dim;

    if (!r->x.data) {
        run_fail(r, ERR_DATA, "set-isab: mab=%s reads the layer input x, which the input does not "
                 "hold; mab=core reads q, k and v", mabs[isab_form_of(r, p)]);
        return;
    }
    dim = block_width(r, p);
    if (dim % p->heads)
        run_fail(r, ERR_PARAM, "set-isab: a block of dim=%lld cannot be cut into heads=%lld; dim "
                 "must be a multiple of heads", (long long)dim, (long long)p->heads);
    if (isab_form_of(r, p) == MAB_PAPER && dim != r->x.shape[1])
        run_fail(r, ERR_PARAM, "set-isab: mab=paper adds x to the result, so dim=%lld must be the "
                 "width of x, %lld; mab=official adds a projection", (long long)dim,
                 (long long)r->x.shape[1]);
    if (p->seeds.data && (p->seeds.rank != 2 || p->seeds.shape[0] < 1))
        run_fail(r, ERR_PARAM, "set-isab: parameter seeds has %d axes; it needs [s,dim], a row for "
                 "each seed", p->seeds.rank);
}

static Flops set_isab_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    int64_t       k = points_of(p), seeds = p->seeds.data ? p->seeds.shape[0] : 0;
    Flops         sum = { 0 };
    Mab           mab;

    if (isab_form_of(r, p) == MAB_CORE)
        return latents_nested_flops(r, k, true);
    mab = mab_of(r, p, &p->mab_0, "");
    sum = mab_flops(&mab, k, mab.dim, r->n, r->dm, sum);
    sum = mab_flops(&mab, r->n, r->dm, k, mab.dim, sum);
    if (!seeds)
        return sum;
    if (layer_before_pooling(r, p))
        sum.overhead += 2 * (double)r->n * (double)mab.dim * (double)mab.dim;
    return mab_flops(&mab, seeds, mab.dim, r->n, mab.dim, sum);
}

/* Adds the closed form of one block to `sum`. */
static Flops mab_flops(const Mab *m, int64_t rows, int64_t width, int64_t keys, int64_t key_width,
                Flops sum)
{
    double dim = (double)m->dim, cells = (double)rows * (double)keys;
    double after = (m->paper ? 1 : 0) + (m->ff ? 1 : 0);

    sum.score += 2 * cells * dim;
    sum.mix += 2 * cells * dim;
    sum.overhead += FLOPS_ROW_SOFTMAX * (double)m->heads * cells +
                    2 * dim * ((double)rows * (double)width + 2 * (double)keys * (double)key_width +
                               after * (double)rows * dim);
    return sum;
}

static const StageNote notes[] = {
    { "inducing points", "A few learned vectors, the same for every set." },
    { "points read the set", "The inducing points attend to all tokens: k summaries of the set." },
    { "the set reads the points",
      "Every token attends to the k summaries.  No token has met another, yet each has heard of "
      "all." },
    { "seeds pool the set",
      "A few seeds attend to the tokens' results: as many vectors for the whole set, in whatever "
      "order it came." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("connectivity", VIEW_PATTERN, "all cells, through the points"),
    VIEW("weights", VIEW_WEIGHTS, "core: A_out A_in (a block has none: it is not linear in its "
         "values)", .maybe = true),
    VIEW("flow", VIEW_FLOW, "official, paper: A_out A_in of each head, attention flow, not weights",
         .maybe = true),
    VIEW("factor_left", VIEW_WEIGHTS, "A_out: tokens over points"),
    VIEW("factor_right", VIEW_WEIGHTS, "A_in: points over tokens"),
    VIEW("memory", VIEW_VECTORS, "H: what the points hold (core: H_V)"),
    VIEW("pooled", VIEW_VECTORS, "with seeds: a row for each", .maybe = true),
    VIEW("pooling_weights", VIEW_WEIGHTS, "with seeds: seeds over tokens", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_set_isab = {
    .id = "set-isab",
    .title = "Set Transformer: induced set attention",
    .authors = "Lee, Lee, Kim, Kosiorek, Choi, Teh",
    .year = 2019,
    .arxiv = "1810.00825",
    .source = "paper, section 3; juho-lee/set_transformer modules.py",
    .formula = "H = MAB(I, X),  Y = MAB(X, H),  pooled = MAB(S, Y)\n"
               "core: output = softmax(scale Q H_K^T) H_V,  H_K, H_V = softmax(scale I K^T) (K, V)",
    .problem = "A set has no order, and comparing all its members is quadratic.",
    .idea = "A few inducing points collect from the set, and the members then read the points.",
    .price = "Members meet only through the points.",
    .lesson = "low-rank",
    .teaches = "An hourglass: n tokens, k inducing points, n tokens again.  Permuted tokens give "
               "permuted rows, and a pooled set does not change at all.",
    .picture = "factor_left",
    .example = "heads=1,n_inducing=8,scale=4",
    .classes = CLASS_M,
    .claim_time = "O(n k)",
    .claim_memory = "O(n k)",
    .claim_decode = "no (points read the whole set)",
    .claim_exponent = 1,
    .no_causal = "inducing points read the whole set, later tokens too",
    .cross = true,
    .or_x = true,
    .views = views,
    .notes = notes,
    .size = "n_inducing",
    .params = params,
    .params_size = sizeof(Params),
    .check = set_isab_check,
    .run = set_isab_run,
    .flops = set_isab_flops,
};
