/* attn/pattern/runs.h -- set algebra on arithmetic runs; private to the pattern files.
 *
 * A PatternRow is used as a stack: an operand is a slice of it, an operation
 * takes the topmost slices and leaves its result in their place.  All runs of
 * a slice are pairwise disjoint as sets.
 */
#ifndef ATTN_PATTERN_RUNS_H
#define ATTN_PATTERN_RUNS_H

#include "attn/pattern/pattern.h"

void runs_push(PatternRow *row, int64_t start, int64_t count, int64_t step, uint8_t bits);
/* Keys lo <= j < hi clipped to [0, m). */
void runs_push_range(PatternRow *row, int64_t lo, int64_t hi, int64_t m, uint8_t bits);

/* The common keys of a and b: one run, count 0 when there are none. */
PatternRun runs_common(PatternRun a, PatternRun b);

/* Slices [x, y) and [y, end) become one slice at x. */
void runs_union(PatternRow *row, int64_t x, int64_t y);
void runs_intersect(PatternRow *row, int64_t x, int64_t y);
void runs_difference(PatternRow *row, int64_t x, int64_t y);

/* Sorts the slice [x, end) by start and joins neighbours with equal bits. */
void runs_tidy(PatternRow *row, int64_t x);

#endif
