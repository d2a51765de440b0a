// wide_tile.cuh -- tiles of products in double, for kernels whose scores are in double.
//
// 16 x 16 threads have 64 x 64 sums; thread (y, x) those of rows 4y .. 4y+3 and columns x,
// x + 16, x + 32, x + 48.  Each sum is added up in index order, so it does not depend on where
// its row and column lie; products of floats are exact in double.
#ifndef ATTN_CUDA_KERNELS_WIDE_TILE_CUH
#define ATTN_CUDA_KERNELS_WIDE_TILE_CUH

#include "attn/cuda/kernels/panels.cuh"

#define DEPTH 16                   // of the inner axis in shared memory at a time
#define WIDE_LINE (PANEL_ROWS + 1) // an odd number of banks: columns may be written
#define WIDE_PARTS (2 * DEPTH * WIDE_LINE)

static __device__ __forceinline__ double entry_of(const DeviceTensor &t, const void *head,
                                                  int64_t at)
{
    return t.dtype == DEVICE_F64 ? ((const double *)head)[at] : (double)((const float *)head)[at];
}

// Slice `head` of a tensor of either type.
static __device__ __forceinline__ const void *slice_of(const DeviceTensor &t, int64_t head,
                                                       int64_t heads)
{
    return t.dtype == DEVICE_F64 ? (const void *)head_of<double>(t, head, heads)
                                 : (const void *)head_of<float>(t, head, heads);
}

// Rows (turned: columns) first .. of a matrix, against its other axis.
struct WideRows {
    DeviceTensor t;
    const void  *slice;
    int64_t      first, count; // how many there are at all
    bool         turned;

    __device__ WideRows(const DeviceTensor &from, int64_t head, int64_t heads, int64_t at,
                        bool turn = false)
        : t(from), slice(slice_of(from, head, heads)), first(at),
          count(turn ? from.cols : from.rows), turned(turn)
    {
    }
    __device__ double at(int row, int64_t z) const
    {
        int64_t line = first + row;

        if (line >= count)
            return 0;
        return entry_of(t, slice, turned ? z * t.row_stride + line : line * t.row_stride + z);
    }
};

// to[z][r] = element `part` + z of row r; neighbouring threads read neighbouring words.
template <class Rows>
static __device__ void wide_in(double *to, const Rows &rows, int64_t part, int depth)
{
    for (int at = (int)threadIdx.x; at < PANEL_ROWS * DEPTH; at += THREADS) {
        int z = rows.turned ? at / PANEL_ROWS : at % DEPTH;
        int r = rows.turned ? at % PANEL_ROWS : at / DEPTH;

        to[z * WIDE_LINE + r] = z < depth ? rows.at(r, part + z) : 0.0;
    }
}

// s += left . right over `inner`; all threads of the block come here.
template <class Left, class Right>
static __device__ void wide_tile(const Left &left, const Right &right, int64_t inner,
                                 double *parts, double s[OWN][OWN])
{
    double *b = parts + DEPTH * WIDE_LINE;

    for (int64_t part = 0; part < inner; part += DEPTH) {
        int depth = inner - part < DEPTH ? (int)(inner - part) : DEPTH;

        __syncthreads();
        wide_in(parts, left, part, depth);
        wide_in(b, right, part, depth);
        __syncthreads();
        for (int z = 0; z < depth; z++) {
            double x[OWN], y[OWN];

            for (int r = 0; r < OWN; r++) {
                x[r] = parts[z * WIDE_LINE + OWN * own_y() + r];
                y[r] = b[z * WIDE_LINE + own_x() + SIDE * r];
            }
            for (int r = 0; r < OWN; r++)
                for (int c = 0; c < OWN; c++)
                    s[r][c] += x[r] * y[c];
        }
    }
}

#endif
