// gemm_words.cu -- products of matrices on the tensor cores: float32 numbers, rounded to TF32,
// BF16 or F16 on their way into shared memory, are summed in float32.
//
// A block of 2 x 4 warps has a tile of c; both sides lie as [row or column][words].  A row of
// 16 words has 4 more behind it, so that the 32 words of a fragment fall on 32 banks.
#include "attn/cuda/kernels/gemm_tile.cuh"
#include "attn/cuda/kernels/mma.cuh"

#define WORDS 16 // of the inner axis at a time
#define PITCH (WORDS + 4)
#define FILL 128 // so many tiles at least occupy a large GPU

template <typename Format, int TILE>
struct Part {
    typedef GemmShare<TILE, WORDS> Share;
    static const int PER = Format::PER_WORD;

    float held[Share::EACH][PER];

    __device__ __forceinline__ void fetch(const GemmSide<float> &side, int64_t at)
    {
        Share        s(side.along);
        int64_t      jump = (side.along ? s.across : s.down * PER) * side.ld;
        int64_t      next = side.along ? 1 : side.ld;
        int          left = side.inner - at < WORDS * PER ? (int)(side.inner - at) : WORDS * PER;
        const float *from = side.data + (side.along ? s.line * side.ld + at + s.unit * PER
                                                    : (at + s.unit * PER) * side.ld + s.line);

#pragma unroll
        for (int i = 0; i < Share::EACH; i++, from += jump)
#pragma unroll
            for (int part = 0; part < PER; part++)
                held[i][part] = s.line + i * s.across < side.lines &&
                                        (s.unit + i * s.down) * PER + part < left
                                    ? from[part * next]
                                    : 0.0f;
    }

    __device__ __forceinline__ void leave(bool along, uint32_t (*to)[PITCH]) const
    {
        Share s(along);

#pragma unroll
        for (int i = 0; i < Share::EACH; i++)
            to[s.line + i * s.across][s.unit + i * s.down] = Format::word(held[i][0],
                                                                          held[i][PER - 1]);
    }
};

// This warp's share: COUNT x COUNT steps' tiles of 16 x 8, from its first row and column on.
template <typename Format, int COUNT>
static __device__ __forceinline__ void multiply(const uint32_t (*a)[PITCH],
                                                const uint32_t (*b)[PITCH],
                                                float sum[COUNT][COUNT][4])
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

#pragma unroll
    for (int w = t; w < t + WORDS; w += MMA_WORDS) {
        uint32_t left[COUNT][4], right[COUNT][2];

#pragma unroll
        for (int x = 0; x < COUNT; x++) {
            left[x][0] = a[16 * x + g][w];
            left[x][1] = a[16 * x + g + 8][w];
            left[x][2] = a[16 * x + g][w + 4];
            left[x][3] = a[16 * x + g + 8][w + 4];
            right[x][0] = b[8 * x + g][w];
            right[x][1] = b[8 * x + g][w + 4];
        }
#pragma unroll
        for (int r = 0; r < COUNT; r++)
#pragma unroll
            for (int c = 0; c < COUNT; c++)
                Format::mma(sum[r][c], left[r], right[c]);
    }
}

template <typename Format, int TILE>
static __device__ void tile_product(const GemmSide<float> &a, const GemmSide<float> &b,
                                    float sum[TILE / 32][TILE / 32][4])
{
    const int COUNT = TILE / 32, STEP = WORDS * Format::PER_WORD;
    SHARED_ARRAY(uint32_t, left, [2][TILE][PITCH]);
    SHARED_ARRAY(uint32_t, right, [2][TILE][PITCH]);
    Part<Format, TILE>  next_a, next_b;
    int                 warp = threadIdx.x / 32;

#pragma unroll
    for (int x = 0; x < COUNT * COUNT * 4; x++)
        sum[x / 4 / COUNT][x / 4 % COUNT][x % 4] = 0;
    gemm_along<STEP>(a, b, next_a, next_b, left, right, [&](int turn, int64_t) {
        multiply<Format, COUNT>(left[turn] + warp / 4 * (TILE / 2),
                                right[turn] + warp % 4 * (TILE / 4), sum);
    });
}

template <typename Format, int TILE>
static __global__ void __launch_bounds__(GEMM_THREADS, TILE > 64 ? 1 : 2) word_tiles(GemmCall g)
{
    const int COUNT = TILE / 32;
    int       warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int       row = warp / 4 * (TILE / 2) + lane / 4, col = warp % 4 * (TILE / 4) + lane % 4 * 2;
    float     sum[COUNT][COUNT][4];

    for (int64_t item = blockIdx.y; item < g.heads * g.pieces; item += gridDim.y) {
        GemmPlace p = gemm_place(g, item, TILE);

        if (p.row >= p.rows || p.col >= p.cols)
            continue;
        tile_product<Format, TILE>(gemm_left<float>(g, p), gemm_right<float>(g, p), sum);
#pragma unroll
        for (int x = 0; x < COUNT * COUNT * 4; x++) {
            int r = x / 4 / COUNT, c = x / 4 % COUNT, e = x % 4;

            gemm_put<float>(g, p, row + 16 * r + 8 * (e / 2), col + 8 * c + e % 2, sum[r][c][e]);
        }
    }
}

template <typename Format>
static int start(const GemmCall &g)
{
    dim3 wide = gemm_grid(g, 128), small = gemm_grid(g, 64);

    return (int64_t)wide.x * wide.y < FILL
               ? LAUNCH((word_tiles<Format, 64>), small, GEMM_THREADS, 0, g)
               : LAUNCH((word_tiles<Format, 128>), wide, GEMM_THREADS, 0, g);
}

int gemm_words(const GemmCall *g)
{
    return g->arithmetic == ARITHMETIC_TF32   ? start<Tf32>(*g)
           : g->arithmetic == ARITHMETIC_BF16 ? start<Bf16>(*g)
                                              : start<F16>(*g);
}
