/* attn/mech/pattern/dilation.h -- sliding windows with gaps, the same or another for every head.
 *
 * Token i of head h sees i + t delta_h for t = -k..k, k = floor(window / 2).
 * The dilation is one number for all heads, or a list with one for each.
 */
#ifndef ATTN_MECH_PATTERN_DILATION_H
#define ATTN_MECH_PATTERN_DILATION_H

#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "attn/run/param.h"

typedef struct Run Run;

/* Fails the run unless the list holds one dilation, or one per head, all >= 1. */
void dilation_check(Run *r, IndexList dilation);
/* Not finished (pattern_finish); bit 1 where the dilation is 1, else 8. */
Pattern *dilated_window(Run *r, int64_t window, IndexList dilation);
/* Its cells over all heads, causal or not as the run: per head n + 2 sum_t (n - t delta)
 * over the t that fit; causal: the sum once. */
double dilated_window_cells(const Run *r, int64_t window, IndexList dilation);

#endif
