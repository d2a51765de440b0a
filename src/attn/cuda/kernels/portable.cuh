// portable.cuh -- the dialect the kernels are written in.
//
// nvcc compiles them for the GPU.  The tests compile the same files by a C++ compiler, with
// DEVICE_EMULATED, against tests/emulated/emulated.h, which runs every thread of a block in
// turn: arithmetic, indices, barriers and shuffles are tested on any machine, speed and the
// memory model are not.  What both understand:
//   LAUNCH((kernel<64>), grid, block, shared bytes, arguments...)
//   SHARED(float, name)     the block's dynamic shared memory
//   SHARED_ARRAY(float, name, [2][64])   of a size that is known, aligned to 16 bytes
//   SHARED_VALUE(Type, name)
//   __syncthreads(), __syncwarp(), __shfl_*_sync of whole warps, atomicAdd ...
#ifndef ATTN_CUDA_KERNELS_PORTABLE_CUH
#define ATTN_CUDA_KERNELS_PORTABLE_CUH

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "attn/cuda/device.h"

#ifdef DEVICE_EMULATED
#include "emulated.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define BEGIN_KERNEL(kernel, grid, block, shared, ...)                                         \
    kernel<<<(grid), (block), (shared), device_stream()>>>(__VA_ARGS__)
#define SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char dynamic_shared[];                            \
    type *name = (type *)dynamic_shared
#define SHARED_ARRAY(type, name, sizes) __shared__ __align__(16) type name sizes
#define SHARED_VALUE(type, name) __shared__ type name
// Asks for more than the 48 KiB of shared memory that every kernel has.
#define ALLOW_SHARED(kernel, bytes)                                                            \
    cudaFuncSetAttribute((kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
#endif

// An earlier error was reported by its own call and is not this launch's.
#define LAUNCH(...) ((void)cudaGetLastError(), BEGIN_KERNEL(__VA_ARGS__), cudaGetLastError())

extern "C" cudaStream_t device_stream(void);
// Where the host may not touch memory while the device works: waits for what was begun.
extern "C" int device_settle(void);

#define GRID_MOST 65535 // of a grid's y and z

// Blocks along y or z; each takes every grid_of(count)-th of the `count`.
static inline unsigned grid_of(int64_t count)
{
    return (unsigned)(count < GRID_MOST ? count : GRID_MOST);
}

// Blocks for `count` things, so many a block; kernels go on by strides where these are more.
static inline unsigned blocks_for(int64_t count, int64_t each)
{
    int64_t blocks = (count + each - 1) / each;

    return (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20);
}

// Slice `head` of a tensor that `heads` heads share.
template <typename T>
static __device__ __forceinline__ T *head_of(const DeviceTensor &t, int64_t head, int64_t heads)
{
    return (T *)t.data + head * t.heads / heads * t.head_stride;
}

template <typename T>
static __device__ __forceinline__ T warp_sum(T x)
{
    for (int lane = 16; lane; lane >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

template <typename T>
static __device__ __forceinline__ T warp_max(T x)
{
    for (int lane = 16; lane; lane >>= 1) {
        T other = __shfl_xor_sync(0xffffffffu, x, lane);

        x = other > x ? other : x;
    }
    return x;
}

// A score, with what its distance adds, under a cap.
static __device__ __forceinline__ float with_cap(const ScoreCap &cap, float s, float distance)
{
    if (!(cap.top > 0))
        return s + distance;
    return cap.after_distance ? cap.top * tanhf((s + distance) / cap.top)
                              : cap.top * tanhf(s / cap.top) + distance;
}

// Why an attention kernel that not every GPU or driver supports is not used.

// Keeps the reason and returns the code.
template <size_t SIZE>
static int declined(char (&reason)[SIZE], int code, const char *format, ...)
{
    va_list rest;

    va_start(rest, format);
    vsnprintf(reason, SIZE, format, rest);
    va_end(rest);
    return code;
}

#endif
