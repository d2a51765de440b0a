/* clustered.c -- clustered attention: one attention for all queries of a cluster.
 *
 * Queries are hashed to bits and clustered by Hamming distance; every query of a
 * cluster gets the attention of the cluster's mean:
 *
 *     qbar_c   = mean of the queries in cluster c
 *     A_c      = softmax_j(scale * qbar_c . k_j)
 *     output_i = sum_j A_c(i),j v_j
 *
 * So C rows of attention are computed, not n.  Hashing and clustering are exact
 * (attn/mech/learned/lsh.h, attn/mech/learned/hamming.h).
 */
#include "attn/run.h"

#include <math.h>
#include <string.h>

static const Param params[] = { QUERY_CLUSTER_PARAM_ROWS, PARAM_END };

/* The output of a cluster is that of each of its queries. */
static void broadcast(Run *r, const QueryClusters *s, Tensor clusters, GroupResult result)
{
    int32_t *row = run_alloc(r, s->clusters, sizeof(*row));
    Tensor   rows = run_tensor2(r, DT_I32, s->h, s->n);

    run_stage(r, "broadcast");
    for (int64_t t = 0; t < s->h && !run_failed(r); t++) {
        const int32_t *index = tensor_i32(&clusters) + t * s->clusters;
        int64_t        used = query_clusters_used(s, t);

        for (int64_t x = 0; x < used; x++)
            row[index[x]] = (int32_t)x;
        for (int64_t i = t * s->n; i < (t + 1) * s->n; i++)
            tensor_i32(&rows)[i] = row[tensor_i32(&s->parts.cluster)[i]];
    }
    r->out = op_gather(r, result.out, rows);
}

static void read_weights(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                         int64_t step, float *out)
{
    const QueryClusters *s = view->context;
    int32_t              c = tensor_i32(&s->parts.cluster)[head * s->n + i];
    double               z = s->z[head * s->clusters + c];

    for (int64_t x = 0; x < count; x++)
        out[x] = (float)exp(query_clusters_score(s, head, c, start + x * step) - z);
}

static void show(Run *r, QueryClusters *s)
{
    PatternShape shape = { .heads = r->h, .n = r->n, .m = r->m };
    Pattern     *all;

    if (!run_wants_views(r))
        return;
    query_clusters_show(r, s);
    all = pattern_full(r->arena, shape, COMPONENT_OTHER);
    if (!all)
        run_fail(r, ERR_NOMEM, "clustered: not enough memory for the pattern");
    view_reader(r, "connectivity", VIEW_PATTERN, DT_U8, NULL, NULL, all); /* [h,n,m] */
    view_reader(r, "weights", VIEW_WEIGHTS, DT_F32, read_weights, s, NULL);
}

static void clustered_check(Run *r, const void *opaque)
{
    query_clusters_check(r, opaque);
}

static void clustered_run(Run *r, const void *opaque)
{
    QueryClusters *s = query_clusters_new(r, opaque);
    GroupAttend    g;
    GroupResult    result;

    if (!s)
        return;
    run_stage(r, "attend means");
    g = query_clusters_group(r, s, r->v);
    result = op_group_attend(r, &g);
    broadcast(r, s, g.query_index, result);
    show(r, s);
}

static Flops clustered_flops(Run *r, const void *opaque)
{
    double cells = (double)(r->h * query_clusters_count(r, opaque)) * (double)r->m;

    return (Flops){ .score = 2 * cells * (double)r->d, .mix = 2 * cells * (double)r->e,
                    .overhead = query_clusters_flops(r, opaque) + FLOPS_SOFTMAX * cells };
}

static const StageNote notes[] = {
    QUERY_CLUSTER_NOTES,
    { "attend means",
      "Each mean attends to all keys: C rows of attention instead of n." },
    { "broadcast",
      "Every query takes over its cluster's row, so rows of one cluster are identical." },
    { NULL, NULL }
};

static const ViewPromise views[] = {
    QUERY_CLUSTER_VIEWS,
    { .name = "connectivity", .kind = VIEW_PATTERN, .help = "every query weighs every key" },
    { .name = "weights", .kind = VIEW_WEIGHTS,
      .help = "attention weights; rows of one cluster are the same" },
    VIEW_PROMISE_END
};

const Mechanism mech_clustered = {
    .id = "clustered",
    .title = "Clustered attention",
    .authors = "Vyas, Katharopoulos, Fleuret",
    .year = 2020,
    .arxiv = "2007.04825",
    .source = "paper, section 3.2; idiap/fast-transformers clustered_attention.py, clustering, "
              "hashing",
    .formula = "qbar_c = mean of the queries in cluster c (Lloyd on the bits of their hashes)\n"
               "output_i = softmax_j(scale * qbar_c(i) . k_j) V",
    .picture = "weights",
    .teaches = "Sorted by cluster the weights are horizontal bands: every query of a cluster "
               "has the very same row, and only as many rows are computed as there are "
               "clusters.",
    .example = "n_clusters=8",
    .classes = CLASS_LP,
    .claim_time = "O(n C)",
    .claim_memory = "O(n C)",
    .claim_decode = "no",
    .claim_exponent = 1,
    .no_causal = "one row serves queries at different positions",
    .cross = true,
    .fit = QUERY_CLUSTER_FIT,
    .views = views,
    .notes = notes,
    .params = params,
    .params_size = sizeof(QueryClusterParams),
    .check = clustered_check,
    .run = clustered_run,
    .flops = clustered_flops,
    .flops_bound = true,
};
