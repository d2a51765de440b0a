/* attn/ops/implicit.h -- weights that exist only as factors, read cell by cell.
 *
 *     W[i,j] = left_i . right_j / divisor_i  (faded by gates) + band[j - i + s/2]
 *
 * Low-rank and kernel attention never form W; a picture reads the cells it
 * needs.  Sums are in double, so negative entries keep their sign.
 */
#ifndef ATTN_OPS_IMPLICIT_H
#define ATTN_OPS_IMPLICIT_H

#include <stdint.h>

#include "attn/pattern/pattern.h"
#include "attn/run/view.h"
#include "core/tensor.h"

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

/* All cells, or the lower triangle when the run is causal. */
Pattern *implicit_cells(Run *r);
/* The view `connectivity` of such cells, [h,n,m]. */
void implicit_connectivity(Run *r, const Pattern *cells);
/* The view `weights`; NULL when there is none.  Its context is an Implicit. */
View *implicit_weights(Run *r, Implicit w, ViewKind kind, const Pattern *cells);
/* The same product as a view of another name. */
View *implicit_product(Run *r, const char *name, Implicit w, ViewKind kind, const Pattern *cells);
double implicit_cell(const Implicit *w, int64_t head, int64_t i, int64_t j);
/* x . z in double, for readers that go through long rows of a parameter. */
double implicit_dot(const float *x, const double *z, int64_t count);
#define IMPLICIT_WIDE_COST 4 /* a multiply-add in double, its factors read from memory, in
                                single ones: View.cost */

/* A parameter [h',a,b] as a view [h,a,b]; drawn: with its seed, which is recorded of a run
 * without views too. */
void implicit_parameter(Run *r, const char *name, Tensor t, bool drawn, const char *rows,
                        const char *cols);
/* A tensor of features or factors, f32 or f64, as an f32 view. */
View *implicit_factor(Run *r, const char *name, ViewKind kind, Tensor t, const char *rows,
                      const char *cols); /* NULL: no view */
/* "random seed 7" for View.origin; NULL when the run failed. */
const char *implicit_origin(Run *r);

#endif
