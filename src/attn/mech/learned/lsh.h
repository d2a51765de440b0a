/* attn/mech/learned/lsh.h -- locality-sensitive hashing by random rotations and by hyperplanes.
 *
 * Rotations: in each round the bucket of x is argmax [x R ; -x R], decided in double, ties
 * to the lowest.  With a second factor R' it is a + 2 half * a'.
 *
 * Hyperplanes: bit t of x's code says on which side of plane t it lies.
 */
#ifndef ATTN_MECH_LEARNED_LSH_H
#define ATTN_MECH_LEARNED_LSH_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"

/* i32 [h,rounds,n] of x [h,n,d] and rotations [h',d,rounds,W]; the first `half`
 * columns of a round are R, the rest R'.  Charges as op_dots64. */
Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half);

/* i64 [h,n]: bit t is set iff x . planes[t,:d] > planes[t,d], or > 0 without bias;
 * planes f32 [h',bits,d+1], at most 63 of them.  Charges as op_dots64. */
Tensor lsh_codes(Run *r, Tensor x, Tensor planes, bool bias);

#endif
