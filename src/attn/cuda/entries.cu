// entries.cu -- entry by entry, and rows normalised in double.
#include "attn/cuda/portable.cuh"

#define THREADS 256
#define MOST_BLOCKS 65536

template <typename From, typename To>
static __global__ void __launch_bounds__(THREADS) entries(EntriesCall a)
{
    int64_t count = a.y.heads * a.y.rows * a.y.cols, step = (int64_t)gridDim.x * THREADS;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        int64_t t = i / (a.y.rows * a.y.cols), at = i % (a.y.rows * a.y.cols);
        int64_t row = at / a.y.cols, c = at % a.y.cols;
        double  x = (double)head_of<From>(a.x, t, a.y.heads)[row * a.x.row_stride + c];

        x = a.kind == 1 ? exp(x) : a.kind == 2 ? x / a.by : x;
        head_of<To>(a.y, t, a.y.heads)[row * a.y.row_stride + c] = (To)x;
    }
}

static unsigned blocks_of(int64_t count, int64_t each)
{
    int64_t blocks = (count + each - 1) / each;

    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

extern "C" int call_entries(const EntriesCall *a)
{
    unsigned grid = blocks_of(a->y.heads * a->y.rows * a->y.cols, THREADS);
    bool     from = a->x.dtype == DEVICE_F64, to = a->y.dtype == DEVICE_F64;

    if (from)
        return to ? LAUNCH((entries<double, double>), grid, THREADS, 0, *a)
                  : LAUNCH((entries<double, float>), grid, THREADS, 0, *a);
    return to ? LAUNCH((entries<float, double>), grid, THREADS, 0, *a)
              : LAUNCH((entries<float, float>), grid, THREADS, 0, *a);
}

// A thread has a row: sums in index order and without fused multiply-adds give the CPU's bits,
// on which choices are made.
static __global__ void __launch_bounds__(THREADS) normalise64(Normalise64Call a)
{
    int64_t rows = a.y.heads * a.y.rows, step = (int64_t)gridDim.x * THREADS, d = a.y.cols;

    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < rows; i += step) {
        int64_t      t = i / a.y.rows, row = i % a.y.rows;
        const float *x = head_of<float>(a.x, t, a.y.heads) + row * a.x.row_stride;
        double      *y = head_of<double>(a.y, t, a.y.heads) + row * a.y.row_stride;
        double       mean = 0, squares = 0, size = 1;

        for (int64_t c = 0; c < d && a.kind == 3; c++)
            mean += (double)x[c];
        mean /= (double)d;
        for (int64_t c = 0; c < d; c++)
            squares = __dadd_rn(squares, __dmul_rn((double)x[c] - mean, (double)x[c] - mean));
        if (a.kind == 3 || a.kind == 1)
            size = sqrt(squares / (double)d + a.eps);
        if (a.kind == 2)
            size = fmax(sqrt(squares), a.eps);
        for (int64_t c = 0; c < d; c++)
            y[c] = ((double)x[c] - mean) / size;
    }
}

extern "C" int call_normalise64(const Normalise64Call *a)
{
    return LAUNCH(normalise64, blocks_of(a->y.heads * a->y.rows, THREADS), THREADS, 0, *a);
}
