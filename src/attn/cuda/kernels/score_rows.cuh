// score_rows.cuh -- what the kernels over rows of scores in double share.
#ifndef ATTN_CUDA_KERNELS_SCORE_ROWS_CUH
#define ATTN_CUDA_KERNELS_SCORE_ROWS_CUH

#include "attn/cuda/kernels/portable.cuh"

#define ROW_THREADS 256 // of the block that has a row
#define ROW_WARPS (ROW_THREADS / 32)

// Keys that row i (of its head) sees.
static __device__ __forceinline__ int64_t row_sees(const ScoreRows &a, int64_t i)
{
    int64_t seen = i + a.offset + 1;

    return !a.causal || seen > a.k.rows ? a.k.rows : seen < 0 ? 0 : seen;
}

// Over all threads of the block, the same number for each of them every time.
template <typename T>
static __device__ T block_sum(T x, T *words)
{
    T sum = 0;

    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        words[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < ROW_WARPS; w++)
        sum += words[w];
    return sum;
}

static __device__ __forceinline__ double block_max(double x, double *words)
{
    double most = -INFINITY;

    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        words[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < ROW_WARPS; w++)
        most = words[w] > most ? words[w] : most;
    return most;
}

#endif
