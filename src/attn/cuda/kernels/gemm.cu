// gemm.cu -- products of matrices on the floating-point units, and sums of their pieces.
//
// A block of 16 x 16 threads has a tile of c.  The next parts of a and b are fetched into
// registers while those in shared memory, [inner][rows or columns], are multiplied; two
// buffers take turns.  Thread (y, x) owns rows 4y .. 4y+3 of each 64, and columns likewise.
#include "attn/cuda/kernels/matrix.cuh"
#include "attn/cuda/kernels/portable.cuh"

#define GEMM_THREADS 256
#define GEMM_ITEMS 32768 // blocks along the heads and pieces; more are taken in turns

// A tile of one head's piece: its first row and column, and the piece's extents.
struct GemmPlace {
    int64_t head, piece, row, col, rows, cols, inner;
};

// op(a) by rows, or op(b) by columns, from the tile's first line on.
template <typename T>
struct GemmSide {
    const T *data;
    int64_t  ld, inner;
    int      lines; // lines of the tile that exist
    bool     along; // neighbours along the inner axis are neighbours in memory
};

// The entries of TILE lines x DEPTH units that a thread fetches: number i is at line
// line + i across, unit unit + i down.  Neighbours in memory go to neighbouring threads.
template <int TILE, int DEPTH>
struct GemmShare {
    static const int EACH = TILE * DEPTH / GEMM_THREADS;

    int line, unit, across, down;

    __device__ __forceinline__ GemmShare(bool along)
    {
        int x = (int)threadIdx.x;

        line = along ? x / DEPTH : x % TILE;
        unit = along ? x % DEPTH : x / TILE;
        across = along ? GEMM_THREADS / DEPTH : 0;
        down = along ? 0 : GEMM_THREADS / TILE;
    }
};

static __device__ __forceinline__ int64_t gemm_left_of(int64_t size, int64_t all, int64_t piece)
{
    int64_t left = all - piece * size;

    return !all || left > size ? size : left < 0 ? 0 : left;
}

static __device__ GemmPlace gemm_place(const GemmCall &g, int64_t item, int tile)
{
    int64_t   across = (g.cols + tile - 1) / tile;
    GemmPlace p;

    p.head = item / g.pieces;
    p.piece = item % g.pieces;
    p.row = blockIdx.x / across * tile;
    p.col = blockIdx.x % across * tile;
    p.rows = gemm_left_of(g.rows, g.all_rows, p.piece);
    p.cols = gemm_left_of(g.cols, g.all_cols, p.piece);
    p.inner = gemm_left_of(g.inner, g.all_inner, p.piece);
    return p;
}

static __device__ __forceinline__ int gemm_lines(int64_t left)
{
    return left < 1024 ? (int)left : 1024;
}

template <typename T>
static __device__ GemmSide<T> gemm_left(const GemmCall &g, const GemmPlace &p)
{
    const T *data = head_of<const T>(g.a, p.head, g.heads) + p.piece * g.step_a;

    return { data + (g.ta ? p.row : p.row * g.a.row_stride), g.a.row_stride, p.inner,
             gemm_lines(p.rows - p.row), !g.ta };
}

template <typename T>
static __device__ GemmSide<T> gemm_right(const GemmCall &g, const GemmPlace &p)
{
    const T *data = head_of<const T>(g.b, p.head, g.heads) + p.piece * g.step_b;

    return { data + (g.tb ? p.col * g.b.row_stride : p.col), g.b.row_stride, p.inner,
             gemm_lines(p.cols - p.col), g.tb };
}

// Along the inner axis by STEP: multiply(buffer, from) while the next entries are fetched.
template <int STEP, typename A, typename B, typename PartA, typename PartB, typename Buffer,
          typename Multiply>
static __device__ __forceinline__ void gemm_along(const GemmSide<A> &a, const GemmSide<B> &b,
                                                  PartA &next_a, PartB &next_b, Buffer *left,
                                                  Buffer *right, Multiply multiply)
{
    int turn = 0;

    next_a.fetch(a, 0);
    next_b.fetch(b, 0);
    __syncthreads(); // for readers of the tile before this one
    for (int64_t at = 0; at < a.inner; at += STEP, turn ^= 1) {
        next_a.leave(a.along, left[turn]);
        next_b.leave(b.along, right[turn]);
        __syncthreads();
        if (at + STEP < a.inner) {
            next_a.fetch(a, at + STEP);
            next_b.fetch(b, at + STEP);
        }
        multiply(turn, at);
    }
}

// c at (row, col) of the tile, from the sum of products.
template <typename C>
static __device__ __forceinline__ void gemm_put(const GemmCall &g, const GemmPlace &p, int64_t row,
                                                int64_t col, C sum)
{
    C *to;

    if (p.row + row >= p.rows || p.col + col >= p.cols)
        return;
    to = head_of<C>(g.c, p.head, g.heads) + p.piece * g.step_c + (p.row + row) * g.c.row_stride +
         p.col + col;
    *to = (C)g.alpha * sum + (g.beta != 0 ? (C)g.beta * *to : (C)0);
}

static inline dim3 gemm_grid(const GemmCall &g, int64_t tile)
{
    int64_t items = g.heads * g.pieces;

    return dim3((unsigned)((g.rows + tile - 1) / tile * ((g.cols + tile - 1) / tile)),
                (unsigned)(items < GEMM_ITEMS ? items : GEMM_ITEMS));
}

// On the tensor cores; gemm.cu.
static int gemm_words(const GemmCall *g);

#define DEPTH 16   // of the inner axis at a time
#define PAD 4      // keeps rows aligned to 16 bytes and apart in the banks
#define FOLD 256   // products summed in float when these sums go to double
#define FILL 128   // so many tiles at least occupy a large GPU

// The part of a or b that one thread has loaded into registers.
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

// Products of matrices on the tensor cores: float32 numbers, rounded to TF32,
// BF16 or F16 on their way into shared memory, are summed in float32.
//
// A block of 2 x 4 warps has a tile of c; both sides lie as [row or column][words].  A row of
// 16 words has 4 more behind it, so that the 32 words of a fragment fall on 32 banks.

#define WORDS 16 // of the inner axis at a time
#define PITCH (WORDS + 4)
#define WORDS_FILL 128 // so many tiles at least occupy a large GPU

template <typename Format, int TILE>
struct WordPart {
    typedef GemmShare<TILE, WORDS> WordShare;
    static const int PER = Format::PER_WORD;

    float held[WordShare::EACH][PER];

    __device__ __forceinline__ void fetch(const GemmSide<float> &side, int64_t at)
    {
        WordShare        s(side.along);
        int64_t      jump = (side.along ? s.across : s.down * PER) * side.ld;
        int64_t      next = side.along ? 1 : side.ld;
        int          left = side.inner - at < WORDS * PER ? (int)(side.inner - at) : WORDS * PER;
        const float *from = side.data + (side.along ? s.line * side.ld + at + s.unit * PER
                                                    : (at + s.unit * PER) * side.ld + s.line);

#pragma unroll
        for (int i = 0; i < WordShare::EACH; i++, from += jump)
#pragma unroll
            for (int part = 0; part < PER; part++)
                held[i][part] = s.line + i * s.across < side.lines &&
                                        (s.unit + i * s.down) * PER + part < left
                                    ? from[part * next]
                                    : 0.0f;
    }

    __device__ __forceinline__ void leave(bool along, uint32_t (*to)[PITCH]) const
    {
        WordShare s(along);

#pragma unroll
        for (int i = 0; i < WordShare::EACH; i++)
            to[s.line + i * s.across][s.unit + i * s.down] = Format::word(held[i][0],
                                                                          held[i][PER - 1]);
    }
};

// This warp's share: COUNT x COUNT steps' tiles of 16 x 8, from its first row and column on.
template <typename Format, int COUNT>
static __device__ __forceinline__ void multiply_words(const uint32_t (*a)[PITCH],
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
static __device__ void word_product(const GemmSide<float> &a, const GemmSide<float> &b,
                                    float sum[TILE / 32][TILE / 32][4])
{
    const int COUNT = TILE / 32, STEP = WORDS * Format::PER_WORD;
    SHARED_ARRAY(uint32_t, left, [2][TILE][PITCH]);
    SHARED_ARRAY(uint32_t, right, [2][TILE][PITCH]);
    WordPart<Format, TILE>  next_a, next_b;
    int                 warp = threadIdx.x / 32;

#pragma unroll
    for (int x = 0; x < COUNT * COUNT * 4; x++)
        sum[x / 4 / COUNT][x / 4 % COUNT][x % 4] = 0;
    gemm_along<STEP>(a, b, next_a, next_b, left, right, [&](int turn, int64_t) {
        multiply_words<Format, COUNT>(left[turn] + warp / 4 * (TILE / 2),
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
        word_product<Format, TILE>(gemm_left<float>(g, p), gemm_right<float>(g, p), sum);
#pragma unroll
        for (int x = 0; x < COUNT * COUNT * 4; x++) {
            int r = x / 4 / COUNT, c = x / 4 % COUNT, e = x % 4;

            gemm_put<float>(g, p, row + 16 * r + 8 * (e / 2), col + 8 * c + e % 2, sum[r][c][e]);
        }
    }
}

template <typename Format>
static int start_words(const GemmCall &g)
{
    dim3 wide = gemm_grid(g, 128), small = gemm_grid(g, 64);

    return (int64_t)wide.x * wide.y < WORDS_FILL
               ? LAUNCH((word_tiles<Format, 64>), small, GEMM_THREADS, 0, g)
               : LAUNCH((word_tiles<Format, 128>), wide, GEMM_THREADS, 0, g);
}

static int gemm_words(const GemmCall *g)
{
    return g->arithmetic == ARITHMETIC_TF32   ? start_words<Tf32>(*g)
           : g->arithmetic == ARITHMETIC_BF16 ? start_words<Bf16>(*g)
                                              : start_words<F16>(*g);
}
