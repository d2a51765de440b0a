// exact.cuh -- sums in double that are the CPU's bit for bit, and what choices order by.
//
// A tile of 64 x 64 products x_r . y_c by 256 threads: thread (y, x) holds rows 4y .. 4y+3 and
// columns x, x + 16, ...  Sums run in index order, product and sum rounded each on its own.
// Where both factors are floats their product is exact in double, and one fma does the same.
#ifndef ATTN_CUDA_KERNELS_EXACT_CUH
#define ATTN_CUDA_KERNELS_EXACT_CUH

#include "attn/cuda/kernels/portable.cuh"

#define EXACT_TILE 64
#define EXACT_SIDE 16
#define EXACT_OWN (EXACT_TILE / EXACT_SIDE)
#define EXACT_PART 16 // terms at a time
#define LENGTH_LEAST 1e-12

// Rows of a matrix that a tile reads.
template <typename V>
struct ExactRows {
    const V *data;
    int64_t  stride, count, d;
};

struct ExactTile {
    double x[EXACT_PART][EXACT_TILE + 1], y[EXACT_PART][EXACT_TILE + 1];
    double squares_x[EXACT_TILE], squares_y[EXACT_TILE]; // of the rows, where they are asked for
};

static __device__ __forceinline__ double add_product(double sum, float x, float y, double wide_x,
                                                     double wide_y)
{
    (void)x;
    (void)y;
    return __fma_rn(wide_x, wide_y, sum);
}

template <typename X, typename Y>
static __device__ __forceinline__ double add_product(double sum, X x, Y y, double wide_x,
                                                     double wide_y)
{
    (void)x;
    (void)y;
    return __dadd_rn(sum, __dmul_rn(wide_x, wide_y));
}

template <typename V>
static __device__ void exact_load(double (*to)[EXACT_TILE + 1], const ExactRows<V> &from,
                                  int64_t first, int64_t part)
{
    for (int at = threadIdx.x; at < EXACT_TILE * EXACT_PART; at += blockDim.x) {
        int64_t row = first + at / EXACT_PART, t = part + at % EXACT_PART;

        to[at % EXACT_PART][at / EXACT_PART] =
            row < from.count && t < from.d ? (double)from.data[row * from.stride + t] : 0.0;
    }
}

static __device__ void exact_squares(double *sum, double (*part)[EXACT_TILE + 1], int row,
                                     int64_t terms)
{
    for (int t = 0; t < terms; t++)
        sum[row] = __dadd_rn(sum[row], __dmul_rn(part[t][row], part[t][row]));
}

// acc[r][c] = x[first_x + 4y + r] . y[first_y + x + 16 c]; with LENGTHS the squares too.
template <bool LENGTHS, typename X, typename Y>
static __device__ void exact_products(ExactTile *tile, const ExactRows<X> &x, int64_t first_x,
                                      const ExactRows<Y> &y, int64_t first_y,
                                      double acc[EXACT_OWN][EXACT_OWN])
{
    int down = threadIdx.x / EXACT_SIDE, along = threadIdx.x % EXACT_SIDE;

    for (int r = 0; r < EXACT_OWN; r++)
        for (int c = 0; c < EXACT_OWN; c++)
            acc[r][c] = 0;
    __syncthreads();
    if (LENGTHS && threadIdx.x < EXACT_TILE)
        tile->squares_x[threadIdx.x] = tile->squares_y[threadIdx.x] = 0;
    for (int64_t part = 0; part < x.d; part += EXACT_PART) {
        int terms = x.d - part < EXACT_PART ? (int)(x.d - part) : EXACT_PART;

        __syncthreads();
        exact_load(tile->x, x, first_x, part);
        exact_load(tile->y, y, first_y, part);
        __syncthreads();
        for (int t = 0; t < terms; t++)
            for (int r = 0; r < EXACT_OWN; r++)
                for (int c = 0; c < EXACT_OWN; c++)
                    acc[r][c] = add_product(acc[r][c], X(), Y(), tile->x[t][EXACT_OWN * down + r],
                                            tile->y[t][along + EXACT_SIDE * c]);
        if (LENGTHS && threadIdx.x < EXACT_TILE)
            exact_squares(tile->squares_x, tile->x, threadIdx.x, terms);
        else if (LENGTHS && threadIdx.x < 2 * EXACT_TILE)
            exact_squares(tile->squares_y, tile->y, threadIdx.x - EXACT_TILE, terms);
    }
    __syncthreads();
}

static __device__ __forceinline__ double exact_length(double squares)
{
    return squares < LENGTH_LEAST * LENGTH_LEAST ? LENGTH_LEAST : sqrt(squares);
}

/* ---- what is no number -------------------------------------------------------------- */

#define WIDE_SIGN ((int64_t)1 << 63)
#define WIDE_QUIET ((int64_t)0x7ff8 << 48)

// A NaN's bits as the CPU's arithmetic passes them on: those of the first operand that is one,
// else the NaN of an operation that has no result, whose sign is set.
static __device__ int64_t nan_of(double a, double b)
{
    if (isnan(a))
        return __double_as_longlong(a) | WIDE_QUIET;
    return isnan(b) ? __double_as_longlong(b) | WIDE_QUIET : WIDE_SIGN | WIDE_QUIET;
}

// The bits of a sum of products that is a NaN.
template <typename X, typename Y>
static __device__ int64_t nan_sum(const X *x, const Y *y, int64_t d)
{
    double sum = 0;

    for (int64_t t = 0; t < d; t++) {
        double product = __dmul_rn((double)x[t], (double)y[t]), next;

        if (isnan(product))
            return nan_of((double)x[t], (double)y[t]);
        next = __dadd_rn(sum, product);
        if (isnan(next))
            return WIDE_SIGN | WIDE_QUIET;
        sum = next;
    }
    return WIDE_QUIET;
}

// Integers in the order of doubles, of which these are the bits; 0 and -0 alike.
static __device__ __forceinline__ int64_t order_key(int64_t bits)
{
    if (bits == WIDE_SIGN)
        bits = 0;
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

#endif
