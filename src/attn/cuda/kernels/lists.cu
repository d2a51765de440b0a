// lists.cu -- rows gathered, scattered, merged, summed by lists; windows pooled.
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

// One softmax over what out and z have, and one list's rows.
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

// After all columns have read z.
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

        sum = a.kind != 2 ? sum + value : value > sum || isnan(value) ? value : sum;
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
