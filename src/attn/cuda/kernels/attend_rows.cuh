// attend_rows.cuh -- shared by kernels of exact attention over listed tiles: the walk along a row's
// tiles, the softmax of a thread's two rows, and the place of results.
//
// Scores are held as tensor cores give them: with g = lane / 4 and t = lane % 4, s[c][x] is the
// score of the warp's row g + 8 (x / 2) and of key 8 c + 2 t + x % 2.  Exponentials are of base
// 2: with s = S scale log2 e,
//
//   m' = max(m, max s),  l' = l 2^(m - m') + sum P,  P = 2^(s - m'),  O' = O 2^(m - m') + P V
#ifndef ATTN_CUDA_KERNELS_ATTEND_ROWS_CUH
#define ATTN_CUDA_KERNELS_ATTEND_ROWS_CUH

#include "attn/cuda/kernels/matrix.cuh"

#define KEYS ATTEND_TILE
#define COLUMNS (KEYS / 8) // tiles of 8 keys
#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// Goes through the tiles of a row from panel `first` to before `end`.
struct Walk {
    const TileRun *next, *last;
    TileRun        run;
    int32_t        key, end;
};

static __device__ __forceinline__ void walk_run(Walk &w, int32_t first)
{
    w.run.count = 0;
    for (; w.next < w.last; w.next++) {
        w.run = *w.next;
        if (w.run.key + w.run.count > first)
            break;
    }
    w.key = w.next < w.last ? max(w.run.key, first) : w.end;
}

static __device__ __forceinline__ void walk_on(Walk &w)
{
    w.key++;
    if (w.key >= w.run.key + w.run.count) {
        w.next++;
        walk_run(w, w.key);
    }
}

// The tiles of an item, for a head.
static __device__ __forceinline__ Walk walk_of(const MatrixAttendCall &a, const AttendItem &item,
                                               int64_t head)
{
    int64_t list = item.row + (a.tiles.per_head ? head * a.tiles.rows : 0);
    Walk    w = { a.tiles.runs + a.tiles.start[list], a.tiles.runs + a.tiles.start[list + 1] };

    w.end = item.end;
    walk_run(w, item.first);
    return w;
}

// Slice `head` of a packed tensor that `heads` heads share.
static __device__ __forceinline__ const unsigned char *
matrix_head(const Packed &t, int64_t head, int64_t heads, int64_t row)
{
    return (const unsigned char *)t.data + head * t.heads / heads * t.rows * row;
}

static __device__ __forceinline__ int lane_now(void) { return threadIdx.x % 32; }
static __device__ __forceinline__ int warp_now(void) { return threadIdx.x / 32; }

enum class Seen { none, some, all }; // of a tile's keys, by some rows

// The keys of a tile that exist, as bits.
static __device__ __forceinline__ uint64_t keys_there(const MatrixAttendCall &a, int32_t key)
{
    int64_t left = a.m - (int64_t)key * KEYS;

    return left >= KEYS ? ~(uint64_t)0 : ~(uint64_t)0 >> (KEYS - left);
}

// Scores of keys that a row does not see: -inf.
static __device__ __forceinline__ void hide(float s[COLUMNS][4], int half, uint64_t keep)
{
    keep >>= lane_now() % 4 * 2;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int x = 0; x < 2; x++)
            if (!(keep >> (8 * c + x) & 1))
                s[c][2 * half + x] = -INFINITY;
}

// s becomes P; by: what scores are multiplied by (1 when they have terms); factor: 2^(m - m').
static __device__ __forceinline__ void soften(float s[COLUMNS][4], float by, float largest[2],
                                              float sum[2], float factor[2])
{
    float base[2];

#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = largest[half], top;

#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            most = fmaxf(most, fmaxf(s[c][2 * half], s[c][2 * half + 1]));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        top = most == -INFINITY ? 0.0f : most;
        base[half] = top * by;
        // Subtracts first, so that the factor is exactly 1 where the maximum stays.  A fused
        // multiply-subtract gives less than 1, and early tiles lose weight with each later tile.
        factor[half] = exp2_fast((largest[half] - top) * by);
        largest[half] = most;
        sum[half] *= factor[half];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int x = 2 * half; x < 2 * half + 2; x++) {
                s[c][x] = exp2_fast(fmaf(s[c][x], by, -base[half]));
                sum[half] += s[c][x];
            }
    }
}

template <int SIZE>
static __device__ __forceinline__ void rescale(float out[SIZE / 8][4], const float factor[2])
{
#pragma unroll
    for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            out[c][x] *= factor[x / 2];
}

// Stores a finished row, or the part of it that this block computed.
template <int SIZE>
static __device__ __forceinline__ void put(const MatrixAttendCall &a, int64_t head, int64_t i,
                                           float largest, float sum,
                                           const float (*out)[4], int half)
{
    bool   none = largest == -INFINITY && sum == 0; // else a score was no number
    float  by = none ? 0.0f : 1.0f / sum;
    int    t = lane_now() % 4;
    float *to = head_of<float>(a.out, head, a.heads) + i * a.out.row_stride;

#pragma unroll
    for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
        for (int x = 0; x < 2; x++)
            if (8 * c + 2 * t + x < a.out.cols)
                to[8 * c + 2 * t + x] = none ? 0.0f : out[c][2 * half + x] * by;
    if (t == 0)
        head_of<float>(a.lse, head, a.heads)[i] =
            none ? -INFINITY : (largest + log2f(sum)) * LN_2;
}

template <int SIZE>
static __device__ __forceinline__ void put_part(const MatrixAttendCall &a, int64_t slot, int row,
                                                int height, float largest, float sum,
                                                const float (*out)[4], int half)
{
    int64_t at = slot * height + row;
    int     t = lane_now() % 4;

#pragma unroll
    for (int c = 0; c < SIZE / 8; c++)
#pragma unroll
        for (int x = 0; x < 2; x++)
            a.parts.out[at * SIZE + 8 * c + 2 * t + x] = out[c][2 * half + x];
    if (t == 0) {
        a.parts.largest[at] = largest;
        a.parts.sum[at] = sum;
    }
}

// Row `row` of an item's `height`, into its place or among the parts; sum: of this thread's
// columns only.
template <int SIZE>
static __device__ __forceinline__ void put_row(const MatrixAttendCall &a, const AttendItem &item,
                                               int64_t head, int row, int height, float largest,
                                               float sum, const float (*out)[4], int half)
{
    int64_t i = (int64_t)item.row * height + row;

    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (item.slot >= 0)
        put_part<SIZE>(a, item.slot + (item.head < 0 ? head * a.parts.slots : 0), row, height,
                       largest, sum, out, half);
    else if (i < a.n)
        put<SIZE>(a, head, i, largest, sum, out, half);
}

#endif
