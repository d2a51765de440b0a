// ceilings_warpgroup.cu -- what a Hopper's tensor cores can do at most: products of warpgroups, left
// sides and sums in registers, the right side in shared memory.  The products of ceilings.cu, a warp
// each, do not reach it there.  Compiled for sm_90a and nothing else.
#include "attn/cuda/kernels/portable.cuh"

int ceiling_groups(const CeilingCall *a);

#ifdef WITHOUT_WARPGROUP

int ceiling_groups(const CeilingCall *)
{
    return WARPGROUP_DECLINED;
}

#else
#include "attn/cuda/kernels/warpgroup.cuh"

#define COLUMNS 128 // of a product
#define TILE (COLUMNS * LINE)
#define STEPS CEILING_GROUPS_STEPS
static_assert(CEILING_GROUPS_FLOPS ==
                  2.0 * 64 * COLUMNS * 16 * STEPS * (CEILING_THREADS / GROUP_THREADS),
              "the host counts them");

template <typename Form>
static __global__ void __launch_bounds__(CEILING_THREADS) group_steps(CeilingCall a)
{
    SHARED(unsigned char, shared);
    uint32_t  at = shared_address(shared), first = (PATTERN - at % PATTERN) % PATTERN;
    uint32_t *words = (uint32_t *)(shared + first);
    uint32_t  left[STEPS][4]; // of each product its own: one for all would be copied each time
    uint64_t  right = tile_words(at + first, 0, PATTERN);
    float     sum[COLUMNS / 8][4], all = 0;

    for (int x = (int)threadIdx.x; x < TILE / 4; x += CEILING_THREADS)
        words[x] = Form::word(1e-3f * (float)(x % 64), 0.25f);
#pragma unroll
    for (int x = 0; x < 4 * STEPS; x++)
        left[x / 4][x % 4] = Form::word(1e-3f * (float)(threadIdx.x + x), 0.5f);
#pragma unroll
    for (int x = 0; x < COLUMNS / 2; x++)
        sum[x / 4][x % 4] = 0;
    copies_may_follow(); // products read as copies do
    __syncthreads();
    for (int64_t round = 0; round < a.rounds; round++) {
        group_begin();
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            group_product<true, false>(Form(), sum, left[s], right + s % 4 * 32 / 16);
        group_commit();
        group_wait<0>();
        group_written(sum);
    }
#pragma unroll
    for (int x = 0; x < COLUMNS / 2; x++)
        all += sum[x / 4][x % 4];
    if (all == -1.0f) // the compiler must believe that the sum is wanted
        a.a[0] = all;
}

int ceiling_groups(const CeilingCall *a)
{
    size_t   shared = PATTERN + TILE;
    unsigned blocks = (unsigned)a->blocks;

    return a->arithmetic == ARITHMETIC_BF16
               ? LAUNCH((group_steps<Bf16>), blocks, CEILING_THREADS, shared, *a)
               : LAUNCH((group_steps<F16>), blocks, CEILING_THREADS, shared, *a);
}

#endif
