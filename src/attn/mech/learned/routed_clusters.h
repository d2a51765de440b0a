/* attn/mech/learned/routed_clusters.h -- clusters of equal size that take the tokens nearest to a centroid:
 * where each token stands in them, and their pictures.
 */
#ifndef ATTN_MECH_LEARNED_ROUTED_CLUSTERS_H
#define ATTN_MECH_LEARNED_ROUTED_CLUSTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/mech/learned/centroids.h"
#include "attn/ops/ops.h"

typedef struct RoutedClusters {
    int64_t h, n, d, clusters, window;
    bool    same;        /* keys are routed as the queries are */
    bool    causal, exclude_self, mean;
    double  eps;
    ChoiceRows rq, rk;   /* what is compared with the centroids */
    Tensor  mu;          /* f64 [h,C,d] */
    Tensor  qs, ks;      /* i32 [h,C*w] members, increasing in each cluster */
    AttendInput in;      /* what enters the scores */
    double *z;           /* [h,C*w] log-sum-exp of each member in its cluster; only with views */
    int32_t *times;      /* [h,n] clusters in which a token saw something */
    int64_t *start;      /* [h*n+1] into entry: the query's places in qs, increasing */
    int32_t *entry;
} RoutedClusters;

/* Fills start and entry from qs, and makes room for times. */
void   routed_clusters_list(Run *r, RoutedClusters *s);
/* What each of a token's results is multiplied by; row: head * n + token. */
double routed_clusters_share(const RoutedClusters *s, int64_t row);
/* membership, connectivity and weights; s must live in the run's arena. */
void   routed_clusters_show(Run *r, RoutedClusters *s, Tensor lse);

#endif
