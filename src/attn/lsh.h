/* attn/lsh.h -- angular locality-sensitive hashing by random rotations.
 *
 * In each round the bucket of x is argmax [x R ; -x R], decided in double, ties
 * to the lowest.  With a second factor R' it is a + 2 half * a'.
 */
#ifndef ATTN_LSH_H
#define ATTN_LSH_H

#include <stdint.h>

#include "attn/ops.h"

/* i32 [h,rounds,n] of x [h,n,d] and rotations [h',d,rounds,W]; the first `half`
 * columns of a round are R, the rest R'.  Charges as op_dots64. */
Tensor lsh_buckets(Run *r, Tensor x, Tensor rotations, int64_t half);

#endif
