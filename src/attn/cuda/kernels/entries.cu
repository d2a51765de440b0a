// entries.cu -- entry by entry, tensors of any strides.
//
// Lanes lie along the last axis, where neighbours touch neighbouring words; rows that are
// shorter than a warp share one.  Where x is turned (its rows are y's columns) it passes
// through a tile in shared memory, so that both sides are read and written in order.
#include "attn/cuda/kernels/format.cuh"

#define THREADS 256
#define MOST_BLOCKS 65536
#define PIECE 4096 // columns of a block's rows
#define SIDE 32    // of a tile
#define DEEP 8

// As EntryKind in attn/ops_rows.h.
enum { CAST, EXP, DIVIDE, SCALE, SHIFT, FILL, SUM, PRODUCT, QUOTIENT, GATE, WHERE,
       LEAST, MOST, RINT, RELU, GELU_TANH, GELU_ERF, SIGMOID, ELU, SOFTPLUS, ROUND };

static __device__ __forceinline__ int64_t place(const EntryTensor &t, int64_t head, int64_t heads,
                                                int64_t i, int64_t c)
{
    return head * t.heads / heads * t.stride[0] + i * t.stride[1] + c * t.stride[2];
}

static __device__ __forceinline__ double take(const EntryTensor &t, int64_t at)
{
    return t.dtype == DEVICE_F32   ? (double)((const float *)t.data)[at]
           : t.dtype == DEVICE_F64 ? ((const double *)t.data)[at]
                                   : (double)((const int32_t *)t.data)[at];
}

static __device__ __forceinline__ void put(const EntryTensor &t, int64_t at, double x)
{
    if (t.dtype == DEVICE_F32)
        ((float *)t.data)[at] = (float)x;
    else if (t.dtype == DEVICE_F64)
        ((double *)t.data)[at] = x;
    else
        ((int32_t *)t.data)[at] = (int32_t)x;
}

static __device__ double gate_tanh(double x)
{
    return 0.5 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static __device__ double of_one(const EntriesCall &a, double x)
{
    switch (a.kind) {
    case EXP: return exp(x);
    case DIVIDE: return x / a.by;
    case SCALE: return x * a.by;
    case SHIFT: return x + a.by;
    case FILL: return a.by;
    case LEAST: return x > a.by ? a.by : x;
    case MOST: return x < a.by ? a.by : x;
    case RINT: return rint(x);
    case RELU: return x < 0 ? 0 : x;
    case GELU_TANH: return x * gate_tanh(x);
    case GELU_ERF: return x * (0.5 * erfc(-x * 0.70710678118654752440));
    case SIGMOID: return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
    case ELU: return x > 0 ? x + 1 : exp(x);
    case SOFTPLUS: return fmax(x, 0.0) + log1p(exp(-fabs(a.by * x))) / a.by;
    case ROUND: return rounded(Format{ a.bits, a.least, a.limit }, x);
    default: return x;
    }
}

// z is read only where it is wanted; y as it was, for WHERE.
static __device__ void entry(const EntriesCall &a, int64_t t, int64_t i, int64_t c, double x)
{
    int64_t to = place(a.y, t, a.shape[0], i, c);
    double  z = a.z.data ? take(a.z, place(a.z, t, a.shape[0], i, c)) : 0;

    switch (a.kind) {
    case SUM: x = __dadd_rn(x, __dmul_rn(a.by, z)); break;
    case PRODUCT: x = a.by * x * z; break;
    case QUOTIENT: x = x / z; break;
    case GATE: x = x / (1 + exp(-z)); break;
    case WHERE: x = z < 0 || z > 0 ? x : take(a.y, to); break;
    default: x = of_one(a, x); break;
    }
    put(a.y, to, x);
}

// `across` lanes, a power of two, have a row.
static __global__ void __launch_bounds__(THREADS) entries(EntriesCall a, int across)
{
    int64_t each = THREADS / across, rows = a.shape[0] * a.shape[1];
    int64_t stride = (int64_t)gridDim.y * PIECE;

    for (int64_t first = (int64_t)blockIdx.y * PIECE; first < a.shape[2]; first += stride) {
        int64_t end = first + PIECE < a.shape[2] ? first + PIECE : a.shape[2];

        for (int64_t line = (int64_t)blockIdx.x * each + threadIdx.x / across; line < rows;
             line += (int64_t)gridDim.x * each) {
            int64_t t = line / a.shape[1], i = line % a.shape[1];

            for (int64_t c = first + threadIdx.x % across; c < end; c += across)
                entry(a, t, i, c, a.x.data ? take(a.x, place(a.x, t, a.shape[0], i, c)) : 0);
        }
    }
}

// x's entries lie along y's rows' axis.
static __global__ void __launch_bounds__(SIDE *DEEP) entries_turned(EntriesCall a)
{
    SHARED_ARRAY(double, tile, [SIDE][SIDE + 1]);
    int64_t           down = (a.shape[1] + SIDE - 1) / SIDE, along = (a.shape[2] + SIDE - 1) / SIDE;

    for (int64_t at = blockIdx.x; at < a.shape[0] * down * along; at += gridDim.x) {
        int64_t t = at / (down * along), i = at / along % down * SIDE, c = at % along * SIDE;

        __syncthreads();
        for (int y = threadIdx.y; y < SIDE; y += DEEP)
            if (i + threadIdx.x < a.shape[1] && c + y < a.shape[2])
                tile[y][threadIdx.x] =
                    take(a.x, place(a.x, t, a.shape[0], i + threadIdx.x, c + y));
        __syncthreads();
        for (int y = threadIdx.y; y < SIDE; y += DEEP)
            if (i + y < a.shape[1] && c + threadIdx.x < a.shape[2])
                entry(a, t, i + y, c + threadIdx.x, tile[threadIdx.x][y]);
    }
}

// A warp has a row: its columns as they are, then the pairs that turn.
static __global__ void __launch_bounds__(THREADS) turn_rows(TurnPairsCall a)
{
    int64_t n = a.y.rows, rows = a.y.heads * n, step = (int64_t)gridDim.x * (THREADS / 32);
    int     lane = threadIdx.x % 32;

    for (int64_t i = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32; i < rows; i += step) {
        const float  *x = head_of<const float>(a.x, i / n, a.y.heads) + i % n * a.x.row_stride;
        const double *turns = a.turns + i % n * 2 * a.pairs;
        float        *y = head_of<float>(a.y, i / n, a.y.heads) + i % n * a.y.row_stride;

        for (int64_t c = lane; c < a.y.cols; c += 32)
            y[c] = x[c];
        __syncwarp(); // other lanes' pairs are among them
        for (int64_t t = lane; t < a.pairs; t += 32) {
            double p = (double)x[t * a.step], q = (double)x[t * a.step + a.gap];
            double cosine = turns[2 * t], sine = turns[2 * t + 1];

            y[t * a.step] = (float)__dadd_rn(__dmul_rn(p, cosine), -__dmul_rn(q, sine));
            y[t * a.step + a.gap] = (float)__dadd_rn(__dmul_rn(p, sine), __dmul_rn(q, cosine));
        }
    }
}

static unsigned at_most(int64_t blocks)
{
    return (unsigned)(blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

static bool is_turned(const EntriesCall *a)
{
    return a->x.data && a->x.stride[1] == 1 && a->x.stride[2] > 1 && a->y.stride[2] == 1 &&
           a->shape[1] >= DEEP && a->shape[2] >= DEEP;
}

extern "C" int call_entries(const EntriesCall *a)
{
    int64_t rows = a->shape[0] * a->shape[1], pieces = (a->shape[2] + PIECE - 1) / PIECE;
    int64_t tiles = a->shape[0] * ((a->shape[1] + SIDE - 1) / SIDE) *
                    ((a->shape[2] + SIDE - 1) / SIDE);
    int     across = 1;

    if (rows * a->shape[2] <= 0)
        return 0;
    if (is_turned(a))
        return LAUNCH(entries_turned, at_most(tiles), dim3(SIDE, DEEP), 0, *a);
    while (across < a->shape[2] && across < (rows == 1 ? THREADS : 32))
        across *= 2;
    return LAUNCH(entries, dim3(at_most((rows * across + THREADS - 1) / THREADS), grid_of(pieces)),
                  THREADS, 0, *a, across);
}

extern "C" int call_turn_pairs(const TurnPairsCall *a)
{
    int64_t rows = a->y.heads * a->y.rows, each = THREADS / 32;

    if (rows * a->y.cols <= 0)
        return 0;
    return LAUNCH(turn_rows, at_most((rows + each - 1) / each), THREADS, 0, *a);
}
