// gemm_tile.cuh -- what the kernels of GemmCall share: which tile a block has, and its sides.
#ifndef ATTN_CUDA_KERNELS_GEMM_TILE_CUH
#define ATTN_CUDA_KERNELS_GEMM_TILE_CUH

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
    int      lines; // of the tile that there are
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
    __syncthreads(); // of another tile before this one
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

// On the tensor cores; gemm_words.cu.
int gemm_words(const GemmCall *g);

#endif
