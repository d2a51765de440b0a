/* attn/mech/learned/centroids.h -- vectors that go to centroids, and centroids that take vectors.
 *
 * Centroids mu are f64 [h,C,d]; all is decided in double (ops.h, ChoiceRows).  Charges
 * nothing unless it says so.
 */
#ifndef ATTN_MECH_LEARNED_CENTROIDS_H
#define ATTN_MECH_LEARNED_CENTROIDS_H

#include <stdint.h>

#include "attn/ops/ops.h"

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
/* What k-means makes smaller, for those who watch: the mean over x of 1 - the cosine to its
 * centroid; nearest i32 [h,n]. */
double centroids_spread(Run *r, Tensor mu, const ChoiceRows *x, Tensor nearest);
/* i32 [h,C*w]: for each centroid the w rows with the largest products, in
 * increasing order; ties: the lower row. */
Tensor centroids_members(Run *r, Tensor mu, const ChoiceRows *x, int64_t w);
/* Adds each vector to sum f64 [h,C,d] of its centroid and to count i32 [h,C]. */
void centroids_gather(Run *r, const ChoiceRows *x, Tensor nearest, Tensor sum, Tensor count);

#endif
