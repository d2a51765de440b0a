/* attn/cuda/host/gpu_dense.h -- what the ops made of products of matrices share. */
#ifndef ATTN_CUDA_HOST_GPU_DENSE_H
#define ATTN_CUDA_HOST_GPU_DENSE_H

#include "attn/cuda/host/gpu.h"

/* Starts a product, cut along its inner axis where it has few tiles and this is long: the
 * pieces stand in the arena until the device is done.  False: the run has failed. */
bool gpu_product(Run *r, GemmCall call);

/* [heads, rows, cols] without gaps. */
static inline DeviceTensor gpu_block(void *data, DeviceDType dtype, int64_t heads, int64_t rows,
                                     int64_t cols)
{
    return (DeviceTensor){ .data = data, .dtype = (int32_t)dtype, .heads = heads, .rows = rows,
                           .cols = cols, .head_stride = rows * cols, .row_stride = cols };
}

static inline int64_t gpu_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gpu_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
