/* attn/pattern/segments.h -- 0..n-1 split into L runs in order, nearly equally long.
 *
 * With base = floor(n/L) the first (base+1) L - n runs have `base` tokens and
 * the rest base + 1: long runs come last (as in Nystromformer's ImageNet code).
 */
#ifndef ATTN_PATTERN_SEGMENTS_H
#define ATTN_PATTERN_SEGMENTS_H

#include <stdint.h>

/* First token of run i; i = L gives n. */
static inline int64_t segment_start(int64_t n, int64_t L, int64_t i)
{
    int64_t base = n / L, shorter = (base + 1) * L - n;

    return i * base + (i > shorter ? i - shorter : 0);
}

#endif
