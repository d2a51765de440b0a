/* routing.c -- Routing Transformer attention.
 *
 * Each of C centroids takes the w positions whose vectors lie nearest to it, and those attend to
 * each other:
 *
 *     Q, K  = normalised q, k                   (K = Q with share_qk)
 *     QS_c  = the w largest of Q_i . mu_c,  KS_c likewise from K
 *     p^c_i = softmax over KS_c of scale * Q_i . K_j      for i in QS_c
 *     output_i = mean over the clusters that hold i of p^c_i V
 *
 * Clusters are of equal size, so a token may be in several or in none (output 0).  Routing vectors,
 * centroids and similarities are in double: top-k and argmax are decided on them.
 */
#include <math.h>
#include <string.h>

#include "attn/mech/learned/groups.h"
#include "attn/ops/dense.h"
#include "attn/ops/ops.h"
#include "attn/ops/weights.h"
#include "attn/run.h"
#include "core/rng.h"
#include "core/threads.h"

typedef struct RoutedClusters {
    int64_t h, n, d, clusters, window;
    bool    same;        /* keys are routed as the queries are */
    bool    causal, exclude_self, mean;
    double  eps;
    ChoiceRows rq, rk;   /* routing vectors, compared with the centroids */
    Tensor  mu;          /* f64 [h,C,d] */
    Tensor  qs, ks;      /* i32 [h,C*w] members, increasing in each cluster */
    AttendInput in;      /* q and k of the scores */
    double *z;           /* [h,C*w] log-sum-exp of each member in its cluster; only with views */
    int32_t *times;      /* [h,n] clusters in which a token saw something */
    int64_t *start;      /* [h*n+1] into entry: the query's places in qs, increasing */
    int32_t *entry;
} RoutedClusters;

#define LAYER_EPS 1e-6
#define L2_EPS 1e-12
#define SMALLEST_SUM 1e-12
#define SNAPSHOTS 16    /* k-means iterations shown */
#define FIT_MOST 50     /* passes over the input when centroids are fitted */

enum { NORM_LAYER, NORM_L2, NORM_NONE };
enum { SCORE_BOTH, SCORE_KEYS, SCORE_NONE };
enum { SOURCE_EACH, SOURCE_SUM };
enum { COMBINE_MEAN, COMBINE_SUM };
enum { EMA_SPHERICAL, EMA_PAPER };

static const char *const norms[] = { "layernorm", "l2", "none", NULL };
static const char *const score_norms[] = { "both", "keys", "none", NULL };
static const char *const sources[] = { "each", "sum", NULL };
static const char *const combines[] = { "mean", "sum", NULL };
static const char *const ema_rules[] = { "spherical", "paper", NULL };

typedef struct Params {
    int64_t n_clusters, cluster_window, kmeans_iters;
    bool    share_qk, exclude_self;
    int     normalize, score_norm, routing_source, combine, ema_rule;
    double  combine_eps, decay, scale;
    Tensor  routing_proj, centroids;
} Params;

#define COARSE 16 /* a log-sum-exp as large as this is not exact enough in float */

static RoutedClusters routing_shape(const Run *r, const Params *p);
static void routing_combine(Run *r, RoutedClusters *s, GroupResult result);
static void routing_prepare(Run *r, const Params *p, RoutedClusters *s);
static void fit(Run *r, const Params *p, RoutedClusters *s);
static void start_centroids(Run *r, const Params *p, RoutedClusters *s);
static void kmeans(Run *r, const Params *p, RoutedClusters *s);
static void route(Run *r, RoutedClusters *s);
static GroupResult routing_attend(Run *r, const RoutedClusters *s);
static void last_clusters(Run *r, const Params *p, const RoutedClusters *s);
static void routed_clusters_show(Run *r, RoutedClusters *s, Tensor lse);
static void show_update(Run *r, const Params *p, const RoutedClusters *s);

static const Param params[] = {
    PARAM_INT(Params, n_clusters, 0, 0, INT32_MAX, "clusters; 0: round(sqrt(n))"),
    PARAM_INT(Params, cluster_window, 0, 0, PARAM_COUNT_MAX,
              "tokens each cluster takes; 0: ceil(n / clusters)"),
    PARAM_BOOL(Params, share_qk, true, "use the queries as keys too; the given k is then ignored"),
    PARAM_ENUM(Params, normalize, NORM_LAYER, norms, "normalisation of q and k for routing"),
    PARAM_ENUM(Params, score_norm, SCORE_BOTH, score_norms, "which of the scores' factors are the "
               "normalised ones"),
    PARAM_ENUM(Params, routing_source, SOURCE_EACH, sources, "compare q and k with the centroids "
               "each for itself, or their sum"),
    PARAM_TENSOR(Params, routing_proj, "[h,d,d] or [d,d]", "the identity",
                 "projection of the routing vectors"),
    PARAM_BOOL(Params, exclude_self, false, "in a cluster a token sees itself only if it sees "
               "nothing else"),
    PARAM_ENUM(Params, combine, COMBINE_MEAN, combines, "what a token of several clusters gets"),
    PARAM_FLOAT(Params, combine_eps, 0, 0, 1e30, "added to the divisor of the mean"),
    PARAM_INT(Params, kmeans_iters, 0, 0, 1e6, "spherical k-means iterations before use"),
    PARAM_FLOAT(Params, decay, 0.999, 0, 1, "how much of a centroid stays at an update"),
    PARAM_ENUM(Params, ema_rule, EMA_SPHERICAL, ema_rules, "centroid update: towards the "
               "normalised mean, or the paper's plain sum"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d), official code: 1"),
    PARAM_TENSOR(Params, centroids, "[h,C,d] or [C,d]", "N(0,1), then normalised",
                 "the clusters' centres"),
    PARAM_END
};

static void routing_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    RoutedClusters *s = run_alloc(r, 1, sizeof(*s)); /* views read it later */
    GroupResult   result;

    if (!s)
        return;
    *s = routing_shape(r, p);
    run_size(r, "n_clusters", s->clusters);
    run_size(r, "cluster_window", s->window);
    r->excludes_self = p->exclude_self;
    run_looks_ahead(r, "the members of a cluster are chosen among all tokens");
    routing_prepare(r, p, s);
    if (run_fits(r))
        fit(r, p, s);
    else
        start_centroids(r, p, s);
    kmeans(r, p, s);
    route(r, s);
    result = routing_attend(r, s);
    routing_combine(r, s, result);
    last_clusters(r, p, s);
    routed_clusters_show(r, s, result.lse);
    show_update(r, p, s);
}

static RoutedClusters routing_shape(const Run *r, const Params *p)
{
    const Tensor *given = &p->centroids;
    RoutedClusters s = { .h = r->h, .n = r->n, .d = r->d, .clusters = p->n_clusters,
                        .same = p->share_qk || p->routing_source == SOURCE_SUM,
                        .causal = r->causal, .exclude_self = p->exclude_self,
                        .mean = p->combine == COMBINE_MEAN, .eps = p->combine_eps };

    if (!s.clusters && given->data && given->rank >= 2)
        s.clusters = given->shape[given->rank - 2];
    if (s.clusters < 1)
        s.clusters = (int64_t)floor(sqrt((double)r->n) + 0.5);
    s.window = p->cluster_window ? p->cluster_window : (s.n + s.clusters - 1) / s.clusters;
    s.window = min_i64(s.window, s.n);
    return s;
}

/* An item is a head. */
static void routing_list_item(void *context, int64_t head, int worker)
{
    const RoutedClusters *s = context;
    int64_t               entries = s->clusters * s->window, first = head * entries;
    int64_t              *start = s->start + head * s->n;
    const int32_t        *set = tensor_i32(&s->qs) + first;

    (void)worker;
    memset(start, 0, (size_t)s->n * sizeof(*start));
    for (int64_t x = 0; x < entries; x++)
        start[set[x]]++;
    for (int64_t i = 0, at = first; i < s->n; i++) /* ends, for now */
        start[i] = at += start[i];
    for (int64_t x = entries - 1; x >= 0; x--)
        s->entry[--start[set[x]]] = (int32_t)x;
}

/* Fills start and entry from qs, and makes room for times. */
static void routed_clusters_list(Run *r, RoutedClusters *s)
{
    int64_t rows = s->h * s->n, entries = s->h * s->clusters * s->window;

    s->start = run_alloc(r, rows + 1, sizeof(*s->start));
    s->entry = run_alloc(r, entries, sizeof(*s->entry));
    s->times = run_alloc(r, rows, sizeof(*s->times));
    op_wait(r, "the host lists the clusters of tokens");
    if (run_failed(r))
        return;
    threads_run(r->threads, s->h, routing_list_item, s);
    s->start[rows] = entries;
}

/* Factor of each of a token's results; row: head * n + token. */
static double routed_clusters_share(const RoutedClusters *s, int64_t row)
{
    return s->mean ? 1 / ((double)s->times[row] + s->eps) : 1;
}

/* Fills times; returns the factor of each result, [h*n]. */
static float *routing_shares(Run *r, RoutedClusters *s, Tensor lse)
{
    int64_t entries = s->clusters * s->window;
    float  *share = run_alloc(r, s->h * s->n, sizeof(*share));

    op_wait(r, "the host counts the clusters that saw something");
    for (int64_t row = 0; row < s->h * s->n && share; row++) {
        const float *z = tensor_f32(&lse) + row / s->n * entries;

        s->times[row] = 0;
        for (int64_t x = s->start[row]; x < s->start[row + 1]; x++)
            s->times[row] += z[s->entry[x]] > -INFINITY;
        share[row] = s->times[row] ? (float)routed_clusters_share(s, row) : 1;
    }
    return share;
}

static void routing_combine(Run *r, RoutedClusters *s, GroupResult result)
{
    SumLists in = { .x = result.out, .heads = s->h, .n = s->n };

    run_stage(r, "combine");
    routed_clusters_list(r, s);
    in.share = run_failed(r) ? NULL : routing_shares(r, s, result.lse);
    in.start = s->start;
    in.entry = s->entry;
    r->out = op_sum_lists(r, &in);
    op_charge(r, FLOP_OVERHEAD, (double)(s->h * s->clusters * s->window) * (double)r->e);
    op_traffic(r, (double)tensor_bytes(&result.out), 0);
}

/* ---- normalisation and routing vectors -------------------------------------- */

static NormaliseKind norm_kind(const Params *p)
{
    static const NormaliseKind kinds[] = { NORMALISE_LAYER, NORMALISE_L2, NORMALISE_NONE };

    return kinds[p->normalize];
}

static double norm_eps(const Params *p)
{
    return p->normalize == NORM_LAYER ? LAYER_EPS : L2_EPS;
}

/* f64 [h,rows,d] by the parameter normalize. */
static Tensor normalised(Run *r, const Params *p, Tensor x)
{
    NormaliseKind kind = norm_kind(p);
    Tensor        y = op_normalise64(r, x, kind, norm_eps(p));

    if (kind != NORMALISE_NONE)
        op_charge(r, FLOP_OVERHEAD, 5 * (double)tensor_count(&y));
    return y;
}

/* Projected or summed routing vectors.  q, k: the normalised q and k, rounded to f32. */
static void routing_project(Run *r, const Params *p, RoutedClusters *s, Tensor w, Tensor *q,
                            Tensor *k)
{
    Tensor from_q = normalised(r, p, r->q);
    Tensor from_k = p->share_qk ? from_q : normalised(r, p, r->k);

    *q = dense_rounded(r, from_q);
    *k = p->share_qk ? *q : dense_rounded(r, from_k);
    if (w.data) {
        from_q = dense_linear(r, from_q, w, (Tensor){ 0 }, r->d);
        from_k = p->share_qk ? from_q : dense_linear(r, from_k, w, (Tensor){ 0 }, r->d);
    }
    if (p->routing_source == SOURCE_SUM) {
        Tensor sum = run_tensor3(r, DT_F64, from_q.shape[0], s->n, s->d);

        op_entries_of(r, from_q, from_k, ENTRY_SUM, 1, sum);
        from_q = from_k = sum;
    }
    s->rq = choice_rows_exact(r, from_q);
    s->rk = s->same ? s->rq : choice_rows_exact(r, from_k);
}

static void routing_prepare(Run *r, const Params *p, RoutedClusters *s)
{
    Tensor w, q, k;

    run_stage(r, "normalise");
    w = run_param_given(r, "routing_proj", p->routing_proj, DT_F32, 3,
                        (int64_t[]){ r->h, r->d, r->d });
    if (w.data || p->routing_source == SOURCE_SUM) {
        routing_project(r, p, s, w, &q, &k);
    } else {
        s->rq = choice_rows_normalised(r, r->q, norm_kind(p), norm_eps(p));
        s->rk = p->share_qk ? s->rq : choice_rows_normalised(r, r->k, norm_kind(p), norm_eps(p));
        q = s->rq.near;
        k = s->rk.near;
    }
    s->in = (AttendInput){ .q = p->score_norm == SCORE_BOTH ? q : r->q,
                           .k = p->score_norm != SCORE_NONE ? k : p->share_qk ? r->q : r->k,
                           .v = r->v, .scale = run_scale(r, p->scale) };
}

static void show_centroids(Run *r, const char *name, Tensor mu)
{
    if (run_wants_views(r))
        view_tensor(r, name, VIEW_VECTORS, dense_rounded(r, mu), "cluster", "feature");
}

static void start_centroids(Run *r, const Params *p, RoutedClusters *s)
{
    int64_t shape[3] = { s->h, s->clusters, s->d };
    Tensor  given = run_param_given(r, "centroids", p->centroids, DT_F32, 3, shape);
    Rng     rng = run_rng(r, "centroids");

    if (!given.data) {
        given = run_tensor3(r, DT_F32, s->h, s->clusters, s->d);
        if (run_failed(r))
            return;
        run_prepare(r, true);
        rng_fill_normal(&rng, given.data, tensor_count(&given), 1);
        /* Rounded once, so that a run from the dumped tensor is the same run. */
        given = dense_rounded(r, normalised(r, p, given));
        run_prepare(r, false);
        view_drawn(r, "centroids", given);
    }
    s->mu = dense_wide(r, given);
    if (p->centroids.data && !p->kmeans_iters)
        show_centroids(r, "centroids", s->mu);
}

/* M_c: the mean's direction at the radius of normalised vectors; an empty or
 * balanced cluster keeps its centroid. */
static void move_to_mean(const Params *p, const RoutedClusters *s, const double *mu, int64_t count,
                         double *sum)
{
    double squares = 0, radius = p->normalize == NORM_LAYER ? sqrt((double)s->d) : 1;

    for (int64_t t = 0; t < s->d; t++)
        squares += sum[t] * sum[t];
    for (int64_t t = 0; t < s->d; t++)
        sum[t] = count && sqrt(squares) > SMALLEST_SUM ? radius * sum[t] / sqrt(squares) : mu[t];
}

/* Sums f64 [h,C,d] of the vectors nearest to each centroid, and how many. */
static Tensor member_sums(Run *r, const RoutedClusters *s, Tensor nearest_q, Tensor *count)
{
    Tensor sum = run_tensor3(r, DT_F64, s->h, s->clusters, s->d), nearest_k;

    *count = run_tensor2(r, DT_I32, s->h, s->clusters);
    nearest_k = s->same ? nearest_q : centroids_nearest(r, s->mu, &s->rk);
    if (run_failed(r))
        return sum;
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, sum);
    op_entries(r, (Tensor){ .rank = 0 }, ENTRY_FILL, 0, *count);
    centroids_gather(r, &s->rq, nearest_q, sum, *count);
    if (!s->same)
        centroids_gather(r, &s->rk, nearest_k, sum, *count);
    return sum;
}

static Tensor routing_means(Run *r, const Params *p, const RoutedClusters *s, Tensor nearest_q)
{
    Tensor count, sum = member_sums(r, s, nearest_q, &count);

    op_wait(r, "the host moves the centroids");
    for (int64_t c = 0; c < s->h * s->clusters && !run_failed(r); c++)
        move_to_mean(p, s, (double *)s->mu.data + c * s->d, tensor_i32(&count)[c],
                     (double *)sum.data + c * s->d);
    return sum;
}

/* Nearest centroids and sums of members, once over the input. */
static double pass_flops(const RoutedClusters *s)
{
    return (double)(s->h * s->n * (s->same ? 1 : 2)) * (double)s->d *
           (2 * (double)s->clusters + 1);
}

static void show_clusters(Run *r, Tensor nearest)
{
    Tensor copy;

    if (!run_wants_views(r))
        return;
    copy = run_tensor2(r, DT_I32, nearest.shape[0], nearest.shape[1]);
    if (!run_failed(r))
        memcpy(copy.data, nearest.data, (size_t)tensor_bytes(&copy));
    view_tensor(r, "clusters", VIEW_BUCKETS, copy, "head", "token");
}

/* Spherical k-means on this input until no query changes its centroid.  The result is
 * rounded once, so that a run from the dumped tensor is the same run. */
static void fit(Run *r, const Params *p, RoutedClusters *s)
{
    Tensor  nearest = run_tensor2(r, DT_I32, s->h, s->n), kept;
    int64_t moved = 1;

    run_stage(r, "first centroids");
    if (p->centroids.data)
        start_centroids(r, p, s);
    else
        s->mu = centroids_drawn(r, &s->rq, "fit", s->clusters);
    if (!run_failed(r))
        memset(nearest.data, 0xff, (size_t)tensor_bytes(&nearest));
    for (int64_t t = 0; t < FIT_MOST && moved && !run_failed(r); t++) {
        ArenaMark mark = arena_mark(r->arena);
        Tensor    now, mean;

        run_iteration(r, "fit", t);
        now = centroids_nearest(r, s->mu, &s->rq);
        if (run_wants_views(r))
            run_trace(r, "mean 1 - cosine", centroids_spread(r, s->mu, &s->rq, now));
        mean = routing_means(r, p, s, now);
        op_charge(r, FLOP_OVERHEAD, pass_flops(s));
        if (run_failed(r))
            return;
        moved = centroids_moved(nearest, now); /* keys are not counted */
        memcpy(s->mu.data, mean.data, (size_t)tensor_bytes(&mean));
        arena_release(r->arena, mark);
        run_trace(r, "vectors that moved", (double)moved);
        if (t < SNAPSHOTS) {
            show_clusters(r, nearest);
            show_centroids(r, "centroids", s->mu);
        }
    }
    kept = dense_rounded(r, s->mu);
    s->mu = dense_wide(r, kept);
    view_fitted(r, "centroids", kept);
}

static void kmeans(Run *r, const Params *p, RoutedClusters *s)
{
    for (int64_t t = 0; t < p->kmeans_iters && !run_failed(r); t++) {
        ArenaMark mark = arena_mark(r->arena);
        Tensor    moved, nearest;

        run_iteration(r, "k-means", t);
        nearest = centroids_nearest(r, s->mu, &s->rq);
        if (run_wants_views(r))
            run_trace(r, "mean 1 - cosine", centroids_spread(r, s->mu, &s->rq, nearest));
        moved = routing_means(r, p, s, nearest);
        if (!run_failed(r))
            memcpy(s->mu.data, moved.data, (size_t)tensor_bytes(&moved));
        op_charge(r, FLOP_OVERHEAD, pass_flops(s));
        arena_release(r->arena, mark);
        if (t < SNAPSHOTS || t == p->kmeans_iters - 1)
            show_centroids(r, "centroids", s->mu);
    }
}

static void route(Run *r, RoutedClusters *s)
{
    double compared = (double)(s->h * s->n) * (s->same ? 1 : 2);

    run_stage(r, "route");
    s->qs = centroids_members(r, s->mu, &s->rq, s->window);
    s->ks = s->same ? s->qs : centroids_members(r, s->mu, &s->rk, s->window);
    op_charge(r, FLOP_OVERHEAD, 2 * compared * (double)(s->clusters * s->d));
}

static GroupResult routing_attend(Run *r, const RoutedClusters *s)
{
    GroupAttend g = { .q = s->in.q, .k = s->in.k, .v = s->in.v, .scale = s->in.scale,
                      .groups = s->clusters, .query_index = s->qs, .key_index = s->ks,
                      .causal = s->causal, .self_last = s->exclude_self };

    run_stage(r, "attend");
    if (s->clusters * s->window > INT32_MAX)
        run_fail(r, ERR_PARAM, "routing: %lld clusters of %lld tokens are too many to list; take "
                 "fewer", (long long)s->clusters, (long long)s->window);
    g.query_start = g.key_start = run_tensor2(r, DT_I32, 1, s->clusters + 1);
    g.query_at = g.key_at = run_tensor2(r, DT_I32, 1, s->n);
    for (int64_t c = 0; c <= s->clusters && !run_failed(r); c++)
        tensor_i32(&g.query_start)[c] = (int32_t)(c * s->window);
    for (int64_t i = 0; i < s->n && !run_failed(r); i++)
        tensor_i32(&g.query_at)[i] = (int32_t)i;
    return op_group_attend(r, &g);
}

/* ---- views ------------------------------------------------------------------ */

/* Plane 2 * head: query sets; 2 * head + 1: key sets. */
static void read_membership(const View *view, int64_t plane, int64_t c, int64_t start,
                            int64_t count, int64_t step, float *out)
{
    const RoutedClusters *s = view->context;
    const int32_t *set = tensor_i32(plane % 2 ? &s->ks : &s->qs) +
                         (plane / 2 * s->clusters + c) * s->window;

    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t y = key_lower_bound(set, 0, s->window, start);
         y < s->window && (set[y] - start) / step < count; y++)
        if ((set[y] - start) % step == 0)
            out[(set[y] - start) / step] = 1;
}

/* Clusters are of equal size, but tokens are in none, one or several of them. */
static void show_balance(Run *r, const RoutedClusters *s, View *membership)
{
    Tensor sizes = run_tensor3(r, DT_I32, s->h, 2, s->clusters);
    Tensor times = run_tensor3(r, DT_I32, s->h, 2, s->n);

    if (run_failed(r))
        return;
    memset(times.data, 0, (size_t)tensor_bytes(&times));
    for (int64_t x = 0; x < 2 * s->h * s->clusters * s->window; x++) {
        int64_t        plane = x / (s->clusters * s->window), at = x % (s->clusters * s->window);
        const int32_t *set = tensor_i32(plane % 2 ? &s->ks : &s->qs);

        tensor_i32(&sizes)[plane * s->clusters + at / s->window] = (int32_t)s->window;
        tensor_i32(&times)[plane * s->n + set[plane / 2 * s->clusters * s->window + at]]++;
    }
    balance_show(r, membership, tensor_of(DT_I32, 2, (int64_t[]){ 2 * s->h, s->clusters },
                                          sizes.data),
                 tensor_of(DT_I32, 2, (int64_t[]){ 2 * s->h, s->n }, times.data));
}

/* Whether i, in cluster c, sees key j of the cluster; keys [w] increasing. */
static bool sees(const RoutedClusters *s, const int32_t *keys, int64_t i, int64_t j)
{
    bool others = s->causal ? keys[0] < i : s->window > 1 || keys[0] != i;

    return !(s->causal && j > i) && !(s->exclude_self && i == j && others);
}

/* Recomputes large log-sum-exps in double: float rounding would show in the weights. */
static void routing_refine(Run *r, RoutedClusters *s, Tensor lse)
{
    int64_t w = s->window, all = s->clusters * w;

    s->z = run_alloc(r, s->h * all, sizeof(*s->z));
    for (int64_t x = 0; x < s->h * all && !run_failed(r); x++) {
        const int32_t *keys = tensor_i32(&s->ks) + x / w * w;
        int64_t        i = tensor_i32(&s->qs)[x];
        LogSum         sum = log_sum_new();

        s->z[x] = (double)tensor_f32(&lse)[x];
        if (fabs(s->z[x]) < COARSE || !isfinite(s->z[x]))
            continue;
        for (int64_t y = 0; y < w; y++)
            if (sees(s, keys, i, keys[y]))
                log_sum_add(&sum, attend_score(&s->in, s->h, x / all, i, keys[y]));
        s->z[x] = log_sum_of(&sum);
    }
}

static const int32_t *routing_keys_of(const RoutedClusters *s, int64_t head, int32_t entry)
{
    return tensor_i32(&s->ks) + (head * s->clusters + entry / s->window) * s->window;
}

static int64_t seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                         int32_t *key)
{
    const RoutedClusters *s = context;
    int64_t        row = head * s->n + i, found = 0;

    for (int64_t x = s->start[row]; x < s->start[row + 1]; x++) {
        const int32_t *keys = routing_keys_of(s, head, s->entry[x]);

        for (int64_t y = 0; y < s->window; y++)
            if (sees(s, keys, i, keys[y]) && !count[keys[y]]++)
                key[found++] = keys[y];
    }
    return found;
}

/* The last row: its keys, and the places in the clusters that hold it. */
static void last_clusters(Run *r, const Params *p, const RoutedClusters *s)
{
    run_last_listed(r, seen_keys, s, p->share_qk ? r->h : r->k.shape[0]);
    r->last.cells = 0;
    for (int64_t head = 0; head < s->h && r->last.known; head++) {
        int64_t row = head * s->n + s->n - 1;

        r->last.cells += (double)((s->start[row + 1] - s->start[row]) * s->window);
    }
}

static void routing_read_weights(const View *view, int64_t head, int64_t i, int64_t start,
                                 int64_t count, int64_t step, float *out)
{
    const RoutedClusters *s = view->context;
    int64_t        row = head * s->n + i, last = start + (count - 1) * step;

    memset(out, 0, (size_t)count * sizeof(*out));
    for (int64_t x = s->start[row]; x < s->start[row + 1]; x++) {
        const int32_t *keys = routing_keys_of(s, head, s->entry[x]);
        double         z = s->z[head * s->clusters * s->window + s->entry[x]], score;
        int64_t        y = key_lower_bound(keys, 0, s->window, start);

        for (; y < s->window && keys[y] <= last; y++) {
            if ((keys[y] - start) % step || !sees(s, keys, i, keys[y]))
                continue;
            score = attend_score(&s->in, s->h, head, i, keys[y]);
            out[(keys[y] - start) / step] +=
                (float)(exp(score - z) * routed_clusters_share(s, row));
        }
    }
}

/* membership, connectivity and weights; s must live in the run's arena. */
static void routed_clusters_show(Run *r, RoutedClusters *s, Tensor lse)
{
    View    *membership;
    Pattern *cells;

    if (!run_wants_views(r))
        return;
    view_stage(r, "route", -1);
    membership = view_add(r, "membership", VIEW_MEMBERSHIP, DT_U8, 4,
                          (int64_t[]){ s->h, 2, s->clusters, s->n });
    if (membership) {
        membership->read = read_membership;
        membership->context = s;
        membership->rows = "cluster";
        membership->cols = "token";
        show_balance(r, s, membership);
    }
    view_stage(r, NULL, -1);
    routing_refine(r, s, lse);
    cells = cell_rows_pattern(r, cell_rows_new(r, seen_keys, s), COMPONENT_CLUSTER);
    view_stage(r, "attend", -1);
    view_pattern(r, cells, false);
    view_stage(r, NULL, -1);
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, routing_read_weights, s, cells);
}

/* The centroids after one training update; this run does not use them. */
static void show_update(Run *r, const Params *p, const RoutedClusters *s)
{
    Tensor cluster, moved, count;
    double keep = p->decay, take = 1 - p->decay;

    if (!run_wants_views(r))
        return;
    run_stage(r, "update");
    cluster = centroids_nearest(r, s->mu, &s->rq);
    view_tensor(r, "clusters", VIEW_BUCKETS, cluster, "head", "token");
    if (p->ema_rule == EMA_PAPER) {
        moved = member_sums(r, s, cluster, &count);
        take *= s->same ? 1 : 0.5;
    } else {
        moved = routing_means(r, p, s, cluster);
    }
    for (int64_t x = 0; x < tensor_count(&moved) && !run_failed(r); x++)
        ((double *)moved.data)[x] =
            keep * ((double *)s->mu.data)[x] + take * ((double *)moved.data)[x];
    show_centroids(r, "centroids_new", moved);
}

static Flops routing_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    RoutedClusters s = routing_shape(r, p);
    double        h = (double)s.h, rows = h * (double)s.n, d = (double)s.d;
    double        c = (double)s.clusters, w = (double)s.window, pairs = h * c * w * w;
    double        e = (double)r->e, inputs = p->share_qk ? 1 : 2, routed = s.same ? 1 : 2;
    double        drawn = p->centroids.data || run_fits(r) ? 0 : h * c; /* to normalise */
    double        passes = (double)(p->kmeans_iters + run_iterations(r, "fit"));

    return (Flops){ .score = 2 * pairs * d, .mix = 2 * pairs * e,
                    .overhead = (p->normalize == NORM_NONE ? 0 : 5 * (inputs * rows + drawn) * d) +
                                (p->routing_proj.data ? 2 * inputs * rows * d * d : 0) +
                                passes * routed * rows * d * (2 * c + 1) +
                                2 * routed * rows * c * d + FLOPS_SOFTMAX * pairs +
                                h * c * w * e };
}

/* Members are those of the run, centroids are parameters: all keys and values stay, and the step
 * normalises and routes its token, reads its clusters and sums what they give. */
static DecodeCost routing_decode(const Run *r, const void *opaque)
{
    const Params  *p = opaque;
    RoutedClusters s = routing_shape(r, p);
    double h = (double)s.h, d = (double)s.d, e = (double)r->e, inputs = p->share_qk ? 1 : 2;
    double keys = p->share_qk ? h : (double)r->k.shape[0];
    double token = (double)r->cache_bytes * (keys * d + (double)r->v.shape[0] * e);
    double made = h * d * ((p->normalize == NORM_NONE ? 0 : 5 * inputs) +
                           (p->routing_proj.data ? 2 * inputs * d : 0) +
                           2 * (s.same ? 1 : 2) * (double)s.clusters);

    return (DecodeCost){ .state_bytes = token * (double)r->m, .kv_bytes_per_token = token,
                         .step_bytes = decode_read(r),
                         .decode_flops = decode_row(r) + made +
                                         r->last.cells / (double)s.window * e };
}

static const StageNote notes[] = {
    { "normalise", "Queries and keys are brought to one length, so that only their direction "
                   "decides." },
    { "first centroids", "The fit starts from distinct tokens of this input, drawn by the seed (or "
                         "from the centroids that were given)." },
    { "fit", "Spherical k-means on this input: every vector goes to its nearest centroid, each "
             "centroid moves to the mean direction of its vectors, until none changes its "
             "centroid." },
    { "k-means", "Every vector goes to its nearest centroid, then each centroid moves to the mean "
                 "direction of its vectors.  A centroid without vectors stays." },
    { "route", "Each cluster takes the tokens nearest to its centroid, all clusters the same "
               "number.  A token may be in several clusters, or in none." },
    { "attend", "Inside a cluster every query sees every key of the cluster, wherever they stand "
                "in the sequence." },
    { "combine", "Results go back to their tokens.  A token of several clusters gets their sum or "
                 "mean; one of none gets 0." },
    { "update", "How training would move the centroids after this batch.  This run does not use "
                "it." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("clusters", VIEW_BUCKETS, "centroid nearest to each query"),
    VIEW("membership", VIEW_MEMBERSHIP, "tokens of each cluster: query sets, then key sets"),
    VIEW("centroids", VIEW_VECTORS, "the centres that were used"),
    VIEW("centroids_new", VIEW_VECTORS, "the centres after one training update by this sequence"),
    VIEW("connectivity", VIEW_PATTERN, "cells that share a cluster"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights over all clusters"),
    VIEW_PROMISE_END
};

const Mechanism mech_routing = {
    .id = "routing",
    .title = "Routing Transformer",
    .authors = "Roy, Saffar, Vaswani, Grangier",
    .year = 2020,
    .arxiv = "2003.05997",
    .source = "paper, section 4 and Algorithm 1; google-research routing_transformer/utils.py",
    .formula = "members of cluster c = the w tokens with the largest q_i . mu_c\n"
               "output_i = mean over i's clusters c of softmax_c(scale * q_i . k_j) V",
    .problem = "A fixed pattern does not know which tokens belong together.",
    .idea = "Tokens are grouped around learned centroids, and each cluster takes the same "
            "number of tokens that suit it best.",
    .price = "Equal sizes leave some tokens in no cluster and others in several.",
    .lesson = "clusters",
    .teaches = "Clusters of equal size overlap and leave tokens out; with rows sorted by cluster "
               "the connectivity is a row of equal squares.  Causal runs hide later keys, but "
               "who is a member was decided on the whole sequence.",
    .classes = CLASS_LP,
    .claim_time = "O(n sqrt(n))",
    .claim_memory = "O(n sqrt(n))",
    .claim_decode = "yes (membership looks ahead)",
    .claim_exponent = 1.5,
    .causal = true,
    .no_at_end = "its clusters are made of the queries and keys of every position",
    .fit = "centroids: spherical k-means on the routing vectors of this input, from tokens drawn "
           "by the seed, until none changes its centroid",
    .views = views,
    .notes = notes,
    .size = "cluster_window",
    .params = params,
    .params_size = sizeof(Params),
    .run = routing_run,
    .flops = routing_flops,
    .decode = routing_decode,
};
