// digits.cuh -- counting digits in a block, and sums over the threads before one.
#ifndef ATTN_CUDA_KERNELS_DIGITS_CUH
#define ATTN_CUDA_KERNELS_DIGITS_CUH

#include "attn/cuda/kernels/portable.cuh"

#define NO_DIGIT 256u

// The lanes of a warp that have this lane's digit.
static __device__ __forceinline__ unsigned lanes_alike(unsigned digit)
{
    return __match_any_sync(0xffffffffu, digit);
}

static __device__ __forceinline__ unsigned lanes_before(void)
{
    return (1u << (threadIdx.x & 31)) - 1;
}

// count[digit] += 1 for every lane of the warp, lanes without a digit left out.
static __device__ __forceinline__ void count_digit(int *count, unsigned digit)
{
    unsigned alike = lanes_alike(digit);

    if (digit != NO_DIGIT && !(alike & lanes_before()))
        atomicAdd(&count[digit], __popc(alike));
}

// Exclusive sums of the threads' numbers over the block; *all: of all.  `warps` [32] is shared.
static __device__ __forceinline__ int block_before(int x, int *warps, int *all)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = (blockDim.x + 31) >> 5;
    int sum = x, before = 0;

    for (int step = 1; step < 32; step <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, sum, step);

        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    *all = 0;
    for (int w = 0; w < count; w++) {
        before += w < warp ? warps[w] : 0;
        *all += warps[w];
    }
    __syncthreads();
    return before + sum - x;
}

#endif
