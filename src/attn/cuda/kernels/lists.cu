// lists.cu -- rows gathered, scattered, merged, summed by lists; windows pooled; means of a
// pattern's rows; convolutions and best columns.
//
// Columns lie along x of a block and rows along y, so that neighbouring threads touch
// neighbouring words; rows beyond the grid are taken in turn.
#include "attn/cuda/kernels/portable.cuh"

#define COLS 32
#define ROWS 8
#define MOST_BLOCKS 32768 // of rows, of heads

static dim3 grid_of(int64_t rows, int64_t heads)
{
    int64_t blocks = (rows + ROWS - 1) / ROWS;

    blocks = blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    return dim3((unsigned)blocks, (unsigned)(heads < 1024 ? heads : 1024));
}

#define FOR_HEADS(head_, heads_)                                                               \
    for (int64_t head_ = blockIdx.y; head_ < (heads_); head_ += gridDim.y)
#define FOR_ROWS(row_, rows_)                                                                  \
    for (int64_t row_ = (int64_t)blockIdx.x * ROWS + threadIdx.y; row_ < (rows_);              \
         row_ += (int64_t)gridDim.x * ROWS)

static __global__ void __launch_bounds__(COLS *ROWS) move(MoveCall a)
{
    FOR_HEADS(t, a.heads) {
        const int32_t *index = head_of<int32_t>(a.index, t, a.heads);
        const int32_t *x = head_of<int32_t>(a.x, t, a.heads);
        int32_t       *y = head_of<int32_t>(a.y, t, a.heads);

        FOR_ROWS(row, a.index.cols) {
            int64_t from = a.scatter ? row : index[row], to = a.scatter ? index[row] : row;

            for (int64_t c = threadIdx.x; c < a.y.cols; c += COLS)
                y[to * a.y.row_stride + c] = x[from * a.x.row_stride + c];
        }
    }
}

extern "C" int call_move(const MoveCall *a)
{
    return LAUNCH(move, grid_of(a->index.cols, a->heads), dim3(COLS, ROWS), 0, *a);
}

// Joins one list's rows to the softmax whose results are in out and z.
static __global__ void __launch_bounds__(COLS *ROWS) merge(MergeCall a, int64_t list)
{
    int64_t rows = a.rows.rows / a.lists, e = a.out.cols;

    FOR_HEADS(t, a.heads) {
        const int32_t *index = head_of<int32_t>(a.index, t, a.heads) + list * rows;
        const float   *lse = head_of<float>(a.lse, t, a.heads) + list * rows;
        const float   *from = head_of<float>(a.rows, t, a.heads) + list * rows * a.rows.row_stride;
        float         *z = head_of<float>(a.z, t, a.heads);

        FOR_ROWS(x, rows) {
            double apart = (double)lse[x] - (double)z[index[x]], lesser = exp(-fabs(apart));
            double now = (apart > 0 ? 1 : lesser) / (1 + lesser);
            float  share = (float)now, before = 1 - share;
            float *out = head_of<float>(a.out, t, a.heads) + index[x] * a.out.row_stride;

            if (!(lse[x] > -INFINITY))
                continue;
            for (int64_t c = threadIdx.x; c < e; c += COLS)
                out[c] = before * out[c] + share * from[x * a.rows.row_stride + c];
        }
    }
}

// Updates z; runs after all columns have read it.
static __global__ void __launch_bounds__(COLS *ROWS) merge_sums(MergeCall a, int64_t list)
{
    int64_t rows = a.rows.rows / a.lists;

    FOR_HEADS(t, a.heads) {
        const int32_t *index = head_of<int32_t>(a.index, t, a.heads) + list * rows;
        const float   *lse = head_of<float>(a.lse, t, a.heads) + list * rows;
        float         *z = head_of<float>(a.z, t, a.heads);

        FOR_ROWS(x, rows) {
            double apart = (double)lse[x] - (double)z[index[x]];

            if (threadIdx.x == 0 && lse[x] > -INFINITY)
                z[index[x]] = (float)(fmax((double)z[index[x]], (double)lse[x]) +
                                      log1p(exp(-fabs(apart))));
        }
    }
}

extern "C" int call_merge(const MergeCall *a)
{
    dim3 grid = grid_of(a->rows.rows / a->lists, a->heads);
    int  code = 0;

    for (int64_t list = 0; list < a->lists && !code; list++) {
        code = LAUNCH(merge, grid, dim3(COLS, ROWS), 0, *a, list);
        if (!code)
            code = LAUNCH(merge_sums, grid, dim3(COLS, ROWS), 0, *a, list);
    }
    return code;
}

static __global__ void __launch_bounds__(COLS *ROWS) sum_lists(SumsCall a)
{
    FOR_HEADS(t, a.heads) {
        const float *x = head_of<float>(a.x, t, a.heads);

        FOR_ROWS(i, a.y.rows) {
            int64_t row = t * a.y.rows + i;
            float  *to = head_of<float>(a.y, t, a.heads) + i * a.y.row_stride;

            for (int64_t c = threadIdx.x; c < a.y.cols; c += COLS) {
                float sum = 0;

                for (int64_t at = a.start[row]; at < a.start[row + 1]; at++)
                    sum += (a.weight ? a.weight[at] : 1.0f) * x[a.entry[at] * a.x.row_stride + c];
                to[c] = a.share ? sum * a.share[row] : sum;
            }
        }
    }
}

extern "C" int call_sum_lists(const SumsCall *a)
{
    return LAUNCH(sum_lists, grid_of(a->y.rows, a->heads), dim3(COLS, ROWS), 0, *a);
}

template <typename T>
static __device__ double pooled(const WindowsCall &a, const T *x, int64_t row)
{
    int64_t stride = a.x.row_stride;
    double  sum = a.first[row] < a.end[row] ? (double)x[a.first[row] * stride] : 0;

    for (int64_t i = a.first[row] + 1; i < a.end[row]; i++) {
        double value = (double)x[i * stride];

        if (a.kind < 2)
            sum += value;
        else if ((a.kind == 2 ? value > sum : value < sum) || isnan(value))
            sum = value;
    }
    return a.kind == 1 ? sum / (double)(a.end[row] - a.first[row]) : sum;
}

template <typename T>
static __global__ void __launch_bounds__(COLS *ROWS) pool_windows(WindowsCall a)
{
    FOR_HEADS(t, a.heads) {
        const T *x = head_of<T>(a.x, t, a.heads);

        FOR_ROWS(row, a.y.rows) for (int64_t c = threadIdx.x; c < a.y.cols; c += COLS) {
            double  value = pooled(a, x + c, row);
            int64_t at = row * a.y.row_stride + c;

            if (a.y.dtype == DEVICE_F64)
                head_of<double>(a.y, t, a.heads)[at] = value;
            else
                head_of<float>(a.y, t, a.heads)[at] = (float)value;
        }
    }
}

extern "C" int call_pool_windows(const WindowsCall *a)
{
    dim3 grid = grid_of(a->y.rows, a->heads), block(COLS, ROWS);

    return a->x.dtype == DEVICE_F64 ? LAUNCH((pool_windows<double>), grid, block, 0, *a)
                                    : LAUNCH((pool_windows<float>), grid, block, 0, *a);
}

// Equal shares of what a pattern's rows allow, in double.

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

// Convolutions with taps by channel and row; the best columns of rows; products of
// rows with listed rows.

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
    double  value; // the key of the order: NaN comes after all numbers
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

// The name of a column.
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
