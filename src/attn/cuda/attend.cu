// attend.cu -- exact attention in float32 over listed tiles, with an online softmax.
//
// A block of 16 x 16 threads has 64 queries of one head and some columns of the values.  For
// each listed tile of 64 keys: S = scale Q K^T (+ terms), masked; the rows' maxima and sums go
// on (m' = max(m, max S), l' = l e^(m - m') + sum e^(S - m')), and O' = O e^(m - m') + P V.
// Thread (y, x) holds rows 4y .. 4y+3; of S the columns 4x .. 4x+3, of O x, x + 16, ...
#include "attn/cuda/portable.cuh"

#define T ATTEND_TILE
#define SIDE 16   // threads along a side
#define PART 32   // of d at a time, of keys at a time
#define WIDTH 128 // columns of the values of one block
#define OWN 4     // rows of a thread, and columns of S

struct Softmax {
    float largest, sum;
};

// to[c][r] = from[first_row + r][first_col + c] for r < T, c < PART; 0 beyond the ends.
static __device__ void turn_in(float (*to)[T + 1], const float *from, const DeviceTensor &t,
                               int64_t first_row, int64_t first_col)
{
    for (int x = threadIdx.x; x < T * PART; x += SIDE * SIDE) {
        int     c = x % PART, r = x / PART;
        int64_t row = first_row + r, col = first_col + c;

        to[c][r] = row < t.rows && col < t.cols ? from[row * t.row_stride + col] : 0.0f;
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

// What the position adds to one cell, and the scale.
static __device__ float with_terms(const AttendCall &a, float s, int64_t head, int64_t i, int64_t j)
{
    int64_t distance = i - j + a.k.rows - 1;

    s += distance_dot(a.row, i, distance, head, a.heads);
    s += distance_dot(a.col, j, distance, head, a.heads);
    s *= (float)a.scale;
    if (a.distance.data)
        s += head_of<float>(a.distance, head, a.heads)[distance];
    return s;
}

template <bool TERMS>
static __device__ void score(const AttendCall &a, int64_t head, int64_t first_q, int64_t first_k,
                             float (*q)[T + 1], float (*k)[T + 1], float s[OWN][OWN])
{
    const float *from_q = head_of<float>(a.q, head, a.heads);
    const float *from_k = head_of<float>(a.k, head, a.heads);
    int          y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;

    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++)
            s[r][c] = 0;
    for (int64_t part = 0; part < a.q.cols; part += PART) {
        __syncthreads();
        turn_in(q, from_q, a.q, first_q, part);
        turn_in(k, from_k, a.k, first_k, part);
        __syncthreads();
        for (int z = 0; z < PART; z++)
            for (int r = 0; r < OWN; r++)
                for (int c = 0; c < OWN; c++)
                    s[r][c] += q[z][OWN * y + r] * k[z][OWN * x + c];
    }
    for (int r = 0; r < OWN; r++)
        for (int c = 0; c < OWN; c++) {
            int64_t i = first_q + OWN * y + r, j = first_k + OWN * x + c;

            if (!TERMS)
                s[r][c] *= (float)a.scale;
            else if (i < a.q.rows && j < a.k.rows)
                s[r][c] = with_terms(a, s[r][c], head, i, j);
        }
}

// Cells that are not there, or not allowed, have no score.
static __device__ void mask(const AttendCall &a, const TileRun &run, int64_t first_k,
                            float s[OWN][OWN])
{
    int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;

    for (int r = 0; r < OWN; r++) {
        int      row = OWN * y + r;
        uint64_t keep = run.mask < 0 ? ~(uint64_t)0 : a.tiles.keep[(int64_t)run.mask * T + row];

        for (int c = 0; c < OWN; c++) {
            int col = OWN * x + c;

            if (first_k + col >= a.k.rows || !(keep >> col & 1))
                s[r][c] = -INFINITY;
            else if (run.term >= 0)
                s[r][c] += a.tiles.extra[((int64_t)run.term * T + row) * T + col];
        }
    }
}

// Of the 16 threads of a row: the largest, or the sum.
static __device__ float row_max(float x)
{
    for (int lane = SIDE / 2; lane; lane >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}

static __device__ float row_sum(float x)
{
    for (int lane = SIDE / 2; lane; lane >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

// p[row][col] = e^(s - m'); the factor e^(m - m') of what the row had before.
static __device__ float soften(float s[OWN], Softmax *row, float *p)
{
    float most = row->largest, sum = 0, factor;

    for (int c = 0; c < OWN; c++)
        most = fmaxf(most, s[c]);
    most = row_max(most);
    for (int c = 0; c < OWN; c++) {
        p[c] = s[c] == -INFINITY ? 0.0f : expf(s[c] - most);
        sum += p[c];
    }
    factor = row->largest == -INFINITY ? 0.0f : expf(row->largest - most);
    row->sum = row->sum * factor + row_sum(sum);
    row->largest = most;
    return factor;
}

// out += P V for this block's columns.
static __device__ void mix(const AttendCall &a, int64_t head, int64_t first_k, int64_t first_e,
                           float (*p)[T + 1], float *v, float out[OWN][WIDTH / SIDE])
{
    const float *from = head_of<float>(a.v, head, a.heads);
    int          y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;

    for (int part = 0; part < T && first_k + part < a.v.rows; part += PART) {
        __syncthreads();
        for (int at = threadIdx.x; at < PART * WIDTH; at += SIDE * SIDE) {
            int64_t row = first_k + part + at / WIDTH, col = first_e + at % WIDTH;

            v[at] = row < a.v.rows && col < a.v.cols ? from[row * a.v.row_stride + col] : 0.0f;
        }
        __syncthreads();
        for (int z = 0; z < PART; z++)
            for (int r = 0; r < OWN; r++)
                for (int c = 0; c < WIDTH / SIDE; c++)
                    out[r][c] += p[OWN * y + r][part + z] * v[z * WIDTH + SIDE * c + x];
    }
}

// out += sum over j of P_ij table[index].
static __device__ void mix_terms(const AttendCall &a, int64_t head, int64_t first_q,
                                 int64_t first_k, int64_t first_e, float (*p)[T + 1],
                                 float out[OWN][WIDTH / SIDE])
{
    int          y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    const float *table;

    if (!a.value.table.data)
        return;
    table = head_of<float>(a.value.table, head, a.heads);
    for (int r = 0; r < OWN; r++)
        for (int j = 0; j < T; j++) {
            int64_t i = first_q + OWN * y + r, key = first_k + j, at;

            if (i >= a.q.rows || key >= a.k.rows)
                continue;
            at = a.value.index[i - key + a.k.rows - 1] * a.value.table.row_stride + first_e + x;
            for (int c = 0; c < WIDTH / SIDE; c++)
                if (first_e + SIDE * c + x < a.v.cols)
                    out[r][c] += p[OWN * y + r][j] * table[at + SIDE * c];
        }
}

static __device__ void put(const AttendCall &a, int64_t head, int64_t i, int64_t first_e,
                           const Softmax &row, const float *from)
{
    int    x = threadIdx.x % SIDE;
    bool   none = row.largest == -INFINITY && row.sum == 0; // else a score was no number
    float *out = head_of<float>(a.out, head, a.heads) + i * a.out.row_stride;

    for (int c = 0; c < WIDTH / SIDE; c++)
        if (first_e + SIDE * c + x < a.v.cols)
            out[first_e + SIDE * c + x] = none ? 0.0f : from[c] / row.sum;
    if (x == 0 && first_e == 0)
        head_of<float>(a.lse, head, a.heads)[i] =
            none ? -INFINITY : row.largest + logf(row.sum);
}

struct Own {
    Softmax rows[OWN];
    float   out[OWN][WIDTH / SIDE];
};

template <bool TERMS>
static __device__ void take_tile(const AttendCall &a, int64_t head, int64_t first_q,
                                 int64_t first_e, const TileRun &run, int64_t key, Own &own,
                                 float (*parts)[T + 1], float (*p)[T + 1])
{
    int     y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    int64_t first_k = key * T;
    float   s[OWN][OWN];

    score<TERMS>(a, head, first_q, first_k, parts, parts + PART, s);
    mask(a, run, first_k, s);
    for (int r = 0; r < OWN; r++) {
        float factor = soften(s[r], &own.rows[r], &p[OWN * y + r][OWN * x]);

        for (int c = 0; c < WIDTH / SIDE; c++)
            own.out[r][c] *= factor;
    }
    mix(a, head, first_k, first_e, p, &parts[0][0], own.out);
    if (TERMS)
        mix_terms(a, head, first_q, first_k, first_e, p, own.out);
}

template <bool TERMS>
static __global__ void __launch_bounds__(SIDE *SIDE) attend_f32(AttendCall a)
{
    // The parts of q and k, and those of v, take turns in the same memory.
    SHARED_ARRAY(float, parts, [2 * PART][T + 1]);
    SHARED_ARRAY(float, p, [T][T + 1]);
    int64_t          first_q = (int64_t)blockIdx.x * T, first_e = (int64_t)blockIdx.z * WIDTH;
    int              y = threadIdx.x / SIDE;

    for (int64_t head = blockIdx.y; head < a.heads; head += gridDim.y) {
        int64_t row = blockIdx.x + (a.tiles.per_head ? head * a.tiles.rows : 0);
        Own     own = {};

        for (int r = 0; r < OWN; r++)
            own.rows[r].largest = -INFINITY;
        for (int64_t at = a.tiles.start[row]; at < a.tiles.start[row + 1]; at++) {
            TileRun run = a.tiles.runs[at];

            for (int x = 0; x < run.count; x++)
                take_tile<TERMS>(a, head, first_q, first_e, run, run.key + x, own, parts, p);
        }
        for (int r = 0; r < OWN; r++)
            if (first_q + OWN * y + r < a.q.rows)
                put(a, head, first_q + OWN * y + r, first_e, own.rows[r], own.out[r]);
    }
}

extern "C" int call_attend(const AttendCall *a)
{
    dim3 grid((unsigned)a->tiles.rows, grid_of(a->heads),
              (unsigned)((a->v.cols + WIDTH - 1) / WIDTH));
    bool terms = a->distance.data || a->row.side.data || a->col.side.data || a->value.table.data;

    if (!a->tiles.rows || !a->heads || !a->v.cols)
        return 0;
    return terms ? LAUNCH((attend_f32<true>), grid, SIDE * SIDE, 0, *a)
                 : LAUNCH((attend_f32<false>), grid, SIDE * SIDE, 0, *a);
}
