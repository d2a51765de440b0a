/* attn/ops/lambdas.h -- lambdas: contexts summed up as small matrices (Bello 2021).
 *
 *     content[k,e]  = sum over positions m, u of Kbar[m,k,u] V[m,e,u]
 *     position[k,e] = the same with E[n,m,k,u], for each query n
 *     y_n           = q_n^T (content + position)
 *
 * Kbar is the softmax of the keys over the positions, causal: over each query's
 * past, as a running sum that is rescaled when its maximum grows.
 */
#ifndef ATTN_OPS_LAMBDAS_H
#define ATTN_OPS_LAMBDAS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/ops/ops.h"
#include "attn/pattern/pattern.h"
#include "core/tensor.h"

typedef struct Run Run;

typedef enum LambdaPosition { LAMBDA_RELATIVE, LAMBDA_ABSOLUTE, LAMBDA_NONE } LambdaPosition;

typedef struct LambdaSizes {
    int64_t h, hk, n, m, k, u, e; /* hk: heads of keys and values, which divide h */
    bool    joined;               /* the output is [1,n,h e] */
} LambdaSizes;

typedef struct Lambdas {
    Run           *r;
    LambdaSizes    s;
    LambdaPosition position;
    bool           causal;
    int64_t        width;      /* columns of the grid; 0: a sequence */
    int64_t        up, side;   /* P div 2: of rows and columns on a grid, else side */
    const float   *pos;        /* [2 up + 1,2 side + 1,k,u], [2 side + 1,k,u], [n,m,k,u] */
    Tensor         q, key, v;  /* f32 [h,n,k], [hk,m,k u], [hk,m,e u] */
    /* made by the functions below */
    int64_t        contexts;   /* content lambdas of a key head: 1, causal n */
    double        *lse;        /* [hk,contexts,k u] log of the sum of exp over the positions */
    float         *content;    /* [hk,contexts,k,e] */
    const Pattern *reach;      /* cells that E is given for; one head */
    const double  *shares;     /* [hk,m,k u] Kbar where it is the same for all queries, for the
                                  views; NULL: computed cell by cell */
} Lambdas;

/* Sets reach, from sizes and position. */
void lambdas_reach(Lambdas *l);
/* Charges 2 hk m k u e to mix, 4 hk m k u to overhead and, causal, 2 hk n k u e. */
void lambdas_content(Lambdas *l);
/* f32 [h,n,e], or [1,n,h e].  Charges 2 k e (u hk (cells within reach) + h n) to mix. */
Tensor lambdas_apply(Lambdas *l);
/* What the two charge. */
Flops lambdas_flops(const Lambdas *l);
/* The views of content, positions and whole lambdas; *l must live in the run's arena. */
void lambdas_show(Lambdas *l);

/* E[i,j], [k,u], of a cell within reach. */
const float *lambdas_entry(const Lambdas *l, int64_t i, int64_t j);

#endif
