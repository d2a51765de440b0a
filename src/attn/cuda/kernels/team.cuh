// team.cuh -- rows computed by teams: one warp for a short row, one block for a long row.
#ifndef ATTN_CUDA_KERNELS_TEAM_CUH
#define ATTN_CUDA_KERNELS_TEAM_CUH

#include "attn/cuda/kernels/portable.cuh"

#define TEAM_THREADS 256          // of a block
#define TEAM_WARPS (TEAM_THREADS / 32)
#define TEAM_LONG 2048            // columns from which a block computes a row
#define TEAM_BLOCKS (1 << 20)     // at most; blocks take further rows in turn
#define MOST_BLOCKS 65536         // of kernels without teams

static __device__ __forceinline__ float exp_of(float x) { return expf(x); }
static __device__ __forceinline__ double exp_of(double x) { return exp(x); }

static inline unsigned at_most(int64_t blocks)
{
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

// A team is a whole block (WARPS = TEAM_WARPS) or one warp (WARPS = 1).
template <int WARPS>
struct Team {
    static __device__ __forceinline__ int size() { return 32 * WARPS; }
    static __device__ __forceinline__ int member() { return (int)threadIdx.x % (32 * WARPS); }
    static __device__ __forceinline__ int64_t first()
    {
        return (int64_t)blockIdx.x * (TEAM_WARPS / WARPS) + threadIdx.x / (32 * WARPS);
    }
    static __device__ __forceinline__ int64_t step()
    {
        return (int64_t)gridDim.x * (TEAM_WARPS / WARPS);
    }
};

struct TakeSum {
    template <typename T>
    static __device__ __forceinline__ T both(T a, T b) { return a + b; }
};

struct TakeMax { // NaN does not count
    template <typename T>
    static __device__ __forceinline__ T both(T a, T b) { return b > a || !(a == a) ? b : a; }
};

struct TakeMaxOrNan { // NaN stays
    template <typename T>
    static __device__ __forceinline__ T both(T a, T b) { return b <= a || !(a == a) ? a : b; }
};

// Reduces all members' x in a fixed order; every member gets the result.
template <int WARPS, typename Take, typename T>
static __device__ __forceinline__ T team_take(T x)
{
    SHARED_ARRAY(T, parts, [TEAM_WARPS]);

    for (int lane = 16; lane; lane >>= 1)
        x = Take::both(x, __shfl_xor_sync(0xffffffffu, x, lane));
    if (WARPS == 1)
        return x;
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int w = 1; w < WARPS; w++)
        x = Take::both(x, parts[w]);
    return x;
}

template <int WARPS>
static inline unsigned team_blocks(int64_t rows)
{
    int64_t each = TEAM_WARPS / WARPS, blocks = (rows + each - 1) / each;

    return (unsigned)(blocks < TEAM_BLOCKS ? blocks : TEAM_BLOCKS);
}

// Starts kernel<WARPS> for rows of `cols` columns.
#define TEAM_LAUNCH(kernel, rows, cols, ...)                                                   \
    ((rows) <= 0 ? 0                                                                           \
     : (cols) >= TEAM_LONG                                                                     \
         ? LAUNCH((kernel<TEAM_WARPS>), team_blocks<TEAM_WARPS>(rows), TEAM_THREADS, 0,        \
                  __VA_ARGS__)                                                                 \
         : LAUNCH((kernel<1>), team_blocks<1>(rows), TEAM_THREADS, 0, __VA_ARGS__))

#endif
