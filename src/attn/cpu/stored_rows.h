/* attn/cpu/stored_rows.h -- a pattern whose rows are found once and then looked up.
 *
 * Heads that do not fit a batch together ask for the same rows again and again; finding a row's
 * runs (unions, differences) may cost as much as its cells.
 */
#ifndef ATTN_CPU_STORED_ROWS_H
#define ATTN_CPU_STORED_ROWS_H

#include "attn/ops/ops.h"

/* The same cells, with rows in the run's arena; `pattern` itself where its heads differ, where
 * the rows take more than `most` bytes, or without memory. */
const Pattern *stored_rows(Run *r, const Pattern *pattern, double most);

#endif
