// rows64.cu -- rows in double: normalised, and standardised over one or more lines.
#include "attn/cuda/kernels/team.cuh"

#define MOST_BLOCKS 65536

static unsigned at_most(int64_t blocks)
{
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

// A thread has a row: sums in index order and without fused multiply-adds give the CPU's bits,
// on which choices are made.
template <typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) normalise64(Normalise64Call a)
{
    int64_t rows = a.y.heads * a.y.rows, step = (int64_t)gridDim.x * TEAM_THREADS, d = a.y.cols;

    for (int64_t i = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x; i < rows; i += step) {
        int64_t  t = i / a.y.rows, row = i % a.y.rows;
        const T *x = head_of<T>(a.x, t, a.y.heads) + row * a.x.row_stride;
        double  *y = head_of<double>(a.y, t, a.y.heads) + row * a.y.row_stride;
        double   mean = 0, squares = 0, size = 1;

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
    unsigned grid = at_most((a->y.heads * a->y.rows + TEAM_THREADS - 1) / TEAM_THREADS);

    return a->x.dtype == DEVICE_F64 ? LAUNCH((normalise64<double>), grid, TEAM_THREADS, 0, *a)
                                    : LAUNCH((normalise64<float>), grid, TEAM_THREADS, 0, *a);
}

/* ---- standardised ---------------------------------------------------------------------- */

static __device__ __forceinline__ double entry_at(const EntryTensor &t, int64_t i, int64_t line,
                                                  int64_t c)
{
    int64_t at = i * t.stride[0] + line * t.stride[1] + c * t.stride[2];

    return t.dtype == DEVICE_F64 ? ((const double *)t.data)[at]
                                 : (double)((const float *)t.data)[at];
}

// The sum of lines [first, end) of row i, or of the squares of what they are off `mean`.
template <int WARPS>
static __device__ double sum_lines(const Standardise64Call &a, int64_t i, int64_t first,
                                   int64_t end, bool squares, double mean)
{
    double sum = 0;

    for (int64_t line = first; line < end; line++)
        for (int64_t c = Team<WARPS>::member(); c < a.shape[2]; c += Team<WARPS>::size()) {
            double x = entry_at(a.x, i, line, c) - mean;

            sum += squares ? x * x : x;
        }
    return team_take<WARPS, TakeSum>(sum);
}

template <int WARPS>
static __device__ void finish_lines(const Standardise64Call &a, int64_t i, int64_t first,
                                    int64_t end, double mean, double factor)
{
    for (int64_t line = first; line < end; line++)
        for (int64_t c = Team<WARPS>::member(); c < a.shape[2]; c += Team<WARPS>::size()) {
            int64_t at = i * a.y.stride[0] + line * a.y.stride[1] + c * a.y.stride[2];
            double  x = (entry_at(a.x, i, line, c) - mean) * factor;

            x *= a.gain ? (double)a.gain[line * a.gain_step + c] : 1.0;
            x += a.bias ? (double)a.bias[line * a.bias_step + c] : 0.0;
            if (a.y.dtype == DEVICE_F64)
                ((double *)a.y.data)[at] = x;
            else
                ((float *)a.y.data)[at] = (float)x;
        }
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) standardise_rows(Standardise64Call a)
{
    double size = (double)(a.shape[1] * a.shape[2]);

    for (int64_t i = Team<WARPS>::first(); i < a.shape[0]; i += Team<WARPS>::step()) {
        double mean = sum_lines<WARPS>(a, i, 0, a.shape[1], false, 0) / size;
        double squares = sum_lines<WARPS>(a, i, 0, a.shape[1], true, mean);

        finish_lines<WARPS>(a, i, 0, a.shape[1], mean, 1 / sqrt(squares / size + a.eps));
    }
}

// Of a row's pieces, always in the same order.
static __device__ double whole(const double *parts, int64_t splits)
{
    double sum = 0;

    for (int64_t p = 0; p < splits; p++)
        sum += parts[p];
    return sum;
}

// Block (p, i) has piece p of row i.  step 0: sums; 1: squares; 2: the result.
static __global__ void __launch_bounds__(TEAM_THREADS) standardise_piece(Standardise64Call a,
                                                                        int step)
{
    int64_t p = blockIdx.x, first = a.shape[1] * p / a.splits;
    int64_t end = a.shape[1] * (p + 1) / a.splits;
    double  size = (double)(a.shape[1] * a.shape[2]);

    for (int64_t i = blockIdx.y; i < a.shape[0]; i += gridDim.y) {
        double *sums = a.sums + i * a.splits, *squares = sums + a.shape[0] * a.splits;
        double  mean = step ? whole(sums, a.splits) / size : 0, part;

        if (step == 2) {
            finish_lines<TEAM_WARPS>(a, i, first, end, mean,
                                     1 / sqrt(whole(squares, a.splits) / size + a.eps));
            continue;
        }
        part = sum_lines<TEAM_WARPS>(a, i, first, end, step == 1, mean);
        if (threadIdx.x == 0)
            (step ? squares : sums)[p] = part;
    }
}

extern "C" int call_standardise64(const Standardise64Call *a)
{
    dim3 grid((unsigned)a->splits, grid_of(a->shape[0]));
    int  code = 0;

    if (a->splits == 1)
        return TEAM_LAUNCH(standardise_rows, a->shape[0], a->shape[1] * a->shape[2], *a);
    for (int step = 0; step < 3 && !code; step++)
        code = LAUNCH(standardise_piece, grid, TEAM_THREADS, 0, *a, step);
    return code;
}
