// random.cuh -- the numbers of core/rng.c, on the device: Philox 4x32-10 by counter, so that
// number `index` of a stream is the same wherever it is asked for.
#ifndef ATTN_CUDA_KERNELS_RANDOM_CUH
#define ATTN_CUDA_KERNELS_RANDOM_CUH

#include "attn/cuda/kernels/portable.cuh"

// Numbers 2 * block and 2 * block + 1.
static __device__ __forceinline__ void random_block(uint64_t seed, uint64_t stream,
                                                    uint64_t block, uint64_t out[2])
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = (uint64_t)c1 << 32 | c0;
    out[1] = (uint64_t)c3 << 32 | c2;
}

// What rng_fill_uniform makes of a number: in float, no step of it fused.
static __device__ __forceinline__ float random_uniform(uint64_t bits, double low, double high)
{
    double unit = (double)(bits >> 11) * 0x1p-53;

    return (float)__dadd_rn(low, __dmul_rn(high - low, unit));
}

#endif
