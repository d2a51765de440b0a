/* attn/cuda/row_attend_call.h -- rows of scores in double: attention by a normaliser of each head's
 * own, and how much keys are used; part of device.h. */
#ifndef ATTN_CUDA_ROW_ATTEND_CALL_H
#define ATTN_CUDA_ROW_ATTEND_CALL_H

#include "attn/cuda/panel_call.h"

/* Rows first .. first + rows of heads first_head .. first_head + heads. */
typedef struct ScoreRows {
    int64_t      all_heads, first_head, heads, first, rows;
    DeviceTensor q, k;   /* f32 [h',n,d], [h',m,d] */
    double       scale;
    bool         causal; /* keys j <= i + offset */
    int64_t      offset;
    double      *z;      /* [heads][rows][pitch] scores, then what becomes of them */
    int64_t      pitch;
} ScoreRows;

/* As Entmax of attn/ops/ops.h; form is an EntmaxForm of there. */
typedef struct RowForm {
    int32_t form;
    double  alpha;
    int64_t iterations;
    bool    divide;
} RowForm;

/* As RowMask of attn/ops.h. */
typedef struct RowMaskCall {
    bool         on;
    int64_t      n, m;
    DeviceTensor distance;            /* f64 [h',1,distances] */
    DeviceTensor logits, plus, minus; /* f32 [h',n,m] */
    bool         symmetric, hard, borders, no_diagonal, multiply;
    double       tau, penalty;
} RowMaskCall;

/* z becomes the weights, in double but rounded to float; 0 beyond what a row sees. */
typedef struct RowWeightsCall {
    ScoreRows      at;
    const RowForm *form;    /* [h] */
    RowMaskCall       mask;
    double         negligible;
    double        *tau, *total; /* [h,n] */
    int32_t       *support;
    double        *trace;   /* [h,n,steps] or NULL */
    int64_t        steps;
} RowWeightsCall;

/* The weights times v; panels of these rows, and their columns of z. */
typedef struct RowMixCall {
    ScoreRows    at;
    DeviceTensor v;         /* f32 [h',m,e] */
    PanelWork    work;
    PanelOut     to;
} RowMixCall;

/* Adds the rows' softmaxes to the sums of their head, in the order of the rows. */
typedef struct UsageCall {
    ScoreRows at;           /* all heads */
    double   *total;        /* [heads][rows] */
    double   *sums;         /* [heads][m] */
} UsageCall;

typedef struct UsageMeanCall {
    int64_t       heads, n, m;
    const double *sums;
    double       *usage;    /* [m] */
} UsageMeanCall;

#endif
