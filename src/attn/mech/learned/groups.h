/* attn/mech/learned/groups.h -- tokens divided into clusters: every token is in exactly one. */
#ifndef ATTN_MECH_LEARNED_GROUPS_H
#define ATTN_MECH_LEARNED_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/run/view.h"
#include "core/tensor.h"

typedef struct Run Run;

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

/* How evenly tokens are spread over groups, as bars and in words. */

/* Puts bars beside a view of membership (rows are groups, columns tokens): the size of each
 * group, i32 [planes,groups], and in how many groups a token is, i32 [planes,tokens], where
 * it is not always one (times.data NULL).  The words: the largest size against the mean,
 * the entropy of the sizes in bits, groups without and tokens in no or several groups. */
void balance_show(Run *r, View *view, Tensor sizes, Tensor times);

/* A list cut into chunks, each seeing the chunks around it.
 *
 * The list has `slots` entries and is cut every `block` of them; the last
 * chunk may be short.  Chunk c sees chunks c - before ... c + after: those
 * that exist, or, when the list is a ring, modulo their number and each once.
 */

typedef struct Chunks {
    int64_t slots, block, count; /* count: of chunks */
    int64_t before, after;
    bool    ring;
} Chunks;

Chunks chunks_of(int64_t slots, int64_t block, int64_t before, int64_t after, bool ring);

/* Slots [chunk * block, chunks_end). */
int64_t chunks_end(const Chunks *c, int64_t chunk);
/* Seen from `chunk`: first, first + 1, ... modulo count; returns how many. */
int64_t chunks_window(const Chunks *c, int64_t chunk, int64_t *first);
/* (query slot, key slot) pairs, key in a chunk that the query's sees. */
double  chunks_pairs(const Chunks *c);

/* The lists of `g`, the same for all heads: a group is a chunk, its queries are
 * the chunk's slots, its keys those of the window.  Rows are slots. */
void chunks_groups(Run *r, const Chunks *c, GroupAttend *g);

/* Locality-sensitive hashing by random rotations and by hyperplanes.
 *
 * Rotations: in each round the bucket of x is argmax [x R ; -x R], decided in double, ties
 * to the lowest.  With a second factor R' it is a + 2 half * a'.
 *
 * Hyperplanes: bit t of x's code says on which side of plane t it lies.
 */

/* i32 [h,rounds,n] of x [h,n,d] and rotations [h',d,rounds,W]; the first `half`
 * columns of a round are R, the rest R'.  Charges as op_dots64. */
Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half);

/* i64 [h,n]: bit t is set iff x . planes[t,:d] > planes[t,d], or > 0 without bias;
 * planes f32 [h',bits,d+1], at most 63 of them.  Charges as op_dots64. */
Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias);

/* Lloyd's clustering of bit codes.
 *
 * Codes and centres are i64; the distance is the number of bits that differ
 * (op_nearest_codes).
 * Everything is exact, so nothing here depends on threads or machine.
 */

/* Moves each centre to the majority of its members' bits: a bit is set iff more than
 * half of them have it.  A centre without members stays.  False: none moved. */
bool hamming_majority(Run *r, Tensor codes, Tensor cluster, int64_t bits, Tensor centres);

/* Vectors that go to centroids, and centroids that take vectors.
 *
 * Centroids mu are f64 [h,C,d]; all is decided in double (ops.h, ChoiceRows).  Charges
 * nothing unless it says so.
 */

/* Rows of x f64 [h,n,d], rounded where it is enough. */
ChoiceRows choice_rows_exact(Run *r, Tensor x);
/* Rows of x f32 [h',n,d] normalised; in double only those that need it.  Charges 5 per
 * element of all heads. */
ChoiceRows choice_rows_normalised(Run *r, Tensor x, NormaliseKind kind, double eps);

/* f64 [h,count,d]: distinct rows of each head, drawn by the stream `name`, in the order of the
 * sequence; where there are fewer than `count` they begin again. */
Tensor centroids_drawn(Run *r, const ChoiceRows *x, const char *name, int64_t count);
/* How many entries of now differ from those of before, both i32, which becomes now. */
int64_t centroids_moved(Tensor before, Tensor now);

/* i32 [h,n]: the centroid with the largest product; ties: the lowest. */
Tensor centroids_nearest(Run *r, Tensor mu, const ChoiceRows *x);
/* The objective of k-means: the mean over x of 1 - cosine to its centroid; nearest i32 [h,n]. */
double centroids_spread(Run *r, Tensor mu, const ChoiceRows *x, Tensor nearest);
/* i32 [h,C*w]: for each centroid the w rows with the largest products, in
 * increasing order; ties: the lower row. */
Tensor centroids_members(Run *r, Tensor mu, const ChoiceRows *x, int64_t w);
/* Adds each vector to sum f64 [h,C,d] of its centroid and to count i32 [h,C]. */
void centroids_gather(Run *r, const ChoiceRows *x, Tensor nearest, Tensor sum, Tensor count);

#endif
