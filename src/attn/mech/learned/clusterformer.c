/* clusterformer.c -- Cluster-Former: chunks of tokens that lie close in content.
 *
 * Two kinds of layer alternate.  Both cut a list of the tokens into chunks that
 * begin every m slots and are l long; the tokens of a chunk's first m slots
 * attend to the chunk:
 *
 *     window layer:   the list is the sequence
 *     cluster layer:  z_i = argmax_c cos(t_i, mu_c), the list is sorted by
 *                     (z_i, i), and a token sees only its own cluster
 *     output_i = softmax over the chunk of scale * q_i . k_j, times v_j
 *
 * Centroids move by k-means on the directions of the tokens: mu_c becomes the
 * mean of t_i / |t_i| over its members.  Cosines and means are in double: the
 * clusters are decided on them.
 */
#include "attn/mech/learned/groups.h"
#include "attn/ops/dense.h"
#include "attn/ops/weights.h"
#include "attn/run.h"

#include <math.h>
#include <string.h>

#define DRAWN_ITERATIONS 10 /* of k-means from drawn tokens */
#define FIT_MOST 50         /* iterations when centroids are fitted */
#define SNAPSHOTS 16        /* iterations whose clusters are shown */

enum { LAYER_CLUSTER, LAYER_WINDOW };
enum { SOURCE_Q, SOURCE_K, SOURCE_X };

static const char *const layers[] = { "cluster", "window", NULL };
static const char *const sources[] = { "q", "k", "x", NULL };

typedef struct Params {
    int64_t n_clusters, block, stride, kmeans_iters;
    int     layer, cluster_source;
    bool    attend_across_clusters;
    double  scale;
    Tensor  centroids;
} Params;

static const Param params[] = {
    PARAM_ENUM(Params, layer, LAYER_CLUSTER, layers, "which of the two kinds of layer: chunks of "
               "the tokens sorted by cluster, or of the sequence"),
    PARAM_INT(Params, n_clusters, 0, 0, INT32_MAX, "clusters; 0: round(sqrt(n))"),
    PARAM_INT(Params, block, 64, 1, PARAM_COUNT_MAX, "length of a chunk"),
    PARAM_INT(Params, stride, 0, 0, PARAM_COUNT_MAX, "slots from one chunk to the next, at most "
              "block; 0: block, chunks do not overlap"),
    PARAM_BOOL(Params, attend_across_clusters, false, "see the whole chunk, whatever the cluster"),
    PARAM_ENUM(Params, cluster_source, SOURCE_Q, sources, "vectors that are clustered: queries, "
               "keys or the layer input"),
    PARAM_INT(Params, kmeans_iters, 0, 0, 1e6, "k-means iterations before the centroids are used"),
    PARAM_FLOAT(Params, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),
    PARAM_TENSOR(Params, centroids, "[h,C,dc] or [C,dc], dc = d, or dm with cluster_source=x",
                 "C distinct tokens, then 10 iterations", "the clusters' centres"),
    PARAM_END
};

typedef struct Former {
    int64_t   h, n, clusters, length, stride, chunks;
    bool      across;
    Partition parts;
    Tensor    chunk; /* i32 [h,n] of each token */
} Former;

static Former former_shape(const Run *r, const Params *p);
static int64_t cluster_count(const Run *r, const Params *p);
static Tensor clusters_of(Run *r, const Params *p, const Former *f);
static Tensor tokens_of(const Run *r, const Params *p);
static Tensor settle_centroids(Run *r, const Params *p, const Former *f, Tensor tokens);
static Tensor clusterformer_draw_tokens(Run *r, Tensor tokens, int64_t count);
static int64_t clusterformer_kmeans(Run *r, Tensor tokens, Tensor mu, int64_t first,
                                    int64_t iterations,
                                    bool settle);
static Tensor assign(Run *r, Tensor tokens, Tensor mu);
static void update(Run *r, Tensor tokens, Tensor cluster, Tensor mu);
static void clusterformer_show_centroids(Run *r, Tensor mu);
static void clusterformer_sort(Run *r, Former *f, Tensor cluster);
static void clusterformer_attend(Run *r, const Params *p, const Former *f);
static void list_chunks(Run *r, const Former *f, GroupAttend *g);
static double clusterformer_window_slots(const Former *f, double *pairs);
static int64_t chunk_end(const Former *f, int64_t chunk);
static void clusterformer_show(Run *r, const Params *p, const Former *f);
static int64_t clusterformer_seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                                       int32_t *key);
static int64_t fit_iterations(const Run *r, const Params *p);

static void clusterformer_run(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Former       *f = run_alloc(r, 1, sizeof(*f)); /* views read it later */
    Tensor        cluster;

    if (!f)
        return;
    *f = former_shape(r, p);
    cluster = clusters_of(r, p, f);
    view_tensor(r, "clusters", VIEW_BUCKETS, cluster, "head", "token");
    clusterformer_sort(r, f, cluster);
    run_size(r, "n_clusters", p->layer == LAYER_WINDOW ? 0 : f->clusters);
    clusterformer_attend(r, p, f);
    clusterformer_show(r, p, f);
}

static Former former_shape(const Run *r, const Params *p)
{
    Former f = { .h = r->h, .n = r->n, .clusters = cluster_count(r, p),
                 .length = min_i64(p->block, r->n),
                 .stride = min_i64(p->stride ? p->stride : p->block, r->n),
                 .across = p->attend_across_clusters || p->layer == LAYER_WINDOW };

    f.chunks = (f.n + f.stride - 1) / f.stride;
    return f;
}

static int64_t cluster_count(const Run *r, const Params *p)
{
    const Tensor *given = &p->centroids;

    if (p->layer == LAYER_WINDOW)
        return 1;
    if (p->n_clusters)
        return given->data ? p->n_clusters : min_i64(p->n_clusters, r->n);
    if (given->data && given->rank >= 2)
        return given->shape[given->rank - 2];
    return (int64_t)floor(sqrt((double)r->n) + 0.5);
}

/* ---- centroids -------------------------------------------------------------- */

static Tensor clusters_of(Run *r, const Params *p, const Former *f)
{
    Tensor tokens = tokens_of(r, p), cluster, mu;

    if (p->layer == LAYER_WINDOW) {
        run_stage(r, "one cluster");
        cluster = run_tensor2(r, DT_I32, f->h, f->n);
        if (!run_failed(r))
            memset(cluster.data, 0, (size_t)tensor_bytes(&cluster));
        return cluster;
    }
    mu = settle_centroids(r, p, f, tokens);
    run_stage(r, "assign");
    clusterformer_show_centroids(r, mu);
    return assign(r, tokens, mu);
}

/* f32 [h',n,dc]: what is clustered. */
static Tensor tokens_of(const Run *r, const Params *p)
{
    if (p->cluster_source == SOURCE_X)
        return tensor_of(DT_F32, 3, (int64_t[]){ 1, r->n, r->dm }, r->x.data);
    return p->cluster_source == SOURCE_K ? r->k : r->q;
}

/* f64 [h,C,dc], ready to assign by.  Drawn ones are rounded once they have settled, so
 * that a run from the dumped tensor is the same run. */
static Tensor settle_centroids(Run *r, const Params *p, const Former *f, Tensor tokens)
{
    int64_t shape[3] = { f->h, f->clusters, tokens.shape[2] }, done = 0;
    Tensor  given = run_param_given(r, "centroids", p->centroids, DT_F32, 3, shape), mu;

    run_stage(r, given.data ? "take centroids" : "draw centroids");
    mu = dense_wide(r, given.data ? given : clusterformer_draw_tokens(r, tokens, f->clusters));
    if (!given.data || run_fits(r)) {
        Tensor kept;

        done = clusterformer_kmeans(r, tokens, mu, 0, run_fits(r) ? FIT_MOST : DRAWN_ITERATIONS,
                                    run_fits(r));
        kept = dense_rounded(r, mu);
        mu = dense_wide(r, kept);
        if (run_fits(r))
            view_fitted(r, "centroids", kept);
    }
    clusterformer_kmeans(r, tokens, mu, done, p->kmeans_iters, false);
    return mu;
}

static Tensor clusterformer_draw_tokens(Run *r, Tensor tokens, int64_t count)
{
    ChoiceRows rows = { .near = tokens };
    Tensor     start = dense_rounded(r, centroids_drawn(r, &rows, "centroids", count));

    view_drawn(r, "centroids", start);
    return start;
}

/* At most `iterations`; with settle stops once no token changes its cluster.  Returns how
 * many. */
static int64_t clusterformer_kmeans(Run *r, Tensor tokens, Tensor mu, int64_t first,
                                    int64_t iterations,
                                    bool settle)
{
    Tensor     before = run_tensor2(r, DT_I32, r->h, r->n);
    ChoiceRows rows = { .near = tokens };
    int64_t    t = first, moved = 1;

    if (!run_failed(r))
        memset(before.data, 0xff, (size_t)tensor_bytes(&before));
    for (; t < first + iterations && (moved || !settle) && !run_failed(r); t++) {
        bool      shown = run_wants_views(r) && t < SNAPSHOTS;
        ArenaMark mark = arena_mark(r->arena);
        Tensor    cluster;

        run_iteration(r, "assign", t);
        cluster = assign(r, tokens, mu);
        op_wait(r, "the host counts the tokens that moved between clusters");
        if (run_failed(r))
            break;
        moved = centroids_moved(before, cluster);
        if (run_wants_views(r))
            run_trace(r, "mean 1 - cosine", centroids_spread(r, mu, &rows, cluster));
        run_trace(r, "tokens that moved", (double)moved);
        if (shown)
            view_tensor(r, "clusters", VIEW_BUCKETS, cluster, "head", "token");
        run_iteration(r, "move centroids", t);
        update(r, tokens, cluster, mu);
        if (shown)
            clusterformer_show_centroids(r, mu);
        else
            arena_release(r->arena, mark);
    }
    return t - first;
}

/* i32 [h,n]: the centroid with the largest cosine; ties, and so zero vectors: the lowest. */
static Tensor assign(Run *r, Tensor tokens, Tensor mu)
{
    Tensor cluster = op_nearest(r, &(Nearest){ .x.near = tokens, .y = mu, .parts = 1,
                                               .cosine = true });

    op_charge(r, FLOP_OVERHEAD, 2 * (double)(r->h * r->n) * (double)(mu.shape[1] * mu.shape[2]));
    return tensor_of(DT_I32, 2, (int64_t[]){ r->h, r->n }, cluster.data);
}

/* The mean direction of each cluster's members, in place; an empty one stays. */
static void update(Run *r, Tensor tokens, Tensor cluster, Tensor mu)
{
    int64_t   clusters = mu.shape[1], d = mu.shape[2];
    ArenaMark mark = arena_mark(r->arena);
    Tensor    sum = run_tensor3(r, DT_F64, r->h, clusters, d);
    Tensor    members = op_tally(r, cluster, clusters);

    op_member_sums(r, tokens, cluster, true, sum);
    members = tensor_of(DT_I32, 3, (int64_t[]){ r->h, clusters, 1 }, members.data);
    op_entries_of(r, sum, members, ENTRY_QUOTIENT, 0, sum);
    op_entries_of(r, sum, members, ENTRY_WHERE, 0, mu);
    arena_release(r->arena, mark);
}

static void clusterformer_show_centroids(Run *r, Tensor mu)
{
    if (run_wants_views(r))
        view_tensor(r, "centroids", VIEW_VECTORS, dense_rounded(r, mu), "cluster", "feature");
}

/* ---- chunks and attention --------------------------------------------------- */

static void clusterformer_sort(Run *r, Former *f, Tensor cluster)
{
    Tensor slot;

    run_stage(r, "sort");
    f->parts = partition_of(r, cluster, f->clusters);
    f->chunk = run_tensor2(r, DT_I32, f->h, f->n);
    slot = run_tensor3(r, DT_I32, 1, f->n, 1);
    run_prepare(r, true);
    for (int64_t x = 0; x < f->n && !run_failed(r); x++)
        tensor_i32(&slot)[x] = (int32_t)(x / f->stride);
    op_toward(r, slot.data, tensor_bytes(&slot));
    run_prepare(r, false);
    op_scatter(r, slot, f->parts.order,
               tensor_of(DT_I32, 3, (int64_t[]){ f->h, f->n, 1 }, f->chunk.data));
    view_tensor(r, "order", VIEW_ORDER, f->parts.order, "head", "slot");
    view_tensor(r, "chunks", VIEW_BUCKETS, f->chunk, "head", "token");
    partition_show(r, &f->parts);
}

static void clusterformer_attend(Run *r, const Params *p, const Former *f)
{
    GroupAttend g = { .q = r->q, .k = r->k, .v = r->v, .scale = run_scale(r, p->scale) };
    GroupResult result;

    run_stage(r, "attend");
    list_chunks(r, f, &g);
    if (!f->across)
        g.query_tag = g.key_tag = f->parts.cluster;
    result = op_group_attend(r, &g);
    run_stage(r, "restore order");
    r->out = run_tensor3(r, DT_F32, f->h, f->n, r->e);
    op_scatter(r, result.out, f->parts.order, r->out);
}

/* A group is a chunk: its queries are the first slots, its keys the window. */
static void list_chunks(Run *r, const Former *f, GroupAttend *g)
{
    double  pairs, slots = clusterformer_window_slots(f, &pairs);
    int64_t total = (int64_t)slots;

    if (slots > INT32_MAX)
        run_fail(r, ERR_PARAM, "clusterformer: %lld chunks of %lld slots are too many to list; "
                 "take a larger stride", (long long)f->chunks, (long long)f->length);
    g->groups = f->chunks;
    g->query_start = run_tensor2(r, DT_I32, 1, f->chunks + 1);
    g->key_start = run_tensor2(r, DT_I32, 1, f->chunks + 1);
    g->query_index = f->parts.order;
    g->key_index = run_tensor2(r, DT_I32, f->h, total);
    if (run_failed(r))
        return;
    for (int64_t c = 0, at = 0; c <= f->chunks; c++) {
        tensor_i32(&g->query_start)[c] = (int32_t)min_i64(c * f->stride, f->n);
        tensor_i32(&g->key_start)[c] = (int32_t)at;
        for (int64_t t = 0; c < f->chunks && t < f->h; t++)
            memcpy(tensor_i32(&g->key_index) + t * total + at,
                   tensor_i32(&f->parts.order) + t * f->n + c * f->stride,
                   (size_t)(chunk_end(f, c) - c * f->stride) * sizeof(int32_t));
        at += c < f->chunks ? chunk_end(f, c) - c * f->stride : 0;
    }
}

/* Slots of the window of all chunks together, and (token, slot) pairs. */
static double clusterformer_window_slots(const Former *f, double *pairs)
{
    double slots = 0;

    *pairs = 0;
    for (int64_t c = 0; c < f->chunks; c++) {
        double seen = (double)(chunk_end(f, c) - c * f->stride);

        slots += seen;
        *pairs += seen * (double)(min_i64((c + 1) * f->stride, f->n) - c * f->stride);
    }
    return slots;
}

/* Slots [chunk * stride, chunk_end): what the chunk's tokens see. */
static int64_t chunk_end(const Former *f, int64_t chunk)
{
    return min_i64(chunk * f->stride + f->length, f->n);
}

/* ---- views ------------------------------------------------------------------ */

static void clusterformer_show(Run *r, const Params *p, const Former *f)
{
    AttendInput     in = { .q = r->q, .k = r->k, .v = r->v, .scale = run_scale(r, p->scale) };
    uint8_t         bits = p->layer == LAYER_WINDOW ? COMPONENT_BLOCK : COMPONENT_CLUSTER;
    const CellRows *rows = cell_rows_new(r, clusterformer_seen_keys, f);
    Pattern        *cells = cell_rows_pattern(r, rows, bits);

    view_stage(r, "attend", -1);
    view_pattern(r, cells, false);
    view_stage(r, NULL, -1);
    cell_rows_weights(r, rows, in, cells);
}

static int64_t clusterformer_seen_keys(const void *context, int64_t head, int64_t i, int32_t *count,
                                       int32_t *key)
{
    const Former  *f = context;
    const int32_t *order = tensor_i32(&f->parts.order) + head * f->n;
    const int32_t *cluster = tensor_i32(&f->parts.cluster) + head * f->n;
    int64_t        chunk = tensor_i32(&f->chunk)[head * f->n + i], found = 0;

    for (int64_t s = chunk * f->stride; s < chunk_end(f, chunk); s++)
        if (f->across || cluster[order[s]] == cluster[i]) {
            key[found++] = order[s];
            count[order[s]] = 1;
        }
    return found;
}

static void clusterformer_check(Run *r, const void *opaque)
{
    const Params *p = opaque;

    if (p->stride > p->block)
        run_fail(r, ERR_PARAM, "clusterformer: stride=%lld is more than block=%lld, so some tokens "
                 "would see no chunk; take 1 to block", (long long)p->stride, (long long)p->block);
    if (p->layer == LAYER_WINDOW && run_fits(r))
        run_fail(r, ERR_USAGE,
                 "clusterformer: layer=window has no centroids to fit; run it without "
                 "--fit, or with layer=cluster");
    if (p->layer == LAYER_WINDOW)
        return;
    if (!p->centroids.data && p->n_clusters > r->n)
        run_warn(r, "clusterformer: n_clusters=%lld, but there are only %lld tokens to begin with; "
                 "so many clusters are made", (long long)p->n_clusters, (long long)r->n);
    if (p->cluster_source != SOURCE_X)
        return;
    if (!r->x.data)
        run_fail(r, ERR_DATA, "clusterformer: cluster_source=x reads the layer input x, which the "
                 "input does not hold; use cluster_source=q or k");
    else if (r->x.shape[0] != r->n)
        run_fail(r, ERR_DATA, "clusterformer: x has %lld rows but q has n=%lld",
                 (long long)r->x.shape[0], (long long)r->n);
}

static Flops clusterformer_flops(Run *r, const void *opaque)
{
    const Params *p = opaque;
    Former        f = former_shape(r, p);
    double        h = (double)f.h, pairs, times = 1 + (double)p->kmeans_iters;
    double        dc = (double)(p->cluster_source == SOURCE_X ? r->dm : r->d);

    clusterformer_window_slots(&f, &pairs);
    times += run_fits(r) ? (double)fit_iterations(r, p)
             : p->centroids.data ? 0 : DRAWN_ITERATIONS;
    return (Flops){ .score = 2 * h * pairs * (double)r->d, .mix = 2 * h * pairs * (double)r->e,
                    .overhead = FLOPS_SOFTMAX * h * pairs +
                                (p->layer == LAYER_WINDOW ? 0 : times * 2 * h * (double)f.n *
                                                                    (double)f.clusters * dc) };
}

/* The run holds the number of the fit's iterations. */
static int64_t fit_iterations(const Run *r, const Params *p)
{
    return run_iterations(r, "move centroids") - p->kmeans_iters;
}

static const StageNote notes[] = {
    { "draw centroids",
      "No centroids were given: a few tokens, drawn by the seed, are the first." },
    { "one cluster",
      "The window layer makes no clusters: all tokens are in one, in their own order." },
    { "assign", "Every token goes to the centroid whose direction is nearest." },
    { "move centroids",
      "Each centroid becomes the mean direction of its tokens. An empty cluster stays where it "
      "is." },
    { "sort",
      "Tokens are sorted by cluster, and by position within a cluster, then cut into chunks." },
    { "attend",
      "Inside a chunk tokens of the same cluster see each other, however far apart they stood." },
    { "restore order", "The outputs go back to where their tokens stand in the sequence." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    VIEW("clusters", VIEW_BUCKETS, "cluster of each token"),
    VIEW("counts", VIEW_COUNT, "tokens in each cluster"),
    VIEW("membership", VIEW_MEMBERSHIP, "tokens of each cluster"),
    VIEW("order", VIEW_ORDER, "token at each slot of the sorted list"),
    VIEW("chunks", VIEW_BUCKETS, "chunk of each token"),
    VIEW("centroids", VIEW_VECTORS, "the clusters' centres (layer=cluster)", .maybe = true),
    VIEW("connectivity", VIEW_PATTERN, "cells of one chunk and cluster"),
    VIEW("weights", VIEW_WEIGHTS, "attention weights"),
    VIEW_PROMISE_END
};

const Mechanism mech_clusterformer = {
    .id = "clusterformer",
    .title = "Cluster-Former",
    .authors = "Wang, Zhou, Gan, Chen, Fang, Sun, Cheng, Liu",
    .year = 2020,
    .arxiv = "2009.06097",
    .source = "paper's abstract and public summaries, survey 2009.06732, table 1; whether "
              "attention crosses clusters inside a chunk is an option",
    .formula = "z_i = argmax_c cos(t_i, mu_c); sorted by (z_i, i), chunks of l every m slots\n"
               "output_i = softmax over i's chunk and cluster of scale * q_i . k_j, times v_j",
    .problem = "Windows never join related passages that are far apart.",
    .idea = "Tokens are sorted by the cluster of their content, and windows run over the sorted "
            "order.",
    .price = "What is near in the text is lost in such a layer, so layers with plain windows are "
             "needed too.  Comparing every token with about sqrt(n) centres takes O(n^1.5); the "
             "survey claims O(n log n).",
    .lesson = "clusters",
    .teaches = "The window layer is a band of squares; the cluster layer is the same squares "
               "scattered over the sequence, because distance no longer matters.  With rows "
               "sorted by cluster they are a band again.",
    .example = "block=16",
    .classes = CLASS_LP,
    .claim_time = "O(n log n)",
    .claim_memory = "O(n log n)",
    .claim_decode = "no",
    .claim_exponent = 1,
    .fit = "centroids: k-means by cosine on the tokens of this input, from tokens drawn by the "
           "seed, until none changes its cluster (without --fit 10 iterations)",
    .no_causal = "a token's cluster and chunk depend on the whole sequence",
    .views = views,
    .notes = notes,
    .size = "block",
    .params = params,
    .params_size = sizeof(Params),
    .check = clusterformer_check,
    .run = clusterformer_run,
    .flops = clusterformer_flops,
};
