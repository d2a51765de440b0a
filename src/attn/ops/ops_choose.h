/* attn/ops/ops_choose.h -- operations that choose among rows and columns, count members and sort; part
 * of ops.h.
 *
 * Choices are discrete: a score that is rounded otherwise would connect other tokens.  So they are
 * made in double, sums in index order, ties to the lower index.
 */
#ifndef ATTN_OPS_OPS_CHOOSE_H
#define ATTN_OPS_OPS_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops_rows.h"
#include "core/tensor.h"

typedef struct Run Run;

/* index i32 [h,n] of the largest of the last axis of x f64 [h,n,R] (or of
 * [x ; -x] when with_negative); ties: lowest index.  Charges no FLOPs. */
Tensor op_argmax(Run *r, Tensor x, bool with_negative);

/* index i32 [h,R,k]: for each COLUMN of x f64 [h,n,R] the k rows with the
 * largest values, ties to the lower row, listed in increasing row order. */
Tensor op_top_k(Run *r, Tensor x, int64_t k);

/* Rows that choices are made on: `near` to look at, and row i in double where that cannot
 * tell.  A back end on another device takes `whole` instead, and asks the host only where it is
 * absent. */
typedef struct ChoiceRows {
    Tensor        near; /* f32 [h',n,d]: the rows, rounded */
    void        (*exact)(const void *context, int64_t head, int64_t i, double *row);
    const void   *context; /* exact NULL: as near */
    Tensor        whole;   /* [h',n,d]: f64, what `exact` tells; f32, what op_normalise64 makes */
    NormaliseKind kind;    /* of it, by these */
    double        eps;
} ChoiceRows;

typedef struct Nearest {
    ChoiceRows x;
    Tensor     y;      /* f32 or f64 [h',parts*C,d] */
    int64_t    parts;  /* of y's rows, each with an index of its own */
    bool       with_negative; /* of [x_i . y ; -x_i . y] */
    bool       cosine; /* products divided by max(|x_i|, 1e-12) max(|y_c|, 1e-12), at once */
} Nearest;

/* i32 [h,parts,n]: the row of each part of y that has the largest product with x_i, decided
 * in double, sums in index order; ties: the lowest.  Charges no FLOPs. */
Tensor op_nearest(Run *r, const Nearest *in);

/* i32 [h,C,k]: for each row of y (f32 or f64 [h',C,d]) the k rows of x with the largest
 * products, decided as by op_nearest, ties to the lower row, listed in increasing order.
 * Charges no FLOPs. */
Tensor op_best_rows(Run *r, const ChoiceRows *x, Tensor y, int64_t k);

/* i64 [h,n]: bit t is set iff x_i . p_t > bias_t, decided in double; planes f32
 * [h',bits,d+1] hold (p_t, bias_t), `bias` false: bias 0.  Charges no FLOPs. */
Tensor op_codes(Run *r, Tensor x, Tensor planes, bool bias);

/* Fills sum f64 [h,C,d] with the sums of the rows of x f32 or f64 [h',n,d] with that index (i32
 * [h,n]), or, unit and f32, of x_i / max(|x_i|, 1e-12), in row order.  Charges no FLOPs. */
void op_member_sums(Run *r, Tensor x, Tensor index, bool unit, Tensor sum);
/* i32 [h,C]: how often each index below C stands in a row of index i32 [h,n]. */
Tensor op_tally(Run *r, Tensor index, int64_t count);

/* Fills cluster i32 [h,n] with the one of centres i64 [h,C] that differs from codes i64
 * [h,n] in the fewest bits; ties: the lowest.  Charges no FLOPs. */
void op_nearest_codes(Run *r, Tensor codes, Tensor centres, Tensor cluster);
/* i32 [h,clusters,64]: how many codes of a cluster have each bit.  Charges no FLOPs. */
Tensor op_bit_sums(Run *r, Tensor codes, Tensor cluster, int64_t clusters);

/* f64 [m]: how much each key of k [h',m,d] is used by the queries of q [h,n,d]: the mean over
 * heads and queries of softmax(scale q_i . k_j).  causal: the last queries see the last keys,
 * j <= i + m - n.  In double and the same way for every key, because choices are made on it.
 * Charges no FLOPs: these are the weights that op_attend has counted. */
Tensor op_key_usage(Run *r, Tensor q, Tensor k, double scale, bool causal);

/* order i32 [.,n]: positions of key i32 [.,n] sorted stably per row. */
Tensor op_sort(Run *r, Tensor key);

#endif
