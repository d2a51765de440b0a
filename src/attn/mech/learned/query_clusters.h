/* attn/mech/learned/query_clusters.h -- queries grouped by the bits of their hash, and
 * the attention of each group's mean.
 *
 *     bit t of i = q_i . plane_t > bias_t
 *     Lloyd on the codes by Hamming distance, starting from the codes of a few queries
 *     qbar_c = mean of the queries in cluster c
 *
 * A cluster without queries takes no part in anything.
 */
#ifndef ATTN_MECH_LEARNED_QUERY_CLUSTERS_H
#define ATTN_MECH_LEARNED_QUERY_CLUSTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/mech/learned/groups.h"
#include "attn/ops/ops.h"
#include "attn/run/param.h"

typedef struct QueryClusterParams {
    int64_t n_clusters, bits, iterations, topk; /* topk: of improved clustered attention */
    bool    hash_bias;
    double  scale;
    Tensor  planes, init_indices;
} QueryClusterParams;

#define QUERY_CLUSTER_MAX_BITS 63

#define QUERY_CLUSTER_PARAM_ROWS                                                               \
    PARAM_INT(QueryClusterParams, n_clusters, 32, 1, INT32_MAX, "clusters of queries, at most n"), \
    PARAM_INT(QueryClusterParams, bits, QUERY_CLUSTER_MAX_BITS, 1, QUERY_CLUSTER_MAX_BITS,     \
              "length of a query's hash"),                                                     \
    PARAM_BOOL(QueryClusterParams, hash_bias, true, "planes are shifted by their bias (nearness " \
               "of vectors) or pass through 0 (of directions)"),                               \
    PARAM_INT(QueryClusterParams, iterations, 10, 1, 1e6, "of Lloyd's clustering, the last of " \
              "which only assigns"),                                                           \
    PARAM_FLOAT(QueryClusterParams, scale, 0, 0, 1e30, "factor of the scores; 0: 1/sqrt(d)"),  \
    PARAM_TENSOR(QueryClusterParams, planes, "[bits,d+1] or [h,bits,d+1], the last column the " \
                 "bias", "N(0,1), the same for all heads", "the hash's planes"),               \
    PARAM_TENSOR(QueryClusterParams, init_indices, "integers [C]", "distinct positions, the "  \
                 "same for all heads", "queries whose codes the clusters start from")

#define QUERY_CLUSTER_VIEWS                                                                    \
    { .name = "hashes", .kind = VIEW_TENSOR, .help = "code of each query, bit t = 2^t" },      \
    { .name = "codes", .kind = VIEW_MEMBERSHIP, .help = "bits each cluster stands for" },      \
    { .name = "clusters", .kind = VIEW_BUCKETS, .help = "cluster of each query" },             \
    { .name = "counts", .kind = VIEW_COUNT, .help = "queries in each cluster" },               \
    { .name = "membership", .kind = VIEW_MEMBERSHIP, .help = "queries of each cluster" },      \
    { .name = "order", .kind = VIEW_ORDER, .help = "queries sorted by cluster" },              \
    { .name = "centroids", .kind = VIEW_VECTORS, .help = "mean query of each cluster" },       \
    { .name = "cluster_weights", .kind = VIEW_WEIGHTS,                                         \
      .help = "attention of each cluster's mean" },                                            \
    { .name = "planes", .kind = VIEW_TENSOR, .maybe = true,                                    \
      .help = "the hash's planes, when they were drawn" },                                     \
    { .name = "init_indices", .kind = VIEW_TENSOR, .maybe = true,                              \
      .help = "the queries the clusters started from, when they were drawn" }

typedef struct QueryClusters {
    int64_t   h, n, m, d, clusters, bits;
    double    scale;
    Tensor    k;       /* f32 [h',m,d] */
    Partition parts;
    Tensor    mean;    /* f64 [h,C,d]; 0 for an empty cluster */
    Tensor    query;   /* f32 [h,C,d] of it */
    double   *z;       /* [h*C] log-sum-exp of a cluster's scores; only with views */
} QueryClusters;

/* A Mechanism.check, of QueryClusterParams: fails the run where the clusters cannot be made. */
void query_clusters_check(Run *r, const void *params);
QueryClusters *query_clusters_new(Run *r, const QueryClusterParams *p);

/* A group of the clusters that have queries, which all see all keys; the result's row x
 * is that of cluster query_index[x]. */
GroupAttend query_clusters_group(Run *r, const QueryClusters *s, Tensor v);
int64_t     query_clusters_used(const QueryClusters *s, int64_t head);

/* scale * qbar_c . k_j in double. */
double query_clusters_score(const QueryClusters *s, int64_t head, int64_t c, int64_t j);
/* Views centroids, counts, membership and order; fills s->z and shows cluster_weights. */
void query_clusters_show(Run *r, QueryClusters *s);
/* FLOPs of hashing, Lloyd's clustering and the means. */
double query_clusters_flops(const Run *r, const QueryClusterParams *p);
int64_t query_clusters_count(const Run *r, const QueryClusterParams *p);

#define QUERY_CLUSTER_FIT                                                                      \
    "codes of the clusters: started from queries of this input far from one another, then "    \
    "Lloyd by Hamming distance until no code moves"

/* Notes of the stages that end with the means, for the tables of mechanisms. */
#define QUERY_CLUSTER_NOTES                                                                     \
    { "hash", "Every query becomes a code of bits: on which side of each random plane it lies.  " \
              "Near queries have codes that differ in few bits." },                              \
    { "first codes", "The codes of a few queries are the first centroids." },                    \
    { "assign", "Every query goes to the cluster whose code differs from its own in the "        \
                "fewest bits." },                                                                \
    { "move codes", "Each bit of a cluster's code becomes what most of its members have.  An "   \
                    "empty cluster keeps its code." },                                           \
    { "clusters", "The last assignment is the one that counts." },                               \
    { "means", "The queries of a cluster are replaced by their mean: one query stands for all." }

#endif
