/* sinkhorn.c -- sparse Sinkhorn attention, with SortCut.
 *
 * The sequence is cut into nb blocks of b tokens.  A small network proposes,
 * from one pooled vector per block, which block each block should look at (the
 * network "means" has no parameters):
 *
 *     R     = net(pooled blocks)               [nb,nb], row = destination
 *     Perm  = exp of R / tau after rows and columns were normalised in turn
 *     K'_ut = sum_v Perm[u,v] k_(vb+t)         block u after the soft sort
 *     output_i = softmax over K' of i's block and i's own block, times V', V
 *
 * Pooling, network and balancing are in double because top1 and the picture of
 * the chosen block decide on them.
 */
#include "attn/mech/learned/soft_blocks.h"
#include "attn/ops/dense.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

#define SNAPSHOTS 32 /* iterations whose permutation is kept for step-through */

enum { POOL_K, POOL_QK, POOL_X };
enum { NET_LINEAR, NET_MLP, NET_MEANS };
enum { CAUSAL_ROW, CAUSAL_SINKHORN };

static const char *const pools[] = { "k", "qk", "x", NULL };
static const char *const nets[] = { "linear", "mlp", "means", NULL };
static const char *const locals[] = { "none", "concat", "sum", NULL }; /* SoftLocal */
static const char *const causal_norms[] = { "row", "sinkhorn", NULL };

typedef struct Params {
    int64_t block, sinkhorn_iters, sortcut;
    int     pool, sort_net, local, causal_norm;
    double  temperature, scale;
    bool    noise, top1;
    Tensor  sort_logits, sort_w1, sort_b1, sort_w2, sort_b2, gumbel;
} Params;

/* Causal sorting: a place takes strictly earlier blocks; the logits of the others become -inf. */
typedef struct Earlier {
    Tensor allowed, later, low; /* f32 [1,nb,nb] 1 where not allowed; f64 [1,1,1] -inf */
} Earlier;

static SoftBlocks sinkhorn_blocks_of(const Run *r, const Params *p);
static bool balanced(const Run *r, const Params *p);
static Tensor permutation(Run *r, const Params *p, const SoftBlocks *s);
static Tensor balance(Run *r, const Params *p, const SoftBlocks *s, Tensor logits, Tensor allowed);
static Tensor sort_logits(Run *r, const Params *p, const SoftBlocks *s);
static Tensor sinkhorn_network(Run *r, const Params *p, const SoftBlocks *s, Tensor pooled);
static int64_t hidden_size(const Params *p, int64_t dp);
static int64_t sinkhorn_extent(const Tensor *given, int from_end, int64_t fallback);
static void need_columns(Run *r, const char *name, int64_t found, int64_t nb);
static Tensor sinkhorn_pool(Run *r, const Params *p, const SoftBlocks *s);
static int64_t pooled_size(const Run *r, const Params *p);
static void pool_rows(Run *r, const SoftBlocks *s, Tensor x, Tensor pooled, int64_t first);
static void sinkhorn_show_matrix(Run *r, const char *name, ViewKind kind, Tensor matrix);
static Tensor allowed_logits(Run *r, const Params *p, const SoftBlocks *s, Tensor logits);
static Earlier earlier_blocks(Run *r, int64_t nb);
static void show_scaled(Run *r, const SoftBlocks *s, Tensor logits);
static void trace_errors(Run *r, const SoftBlocks *s, Tensor shares);
static void keep_largest(const SoftBlocks *s, double *row);
static double network_flops(const Run *r, const Params *p, const SoftBlocks *s);

static const Param params[] = {
    PARAM_INT(Params, block, 64, 1, PARAM_COUNT_MAX, "tokens in a block"),
    PARAM_ENUM(Params, pool, POOL_K, pools, "what represents a block: its keys, queries and keys, "
               "or layer input"),
    PARAM_ENUM(Params, sort_net, NET_LINEAR, nets, "network that scores pairs of blocks; "
               "means: no parameters, a block's mean query times another's mean key"),
    PARAM_INT(Params, sinkhorn_iters, 8, 0, 1e6, "row and column normalisations; 0: row softmax"),
    PARAM_POSITIVE(Params, temperature, 0.75, "divides the logits; small: a harder permutation"),
    PARAM_BOOL(Params, noise, false, "add Gumbel noise to the logits"),
    PARAM_BOOL(Params, top1, false, "keep only the largest entry of each row, with its value"),
    PARAM_ENUM(Params, local, SOFT_LOCAL_CONCAT, locals, "the own block: absent, in the same "
               "softmax, or a second attention that is added"),
    PARAM_INT(Params, sortcut, 0, 0, PARAM_COUNT_MAX, "every query sees the first so many sorted "
              "blocks; 0: its own sorted block"),
    PARAM_ENUM(Params, causal_norm, CAUSAL_ROW, causal_norms, "causal runs: row softmax, or the "
               "paper's masked balancing, whose column sums leak the future"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_TENSOR(Params, sort_logits, "[h,nb,nb] or [nb,nb]", "the sort network",
                 "scores of block pairs, in place of the network"),
    PARAM_TENSOR(Params, sort_w1, "[h,dp,o], dp = d, 2d or dm; linear: o >= nb", "Glorot uniform",
                 "first layer"),
    PARAM_TENSOR(Params, sort_b1, "[h,o]", "0", "its bias"),
    PARAM_TENSOR(Params, sort_w2, "[h,o,o2], o2 >= nb", "Glorot uniform", "second layer (mlp)"),
    PARAM_TENSOR(Params, sort_b2, "[h,o2]", "0", "its bias"),
    PARAM_TENSOR(Params, gumbel, "[h,nb,nb] or [nb,nb]", "-ln(-ln U)", "the noise"),
    PARAM_END
};

static void sinkhorn_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    SoftBlocks   *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */

    if (!s)
        return;
    *s = sinkhorn_blocks_of(r, p);
    if (r->causal && balanced(r, p))
        run_warn(r, "sinkhorn: causal_norm=sinkhorn balances columns over later blocks too, so "
                 "early rows know of the future; causal_norm=row does not");
    s->perm = permutation(r, p, s);
    run_stage(r, "sort blocks");
    soft_blocks_sort(r, s);
    run_stage(r, "attend");
    soft_blocks_attend(r, s);
    soft_blocks_show(r, s);
}

static SoftBlocks sinkhorn_blocks_of(const Run *r, const Params *p)
{
    return soft_blocks_of(r, p->block, p->sortcut, (SoftLocal)p->local, run_scale(r, p->scale));
}

static bool balanced(const Run *r, const Params *p)
{
    return p->sinkhorn_iters > 0 && !(r->causal && p->causal_norm == CAUSAL_ROW);
}

static Tensor permutation(Run *r, const Params *p, const SoftBlocks *s)
{
    Tensor logits = sort_logits(r, p, s), allowed, perm = logits;

    sinkhorn_show_matrix(r, "sort_logits", VIEW_SIGNED, logits);
    run_stage(r, "temperature");
    allowed = allowed_logits(r, p, s, logits);
    show_scaled(r, s, logits);
    if (balanced(r, p)) {
        perm = balance(r, p, s, logits, allowed);
    } else {
        run_stage(r, "row softmax");
        op_sinkhorn(r, logits, allowed, false);
        op_entries(r, logits, ENTRY_EXP, 0, logits);
    }
    for (int64_t u = 0; p->top1 && u < r->h * s->nb && !run_failed(r); u++)
        keep_largest(s, (double *)perm.data + u * s->nb);
    sinkhorn_show_matrix(r, "permutation", VIEW_PERMUTATION, perm);
    return perm;
}

/* Shares f64 [h,nb,nb] after all iterations. */
static Tensor balance(Run *r, const Params *p, const SoftBlocks *s, Tensor logits, Tensor allowed)
{
    Balancing b = op_balance_begin(r, logits, allowed);
    Tensor    shares = run_wants_views(r) ? run_tensor3(r, DT_F64, r->h, s->nb, s->nb) : logits;

    for (int64_t t = 0; t < p->sinkhorn_iters && !run_failed(r); t++) {
        run_iteration(r, "balance", t);
        op_balance(r, &b);
        if (t == p->sinkhorn_iters - 1 || run_wants_views(r))
            op_balance_shares(r, &b, shares);
        trace_errors(r, s, shares);
        if (t < p->sinkhorn_iters - 1 && t < SNAPSHOTS)
            sinkhorn_show_matrix(r, "permutation", VIEW_PERMUTATION, shares);
    }
    return shares;
}

/* ---- pooling and the sort network ------------------------------------------- */

/* R f64 [h,nb,nb] by the network, or as given or fitted. */
static Tensor sort_logits(Run *r, const Params *p, const SoftBlocks *s)
{
    if (run_fits(r)) {
        run_stage(r, "fit");
        run_origin(r, "sort_logits", ORIGIN_FITTED);
        return soft_blocks_mean_logits(r, s);
    }
    if (!p->sort_logits.data && p->sort_net == NET_MEANS) {
        run_stage(r, "block means");
        return soft_blocks_mean_logits(r, s);
    }
    if (!p->sort_logits.data)
        return sinkhorn_network(r, p, s, sinkhorn_pool(r, p, s));
    return dense_wide(r, run_param_given(r, "sort_logits", p->sort_logits, DT_F32, 3,
                                       (int64_t[]){ r->h, s->nb, s->nb }));
}

static Tensor sinkhorn_network(Run *r, const Params *p, const SoftBlocks *s, Tensor pooled)
{
    bool    mlp = p->sort_net == NET_MLP;
    int64_t dp = pooled.shape[2], nb = s->nb;
    int64_t o = mlp ? hidden_size(p, dp) : sinkhorn_extent(&p->sort_w1, 1, nb);
    int64_t o2 = sinkhorn_extent(&p->sort_w2, 1, nb);
    Tensor  w1, b1, w2, b2, y;

    run_stage(r, "sort net");
    need_columns(r, mlp ? "sort_w2" : "sort_w1", mlp ? o2 : o, nb);
    w1 = run_param(r, "sort_w1", p->sort_w1, DT_F32, 3, (int64_t[]){ r->h, dp, o },
                   (Init){ INIT_GLOROT, (double)(dp + o) });
    b1 = run_param_given(r, "sort_b1", p->sort_b1, DT_F32, 2, (int64_t[]){ r->h, o });
    y = dense_linear(r, pooled, w1, b1, mlp ? o : nb);
    if (!mlp)
        return y;
    w2 = run_param(r, "sort_w2", p->sort_w2, DT_F32, 3, (int64_t[]){ r->h, o, o2 },
                   (Init){ INIT_GLOROT, (double)(o + o2) });
    b2 = run_param_given(r, "sort_b2", p->sort_b2, DT_F32, 2, (int64_t[]){ r->h, o2 });
    op_entries(r, y, ENTRY_RELU, 0, y);
    return dense_linear(r, y, w2, b2, nb);
}

static int64_t hidden_size(const Params *p, int64_t dp)
{
    return sinkhorn_extent(&p->sort_w1, 1, sinkhorn_extent(&p->sort_w2, 2, 2 * dp));
}

static int64_t sinkhorn_extent(const Tensor *given, int from_end, int64_t fallback)
{
    return given->data && given->rank >= from_end ? given->shape[given->rank - from_end]
                                                  : fallback;
}

static void need_columns(Run *r, const char *name, int64_t found, int64_t nb)
{
    if (found < nb)
        run_fail(r, ERR_PARAM, "sinkhorn: parameter %s has %lld columns, but there are %lld "
                 "blocks and each needs one; give a wider one or a larger block", name,
                 (long long)found, (long long)nb);
}

static Tensor sinkhorn_pool(Run *r, const Params *p, const SoftBlocks *s)
{
    int64_t dp = pooled_size(r, p), heads = p->pool == POOL_X ? 1 : r->h;
    Tensor  pooled;

    run_stage(r, "pool");
    pooled = run_tensor3(r, DT_F64, heads, s->nb, dp);
    if (p->pool == POOL_X)
        pool_rows(r, s, tensor_with_rank(r->x, 3), pooled, 0);
    if (p->pool == POOL_QK)
        pool_rows(r, s, r->q, pooled, 0);
    if (p->pool != POOL_X)
        pool_rows(r, s, r->k, pooled, dp - r->d);
    op_charge(r, FLOP_OVERHEAD, (double)(heads * s->n * dp));
    if (run_wants_views(r) && !run_failed(r))
        view_tensor(r, "pooled", VIEW_VECTORS, dense_rounded(r, pooled), "block", "feature");
    return pooled;
}

static int64_t pooled_size(const Run *r, const Params *p)
{
    return p->pool == POOL_K ? r->d : p->pool == POOL_QK ? 2 * r->d : r->dm;
}

/* Columns first .. of pooled f64 [heads,nb,.]: row u is the sum of block u, or, causal, of all
 * tokens up to the block's first, so that a block's choice knows nothing later. */
static void pool_rows(Run *r, const SoftBlocks *s, Tensor x, Tensor pooled, int64_t first)
{
    PoolWindows in = { .x = x, .kind = WINDOW_SUM };
    int32_t    *from = run_alloc(r, s->nb, sizeof(*from)), *to = run_alloc(r, s->nb, sizeof(*to));

    in.first = from;
    in.end = to;
    for (int64_t u = 0; u < s->nb && !run_failed(r); u++) {
        from[u] = (int32_t)(s->causal && u ? (u - 1) * s->b + 1 : u * s->b);
        to[u] = (int32_t)(s->causal ? u * s->b + 1 : u * s->b + soft_blocks_length(s, u));
    }
    pooled.shape[2] = x.shape[2];
    pooled.data = (double *)pooled.data + (pooled.data ? first : 0);
    op_pool_windows(r, &in, pooled);
    if (s->causal)
        op_wait(r, "the host adds up the pools of earlier blocks");
    for (int64_t t = 0; t < pooled.shape[0] && s->causal && !run_failed(r); t++) {
        double *row = tensor_head(&pooled, t, pooled.shape[0]);

        for (int64_t u = 1; u < s->nb; u++)
            for (int64_t c = 0; c < x.shape[2]; c++)
                row[u * pooled.stride[1] + c] += row[(u - 1) * pooled.stride[1] + c];
    }
}

static void sinkhorn_show_matrix(Run *r, const char *name, ViewKind kind, Tensor matrix)
{
    Tensor t;

    if (!run_wants_views(r))
        return;
    t = run_tensor3(r, DT_F32, matrix.shape[0], matrix.shape[1], matrix.shape[2]);
    for (int64_t i = 0; i < tensor_count(&t) && !run_failed(r); i++)
        tensor_f32(&t)[i] = (float)((double *)matrix.data)[i];
    view_tensor(r, name, kind, t, "block", "source block");
}

/* L = (R + noise) / tau; -inf where the source is not strictly before. */
static Tensor allowed_logits(Run *r, const Params *p, const SoftBlocks *s, Tensor logits)
{
    int64_t nb = s->nb;
    Earlier e = { .allowed = { .rank = 0 } };
    Tensor  noise;

    if (p->noise) {
        noise = run_param(r, "gumbel", p->gumbel, DT_F32, 3, (int64_t[]){ r->h, nb, nb },
                          (Init){ INIT_GUMBEL, 0 });
        op_entries_of(r, logits, noise, ENTRY_SUM, 1, logits);
    }
    op_entries(r, logits, ENTRY_DIVIDE, p->temperature, logits);
    if (s->causal) {
        e = earlier_blocks(r, nb);
        op_entries_of(r, e.low, e.later, ENTRY_WHERE, 0, logits);
    }
    return e.allowed;
}

static Earlier earlier_blocks(Run *r, int64_t nb)
{
    Earlier e = { .allowed = run_tensor2(r, DT_U8, nb, nb),
                  .later = run_tensor3(r, DT_F32, 1, nb, nb),
                  .low = run_tensor3(r, DT_F64, 1, 1, 1) };

    run_prepare(r, true);
    for (int64_t x = 0; x < nb * nb && !run_failed(r); x++) {
        tensor_u8(&e.allowed)[x] = x % nb < x / nb;
        tensor_f32(&e.later)[x] = x % nb >= x / nb;
    }
    if (!run_failed(r))
        *(double *)e.low.data = -(double)INFINITY;
    op_toward(r, e.allowed.data, tensor_bytes(&e.allowed));
    op_toward(r, e.later.data, tensor_bytes(&e.later));
    run_prepare(r, false);
    return e;
}

/* L before it is balanced; a causal row has only the blocks before it. */
static void show_scaled(Run *r, const SoftBlocks *s, Tensor logits)
{
    PatternShape shape = { .heads = 1, .n = s->nb, .m = s->nb };
    int          before = r->view_count;
    Tensor       t;

    if (!run_wants_views(r))
        return;
    t = run_tensor3(r, DT_F32, r->h, s->nb, s->nb);
    for (int64_t i = 0; i < tensor_count(&t) && !run_failed(r); i++) {
        double value = ((double *)logits.data)[i];

        tensor_f32(&t)[i] = isinf(value) ? 0 : (float)value;
    }
    view_tensor(r, "scaled_logits", VIEW_SIGNED, t, "block", "source block");
    if (s->causal && r->view_count > before)
        r->views[before].shown = pattern_band(r->arena, shape, 1 - s->nb, -1, 1, COMPONENT_OTHER);
}

/* How far the rows and the columns are from summing to 1. */
static void trace_errors(Run *r, const SoftBlocks *s, Tensor shares)
{
    const double *p = shares.data;
    int64_t       nb = s->nb;
    double        worst[2] = { 0, 0 };

    if (!run_wants_views(r) || run_failed(r))
        return;
    for (int64_t x = 0; x < 2 * r->h * nb; x++) {
        const double *plane = p + x / 2 / nb * nb * nb;
        int64_t       line = x / 2 % nb;
        double        sum = 0;

        for (int64_t c = 0; c < nb; c++)
            sum += x % 2 ? plane[c * nb + line] : plane[line * nb + c];
        if (sum > 0) /* a line without allowed entries has nothing to balance */
            worst[x % 2] = fmax(worst[x % 2], fabs(sum - 1));
    }
    run_trace(r, "row error", worst[0]);
    run_trace(r, "column error", worst[1]);
}

static void keep_largest(const SoftBlocks *s, double *row)
{
    int64_t best = 0;

    for (int64_t v = 1; v < s->nb; v++)
        if (row[v] > row[best])
            best = v;
    for (int64_t v = 0; v < s->nb; v++)
        if (v != best)
            row[v] = 0;
}

static void sinkhorn_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (r->causal && p->sortcut > 0)
        run_fail(r, ERR_USAGE, "sinkhorn: no causal form (sortcut=%lld: every query sees the first "
                 "sorted blocks, wherever they come from); use sortcut=0", (long long)p->sortcut);
    if (run_fits(r) && p->sort_logits.data)
        run_fail(r, ERR_USAGE, "sinkhorn: sort_logits is given, so there is nothing to fit; leave "
                 "out one of sort_logits and --fit");
    if (p->pool != POOL_X || p->sort_net == NET_MEANS || p->sort_logits.data || run_fits(r))
        return;
    if (!r->x.data)
        run_fail(r, ERR_DATA, "sinkhorn: pool=x reads the layer input x, which the input does not "
                 "hold; use pool=k or pool=qk");
    else if (r->x.shape[0] != r->n)
        run_fail(r, ERR_DATA, "sinkhorn: x has %lld rows but q has n=%lld",
                 (long long)r->x.shape[0], (long long)r->n);
}

static Flops sinkhorn_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    SoftBlocks    s = sinkhorn_blocks_of(r, p);
    double        h = (double)s.h, cells_nb = h * (double)s.nb * (double)s.nb, pairs = 0;
    double        d = (double)s.d, e = (double)s.e;

    for (int64_t u = 0; u < s.nb; u++) {
        int64_t slots = s.cut ? s.rows * s.b : s.causal && u == 0 ? 0 : s.b;
        int64_t own = s.local == SOFT_LOCAL_NONE ? 0 : soft_blocks_length(&s, u);

        pairs += h * (double)soft_blocks_length(&s, u) * (double)(slots + own);
    }
    return (Flops){ .score = 2 * pairs * d, .mix = 2 * pairs * e,
                    .overhead = network_flops(r, p, &s) + FLOPS_SOFTMAX * pairs +
                                4 * cells_nb *
                                    (double)(balanced(r, p) ? 2 * p->sinkhorn_iters : 1) +
                                2 * h * (double)(s.rows * s.nb * s.b) * (d + e) +
                                (s.local == SOFT_LOCAL_SUM ? h * (double)s.n * e : 0) };
}

/* Multiplications of the network over all heads. */
static double network_flops(const Run *r, const Params *p, const SoftBlocks *s)
{
    double h = (double)s->h, nb = (double)s->nb, dp = (double)pooled_size(r, p);
    double o = (double)hidden_size(p, pooled_size(r, p));

    if (p->sort_logits.data)
        return 0;
    if (run_fits(r) || p->sort_net == NET_MEANS)
        return soft_blocks_mean_flops(s);
    return (p->pool == POOL_X ? 1 : h) * (double)s->n * dp +
           2 * h * nb * (p->sort_net == NET_MLP ? dp * o + o * nb : dp * nb);
}

/* FLOPs of a block's row of the permutation and of sorting it, when its first token comes. */
static double block_flops(const Run *r, const Params *p, const SoftBlocks *s)
{
    double h = (double)s->h, nb = (double)s->nb, dp = (double)pooled_size(r, p);
    double o = (double)hidden_size(p, pooled_size(r, p)), scored = 0;

    if (run_fits(r) || p->sort_net == NET_MEANS)
        scored = 2 * nb * (double)s->d;
    else if (!p->sort_logits.data)
        scored = 2 * (p->sort_net == NET_MLP ? dp * o + o * nb : dp * nb);
    return h * (scored + 4 * nb + 2 * nb * (double)s->b * (double)(s->d + s->e));
}

/* FLOPs of adding one token to what a block is scored by. */
static double pooled_flops(const Run *r, const Params *p, const SoftBlocks *s)
{
    if (run_fits(r) || p->sort_net == NET_MEANS)
        return 2 * (double)(s->h * s->d);
    return p->sort_logits.data ? 0
                               : (double)((p->pool == POOL_X ? 1 : s->h) * pooled_size(r, p));
}

/* All keys and values are held, and the sorted block in use, which is made once, of whole earlier
 * blocks, by its block's first token; the step reads that and its own block. */
static DecodeCost sinkhorn_decode(const Run *r, const void *opaque)
{
    const Params *p = opaque;
    SoftBlocks    s = sinkhorn_blocks_of(r, p);
    double        b = (double)r->cache_bytes, token = b * decode_token(r), h = (double)s.h;
    double        numbers = (double)(s.d + s.e), slots = s.nb > 1 ? h * (double)s.b : 0;
    double        own = s.local == SOFT_LOCAL_NONE ? 0 : (double)soft_blocks_length(&s, s.nb - 1);
    DecodeCost    cost = { .kv_bytes_per_token = token, .step_bytes = token * own };

    if (balanced(r, p))
        return decode_unknown("balanced columns hold later blocks, so every block changes the rows "
                              "before it");
    cost.state_bytes = token * (double)r->m + b * numbers * slots;
    cost.step_bytes += b * numbers * slots;
    cost.decode_flops = (2 * numbers + FLOPS_SOFTMAX) * (slots + h * own) +
                        pooled_flops(r, p, &s) + (s.local == SOFT_LOCAL_SUM ? h * (double)s.e : 0);
    if ((r->n - 1) % s.b == 0 && s.nb > 1)
        cost.decode_flops += block_flops(r, p, &s);
    return cost;
}

static const StageNote notes[] = {
    { "pool", "Each block of tokens becomes one vector: the sum of its keys (or queries and keys, "
              "or layer inputs).  In a causal run a block knows only what came before it." },
    { "fit", "The scores need no parameters: each block is its mean query and its mean key, and "
             "block u asks for block v by their product.  In a causal run the query is the mean of "
             "all up to the block's first token." },
    { "block means", "The sort net has no parameters: each block is its mean query and its mean "
                     "key, and block u asks for block v by their product.  In a causal run the "
                     "query is the mean of all up to the block's first token." },
    { "sort net", "A small network scores every pair of blocks: how much should block u (row) "
                  "bring in block v (column)?" },
    { "temperature", "The scores are divided by the temperature: lower means sharper." },
    { "row softmax", "Each row becomes shares that sum to 1; columns are left as they come." },
    { "balance", "Rows, then columns, are divided by their sums.  Repeating it makes all row "
                 "and column sums 1.  It equalises and does not sharpen: how few cells are left "
                 "in a row is up to the temperature." },
    { "sort blocks", "Keys and values are moved: sorted block u is the mixture of blocks that "
                     "row u of the permutation says." },
    { "attend", "Every query sees its own block and the block that was sorted next to it, in "
                "one softmax (or as the parameter local says)." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("sort_logits", VIEW_SIGNED, "scores of block pairs"),
    VIEW("pooled", VIEW_VECTORS, "what each block is scored by, when it is scored", .maybe = true),
    VIEW("scaled_logits", VIEW_SIGNED, "scores with noise, over the temperature"),
    VIEW("permutation", VIEW_PERMUTATION, "soft permutation: row u mixes its source blocks"),
    VIEW("connectivity", VIEW_PATTERN, "exact support; a soft permutation touches nearly "
         "everything"),
    VIEW("connectivity_hard", VIEW_PATTERN, "own block and the one block that weighs most"),
    VIEW("order", VIEW_ORDER, "keys as they were sorted beside the queries, each block once"),
    VIEW("weights", VIEW_WEIGHTS, "weight on each original token, through the sorted blocks"),
    VIEW("sort_w1", VIEW_TENSOR, "first layer, when drawn", .maybe = true),
    VIEW("sort_w2", VIEW_TENSOR, "second layer, when drawn", .maybe = true),
    VIEW("gumbel", VIEW_TENSOR, "the noise, when drawn", .maybe = true),
    VIEW_PROMISE_END
};

const Mechanism mech_sinkhorn = {
    .id = "sinkhorn",
    .title = "Sparse Sinkhorn attention",
    .authors = "Tay, Bahri, Yang, Metzler, Juan",
    .year = 2020,
    .arxiv = "2002.11296",
    .source = "paper, section 3; lucidrains sinkhorn_transformer.py for the common softmax",
    .formula = "Perm = Sinkhorn(net(pooled blocks) / tau);  K' = Perm K,  V' = Perm V by blocks\n"
               "output = softmax(scale * Q_u [K'_u ; K_u]^T) [V'_u ; V_u] for each block u",
    .picture = "connectivity_hard",
    .problem = "A local window misses a block of keys that is far away but wanted.",
    .idea = "Blocks of keys are sorted beside the blocks of queries that want them, by a soft "
            "permutation that can be learned.",
    .price = "A query sees only its own block and one mixture of blocks, so wishes for several "
             "blocks are blended.",
    .lesson = "sinkhorn",
    .teaches = "A soft permutation of blocks: a low temperature sharpens it towards one cell in "
               "each row, and balancing equalises the sums of the columns, so that all blocks are "
               "used as much.  Every block then sees itself plus the mixture of blocks that was "
               "brought to it.",
    .sketch = "block=8",
    .classes = CLASS_LP,
    .claim_time = "O(b^2) per block, O(n b)",
    .claim_memory = "O(n b + (n/b)^2)",
    .claim_decode = "yes (not SortCut)",
    .claim_exponent = 1,
    .causal = true,
    .no_at_end = "each of its blocks of queries is matched with a block of keys",
    .fit =
        "sort_logits: products of the blocks' mean queries and mean keys, over sqrt(d), in place "
        "of the sort network's",
    .views = views,
    .notes = notes,
    .size = "block",
    .params = params,
    .params_size = sizeof(Params),
    .check = sinkhorn_check,
    .run = sinkhorn_run,
    .flops = sinkhorn_flops,
    .flops_bound = true,
    .decode = sinkhorn_decode,
};
