// means.cu -- equal shares of what a pattern's rows allow, in double.
#include "attn/cuda/kernels/portable.cuh"

#define COLS 32
#define ROWS 8
#define MOST_BLOCKS 32768 // of rows, of heads

template <typename T>
static __device__ double sum_of(const RowRuns &cells, int64_t row, const T *x, int64_t stride,
                                int64_t *count)
{
    double sum = 0;

    *count = 0;
    for (int64_t at = cells.start[row]; at < cells.start[row + 1]; at++) {
        KeyRun run = cells.runs[at];

        for (int64_t z = 0; z < run.count; z++)
            sum += (double)x[(run.start + z * run.step) * stride];
        *count += run.count;
    }
    return sum;
}

template <typename T>
static __global__ void __launch_bounds__(COLS *ROWS) means(MeansCall a)
{
    int64_t step = (int64_t)gridDim.x * ROWS;

    for (int64_t t = blockIdx.y; t < a.heads; t += gridDim.y)
        for (int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.y; i < a.y.rows; i += step)
            for (int64_t c = threadIdx.x; c < a.y.cols; c += COLS) {
                const T *x = head_of<T>(a.x, t, a.heads) + c;
                int64_t  row = i + (a.cells.per_head ? t * a.cells.rows : 0), count;
                double   sum = sum_of(a.cells, row, x, a.x.row_stride, &count);

                sum /= a.divisor > 0 ? a.divisor : count ? (double)count : 1;
                if (a.less_own)
                    sum -= (double)x[i * a.x.row_stride];
                head_of<T>(a.y, t, a.heads)[i * a.y.row_stride + c] = (T)sum;
            }
}

extern "C" int call_means(const MeansCall *a)
{
    int64_t blocks = (a->y.rows + ROWS - 1) / ROWS;
    dim3    grid((unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                 (unsigned)(a->heads < MOST_BLOCKS ? a->heads : MOST_BLOCKS));

    return a->x.dtype == DEVICE_F64 ? LAUNCH((means<double>), grid, dim3(COLS, ROWS), 0, *a)
                                    : LAUNCH((means<float>), grid, dim3(COLS, ROWS), 0, *a);
}
