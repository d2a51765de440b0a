/* attn/cuda/columns_call.h -- convolutions, best columns, products with listed rows, attention of
 * narrow formats; part of device.h.  See attn/ops_rows.h. */
#ifndef ATTN_CUDA_COLUMNS_CALL_H
#define ATTN_CUDA_COLUMNS_CALL_H

typedef struct TapSumsCall {
    int64_t      heads;
    DeviceTensor x, taps, y; /* f32 or f64 each; taps of one row: for all rows */
    int64_t      groups, first, step, apart;
    const float *bias;       /* [w], or NULL */
    bool         add;
} TapSumsCall;

/* Of rows of x f64 [heads,n,c], or of sums x_p + y_r with y f64 [heads,n,e]. */
typedef struct BestColumnsCall {
    DeviceTensor x, y;
    int64_t      k;
    DeviceTensor x_name, y_name; /* i32 numbers of the columns, or absent */
    int64_t      names;
    double      *value; /* [heads,n,k] */
    int32_t     *index;
} BestColumnsCall;

/* dots [heads,n,k] of row i of x and rows index[i,.] of y; f32. */
typedef struct PairDotsCall {
    int64_t        heads, n, k;
    DeviceTensor   x, y;
    const int32_t *index;
    float         *dots;
} PairDotsCall;

#define ROUNDED_BLOCKS 1024 /* at most; each has a row of scores */

/* As RoundedAttend; all f64. */
typedef struct RoundedAttendCall {
    int64_t      heads, n, m, blocks;
    DeviceTensor q, k, v;
    int32_t      bits; /* of the format: Precision */
    double       least, limit, scale;
    bool         half_sums, half_softmax, causal;
    int64_t      offset;
    double      *scores;                      /* [blocks][m] */
    double      *out, *top, *total, *weights; /* [heads,n,e], [heads,n] */
    int32_t     *overflows;
} RoundedAttendCall;

#endif
