// panels.cuh -- the shared part of kernels over panels of rows: tiles in shared memory, the online
// softmax, values, results.
//
// A block of 16 x 16 threads computes the rows of a panel and up to 64 * WIDE columns of values.
// Thread (y, x) holds rows 4y .. 4y+3 of scores and results, and columns 4x .. 4x+3 of every 64
// of the results.  Tiles are transposed in shared memory, so that a thread reads four rows at
// once.  swapped() permutes the 64 rows of a line by bits of the line's number, so that neither
// writes nor reads have bank conflicts.
#ifndef ATTN_CUDA_KERNELS_PANELS_CUH
#define ATTN_CUDA_KERNELS_PANELS_CUH

#include "attn/cuda/kernels/portable.cuh"

#define SIDE 16                // threads along a side
#define THREADS (SIDE * SIDE)
#define PART 32                // columns of q and k, rows of v, in shared memory at a time
#define OWN 4                  // rows of a thread

template <typename Wide>
struct SoftmaxIn {
    Wide top, sum;
};
typedef SoftmaxIn<double> Softmax;

// The thread's place in the block.
static __device__ __forceinline__ int own_y(void) { return (int)threadIdx.x / SIDE; }
static __device__ __forceinline__ int own_x(void) { return (int)threadIdx.x % SIDE; }

// The place of rows 4 * four .. 4 * four + 3 in line `line` of weights.
static __device__ __forceinline__ int swapped(int line, int four)
{
    return line * PANEL_ROWS + 4 * (four ^ (((line >> 2) ^ line) & 7));
}

static __device__ __forceinline__ void four(const float *at, float to[4])
{
    float4 x = *(const float4 *)at;

    to[0] = x.x;
    to[1] = x.y;
    to[2] = x.z;
    to[3] = x.w;
}

// Whether rows may be read four columns at a time.
static __device__ __forceinline__ bool by_fours(const DeviceTensor &t, const float *head)
{
    return (uintptr_t)head % 16 == 0 && t.row_stride % 4 == 0;
}

// Columns col .. col + 3 of a row; 0 beyond the last.
static __device__ __forceinline__ void read_four(const float *row, int64_t col, int64_t cols,
                                                 bool fours, float to[4])
{
    if (fours && col + 4 <= cols) {
        four(row + col, to);
        return;
    }
    for (int c = 0; c < 4; c++)
        to[c] = col + c < cols ? row[col + c] : 0.0f;
}

// s += q k^T of `depth` transposed columns, [column][row ^ ..], padded with zeros.
static __device__ __forceinline__ void multiply_scores(const float *q, const float *k, int depth,
                                                       float s[OWN][OWN])
{
#pragma unroll 2
    for (int z = 0; z < depth; z += 4) {
        const float *left = &q[z * PANEL_ROWS + 4 * (own_y() ^ (z >> 2))];
        const float *right = &k[z * PANEL_ROWS + 4 * (own_x() ^ (z >> 2))];

#pragma unroll
        for (int line = 0; line < 4; line++) {
            float x[4], y[4];

            four(left + line * PANEL_ROWS, x);
            four(right + line * PANEL_ROWS, y);
            for (int r = 0; r < OWN; r++)
                for (int c = 0; c < OWN; c++)
                    s[r][c] += x[r] * y[c];
        }
    }
}

// The maximum, or the sum, over the 16 threads of a row.
template <typename S>
static __device__ __forceinline__ S row_max(S x)
{
    for (int lane = SIDE / 2; lane; lane >>= 1) {
        S other = __shfl_xor_sync(0xffffffffu, x, lane);

        x = other > x ? other : x;
    }
    return x;
}

template <typename S>
static __device__ __forceinline__ S row_sum(S x)
{
    for (int lane = SIDE / 2; lane; lane >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

static __device__ __forceinline__ double power(double x) { return exp(x); }
static __device__ __forceinline__ float power(float x) { return expf(x); }

// p = e^(s - top') of a row's cells; returns the factor of the row's earlier sums.
template <typename S, typename Wide>
static __device__ float soften(const S s[OWN], SoftmaxIn<Wide> *row, float p[OWN])
{
    S     most = (S)row->top, kept;
    float sum = 0;

    for (int c = 0; c < OWN; c++)
        most = s[c] > most ? s[c] : most;
    most = row_max(most);
    for (int c = 0; c < OWN; c++) {
        p[c] = s[c] == -INFINITY ? 0.0f : expf((float)(s[c] - most));
        sum += p[c];
    }
    kept = row->top == -INFINITY ? (S)0 : power((S)row->top - most);
    row->sum = row->sum * (Wide)kept + row_sum((Wide)sum);
    row->top = (Wide)most;
    return (float)kept;
}

template <int WIDE, typename Wide>
static __device__ __forceinline__ void softmax_begin(SoftmaxIn<Wide> rows[OWN],
                                                     float out[OWN][4 * WIDE])
{
    for (int r = 0; r < OWN; r++) {
        rows[r].top = -INFINITY;
        rows[r].sum = 0;
        for (int c = 0; c < 4 * WIDE; c++)
            out[r][c] = 0;
    }
}

// Adds a tile of scores to the panel's softmax; column c of the tile is line + c * step.
template <typename S, int WIDE, typename Wide>
static __device__ void soften_tile(const S s[OWN][OWN], int line, int step,
                                   SoftmaxIn<Wide> rows[OWN], float *weights,
                                   float out[OWN][4 * WIDE])
{
    float p[OWN][OWN];

#pragma unroll
    for (int r = 0; r < OWN; r++) {
        float kept = soften(s[r], &rows[r], p[r]);

        for (int c = 0; c < 4 * WIDE; c++)
            out[r][c] *= kept;
    }
    for (int c = 0; c < OWN; c++)
        *(float4 *)&weights[swapped(line + c * step, own_y())] =
            make_float4(p[0][c], p[1][c], p[2][c], p[3][c]);
}

// The values of a head: columns of v, then those of `more`.
struct Values {
    const float *v, *more;
    int64_t      v_stride, more_stride, e, width;
    bool         fours, more_fours;
};

static __device__ __forceinline__ Values values_of(const DeviceTensor &v, const DeviceTensor &more, int64_t head,
                                   int64_t heads)
{
    Values x;

    x.v = head_of<float>(v, head, heads);
    x.more = more.data ? head_of<float>(more, head, heads) : NULL;
    x.v_stride = v.row_stride;
    x.more_stride = more.row_stride;
    x.e = v.cols;
    x.width = v.cols + (more.data ? more.cols : 0);
    x.fours = by_fours(v, x.v);
    x.more_fours = more.data && v.cols % 4 == 0 && by_fours(more, x.more);
    return x;
}

static __device__ void read_values(const Values &v, int64_t row, int64_t col, float to[4])
{
    if (!v.more || col + 4 <= v.e) {
        read_four(v.v + row * v.v_stride, col, v.e, v.fours, to);
        return;
    }
    if (col >= v.e) {
        read_four(v.more + row * v.more_stride, col - v.e, v.width - v.e, v.more_fours, to);
        return;
    }
    for (int c = 0; c < 4; c++)
        to[c] = col + c < v.e       ? v.v[row * v.v_stride + col + c]
                : col + c < v.width ? v.more[row * v.more_stride + col + c - v.e]
                                    : 0.0f;
}

// out += weights of keys part .. part + PART times their values in `parts` [key][column].
template <int WIDE>
static __device__ __forceinline__ void multiply_part(const float *weights, int part,
                                                     const float *parts, float out[OWN][4 * WIDE])
{
#pragma unroll 4
    for (int z = 0; z < PART; z++) {
        float p[4], x[4];

        four(&weights[swapped(part + z, own_y())], p);
#pragma unroll
        for (int w = 0; w < WIDE; w++) {
            four(&parts[(z * WIDE + w) * PANEL_ROWS + 4 * own_x()], x);
            for (int r = 0; r < OWN; r++)
                for (int c = 0; c < 4; c++)
                    out[r][4 * w + c] += p[r] * x[c];
        }
    }
}

// out += weights times the values of `count` keys (-1: none).
template <int WIDE>
static __device__ void mix(const Values &v, const int32_t *key, int64_t count, int64_t first_col,
                           const float *weights, float *parts, float out[OWN][4 * WIDE])
{
    for (int part = 0; part < PANEL_ROWS && part < count; part += PART) {
        __syncthreads();
        for (int at = (int)threadIdx.x; at < PART * SIDE * WIDE; at += THREADS) {
            int   z = at / (SIDE * WIDE), col = at % (SIDE * WIDE) * 4;
            float x[4] = { 0, 0, 0, 0 };

            if (key[part + z] >= 0)
                read_values(v, key[part + z], first_col + col, x);
            *(float4 *)&parts[z * PANEL_ROWS * WIDE + col] = make_float4(x[0], x[1], x[2], x[3]);
        }
        __syncthreads();
        multiply_part<WIDE>(weights, part, parts, out);
    }
}

static __device__ __forceinline__ int64_t place_of(const PanelOut &to, int64_t head, int64_t row)
{
    return to.place.data ? head_of<int32_t>(to.place, head, to.heads)[row] : row;
}

static __device__ __forceinline__ void put_value(const PanelOut &to, int64_t head, int64_t row,
                                                 int64_t col, float x)
{
    if (col < to.out.cols)
        head_of<float>(to.out, head, to.heads)[row * to.out.row_stride + col] = x;
    else if (to.more.data && col - to.out.cols < to.more.cols)
        head_of<float>(to.more, head, to.heads)[row * to.more.row_stride + col - to.out.cols] = x;
}

// -inf for a row without keys; a row of NaN only is not one of these.
static __device__ void put_lse(const PanelOut &to, int64_t head, int64_t row, double top,
                               double sum)
{
    double lse = sum == 0 ? -INFINITY : top + log(sum);

    if (!to.lse.data)
        return;
    if (to.lse.dtype == DEVICE_F64)
        head_of<double>(to.lse, head, to.heads)[row] = lse;
    else
        head_of<float>(to.lse, head, to.heads)[row] = (float)lse;
}

// Stores the panel's results, or those of its slot.
template <int WIDE>
static __device__ void put_panel(const PanelWork &work, const PanelOut &to, const RowPanel &p,
                                 int64_t first_col, const Softmax rows[OWN],
                                 const float out[OWN][4 * WIDE])
{
#pragma unroll
    for (int r = 0; r < OWN; r++) {
        int     row = OWN * own_y() + r;
        int64_t at = p.slot * PANEL_ROWS + row, place;
        bool    first = own_x() == 0 && first_col == 0;

        if (row >= p.rows)
            continue;
        if (p.slot >= 0 && first) {
            work.top[at] = rows[r].top;
            work.sum[at] = rows[r].sum;
        }
        place = p.slot >= 0 ? 0 : place_of(to, p.head, p.first + row);
        if (p.slot < 0 && first)
            put_lse(to, p.head, place, rows[r].top, rows[r].sum);
#pragma unroll
        for (int c = 0; c < 4 * WIDE; c++) {
            int64_t col = first_col + PANEL_ROWS * (c / 4) + 4 * own_x() + c % 4;
            float   sum = (float)rows[r].sum;

            if (p.slot >= 0 && col < work.width)
                work.part[at * work.width + col] = out[r][c];
            else if (p.slot < 0)
                put_value(to, p.head, place, col, sum == 0 ? 0.0f : out[r][c] / sum);
        }
    }
}

// Panels by columns of the values: WIDE 1 for up to 64, else 2.
static inline dim3 panel_grid(const PanelWork *work, int wide)
{
    int64_t columns = (work->width + PANEL_ROWS * wide - 1) / (PANEL_ROWS * wide);

    return dim3((unsigned)work->count, (unsigned)(columns < 1 ? 1 : columns));
}

// Starts kernel<WIDE> for panels whose kernels have no other template argument.
#define PANEL_LAUNCH(kernel, work, a)                                                          \
    ((work)->width > PANEL_ROWS ? LAUNCH(kernel<2>, panel_grid(work, 2), THREADS, 0, a)        \
                                : LAUNCH(kernel<1>, panel_grid(work, 1), THREADS, 0, a))

// Tiles of products in double, for kernels whose scores are in double.
//
// 16 x 16 threads compute 64 x 64 sums; thread (y, x) has rows 4y .. 4y+3 and columns x, x + 16,
// x + 32, x + 48.  Sums run in index order, so they do not depend on the place of row and column;
// products of floats are exact in double.

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
    int64_t      first, count; // count: of the whole matrix
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

// s += left . right over `inner`; called by all threads of the block.
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
