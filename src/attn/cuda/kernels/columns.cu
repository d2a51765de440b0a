// columns.cu -- convolutions with taps by channel and row; the best columns of rows; products of
// rows with listed rows.
#include "attn/cuda/kernels/portable.cuh"

#define COLS 32
#define ROWS 8
#define MOST_BLOCKS 32768 // of rows, of heads
#define THREADS 256
#define WARPS (THREADS / 32)

static __device__ __forceinline__ double number(const DeviceTensor &t, const void *row, int64_t at)
{
    return t.dtype == DEVICE_F64 ? ((const double *)row)[at] : (double)((const float *)row)[at];
}

// Row i of a head.
static __device__ __forceinline__ const void *row_at(const DeviceTensor &t, int64_t head,
                                                     int64_t heads, int64_t i)
{
    int64_t at = head * t.heads / heads * t.head_stride + i * t.row_stride;

    return (const char *)t.data + at * (t.dtype == DEVICE_F64 ? 8 : 4);
}

/* ---- convolutions ------------------------------------------------------------------- */

static __device__ double taps_of(const TapSumsCall &a, const void *taps, const void *x,
                                 int64_t start, int64_t c, double sum)
{
    int64_t size = a.taps.cols / a.groups, first = c / (a.y.cols / a.groups) * size;
    int64_t from = start < 0 ? (-start + a.apart - 1) / a.apart : 0;

    for (int64_t s = from; s < size && start + s * a.apart < a.x.rows; s++)
        sum += number(a.taps, taps, first + s) *
               number(a.x, x, (start + s * a.apart) * a.x.row_stride + c);
    return sum;
}

// Lanes have neighbouring columns of a row.
static __global__ void __launch_bounds__(COLS *ROWS) tap_sums(TapSumsCall a)
{
    for (int64_t t = blockIdx.y; t < a.heads; t += gridDim.y)
        for (int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.y; i < a.y.rows;
             i += (int64_t)gridDim.x * ROWS) {
            const void *taps = row_at(a.taps, t, a.heads, a.taps.rows > 1 ? i : 0);
            const void *x = row_at(a.x, t, a.heads, 0);
            void       *y = (void *)row_at(a.y, t, a.heads, i);

            for (int64_t c = threadIdx.x; c < a.y.cols; c += COLS) {
                double sum = a.bias ? (double)a.bias[c] : 0;

                sum += a.add ? number(a.y, y, c) : 0;
                sum = taps_of(a, taps, x, a.first + i * a.step, c, sum);
                if (a.y.dtype == DEVICE_F64)
                    ((double *)y)[c] = sum;
                else
                    ((float *)y)[c] = (float)sum;
            }
        }
}

static unsigned at_most(int64_t blocks)
{
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

extern "C" int call_tap_sums(const TapSumsCall *a)
{
    return LAUNCH(tap_sums, dim3(at_most((a->y.rows + ROWS - 1) / ROWS), at_most(a->heads)),
                  dim3(COLS, ROWS), 0, *a);
}

/* ---- the best columns ----------------------------------------------------------------- */

struct Found {
    double  value; // as it is ordered: NaN stands behind all numbers
    int64_t column;
};

static __device__ __forceinline__ bool before(const Found &a, const Found &b)
{
    return a.value > b.value || (a.value == b.value && a.column < b.column);
}

// The best column behind `last` in the order, of all lanes' columns.
static __device__ Found next_best(const double *x, const double *y, int64_t others, int64_t columns,
                                  const Found &last)
{
    Found best = { -(double)INFINITY, INT64_MAX };

    for (int64_t c = threadIdx.x % 32; c < columns; c += 32) {
        double value = y ? x[c / others] + y[c % others] : x[c];
        Found  own = { value == value ? value : -(double)INFINITY, c };

        if (before(last, own) && before(own, best))
            best = own;
    }
    for (int lane = 16; lane; lane >>= 1) {
        Found other;

        other.value = __shfl_xor_sync(0xffffffffu, best.value, lane);
        other.column = __shfl_xor_sync(0xffffffffu, best.column, lane);
        if (before(other, best))
            best = other;
    }
    return best;
}

// What a column is called.
static __device__ int32_t called(const BestColumnsCall &a, int64_t t, int64_t i, int64_t c,
                                 int64_t others)
{
    if (!a.x_name.data)
        return (int32_t)c;
    return (int32_t)(head_of<int32_t>(a.x_name, t, a.x.heads)[i * a.x_name.row_stride + c / others] *
                         a.names +
                     head_of<int32_t>(a.y_name, t, a.x.heads)[i * a.y_name.row_stride + c % others]);
}

// A warp has a row.
static __global__ void __launch_bounds__(THREADS) best_columns(BestColumnsCall a)
{
    int64_t rows = a.x.heads * a.x.rows, others = a.y.data ? a.y.cols : 1;

    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; row < rows;
         row += (int64_t)gridDim.x * WARPS) {
        int64_t       t = row / a.x.rows, i = row % a.x.rows;
        const double *x = head_of<double>(a.x, t, a.x.heads) + i * a.x.row_stride, *y = NULL;
        Found         last = { (double)INFINITY, -1 };

        if (a.y.data)
            y = head_of<double>(a.y, t, a.x.heads) + i * a.y.row_stride;
        for (int64_t place = 0; place < a.k; place++) {
            last = next_best(x, y, others, a.x.cols * others, last);
            if (threadIdx.x % 32 == 0) {
                int64_t c = last.column;

                a.value[row * a.k + place] = y ? x[c / others] + y[c % others] : x[c];
                a.index[row * a.k + place] = called(a, t, i, c, others);
            }
        }
    }
}

extern "C" int call_best_columns(const BestColumnsCall *a)
{
    int64_t rows = a->x.heads * a->x.rows;

    return LAUNCH(best_columns, at_most((rows + WARPS - 1) / WARPS), THREADS, 0, *a);
}

/* ---- products with listed rows ---------------------------------------------------------- */

// A warp has a product.
static __global__ void __launch_bounds__(THREADS) pair_dots(PairDotsCall a)
{
    int64_t count = a.heads * a.n * a.k;

    for (int64_t at = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; at < count;
         at += (int64_t)gridDim.x * WARPS) {
        int64_t      row = at / a.k, t = row / a.n, i = row % a.n;
        const float *x = head_of<float>(a.x, t, a.heads) + i * a.x.row_stride;
        const float *y = head_of<float>(a.y, t, a.heads) + a.index[at] * a.y.row_stride;
        float        sum = 0;

        for (int64_t c = threadIdx.x % 32; c < a.x.cols; c += 32)
            sum += x[c] * y[c];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            a.dots[at] = sum;
    }
}

extern "C" int call_pair_dots(const PairDotsCall *a)
{
    int64_t count = a->heads * a->n * a->k;

    return count <= 0 ? 0 : LAUNCH(pair_dots, at_most((count + WARPS - 1) / WARPS), THREADS, 0, *a);
}
