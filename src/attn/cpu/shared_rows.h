/* attn/cpu/shared_rows.h -- rows of a pattern that see the same keys, as groups.
 *
 * A rectangle of an image is a comb in the sequence: tiles of it would be half empty.  But
 * all pixels of a block see the same rectangle, so its keys may be gathered once for all of
 * them, and every tile is full.
 */
#ifndef ATTN_CPU_SHARED_ROWS_H
#define ATTN_CPU_SHARED_ROWS_H

#include <stdbool.h>

#include "attn/ops/ops.h"

/* Fills g's lists (i32 [1,.], in the run's arena) when rows are shared by enough queries to
 * pay for gathering; `cells` are those of one head.  False: they are not, or no memory. */
bool shared_rows(Run *r, const Pattern *pattern, GroupAttend *g, double *cells);

#endif
