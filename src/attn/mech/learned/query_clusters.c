/* query_clusters.c -- see query_clusters.h. */
#include "attn/mech/learned/query_clusters.h"

#include <math.h>
#include <string.h>

#include "attn/ops/dense.h"
#include "attn/run.h"
#include "core/rng.h"

#define SNAPSHOTS 16 /* iterations whose clusters are shown */
#define FIT_MOST 100 /* iterations when the codes are fitted */

/* ---- sizes and checks ------------------------------------------------------- */

/* A size that the user did not set is the extent of the given tensor. */
int64_t query_clusters_count(const Run *r, const QueryClusterParams *p)
{
    const Tensor *given = &p->init_indices;
    int64_t       count = min_i64(p->n_clusters, r->n);

    if (given->data && given->rank >= 1 && !run_is_given(r, "n_clusters"))
        count = min_i64(count, given->shape[given->rank - 1]);
    return count;
}

static int64_t bit_count(const Run *r, const QueryClusterParams *p)
{
    const Tensor *given = &p->planes;

    return given->data && given->rank >= 2 && !run_is_given(r, "bits")
               ? given->shape[given->rank - 2] : p->bits;
}

static void check_indices(Run *r, const QueryClusterParams *p)
{
    Tensor  given = p->init_indices;
    int64_t count = query_clusters_count(r, p), length = tensor_count(&given);
    char    found[80];
    bool    row = given.rank == 1 || (given.rank == 2 && given.shape[0] == 1);

    if (!row || length < count || count < 1)
        run_fail(r, ERR_PARAM, "%s: parameter init_indices: expected shape [%lld] (one query for "
                 "each cluster), found %s", r->mechanism->id, (long long)count,
                 tensor_shape_text(&given, found, sizeof(found)));
    if (given.dtype != DT_I32 && given.dtype != DT_I64)
        run_fail(r, ERR_PARAM, "%s: parameter init_indices: expected int32 or int64, found %s",
                 r->mechanism->id, dtype_name(given.dtype));
    for (int64_t c = 0; c < count && !run_failed(r); c++) {
        double index = tensor_get(&given, (int64_t[]){ row && given.rank == 2 ? 0 : c, c });

        if (!(index >= 0 && index < (double)r->n))
            run_fail(r, ERR_PARAM, "%s: parameter init_indices: entry %lld is %.0f, but there are "
                     "%lld queries (0..%lld)", r->mechanism->id, (long long)c, index,
                     (long long)r->n, (long long)r->n - 1);
    }
}

void query_clusters_check(Run *r, const void *params)
{
    const QueryClusterParams *p = params;
    int64_t                   bits = bit_count(r, p);

    if (bits < 1 || bits > QUERY_CLUSTER_MAX_BITS)
        run_fail(r, ERR_PARAM, "%s: parameter planes: found %lld planes, but a hash has 1 to %d "
                 "bits", r->mechanism->id, (long long)bits, QUERY_CLUSTER_MAX_BITS);
    if (p->init_indices.data)
        check_indices(r, p);
}

/* ---- hashing ---------------------------------------------------------------- */

static Tensor clusters_hash(Run *r, const QueryClusterParams *p, const QueryClusters *s)
{
    int64_t heads = p->planes.data ? s->h : 1;
    Tensor  planes, codes;

    run_stage(r, "hash");
    planes = run_param(r, "planes", p->planes, DT_F32, 3,
                       (int64_t[]){ heads, s->bits, s->d + 1 }, (Init){ INIT_NORMAL, 1 });
    codes = lsh_codes(r, r->q, planes, p->hash_bias);
    view_tensor(r, "hashes", VIEW_TENSOR, codes, "head", "token");
    return codes;
}

/* ---- Lloyd's clustering ----------------------------------------------------- */

/* i32 [C]: distinct positions, in increasing order. */
static Tensor draw_indices(Run *r, const QueryClusters *s)
{
    Tensor  index = run_tensor1(r, DT_I32, s->clusters);
    Rng     rng = run_rng(r, "init_indices");
    int64_t taken = 0;

    for (int64_t i = 0; i < s->n && taken < s->clusters && !run_failed(r); i++)
        if ((int64_t)rng_below(&rng, (uint64_t)(s->n - i)) < s->clusters - taken)
            tensor_i32(&index)[taken++] = (int32_t)i;
    view_drawn(r, "init_indices", index);
    return index;
}

/* Takes one more chosen query into account: of each query the fewest bits its code differs
 * from a chosen one's in [h,n], and the squares of those summed over heads. */
static void nearer(const QueryClusters *s, Tensor codes, int64_t chosen, uint8_t *near,
                   double *away)
{
    const int64_t *code = codes.data;

    for (int64_t i = 0; i < s->n; i++) {
        away[i] = 0;
        for (int64_t t = 0; t < s->h; t++) {
            uint64_t differ = (uint64_t)(code[t * s->n + i] ^ code[t * s->n + chosen]);
            uint8_t *least = &near[t * s->n + i];
            uint8_t  bits = (uint8_t)__builtin_popcountll(differ);

            *least = bits < *least ? bits : *least;
            away[i] += (double)*least * (double)*least;
        }
    }
}

/* The first query by chance, each further one with a chance that grows with its distance
 * from those there are (k-means++): so no two clusters start from one code. */
static Tensor spread_indices(Run *r, const QueryClusters *s, Tensor codes)
{
    Tensor   index = run_tensor1(r, DT_I32, s->clusters);
    uint8_t *near = run_alloc(r, s->h * s->n, 1);
    double  *away = run_alloc(r, s->n, sizeof(*away));
    Rng      rng = run_rng(r, "fit");
    int64_t  chosen = (int64_t)rng_below(&rng, (uint64_t)s->n);

    if (!run_failed(r))
        memset(near, 0xff, (size_t)(s->h * s->n));
    for (int64_t c = 0; c < s->clusters && !run_failed(r); c++) {
        double all = 0, at;

        tensor_i32(&index)[c] = (int32_t)chosen;
        nearer(s, codes, chosen, near, away);
        for (int64_t i = 0; i < s->n; i++)
            all += away[i];
        at = rng_uniform(&rng) * all;
        for (int64_t i = 0; i < s->n; i++)
            if (away[i] > 0) {
                chosen = i;
                at -= away[i];
                if (at < 0)
                    break;
            }
    }
    view_fitted(r, "init_indices", index);
    return index;
}

/* i64 [h,C]: the codes of the first queries of the clusters. */
static Tensor start_codes(Run *r, const QueryClusterParams *p, const QueryClusters *s,
                          Tensor codes)
{
    Tensor centres = run_tensor2(r, DT_I64, s->h, s->clusters), index;

    op_wait(r, "the host takes the first codes");
    index = p->init_indices.data ? tensor_convert(r->arena, p->init_indices, DT_I32)
            : run_fits(r)        ? spread_indices(r, s, codes)
                                 : draw_indices(r, s);

    if (!index.data)
        run_fail(r, ERR_NOMEM, "%s: not enough memory for init_indices", r->mechanism->id);
    for (int64_t x = 0; x < s->h * s->clusters && !run_failed(r); x++)
        ((int64_t *)centres.data)[x] =
            ((int64_t *)codes.data)[x / s->clusters * s->n +
                                    tensor_i32(&index)[x % s->clusters]];
    return centres;
}

static void show_codes(Run *r, const QueryClusters *s, Tensor centres)
{
    Tensor bits;

    if (!run_wants_views(r))
        return;
    bits = run_tensor3(r, DT_U8, s->h, s->clusters, s->bits);
    for (int64_t x = 0; x < tensor_count(&bits) && !run_failed(r); x++)
        tensor_u8(&bits)[x] = ((int64_t *)centres.data)[x / s->bits] >> x % s->bits & 1;
    view_tensor(r, "codes", VIEW_MEMBERSHIP, bits, "cluster", "bit");
}

static void clusters_show_clusters(Run *r, const QueryClusters *s, Tensor cluster)
{
    Tensor copy;

    if (!run_wants_views(r))
        return;
    copy = run_tensor2(r, DT_I32, s->h, s->n);
    if (!run_failed(r))
        memcpy(copy.data, cluster.data, (size_t)tensor_bytes(&copy));
    view_tensor(r, "clusters", VIEW_BUCKETS, copy, "head", "token");
}

/* The objective of the clustering: the mean distance of a query's code to its cluster's. */
static double bits_off(const QueryClusters *s, Tensor codes, Tensor centres, Tensor cluster)
{
    const int64_t *code = codes.data, *centre = centres.data;
    double         off = 0;

    for (int64_t x = 0; x < s->h * s->n; x++) {
        int64_t c = x / s->n * s->clusters + tensor_i32(&cluster)[x];

        off += __builtin_popcountll((uint64_t)(code[x] ^ centre[c]));
    }
    return off / (double)(s->h * s->n);
}

/* i32 [h,n].  Once no code moves, the iterations that are left change nothing. */
static Tensor lloyd(Run *r, const QueryClusterParams *p, const QueryClusters *s, Tensor codes)
{
    Tensor  cluster = run_tensor2(r, DT_I32, s->h, s->n), centres;
    int64_t t = 0, last = run_fits(r) && p->iterations < FIT_MOST ? FIT_MOST : p->iterations;
    bool    moved = true;

    run_stage(r, "first codes");
    centres = start_codes(r, p, s, codes);
    show_codes(r, s, centres);
    for (; t < last && moved && !run_failed(r); t++) {
        run_iteration(r, "assign", t);
        op_nearest_codes(r, codes, centres, cluster);
        if (run_wants_views(r))
            run_trace(r, "bits off the code", bits_off(s, codes, centres, cluster));
        if (t < SNAPSHOTS)
            clusters_show_clusters(r, s, cluster);
        if (t == last - 1)
            break;
        run_iteration(r, "move codes", t);
        moved = hamming_majority(r, codes, cluster, s->bits, centres);
        if (t < SNAPSHOTS)
            show_codes(r, s, centres);
    }
    run_stage(r, "clusters");
    if (run_fits(r))
        run_origin(r, "codes", ORIGIN_FITTED);
    show_codes(r, s, centres);
    view_tensor(r, "clusters", VIEW_BUCKETS, cluster, "head", "token");
    run_figure(r, "hamming_distances",
               (double)(s->h * (run_fits(r) ? t + 1 : last)) * (double)(s->n * s->clusters));
    return cluster;
}

/* ---- means ------------------------------------------------------------------ */

static void clusters_means(Run *r, QueryClusters *s)
{
    int64_t d = s->d;

    run_stage(r, "means");
    s->mean = run_tensor3(r, DT_F64, s->h, s->clusters, d);
    op_member_sums(r, r->q, s->parts.cluster, false, s->mean);
    op_wait(r, "the host divides the sums of clusters");
    for (int64_t x = 0; x < s->h * s->clusters * d && !run_failed(r); x++)
        if (tensor_i32(&s->parts.counts)[x / d])
            ((double *)s->mean.data)[x] /= (double)tensor_i32(&s->parts.counts)[x / d];
    s->query = dense_rounded(r, s->mean);
    op_charge(r, FLOP_OVERHEAD, (double)(s->h * s->n) * (double)d);
}

QueryClusters *query_clusters_new(Run *r, const QueryClusterParams *p)
{
    QueryClusters *s = run_alloc(r, 1, sizeof(*s));
    Tensor         codes;

    if (!s)
        return NULL;
    *s = (QueryClusters){ .h = r->h, .n = r->n, .m = r->m, .d = r->d, .k = r->k,
                          .clusters = query_clusters_count(r, p), .bits = bit_count(r, p),
                          .scale = run_scale(r, p->scale) };
    codes = clusters_hash(r, p, s);
    s->parts = partition_of(r, lloyd(r, p, s, codes), s->clusters);
    view_tensor(r, "order", VIEW_ORDER, s->parts.order, "head", "slot");
    partition_show(r, &s->parts);
    clusters_means(r, s);
    view_tensor(r, "centroids", VIEW_VECTORS, s->query, "cluster", "feature");
    return run_failed(r) ? NULL : s;
}

/* ---- attention of the means ------------------------------------------------- */

int64_t query_clusters_used(const QueryClusters *s, int64_t head)
{
    int64_t used = 0;

    for (int64_t c = 0; c < s->clusters; c++)
        used += tensor_i32(&s->parts.counts)[head * s->clusters + c] > 0;
    return used;
}

GroupAttend query_clusters_group(Run *r, const QueryClusters *s, Tensor v)
{
    GroupAttend g = { .q = s->query, .k = s->k, .v = v, .scale = s->scale, .groups = 1 };

    g.query_start = run_tensor2(r, DT_I32, s->h, 2);
    g.key_start = run_tensor2(r, DT_I32, 1, 2);
    g.query_index = run_tensor2(r, DT_I32, s->h, s->clusters);
    g.key_index = run_tensor2(r, DT_I32, 1, s->m);
    if (run_failed(r))
        return g;
    for (int64_t t = 0; t < s->h; t++) {
        int32_t used = 0;

        for (int64_t c = 0; c < s->clusters; c++)
            if (tensor_i32(&s->parts.counts)[t * s->clusters + c])
                tensor_i32(&g.query_index)[t * s->clusters + used++] = (int32_t)c;
        tensor_i32(&g.query_start)[2 * t] = 0;
        tensor_i32(&g.query_start)[2 * t + 1] = used;
    }
    tensor_i32(&g.key_start)[0] = 0;
    tensor_i32(&g.key_start)[1] = (int32_t)s->m;
    for (int64_t j = 0; j < s->m; j++)
        tensor_i32(&g.key_index)[j] = (int32_t)j;
    return g;
}

double query_clusters_score(const QueryClusters *s, int64_t head, int64_t c, int64_t j)
{
    const double *q = (double *)s->mean.data + (head * s->clusters + c) * s->d;
    const float  *k = (float *)tensor_head(&s->k, head, s->h) + j * s->k.stride[1];
    double        sum = 0;

    for (int64_t t = 0; t < s->d; t++)
        sum += q[t] * (double)k[t];
    return s->scale * sum;
}

/* ---- views ------------------------------------------------------------------ */

static void read_cluster_weights(const View *view, int64_t head, int64_t c, int64_t start,
                                 int64_t count, int64_t step, float *out)
{
    const QueryClusters *s = view->context;
    int64_t              at = head * s->clusters + c;
    bool                 empty = tensor_i32(&s->parts.counts)[at] == 0;

    for (int64_t x = 0; x < count; x++)
        out[x] = empty ? 0
                       : (float)exp(query_clusters_score(s, head, c, start + x * step) - s->z[at]);
}

static double log_sum(const QueryClusters *s, int64_t head, int64_t c, double *score)
{
    double top = -HUGE_VAL, sum = 0;

    for (int64_t j = 0; j < s->m; j++)
        top = fmax(top, score[j] = query_clusters_score(s, head, c, j));
    for (int64_t j = 0; j < s->m; j++)
        sum += exp(score[j] - top);
    return top + log(sum);
}

void query_clusters_show(Run *r, QueryClusters *s)
{
    double *score;
    View   *view;

    if (!run_wants_views(r))
        return;
    s->z = run_alloc(r, s->h * s->clusters, sizeof(*s->z));
    score = run_alloc(r, s->m, sizeof(*score));
    for (int64_t x = 0; x < s->h * s->clusters && !run_failed(r); x++)
        s->z[x] = tensor_i32(&s->parts.counts)[x]
                      ? log_sum(s, x / s->clusters, x % s->clusters, score) : 0;
    view_stage(r, "attend means", -1);
    view = view_add(r, "cluster_weights", VIEW_WEIGHTS, DT_F32, 3,
                    (int64_t[]){ s->h, s->clusters, s->m });
    view_stage(r, NULL, -1);
    if (!view)
        return;
    view->read = read_cluster_weights;
    view->context = s;
    view->rows = "cluster";
}

double query_clusters_flops(const Run *r, const QueryClusterParams *p)
{
    return (double)(r->h * r->n) * (double)r->d * (2 * (double)bit_count(r, p) + 1);
}
