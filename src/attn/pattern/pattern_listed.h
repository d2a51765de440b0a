/* attn/pattern/pattern_listed.h -- a pattern as a list of its runs, which a file can hold.
 *
 * i64 [c, 6]: head (-1: all), query, start, count, step, component bits.
 */
#ifndef ATTN_PATTERN_PATTERN_LISTED_H
#define ATTN_PATTERN_PATTERN_LISTED_H

#include "attn/pattern/pattern.h"

#define LISTED_FIELDS 6

/* In order of heads and queries, in the arena; data NULL: no memory. */
Tensor pattern_list(Arena *a, const Pattern *p);
/* Of a contiguous i64 list in any order; cells that come twice are in once, with the bits of
 * both.  NULL with an error that names the line. */
Pattern *pattern_of_list(Arena *a, PatternShape s, const Tensor *list, Error *err);

#endif
