/* attn/cuda/gemm_call.h -- products of matrices; part of device.h. */
#ifndef ATTN_CUDA_GEMM_CALL_H
#define ATTN_CUDA_GEMM_CALL_H

/* c = alpha op(a) op(b) + beta c for every head and piece.
 *
 * Piece p reads a and b, and writes c, so many elements further on than piece p - 1: slices of
 * a long inner axis, chunks of a sequence.  Of an axis that is cut (all_* not 0) the last
 * piece has what is left of it. */
typedef struct GemmCall {
    int64_t      heads, pieces;
    int64_t      rows, cols, inner;             /* of one piece */
    int64_t      all_rows, all_cols, all_inner; /* of all pieces; 0: the axis is not cut */
    int64_t      step_a, step_b, step_c;        /* elements between pieces */
    DeviceTensor a, b, c;  /* a f32 or f64, b likewise; c f32, or f64 */
    bool         ta, tb;
    double       alpha, beta; /* beta 0: c is not read */
    int32_t      arithmetic;  /* Arithmetic; where all three are f32 */
    bool         folded; /* c f64, a and b f32: some hundred products are summed in float,
                            these sums in double */
    bool         in_order; /* c f64: each product rounded, then added, in index order */
    const float *start;    /* [cols] with in_order: what sums begin with; NULL: 0 */
} GemmCall;

/* c = alpha times the sum over the pieces of `parts` [heads][pieces][rows][cols], + beta c. */
typedef struct GemmSumCall {
    int64_t      heads, pieces;
    const void  *parts; /* f64 where `wide`, else f32; added in double */
    bool         wide;
    DeviceTensor c;     /* f32 or f64 */
    double       alpha, beta;
} GemmSumCall;

#endif
