/* attn/cuda/rows_call.h -- what is done to rows by themselves; part of device.h. */
#ifndef ATTN_CUDA_ROWS_CALL_H
#define ATTN_CUDA_ROWS_CALL_H

/* x [heads][rows][cols], in place */
typedef struct SoftmaxCall {
    void   *x;
    bool    wide; /* f64 */
    int64_t heads, rows, cols, pitch; /* pitch: of a head */
    bool    causal;                   /* row i: entries up to i + offset; the others become 0 */
    int64_t offset;
    double *lse; /* NULL: not asked for */
    int64_t lse_pitch;
} SoftmaxCall;

typedef enum RowLength { LENGTH_ONE, LENGTH_ROOT_MEAN, LENGTH_NORM } RowLength;

/* y = (x - mean) / length * gain + bias, in double and rounded at the end */
typedef struct NormaliseCall {
    int64_t      heads;
    DeviceTensor x, y;   /* f32 */
    bool         centre; /* mean 0 without it */
    int32_t      length; /* RowLength: sqrt(mean of squares + eps), or max(norm, eps) */
    double       eps;
    const float *gain, *bias; /* [cols], or NULL */
} NormaliseCall;

#define NORM_BLOCKS 512
/* found[b]: the largest sum of squares of the rows b, b + NORM_BLOCKS, ...; NaN stays */
typedef struct NormsCall {
    DeviceTensor x; /* f32 */
    double      *found;
} NormsCall;

/* x = GELU(x + bias), in its tanh form */
typedef struct GeluCall {
    float       *x;
    const float *bias; /* [width], or NULL */
    int64_t      count, width;
} GeluCall;

/* y [h,L,L] = the pseudo-inverse of a [h,L,L], both f64; work [h][2][L][L] */
typedef struct PinvCall {
    DeviceTensor a;
    double       rcond;
    double      *y, *work;
} PinvCall;

/* Of log_p f64 [heads][b][b], in place: each row, or column, less its log-sum-exp. */
typedef struct SinkhornCall {
    int64_t        heads, b;
    double        *log_p;
    const uint8_t *allowed; /* [b][b], or NULL */
    bool           columns;
} SinkhornCall;

#endif
