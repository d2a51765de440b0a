// gemm.cu -- products of matrices on the floating-point units, and sums of their pieces.
//
// A block of 16 x 16 threads has a tile of c.  The next parts of a and b are fetched into
// registers while those in shared memory, [inner][rows or columns], are multiplied; two
// buffers take turns.  Thread (y, x) owns rows 4y .. 4y+3 of each 64, and columns likewise.
#include "attn/cuda/kernels/gemm_tile.cuh"

#define DEPTH 16   // of the inner axis at a time
#define PAD 4      // keeps rows aligned to 16 bytes and apart in the banks
#define FOLD 256   // products summed in float when these sums go to double
#define FILL 128   // so many tiles at least occupy a large GPU

// The part of a or b that one thread has fetched.
template <typename From, typename To, int TILE>
struct Part {
    typedef GemmShare<TILE, DEPTH> Share;

    To held[Share::EACH];

    __device__ __forceinline__ void fetch(const GemmSide<From> &side, int64_t at)
    {
        Share       s(side.along);
        int64_t     jump = (side.along ? s.across : s.down) * side.ld;
        int         left = side.inner - at < DEPTH ? (int)(side.inner - at) : DEPTH;
        const From *from = side.data + (side.along ? s.line * side.ld + at + s.unit
                                                   : (at + s.unit) * side.ld + s.line);

#pragma unroll
        for (int i = 0; i < Share::EACH; i++, from += jump)
            held[i] = s.line + i * s.across < side.lines && s.unit + i * s.down < left ? (To)*from
                                                                                       : (To)0;
    }

    __device__ __forceinline__ void leave(bool along, To (*to)[TILE + PAD]) const
    {
        Share s(along);

#pragma unroll
        for (int i = 0; i < Share::EACH; i++)
            to[s.unit + i * s.down][s.line + i * s.across] = held[i];
    }
};

// PLAIN: the product is rounded before it is added, as the CPU does it.
template <bool PLAIN, typename Sum>
static __device__ __forceinline__ Sum with_product(Sum sum, Sum a, Sum b)
{
    return PLAIN ? (Sum)__dadd_rn(sum, __dmul_rn(a, b)) : sum + a * b;
}

template <typename Sum, int OWN, int TILE, bool PLAIN>
static __device__ __forceinline__ void multiply(const Sum (*a)[TILE + PAD],
                                                const Sum (*b)[TILE + PAD], Sum sum[OWN][OWN])
{
    int y = threadIdx.x / 16, x = threadIdx.x % 16;

#pragma unroll
    for (int z = 0; z < DEPTH; z++) {
        Sum left[OWN], right[OWN];

#pragma unroll
        for (int r = 0; r < OWN; r++) {
            left[r] = a[z][r / 4 * 64 + 4 * y + r % 4];
            right[r] = b[z][r / 4 * 64 + 4 * x + r % 4];
        }
#pragma unroll
        for (int r = 0; r < OWN; r++)
#pragma unroll
            for (int c = 0; c < OWN; c++)
                sum[r][c] = with_product<PLAIN>(sum[r][c], left[r], right[c]);
    }
}

template <typename Sum, typename Total, int OWN>
static __device__ __forceinline__ void fold(Sum sum[OWN][OWN], Total total[OWN][OWN])
{
#pragma unroll
    for (int r = 0; r < OWN; r++)
#pragma unroll
        for (int c = 0; c < OWN; c++) {
            total[r][c] += (Total)sum[r][c];
            sum[r][c] = 0;
        }
}

// The product of one tile: sums of FOLD products in Sum, where Total is another type.
template <typename A, typename B, typename Sum, typename Total, int TILE, bool PLAIN>
static __device__ void tile_product(const GemmSide<A> &a, const GemmSide<B> &b,
                                    const float *start, Total total[TILE / 16][TILE / 16])
{
    const int           OWN = TILE / 16;
    const bool          folded = sizeof(Sum) != sizeof(Total);
    SHARED_ARRAY(Sum, left, [2][DEPTH][TILE + PAD]);
    SHARED_ARRAY(Sum, right, [2][DEPTH][TILE + PAD]);
    Part<A, Sum, TILE>  next_a;
    Part<B, Sum, TILE>  next_b;
    Sum                 sum[OWN][OWN];

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++) {
            int col = c / 4 * 64 + 4 * (threadIdx.x % 16) + c % 4;

            sum[r][c] = start && col < b.lines ? (Sum)start[col] : (Sum)0;
            total[r][c] = 0;
        }
    gemm_along<DEPTH>(a, b, next_a, next_b, left, right, [&](int turn, int64_t at) {
        multiply<Sum, OWN, TILE, PLAIN>(left[turn], right[turn], sum);
        if (folded && at % FOLD == FOLD - DEPTH)
            fold<Sum, Total, OWN>(sum, total);
    });
    fold<Sum, Total, OWN>(sum, total);
}

template <typename A, typename B, typename C, typename Sum, int TILE, bool PLAIN>
static __global__ void __launch_bounds__(GEMM_THREADS, TILE > 64 ? 1 : 2) gemm_tiles(GemmCall g)
{
    const int OWN = TILE / 16;
    int       y = threadIdx.x / 16, x = threadIdx.x % 16;
    C         total[OWN][OWN];

    for (int64_t item = blockIdx.y; item < g.heads * g.pieces; item += gridDim.y) {
        GemmPlace p = gemm_place(g, item, TILE);

        if (p.row >= p.rows || p.col >= p.cols)
            continue;
        tile_product<A, B, Sum, C, TILE, PLAIN>(gemm_left<A>(g, p), gemm_right<B>(g, p),
                                                g.start ? g.start + p.col : NULL, total);
        for (int r = 0; r < OWN; r++)
            for (int c = 0; c < OWN; c++)
                gemm_put<C>(g, p, r / 4 * 64 + 4 * y + r % 4, c / 4 * 64 + 4 * x + c % 4,
                            total[r][c]);
    }
}

template <typename A, typename B, typename C, typename Sum, bool PLAIN = false>
static int start(const GemmCall &g)
{
    dim3 grid = gemm_grid(g, 64);

    return LAUNCH((gemm_tiles<A, B, C, Sum, 64, PLAIN>), grid, GEMM_THREADS, 0, g);
}

static int start_f32(const GemmCall &g)
{
    dim3 grid = gemm_grid(g, 128);

    if ((int64_t)grid.x * grid.y < FILL)
        return start<float, float, float, float>(g);
    return LAUNCH((gemm_tiles<float, float, float, float, 128, false>), grid, GEMM_THREADS, 0, g);
}

extern "C" int call_gemm(const GemmCall *g)
{
    bool a = g->a.dtype == DEVICE_F64, b = g->b.dtype == DEVICE_F64, c = g->c.dtype == DEVICE_F64;

    if (g->rows <= 0 || g->cols <= 0 || g->heads * g->pieces <= 0)
        return 0;
    if (!c)
        return a                                  ? start<double, float, float, float>(*g)
               : g->arithmetic != ARITHMETIC_F32 ? gemm_words(g)
                                                  : start_f32(*g);
    if (g->in_order && b)
        return a ? start<double, double, double, double, true>(*g)
                 : start<float, double, double, double, true>(*g);
    if (g->folded)
        return start<float, float, double, float>(*g);
    return a && b ? start<double, double, double, double>(*g)
           : a    ? start<double, float, double, double>(*g)
           : b    ? start<float, double, double, double>(*g)
                  : start<float, float, double, double>(*g);
}

/* ---- sums of pieces -------------------------------------------------------------- */

template <typename From, typename To>
static __global__ void __launch_bounds__(GEMM_THREADS) add_pieces(GemmSumCall s)
{
    int64_t size = s.c.rows * s.c.cols, count = s.c.heads * size;
    int64_t step = (int64_t)gridDim.x * GEMM_THREADS;

    for (int64_t at = (int64_t)blockIdx.x * GEMM_THREADS + threadIdx.x; at < count; at += step) {
        int64_t     head = at / size, entry = at % size;
        const From *from = (const From *)s.parts + head * s.pieces * size + entry;
        To         *to = (To *)s.c.data + head * s.c.head_stride +
                 entry / s.c.cols * s.c.row_stride + entry % s.c.cols;
        double      sum = 0;

        for (int64_t p = 0; p < s.pieces; p++)
            sum += (double)from[p * size];
        *to = (To)(s.alpha * sum + (s.beta != 0 ? s.beta * (double)*to : 0.0));
    }
}

extern "C" int call_gemm_sum(const GemmSumCall *s)
{
    int64_t  count = s->c.heads * s->c.rows * s->c.cols;
    unsigned blocks = blocks_for(count, GEMM_THREADS);
    bool     to = s->c.dtype == DEVICE_F64;

    if (count <= 0)
        return 0;
    if (s->wide)
        return to ? LAUNCH((add_pieces<double, double>), blocks, GEMM_THREADS, 0, *s)
                  : LAUNCH((add_pieces<double, float>), blocks, GEMM_THREADS, 0, *s);
    return to ? LAUNCH((add_pieces<float, double>), blocks, GEMM_THREADS, 0, *s)
              : LAUNCH((add_pieces<float, float>), blocks, GEMM_THREADS, 0, *s);
}
