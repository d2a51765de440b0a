// pack.cu -- tensors in the form that tensor cores read, and rows that were made in parts.
#include "attn/cuda/kernels/matrix.cuh"

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
