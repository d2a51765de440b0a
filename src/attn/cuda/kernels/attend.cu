// attend.cu -- exact attention in float32 over listed tiles, with an online softmax.
//
// A block of 16 x 16 threads has 64 queries of one head and 64 WIDE columns of the values.  For
// each listed tile of 64 keys: S = scale Q K^T (+ terms), masked; the rows' maxima and sums go
// on (m' = max(m, max S), l' = l e^(m - m') + sum e^(S - m')), and O' = O e^(m - m') + P V.
// Thread (y, x) holds rows 4y .. 4y+3; of S the columns 4x .. 4x+3, of O those of every 64.
// All of it stands turned in shared memory, as panels.cuh has it: a thread reads four numbers at
// once, and what it reads takes less time than what it multiplies.
#include "attn/cuda/kernels/panels.cuh"

#define T ATTEND_TILE
static_assert(T == PANEL_ROWS, "a tile is as many queries and keys as a panel has rows");

typedef SoftmaxIn<float> RowSoftmax; // doubles would take as long as the products on some GPUs

struct AttendMemory {
    alignas(16) float parts[2 * PART * T]; // of q and k; of the values
    alignas(16) float weights[T * T];
};

// to[z][r ^ ..] = from[first_row + r][first_col + z]; 0 beyond the ends.
static __device__ void turn_in(float *to, const DeviceTensor &t, const float *from,
                               int64_t first_row, int64_t first_col)
{
    int  quad = (int)threadIdx.x % (PART / 4);
    bool fours = by_fours(t, from);

    for (int r = (int)threadIdx.x / (PART / 4); r < T; r += THREADS / (PART / 4)) {
        float x[4] = { 0, 0, 0, 0 };

        if (first_row + r < t.rows)
            read_four(from + (first_row + r) * t.row_stride, first_col + 4 * quad, t.cols, fours,
                      x);
        for (int c = 0; c < 4; c++)
            to[(4 * quad + c) * T + (r ^ (4 * quad))] = x[c];
    }
}

static __device__ float dot(const float *a, const float *b, int64_t count)
{
    float sum = 0;

    for (int64_t x = 0; x < count; x++)
        sum += a[x] * b[x];
    return sum;
}

// side . table[index[i - j + m - 1]] of the side's row.
static __device__ float distance_dot(const DistanceCall &term, int64_t row, int64_t distance,
                                     int64_t head, int64_t heads)
{
    const float *side, *table;

    if (!term.side.data)
        return 0;
    side = head_of<float>(term.side, head, heads) + row * term.side.row_stride;
    table = head_of<float>(term.table, head, heads) + term.index[distance] * term.table.row_stride;
    return dot(side, table, term.side.cols);
}

// What the position adds to one cell, the scale and the cap.
static __device__ float with_terms(const AttendCall &a, float scale, float s, int64_t head,
                                   int64_t i, int64_t j)
{
    int64_t distance = i - j + a.k.rows - 1;
    float   more;

    s += distance_dot(a.row, i, distance, head, a.heads);
    s += distance_dot(a.col, j, distance, head, a.heads);
    s *= scale;
    more = a.distance.data ? head_of<float>(a.distance, head, a.heads)[distance] : 0.0f;
    return with_cap(a.cap, s, more);
}

template <bool TERMS>
static __device__ void score(const AttendCall &a, int64_t head, int64_t first_q, int64_t first_k,
                             float *parts, float s[OWN][OWN])
{
    const float *q = head_of<float>(a.q, head, a.heads), *k = head_of<float>(a.k, head, a.heads);
    float       *k_part = parts + PART * T, scale = (float)a.scale;

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] = 0;
    for (int64_t part = 0; part < a.q.cols; part += PART) {
        int depth = a.q.cols - part < PART ? (int)(a.q.cols - part) : PART;

        __syncthreads();
        turn_in(parts, a.q, q, first_q, part);
        turn_in(k_part, a.k, k, first_k, part);
        __syncthreads();
        multiply_scores(parts, k_part, depth, s);
    }
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++) {
            int64_t i = first_q + OWN * own_y() + r, j = first_k + OWN * own_x() + c;

            if (!TERMS)
                s[r][c] *= scale;
            else if (i < a.q.rows && j < a.k.rows)
                s[r][c] = with_terms(a, scale, s[r][c], head, i, j);
        }
}

// Cells that are not there, or not allowed, have no score.
static __device__ void mask(const AttendCall &a, const TileRun &run, int64_t first_k,
                            float s[OWN][OWN])
{
    for (int r = 0; r < OWN; r++) {
        int      row = OWN * own_y() + r;
        uint64_t keep = run.mask < 0 ? ~(uint64_t)0 : a.tiles.keep[(int64_t)run.mask * T + row];

        for (int c = 0; c < OWN; c++) {
            int col = OWN * own_x() + c;

            if (first_k + col >= a.k.rows || !(keep >> col & 1))
                s[r][c] = -INFINITY;
            else if (run.term >= 0)
                s[r][c] += a.tiles.extra[((int64_t)run.term * T + row) * T + col];
        }
    }
}

// out += P V for this block's columns; all threads of the block come here.
template <int WIDE>
static __device__ void mix(const AttendCall &a, int64_t head, int64_t first_k, int64_t first_e,
                           AttendMemory *m, float out[OWN][4 * WIDE])
{
    const float *v = head_of<float>(a.v, head, a.heads);
    bool         fours = by_fours(a.v, v);

    for (int part = 0; part < T && first_k + part < a.v.rows; part += PART) {
        __syncthreads();
        for (int at = (int)threadIdx.x; at < PART * SIDE * WIDE; at += THREADS) {
            int     z = at / (SIDE * WIDE), col = at % (SIDE * WIDE) * 4;
            int64_t row = first_k + part + z;
            float   x[4] = { 0, 0, 0, 0 };

            if (row < a.v.rows)
                read_four(v + row * a.v.row_stride, first_e + col, a.v.cols, fours, x);
            *(float4 *)&m->parts[z * PANEL_ROWS * WIDE + col] = make_float4(x[0], x[1], x[2], x[3]);
        }
        __syncthreads();
        multiply_part<WIDE>(m->weights, part, m->parts, out);
    }
}

// Column `c` of a thread's results, of the block's.
static __device__ __forceinline__ int own_column(int c)
{
    return PANEL_ROWS * (c / 4) + 4 * own_x() + c % 4;
}

// out += sum over j of P_ij table[index].
template <int WIDE>
static __device__ void mix_terms(const AttendCall &a, int64_t head, int64_t first_q,
                                 int64_t first_k, int64_t first_e, const float *weights,
                                 float out[OWN][4 * WIDE])
{
    const float *table;

    if (!a.value.table.data)
        return;
    table = head_of<float>(a.value.table, head, a.heads);
    for (int r = 0; r < OWN; r++)
        for (int j = 0; j < T; j++) {
            int64_t i = first_q + OWN * own_y() + r, key = first_k + j, at;

            if (i >= a.q.rows || key >= a.k.rows)
                continue;
            at = a.value.index[i - key + a.k.rows - 1] * a.value.table.row_stride + first_e;
            for (int c = 0; c < 4 * WIDE; c++)
                if (first_e + own_column(c) < a.v.cols)
                    out[r][c] += weights[swapped(j, own_y()) + r] * table[at + own_column(c)];
        }
}

template <int WIDE>
static __device__ void put(const AttendCall &a, int64_t head, int64_t i, int64_t first_e,
                           const RowSoftmax &row, const float *from)
{
    bool   none = row.top == -INFINITY && row.sum == 0; // else a score was no number
    float *out = head_of<float>(a.out, head, a.heads) + i * a.out.row_stride + first_e;

    for (int c = 0; c < 4 * WIDE; c++)
        if (first_e + own_column(c) < a.v.cols)
            out[own_column(c)] = none ? 0.0f : from[c] / row.sum;
    if (own_x() == 0 && first_e == 0)
        head_of<float>(a.lse, head, a.heads)[i] =
            none ? -INFINITY : row.top + logf(row.sum);
}

template <bool TERMS, int WIDE>
static __device__ void take_tile(const AttendCall &a, int64_t head, int64_t first_q,
                                 int64_t first_e, const TileRun &run, int64_t key,
                                 RowSoftmax rows[OWN], float out[OWN][4 * WIDE], AttendMemory *m)
{
    int64_t first_k = key * T;
    float   s[OWN][OWN];

    score<TERMS>(a, head, first_q, first_k, m->parts, s);
    mask(a, run, first_k, s);
    soften_tile<float, WIDE>(s, OWN * own_x(), 1, rows, m->weights, out);
    mix<WIDE>(a, head, first_k, first_e, m, out);
    if (TERMS)
        mix_terms<WIDE>(a, head, first_q, first_k, first_e, m->weights, out);
}

template <bool TERMS, int WIDE>
static __global__ void __launch_bounds__(THREADS, TERMS ? 1 : 2) attend_f32(AttendCall a)
{
    SHARED_VALUE(AttendMemory, memory);
    int64_t first_q = (int64_t)blockIdx.x * T, first_e = (int64_t)blockIdx.z * PANEL_ROWS * WIDE;

    for (int64_t head = blockIdx.y; head < a.heads; head += gridDim.y) {
        int64_t    row = blockIdx.x + (a.tiles.per_head ? head * a.tiles.rows : 0);
        RowSoftmax rows[OWN];
        float      out[OWN][4 * WIDE];

        softmax_begin<WIDE>(rows, out);
        for (int64_t at = a.tiles.start[row]; at < a.tiles.start[row + 1]; at++) {
            TileRun run = a.tiles.runs[at];

            for (int x = 0; x < run.count; x++)
                take_tile<TERMS, WIDE>(a, head, first_q, first_e, run, run.key + x, rows, out,
                                       &memory);
        }
        for (int r = 0; r < OWN; r++)
            if (first_q + OWN * own_y() + r < a.q.rows)
                put<WIDE>(a, head, first_q + OWN * own_y() + r, first_e, rows[r], out[r]);
    }
}

template <int WIDE>
static int launch(const AttendCall &a)
{
    const int width = PANEL_ROWS * WIDE;
    dim3      grid((unsigned)a.tiles.rows, grid_of(a.heads),
                   (unsigned)((a.v.cols + width - 1) / width));
    bool      terms = a.cap.top > 0 || a.distance.data || a.row.side.data || a.col.side.data ||
                 a.value.table.data;

    return terms ? LAUNCH((attend_f32<true, WIDE>), grid, THREADS, 0, a)
                 : LAUNCH((attend_f32<false, WIDE>), grid, THREADS, 0, a);
}

extern "C" int call_attend(const AttendCall *a)
{
    if (!a->tiles.rows || !a->heads || !a->v.cols)
        return 0;
    return a->v.cols > PANEL_ROWS ? launch<2>(*a) : launch<1>(*a);
}
