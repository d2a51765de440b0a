/* attn/mech/learned/partition.h -- tokens divided into clusters: every token is in exactly one. */
#ifndef ATTN_MECH_LEARNED_PARTITION_H
#define ATTN_MECH_LEARNED_PARTITION_H

#include <stdint.h>

#include "attn/ops/ops.h"

typedef struct Partition {
    int64_t h, n, clusters;
    Tensor  cluster; /* i32 [h,n] of each token */
    Tensor  order;   /* i32 [h,n] tokens sorted by (cluster, position) */
    Tensor  start;   /* i32 [h,clusters+1] where each cluster begins in order */
    Tensor  counts;  /* i32 [h,clusters] */
} Partition;

Partition partition_of(Run *r, Tensor cluster, int64_t clusters);
/* Views `counts` and `membership`, figures clusters_used and largest_cluster. */
void partition_show(Run *r, const Partition *p);

#endif
