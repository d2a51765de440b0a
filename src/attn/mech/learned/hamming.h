/* attn/mech/learned/hamming.h -- Lloyd's clustering of bit codes.
 *
 * Codes and centres are i64; the distance is the number of bits that differ
 * (op_nearest_codes).
 * Everything is exact, so nothing here depends on threads or machine.
 */
#ifndef ATTN_MECH_LEARNED_HAMMING_H
#define ATTN_MECH_LEARNED_HAMMING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"

typedef struct Run Run;

/* Moves each centre to the majority of its members' bits: a bit is set iff more than
 * half of them have it.  A centre without members stays.  False: none moved. */
bool hamming_majority(Run *r, Tensor codes, Tensor cluster, int64_t bits, Tensor centres);

#endif
