/* attn/ops/cell_rows.h -- the cells a data-dependent mechanism visited, as lists.
 *
 * Where data decide which key a query meets (buckets, clusters), the picture
 * needs the finished sets: for every head and query a sorted list of keys, and
 * how often each was met.  Only made when views are wanted; memory is that of
 * the cells, never n x n.
 */
#ifndef ATTN_OPS_CELL_ROWS_H
#define ATTN_OPS_CELL_ROWS_H

#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"
#include "attn/run/view.h"

/* Lists the keys of one row: each once into `key` (room for m, any order), how
 * often into count[key], which is all zero before.  Returns how many keys. */
typedef int64_t (*CellRowFn)(const void *context, int64_t head, int64_t i, int32_t *count,
                             int32_t *key);

/* All in the run's arena. */
typedef struct CellRows {
    int64_t  n;     /* queries */
    int64_t *start; /* [h*n+1] offsets into the lists below; row = head * n + i */
    int32_t *key;   /* increasing within a row */
    int32_t *count; /* NULL: not asked for */
} CellRows;

/* NULL when views are not wanted or the run failed. */
const CellRows *cell_rows_new(Run *r, CellRowFn list, const void *context);
/* The same with how often each key was met. */
const CellRows *cell_rows_counted(Run *r, CellRowFn list, const void *context);
/* `rows`, whose queries are keys, without each query's own key, but where it is the only one. */
const CellRows *cell_rows_others(Run *r, const CellRows *rows);
Pattern *cell_rows_pattern(Run *r, const CellRows *rows, uint8_t bits);
/* 0 when the cell is not in; of counted rows. */
int32_t cell_rows_count(const CellRows *rows, int64_t head, int64_t i, int64_t j);
/* A view's reader of the counts; the view's context is the CellRows. */
void cell_rows_read(const View *view, int64_t head, int64_t i, int64_t start, int64_t count,
                    int64_t step, float *out);

/* View `weights` over the cells: a softmax of in's scores over each row, in double.
 * `cells` is the pattern of the rows. */
void cell_rows_weights(Run *r, const CellRows *rows, AttendInput in, const Pattern *cells);

/* First index of keys [lo, hi), which increase, that is not below `wanted`. */
int64_t key_lower_bound(const int32_t *keys, int64_t lo, int64_t hi, int64_t wanted);

#endif
