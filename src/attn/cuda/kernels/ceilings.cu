// ceilings.cu -- the measured ceilings of the device: multiply-adds in independent sums that never
// leave the registers, on the floating-point units or the tensor cores; and the triad.
#include "attn/cuda/kernels/matrix.cuh"

#define CHAINS 8 // independent sums: enough to hide the latency
#define STEPS 64 // CEILING_FMA_FLOPS counts with both

static __global__ void __launch_bounds__(CEILING_THREADS) multiply_adds(CeilingCall a)
{
    float x[CHAINS], sum = 0;

#pragma unroll
    for (int c = 0; c < CHAINS; c++)
        x[c] = 1.0f + (float)(threadIdx.x + c) * 1e-6f;
    for (int64_t round = 0; round < a.rounds; round++) {
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                x[c] = __fmaf_rn(x[c], 0.9999999f, 1e-8f);
    }
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum == -1.0f) // keeps the compiler from removing the sum
        a.a[0] = sum;
}

template <typename Format>
static __global__ void __launch_bounds__(CEILING_THREADS) word_steps(CeilingCall a)
{
    const int SUMS = 8;
    uint32_t  left[4], right[2];
    float     sum[SUMS][4], all = 0;

    for (int x = 0; x < 4; x++)
        left[x] = Format::word(1e-3f * (float)threadIdx.x, 0.5f);
    for (int x = 0; x < 2; x++)
        right[x] = Format::word(1e-3f * (float)threadIdx.x, 0.25f);
#pragma unroll
    for (int x = 0; x < SUMS * 4; x++)
        sum[x / 4][x % 4] = 0;
    for (int64_t round = 0; round < a.rounds; round++) {
#pragma unroll
        for (int s = 0; s < CEILING_WORDS_STEPS; s++)
            Format::mma(sum[s % SUMS], left, right);
    }
#pragma unroll
    for (int x = 0; x < SUMS * 4; x++)
        all += sum[x / 4][x % 4];
    if (all == -1.0f)
        a.a[0] = all;
}

static __global__ void __launch_bounds__(CEILING_THREADS) triad(CeilingCall call)
{
    int64_t       step = (int64_t)gridDim.x * CEILING_THREADS, count = call.count / 4;
    float4       *a = (float4 *)call.a;
    const float4 *b = (const float4 *)call.b, *c = (const float4 *)call.c;

    for (int64_t i = (int64_t)blockIdx.x * CEILING_THREADS + threadIdx.x; i < count; i += step) {
        float4 x = b[i], y = c[i];

        a[i] = make_float4(x.x + 0.5f * y.x, x.y + 0.5f * y.y, x.z + 0.5f * y.z, x.w + 0.5f * y.w);
    }
}

int ceiling_groups(const CeilingCall *a);

extern "C" int call_ceiling(const CeilingCall *a)
{
    unsigned blocks = (unsigned)a->blocks;

    if (a->kind == CEILING_GROUPS)
        return ceiling_groups(a);
    if (a->kind == CEILING_TRIAD)
        return LAUNCH(triad, blocks_for(a->count / 4, CEILING_THREADS), CEILING_THREADS, 0, *a);
    if (a->kind == CEILING_FMA)
        return LAUNCH(multiply_adds, blocks, CEILING_THREADS, 0, *a);
    return a->arithmetic == ARITHMETIC_TF32
               ? LAUNCH((word_steps<Tf32>), blocks, CEILING_THREADS, 0, *a)
           : a->arithmetic == ARITHMETIC_BF16
               ? LAUNCH((word_steps<Bf16>), blocks, CEILING_THREADS, 0, *a)
               : LAUNCH((word_steps<F16>), blocks, CEILING_THREADS, 0, *a);
}
