/* attn/cuda/lists_call.h -- rows by lists of indices; part of device.h.  See attn/ops.h. */
#ifndef ATTN_CUDA_LISTS_CALL_H
#define ATTN_CUDA_LISTS_CALL_H

/* y[t,x] = x[t,index[t,x]], or, scatter, y[t,index[t,x]] = x[t,x]; 4-byte elements. */
typedef struct MoveCall {
    int64_t      heads;
    DeviceTensor x, index, y; /* index i32 [h',1,rows] */
    bool         scatter;
} MoveCall;

typedef struct MergeCall {
    int64_t      heads, lists;
    DeviceTensor rows, lse, index, out, z; /* lse, index [h,1,lists*rows]; z [h,1,n] */
} MergeCall;

typedef struct SumsCall {
    int64_t        heads;
    DeviceTensor   x, y;
    const int64_t *start;
    const int32_t *entry;
    const float   *weight, *share; /* NULL: 1 */
} SumsCall;

typedef struct WindowsCall {
    int64_t        heads;
    DeviceTensor   x, y; /* f32 or f64 each; y [h,windows,w] */
    const int32_t *first, *end;
    int32_t        kind; /* WindowKind: 0 the sum, 1 the mean, 2 the largest */
} WindowsCall;

#endif
