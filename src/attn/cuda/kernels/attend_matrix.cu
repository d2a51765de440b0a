// attend_matrix.cu -- exact attention over listed tiles on tensor cores, online softmax.
//
// Four warps have 64 or 128 queries of one head (16 or 32 each) and all columns of the
// values.  For each listed tile of 64 keys, S = Q K^T stays in registers; the keys' copy into
// shared memory runs while the tile before is mixed, the values' while this one is scored.
// P is rounded to the numbers' format for the second product and not for l.  Two neighbouring
// tiles of S are a fragment of P as they stand; with 32-bit numbers one tile is, when key t of
// the inner axis is read as key 2t and key t + 4 as 2t + 1, on both sides.
//
// A file gives the format, a `Form` of matrix.cuh.
#include "attn/cuda/kernels/attend_rows.cuh"
#include "attn/cuda/kernels/matrix.cuh"

#define THREADS 128

// Sizes of a kernel for vectors of SIZE numbers.
template <typename Form, int SIZE>
struct Shape {
    static constexpr int BLOCKS = SIZE <= 128 ? 2 : 1; // of 16 queries, for a warp
    static constexpr int HEIGHT = ATTEND_HEIGHT(SIZE); // queries of a block
    static constexpr int ROW = SIZE * 4 / Form::PER_WORD; // bytes
    static constexpr int CHUNKS = ROW / 16;
    static constexpr int STEPS = ROW / 32;             // of the inner axis of Q K^T
    static constexpr int SHARED_BYTES = ATTEND_SHARED(SIZE, 4 / Form::PER_WORD);
    static_assert(HEIGHT == 64 * BLOCKS && SHARED_BYTES == (HEIGHT + 2 * KEYS) * ROW,
                  "the host knows how much that is");
};

// One warp's state: rows 16 b + 8 half + g of its block b.
template <int BLOCKS, int SIZE>
struct Rows {
    float largest[BLOCKS][2], sum[BLOCKS][2]; // sum: this thread's columns only
    float out[BLOCKS][SIZE / 8][4];
};

// 16-byte chunk `chunk` of a row: places are permuted so that eight rows of one chunk, and
// four rows of two, lie in different banks.
template <int ROW>
static __device__ __forceinline__ unsigned char *chunk_at(unsigned char *base, int row, int chunk)
{
    return base + row * ROW + ((chunk ^ (row & 7)) << 4);
}

// Each thread copies a chunk of every DOWN-th row.  The distances between its places are constants,
// so source and target need one register each.
template <int ROW, int ROWS>
static __device__ __forceinline__ void copy_rows(unsigned char *to, const unsigned char *from)
{
    const int CHUNKS = ROW / 16, DOWN = THREADS / CHUNKS;
    int       row = (int)threadIdx.x / CHUNKS, chunk = (int)threadIdx.x % CHUNKS;

    static_assert(DOWN * CHUNKS == THREADS && ROWS % DOWN == 0, "no thread has less to copy");
    to += row * ROW;
    from += threadIdx.x * 16;
    chunk ^= row & 7;
#pragma unroll
    for (int x = 0; x < ROWS; x += DOWN)
        copy_ahead(to + x * ROW + ((chunk ^ (x & 7)) << 4), from + x * ROW);
}

// The keys of the tile that row 16 b + 8 half + g of the warp sees.
template <typename Sizes>
static __device__ __forceinline__ uint64_t keys_of(const MatrixAttendCall &a, int32_t key,
                                                   int32_t mask, int b, int half)
{
    int      row = (warp_now() * Sizes::BLOCKS + b) * 16 + half * 8 + lane_now() / 4;
    uint64_t keep = mask < 0 ? ~(uint64_t)0 : a.tiles.keep[(int64_t)mask * Sizes::HEIGHT + row];

    return keep & keys_there(a, key);
}

template <typename Sizes>
static __device__ __forceinline__ Seen seen(const MatrixAttendCall &a, int32_t key, int32_t mask)
{
    bool all = true, none = true;

#pragma unroll
    for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint64_t keep = keys_of<Sizes>(a, key, mask, b, half);

            all &= keep == ~(uint64_t)0;
            none &= keep == 0;
        }
    return __all_sync(0xffffffffu, all)    ? Seen::all
           : __all_sync(0xffffffffu, none) ? Seen::none
                                           : Seen::some;
}

template <typename Form, typename Sizes>
static __device__ __forceinline__ void score(unsigned char *q, unsigned char *k,
                                             float s[Sizes::BLOCKS][COLUMNS][4])
{
    int first = warp_now() * Sizes::BLOCKS * 16, row = lane_now() % 8, which = lane_now() / 8;

#pragma unroll
    for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                s[b][c][x] = 0;
#pragma unroll 2 // all of them at once need more registers than there are
    for (int step = 0; step < Sizes::STEPS; step++) {
        uint32_t left[Sizes::BLOCKS][4];

#pragma unroll
        for (int b = 0; b < Sizes::BLOCKS; b++)
            load_matrices(left[b], chunk_at<Sizes::ROW>(q, first + 16 * b + which % 2 * 8 + row,
                                                        2 * step + which / 2));
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 2) {
            uint32_t right[4];

            load_matrices(right, chunk_at<Sizes::ROW>(k, (c + which / 2) * 8 + row,
                                                      2 * step + which % 2));
#pragma unroll
            for (int b = 0; b < Sizes::BLOCKS; b++) {
                Form::mma(s[b][c], left[b], right);
                Form::mma(s[b][c + 1], left[b], right + 2);
            }
        }
    }
}

// Of one row; bias goes backwards from the first key, extra forwards.
static __device__ __forceinline__ void add_row(float s[COLUMNS][4], int half, float by,
                                               const ScoreCap &cap, const float *bias,
                                               const float *extra, int left)
{
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
#pragma unroll
        for (int x = 0; x < 2; x++) {
            bool  there = 8 * c + x < left;
            float distance = bias && there ? bias[-(8 * c + x)] * LOG2_E : 0.0f;
            float more = extra && there ? extra[8 * c + x] * LOG2_E : 0.0f;

            s[c][2 * half + x] = with_cap(cap, s[c][2 * half + x] * by, distance) + more;
        }
}

// Scores in base 2, with bias and extra terms.
template <typename Sizes>
static __device__ __forceinline__ void add_terms(const MatrixAttendCall &a, const Walk &w,
                                                 int64_t head, int64_t first_q,
                                                 float s[Sizes::BLOCKS][COLUMNS][4])
{
    const float *bias = a.distance.data ? head_of<float>(a.distance, head, a.heads) + a.m - 1
                                        : NULL;
    float   by = (float)a.scale * LOG2_E; // converted once: conversion of a double is slow
    const ScoreCap cap = { a.cap.top * LOG2_E, a.cap.after_distance };
    int64_t j = (int64_t)w.key * KEYS + lane_now() % 4 * 2;

#pragma unroll
    for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int     row = (warp_now() * Sizes::BLOCKS + b) * 16 + half * 8 + lane_now() / 4;
            int64_t i = first_q + row;
            int     left = i < a.n ? (int)min(a.m - j, (int64_t)KEYS) : 0; // of the row's cells

            add_row(s[b], half, by, cap, bias ? bias + (i - j) : NULL,
                    w.run.term < 0 ? NULL
                                   : a.tiles.extra + lane_now() % 4 * 2 +
                                         ((int64_t)w.run.term * Sizes::HEIGHT + row) * KEYS,
                    left);
        }
}

// out += P V, numbers of 16 bits.
template <typename Form, typename Sizes, int SIZE>
static __device__ __forceinline__ void mix_pairs(unsigned char *v,
                                                 const float p[Sizes::BLOCKS][COLUMNS][4],
                                                 float out[Sizes::BLOCKS][SIZE / 8][4])
{
    int row = lane_now() % 8, which = lane_now() / 8;

#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
        uint32_t left[Sizes::BLOCKS][4];

#pragma unroll
        for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                left[b][x] = Form::word(p[b][2 * step + x / 2][x % 2 * 2],
                                        p[b][2 * step + x / 2][x % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < SIZE / 8; c += 2) {
            uint32_t right[4];

            load_turned(right, chunk_at<Sizes::ROW>(v, step * 16 + which % 2 * 8 + row,
                                                    c + which / 2));
#pragma unroll
            for (int b = 0; b < Sizes::BLOCKS; b++) {
                Form::mma(out[b][c], left[b], right);
                Form::mma(out[b][c + 1], left[b], right + 2);
            }
        }
    }
}

// out += P V, numbers of 32 bits.
template <typename Form, typename Sizes, int SIZE>
static __device__ __forceinline__ void mix_singles(unsigned char *v,
                                                   const float p[Sizes::BLOCKS][COLUMNS][4],
                                                   float out[Sizes::BLOCKS][SIZE / 8][4])
{
    int g = lane_now() / 4, t = lane_now() % 4;

#pragma unroll
    for (int step = 0; step < COLUMNS; step++) {
        uint32_t left[Sizes::BLOCKS][4];

#pragma unroll
        for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
            for (int x = 0; x < 4; x++)
                left[b][x] = tf32_bits(p[b][step][x % 2 * 2 + x / 2]);
#pragma unroll
        for (int c = 0; c < SIZE / 8; c++) {
            int      row = step * 8 + 2 * t, chunk = 2 * c + g / 4;
            uint32_t right[2];

            right[0] = *(uint32_t *)(chunk_at<Sizes::ROW>(v, row, chunk) + g % 4 * 4);
            right[1] = *(uint32_t *)(chunk_at<Sizes::ROW>(v, row + 1, chunk) + g % 4 * 4);
#pragma unroll
            for (int b = 0; b < Sizes::BLOCKS; b++)
                Form::mma(out[b][c], left[b], right);
        }
    }
}

template <typename Form, typename Sizes, int SIZE>
static __device__ __forceinline__ void mix(unsigned char *v,
                                           const float p[Sizes::BLOCKS][COLUMNS][4],
                                           float out[Sizes::BLOCKS][SIZE / 8][4])
{
    if constexpr (Form::PER_WORD == 2)
        mix_pairs<Form, Sizes, SIZE>(v, p, out);
    else
        mix_singles<Form, Sizes, SIZE>(v, p, out);
}

// Stores the block's results of its rows.
template <typename Sizes, int SIZE>
static __device__ __forceinline__ void
put_rows(const MatrixAttendCall &a, const AttendItem &item, int64_t head, float by,
         const Rows<Sizes::BLOCKS, SIZE> &own)
{
#pragma unroll
    for (int b = 0; b < Sizes::BLOCKS; b++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            put_row<SIZE>(a, item, head,
                          (warp_now() * Sizes::BLOCKS + b) * 16 + half * 8 + lane_now() / 4,
                          Sizes::HEIGHT, own.largest[b][half] * by, own.sum[b][half], own.out[b],
                          half);
}

template <typename Form, int SIZE, bool TERMS>
static __device__ __forceinline__ void
attend_item(const MatrixAttendCall &a, const AttendItem &item, int64_t head, unsigned char *shared)
{
    using Sizes = Shape<Form, SIZE>;
    unsigned char       *q = shared, *k = q + Sizes::HEIGHT * Sizes::ROW, *v = k + KEYS * Sizes::ROW;
    const unsigned char *keys = matrix_head(a.k, head, a.heads, Sizes::ROW);
    const unsigned char *values = matrix_head(a.v, head, a.heads, Sizes::ROW);
    int64_t first_q = (int64_t)item.row * Sizes::HEIGHT;
    float   by = TERMS ? 1.0f : (float)a.scale * LOG2_E;
    Walk    w = walk_of(a, item, head);
    Rows<Sizes::BLOCKS, SIZE> own = {};

    for (int b = 0; b < Sizes::BLOCKS; b++)
        own.largest[b][0] = own.largest[b][1] = -INFINITY;
    copy_rows<Sizes::ROW, Sizes::HEIGHT>(q, matrix_head(a.q, head, a.heads, Sizes::ROW) +
                                                first_q * Sizes::ROW);
    if (w.key < w.end)
        copy_rows<Sizes::ROW, KEYS>(k, keys + (int64_t)w.key * KEYS * Sizes::ROW);
    copies_end();
    while (w.key < w.end) {
        float   s[Sizes::BLOCKS][COLUMNS][4];
        int32_t key = w.key, mask = w.run.mask;
        Seen    which = seen<Sizes>(a, key, mask);

        copies_wait<0>();
        __syncthreads(); // the keys are here, and the values before are done with
        copy_rows<Sizes::ROW, KEYS>(v, values + (int64_t)w.key * KEYS * Sizes::ROW);
        copies_end();
        if (which != Seen::none) {
            score<Form, Sizes>(q, k, s);
            if (TERMS)
                add_terms<Sizes>(a, w, head, first_q, s);
        }
        walk_on(w);
        copies_wait<0>();
        __syncthreads(); // the values are here, and the keys are done with
        if (w.key < w.end)
            copy_rows<Sizes::ROW, KEYS>(k, keys + (int64_t)w.key * KEYS * Sizes::ROW);
        copies_end();
        if (which == Seen::none)
            continue;
#pragma unroll
        for (int b = 0; b < Sizes::BLOCKS; b++) {
            float factor[2];

#pragma unroll
            for (int half = 0; half < 2; half++)
                if (which == Seen::some)
                    hide(s[b], half, keys_of<Sizes>(a, key, mask, b, half));
            soften(s[b], by, own.largest[b], own.sum[b], factor);
            if (__any_sync(0xffffffffu, factor[0] != 1 || factor[1] != 1))
                rescale<SIZE>(own.out[b], factor);
        }
        mix<Form, Sizes, SIZE>(v, s, own.out);
    }
    copies_wait<0>();
    put_rows<Sizes, SIZE>(a, item, head, by, own);
}

// Block (x, y): item x, for its own head or heads y, y + gridDim.y, ...
template <typename Form, int SIZE, bool TERMS>
static __global__ void __launch_bounds__(THREADS) attend_matrix(MatrixAttendCall a)
{
    SHARED(unsigned char, shared);
    AttendItem item = a.items[blockIdx.x];

    if (item.head >= 0) {
        attend_item<Form, SIZE, TERMS>(a, item, item.head, shared);
        return;
    }
    for (int64_t head = blockIdx.y; head < a.heads; head += gridDim.y) {
        attend_item<Form, SIZE, TERMS>(a, item, head, shared);
        __syncthreads();
    }
}

template <typename Form, int SIZE, bool TERMS>
static int launch_attend(const MatrixAttendCall &a)
{
    constexpr int bytes = Shape<Form, SIZE>::SHARED_BYTES;
    dim3          grid((unsigned)a.item_count, a.tiles.per_head ? 1u : grid_of(a.heads));

    if (ALLOW_SHARED((attend_matrix<Form, SIZE, TERMS>), bytes) != cudaSuccess)
        return cudaGetLastError();
    return LAUNCH((attend_matrix<Form, SIZE, TERMS>), grid, THREADS, bytes, a);
}

template <typename Form, int SIZE>
static int launch_size(const MatrixAttendCall &a)
{
    // Without terms the scale is part of the exponentials, and the largest score stays the
    // largest only when it is above 0.
    bool terms = a.cap.top > 0 || a.distance.data || a.tiles.extra || !(a.scale > 0);

    return terms ? launch_attend<Form, SIZE, true>(a) : launch_attend<Form, SIZE, false>(a);
}

template <typename Form>
static int launch_form(const MatrixAttendCall &a)
{
    return a.size == 64    ? launch_size<Form, 64>(a)
           : a.size == 128 ? launch_size<Form, 128>(a)
                           : launch_size<Form, 256>(a);
}

extern "C" int call_attend_bf16(const MatrixAttendCall *a)
{
    return launch_form<Bf16>(*a);
}

extern "C" int call_attend_f16(const MatrixAttendCall *a)
{
    return launch_form<F16>(*a);
}

extern "C" int call_attend_tf32(const MatrixAttendCall *a)
{
    return launch_form<Tf32>(*a);
}

// Tensors in the form that tensor cores read, and rows that were made in parts.

#define LANES 32
#define LINES 8 // rows of a block

static __device__ __forceinline__ void put_pair(const Packed &to, int32_t arithmetic, int64_t at,
                                                float low, float high)
{
    if (arithmetic == ARITHMETIC_TF32) {
        ((uint32_t *)to.data)[at] = tf32_bits(low);
        ((uint32_t *)to.data)[at + 1] = tf32_bits(high);
    } else {
        ((uint32_t *)to.data)[at / 2] =
            arithmetic == ARITHMETIC_BF16 ? bf16_pair(low, high) : f16_pair(low, high);
    }
}

static __global__ void pack_rows(PackCall a)
{
    int64_t line = (int64_t)blockIdx.x * LINES + threadIdx.y;
    int64_t head = line / a.to.rows, row = line % a.to.rows;
    const float *from = (const float *)a.from.data + head * a.from.head_stride +
                        row * a.from.row_stride;

    if (head >= a.to.heads)
        return;
    for (int64_t c = 2 * threadIdx.x; c < a.to.size; c += 2 * LANES) {
        bool  there = row < a.from.rows;
        float low = there && c < a.from.cols ? from[c] : 0.0f;
        float high = there && c + 1 < a.from.cols ? from[c + 1] : 0.0f;

        put_pair(a.to, a.arithmetic, line * a.to.size + c, low, high);
    }
}

extern "C" int call_pack(const PackCall *a)
{
    dim3 grid((unsigned)((a->to.heads * a->to.rows + LINES - 1) / LINES));

    return LAUNCH(pack_rows, grid, dim3(LANES, LINES), 0, *a);
}

static __device__ __forceinline__ float widened(int32_t arithmetic, uint16_t x)
{
#ifdef DEVICE_EMULATED
    return arithmetic == ARITHMETIC_BF16 ? emulated_from_bf16(x) : emulated_from_f16(x);
#else
    return arithmetic == ARITHMETIC_BF16 ? __uint_as_float((uint32_t)x << 16)
                                         : __half2float(__ushort_as_half(x));
#endif
}

static __global__ void unpack_rows(FusedCall a)
{
    int64_t line = (int64_t)blockIdx.x * LINES + threadIdx.y;
    int64_t head = line / a.n, row = line % a.n;
    const uint16_t *from = (const uint16_t *)a.narrow.data +
                           (head * a.narrow.rows + row) * a.narrow.size;
    float *to = (float *)a.out.data + head * a.out.head_stride + row * a.out.row_stride;

    if (head >= a.heads)
        return;
    for (int64_t c = threadIdx.x; c < a.e; c += LANES)
        to[c] = widened(a.arithmetic, from[c]);
}

extern "C" int call_unpack(const FusedCall *a)
{
    dim3 grid((unsigned)((a->heads * a->n + LINES - 1) / LINES));

    return LAUNCH(unpack_rows, grid, dim3(LANES, LINES), 0, *a);
}

// Block (x, y): join x, for its own head or heads y, y + gridDim.y, ...; a warp has a row.
static __device__ void join_row(const MatrixAttendCall &a, const AttendJoin &join, int64_t head,
                                int64_t row)
{
    int64_t first = join.first + (join.head < 0 ? head * a.parts.slots : 0);
    int64_t i = join.row * a.tiles.height + row, height = a.tiles.height;
    float   most = -INFINITY, sum = 0;
    float  *out = head_of<float>(a.out, head, a.heads) + i * a.out.row_stride;
    bool    none;

    for (int64_t x = first; x < first + join.count; x++)
        most = fmaxf(most, a.parts.largest[x * height + row]);
    for (int64_t x = first; x < first + join.count; x++)
        sum += a.parts.sum[x * height + row] *
               (most == -INFINITY ? 1.0f : exp2_fast(a.parts.largest[x * height + row] - most));
    none = most == -INFINITY && sum == 0;
    for (int64_t c = threadIdx.x; c < a.out.cols; c += LANES) {
        float mixed = 0;

        for (int64_t x = first; x < first + join.count; x++)
            mixed += a.parts.out[(x * height + row) * a.size + c] *
                     (most == -INFINITY ? 1.0f
                                        : exp2_fast(a.parts.largest[x * height + row] - most));
        out[c] = none ? 0.0f : mixed / sum;
    }
    if (threadIdx.x == 0)
        head_of<float>(a.lse, head, a.heads)[i] =
            none ? -INFINITY : (most + log2f(sum)) * 0.6931471805599453f;
}

static __global__ void join_parts(MatrixAttendCall a)
{
    AttendJoin join = a.joins[blockIdx.x];
    int64_t    rows = min(a.n - join.row * a.tiles.height, a.tiles.height);
    int64_t    head = join.head >= 0 ? join.head : blockIdx.y;

    for (; head < a.heads; head += gridDim.y) {
        for (int64_t row = threadIdx.y; row < rows; row += LINES)
            join_row(a, join, head, row);
        if (join.head >= 0)
            return;
    }
}

extern "C" int call_attend_join(const MatrixAttendCall *a)
{
    dim3 grid((unsigned)a->join_count, a->tiles.per_head ? 1u : grid_of(a->heads));

    return LAUNCH(join_parts, grid, dim3(LANES, LINES), 0, *a);
}
