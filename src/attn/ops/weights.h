/* attn/ops/weights.h -- weights of a finished attention, for views: exp(score - lse).
 *
 * lse is a float, and scores are summed here in another order than by the kernels.  Where scores,
 * or the products that they sum, are in the hundreds, both have errors above 1e-5, and the weights
 * of a row no longer sum to 1.  Such a row is summed once, when its first weight is read, and that
 * sum replaces lse.
 */
#ifndef ATTN_OPS_WEIGHTS_H
#define ATTN_OPS_WEIGHTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"
#include "attn/run/view.h"
#include "core/tensor.h"

typedef struct RowSums {
    const Pattern     *cells;   /* cells of one softmax row */
    _Atomic(uint64_t) *known;   /* [heads, rows of cells]; 0: not yet.  NULL: use lse */
    _Atomic(float)    *longest; /* [inputs, heads] length of a key; 0: not yet */
    /* The softmax is over the keys of two inputs: `own` for every row, and the cells of `other`.
     * NULL: all keys belong to the input of the weight. */
    const AttendInput *own, *other;
    const Pattern     *other_cells;
} RowSums;

/* In the run's arena, where views are wanted.  inputs: number of AttendInputs of the rows. */
RowSums row_sums_of(Run *r, int64_t heads, int inputs, const Pattern *cells);

/* One row of weights: row i of `in` and of lse, row `at` of sums->cells. */
typedef struct WeightRow {
    const AttendInput *in;
    const Tensor      *lse; /* [heads, rows] */
    const RowSums     *sums;
    int64_t            heads, head, i, at;
    int                input; /* which of the inputs `in` is */
} WeightRow;

/* Weights of the cells start, start + step, ...; any thread. */
void attend_weights_run(const WeightRow *row, int64_t start, int64_t count, int64_t step,
                        float *out);

/* Weights that exist only as factors, read cell by cell.
 *
 *     W[i,j] = left_i . right_j / divisor_i  (faded by gates) + band[j - i + s/2]
 *
 * Low-rank and kernel attention never form W; a picture reads the cells it
 * needs.  Sums are in double, so that small negative entries keep their sign.
 */

typedef struct Run Run;

typedef struct Implicit {
    Tensor  left;    /* [h',n,r] f32 or f64 */
    Tensor  right;   /* [h',m,r] f32 or f64: one row for each key */
    Tensor  divisor; /* f64 [h,n], or absent */
    Tensor  gates;   /* f64 [h,n], or absent: cell (i,j) is multiplied by 1 - g_j and by
                        the product of g over j+1 .. i */
    Tensor  band;    /* f32 [h',s], or absent */
    /* Filled in by implicit_weights. */
    int64_t heads;
    double *fade;    /* [h,n] sum of log g over tokens 0..i with g > 0 */
    int64_t *closed; /* [h,n] how many of them have g = 0 */
} Implicit;

/* The view `connectivity` of such cells, [h,n,m]. */
void implicit_connectivity(Run *r, const Pattern *cells);
/* The view `weights`; NULL when there is none.  Its context is an Implicit. */
View *implicit_weights(Run *r, Implicit w, ViewKind kind, const Pattern *cells);
/* The same product as a view of another name. */
View *implicit_product(Run *r, const char *name, Implicit w, ViewKind kind, const Pattern *cells);
double implicit_cell(const Implicit *w, int64_t head, int64_t i, int64_t j);
/* x . z in double, for readers of long rows of a parameter. */
double implicit_dot(const float *x, const double *z, int64_t count);
#define IMPLICIT_WIDE_COST 4 /* of a multiply-add in double, in those of View.cost */

/* A parameter [h',a,b] as a view [h,a,b]; drawn: with its seed, which is recorded without views
 * too. */
void implicit_parameter(Run *r, const char *name, Tensor t, bool drawn, const char *rows,
                        const char *cols);
/* A tensor of features or factors, f32 or f64, as an f32 view. */
View *implicit_factor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                      const char *cols); /* NULL: no view */
/* "random seed 7" for View.origin; NULL when the run failed. */
const char *implicit_origin(Run *r);

/* The cells a data-dependent mechanism visited, as lists.
 *
 * Where data decide which key a query meets (buckets, clusters), pictures need
 * the finished sets: for every head and query a sorted list of keys, and how
 * often each was met.  Made only when views are wanted; memory is that of the
 * cells, never n x n.
 */

/* Lists the keys of one row: each once into `key` (room for m, any order), how
 * often into count[key], which is all zero before.  Returns how many keys. */
typedef int64_t (*CellRowFn)(const void *context, int64_t head, int64_t i, int32_t *count,
                             int32_t *key);

/* All in the run's arena. */
typedef struct CellRows {
    int64_t  n;     /* queries */
    int64_t *start; /* [h*n+1] offsets into the lists below; row = head * n + i */
    int32_t *key;   /* increasing within a row */
    int32_t *count; /* NULL: not counted */
} CellRows;

/* NULL when views are not wanted or the run failed. */
const CellRows *cell_rows_new(Run *r, CellRowFn list, const void *context);
/* As above, with the number of visits of each key. */
const CellRows *cell_rows_counted(Run *r, CellRowFn list, const void *context);
/* `rows` without the own key of each query, except where it is the only one; queries are keys. */
const CellRows *cell_rows_others(Run *r, const CellRows *rows);
Pattern *cell_rows_pattern(Run *r, const CellRows *rows, uint8_t bits);
/* The visits of a cell, of counted rows; 0: not visited. */
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
