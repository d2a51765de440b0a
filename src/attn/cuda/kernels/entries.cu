// entries.cu -- entry by entry, tensors of any strides.
//
// Lanes lie along the last axis, where neighbours touch neighbouring words; rows shorter than a
// warp share one.  A transposed x (its rows are y's columns) passes through a tile in shared
// memory, so that both sides are accessed in order.
#include "attn/cuda/kernels/portable.cuh"
#include "attn/cuda/kernels/team.cuh"

struct Format {
    int    bits;         // of the significand
    double least, limit; // the smallest normal number; the least that rounds to infinity
};

// A normal double to fewer bits of significand, ties to even.
static __device__ __forceinline__ double round_normal(double a, int bits)
{
    int                cut = 53 - bits;
    unsigned long long u = (unsigned long long)__double_as_longlong(a), half = 1ull << (cut - 1);

    u += half - 1 + (u >> cut & 1);
    u &= ~((half << 1) - 1);
    return __longlong_as_double((long long)u);
}

static __device__ double rounded(const Format &f, double a)
{
    double size = fabs(a), coarse;

    if (f.bits == 53 || !(size <= 1.7976931348623157e308)) // itself, infinite, NaN
        return a;
    if (size < f.least) {
        coarse = f.least * 13510798882111488.0 / (double)(1ll << f.bits); // 1.5 2^53
        size = __dadd_rn(__dadd_rn(size, coarse), -coarse);
    } else {
        size = round_normal(size, f.bits);
    }
    return copysign(size >= f.limit ? (double)INFINITY : size, a);
}

#define THREADS 256
#define PIECE 4096 // columns of a block's rows
#define SIDE 32    // of a tile
#define DEEP 8

// As EntryKind in attn/ops/rows.h.
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

// Reads z only if it is given; WHERE also reads y.
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

// `across` lanes, a power of two, compute a row.
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

// x is transposed: its contiguous axis is y's axis of rows.
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

// A warp computes a row: it copies all columns, then turns the pairs.
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
        __syncwarp(); // other lanes copied these columns
        for (int64_t t = lane; t < a.pairs; t += 32) {
            double p = (double)x[t * a.step], q = (double)x[t * a.step + a.gap];
            double cosine = turns[2 * t], sine = turns[2 * t + 1];

            y[t * a.step] = (float)__dadd_rn(__dmul_rn(p, cosine), -__dmul_rn(q, sine));
            y[t * a.step + a.gap] = (float)__dadd_rn(__dmul_rn(p, sine), __dmul_rn(q, cosine));
        }
    }
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

// Attention as a narrow format would compute it; see cpu_rounded_attend in attn/cpu/entries.c.
//
// A block computes a row, with its scores in the block's own memory.  A thread computes a key, then
// a column of values, in index order, because every rounding depends on the one before.

#define PART 8 // terms of a product at a time

static __device__ __forceinline__ Format format_of(const RoundedAttendCall &a)
{
    return Format{ a.bits, a.least, a.limit };
}

// sum + x y, rounded as the format's sums are.
static __device__ __forceinline__ double add(const RoundedAttendCall &a, double sum, double x,
                                             double y)
{
    double product = __dmul_rn(x, y);

    if (!a.half_sums)
        return __dadd_rn(sum, product);
    return rounded(format_of(a), __dadd_rn(sum, rounded(format_of(a), product)));
}

// TEAM_THREADS keys pass through shared memory, PART terms at a time.
static __device__ int score_row(const RoundedAttendCall &a, const double *q, const double *k,
                                int64_t keys, double *score)
{
    SHARED_ARRAY(double, part, [TEAM_THREADS][PART + 1]);
    int               infinite = 0;

    for (int64_t first = 0; first < keys; first += TEAM_THREADS) {
        int64_t j = first + threadIdx.x;
        double  sum = 0;

        for (int64_t t = 0; t < a.q.cols; t += PART) {
            __syncthreads();
            for (int x = threadIdx.x; x < TEAM_THREADS * PART; x += TEAM_THREADS) {
                int64_t key = first + x / PART, term = t + x % PART;

                part[x / PART][x % PART] =
                    key < keys && term < a.q.cols ? k[key * a.k.row_stride + term] : 0.0;
            }
            __syncthreads();
            for (int x = 0; x < PART && t + x < a.q.cols; x++)
                sum = add(a, sum, q[t + x], part[threadIdx.x][x]);
        }
        if (!a.half_sums)
            sum = rounded(format_of(a), sum);
        infinite += j < keys && isinf(sum);
        if (j < keys)
            score[j] = a.scale > 0 ? rounded(format_of(a), sum * a.scale) : sum;
    }
    return infinite;
}

static __device__ double exponential(const RoundedAttendCall &a, double score, double top)
{
    if (!a.half_softmax)
        return exp(score - top);
    return rounded(format_of(a), exp(rounded(format_of(a), score - top)));
}

// Sums in the format, one after another.
static __device__ double narrow_sum(const RoundedAttendCall &a, const double *x, int64_t count)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++)
        sum = rounded(format_of(a), sum + x[j]);
    return sum;
}

static __device__ void soften_row(const RoundedAttendCall &a, int64_t row, double *x, int64_t keys)
{
    SHARED_VALUE(double, kept);
    double            top = -(double)INFINITY, sum = 0, all = 0;

    for (int64_t j = threadIdx.x; j < keys; j += TEAM_THREADS)
        top = TakeMaxOrNan::both(top, x[j]);
    top = team_take<TEAM_WARPS, TakeMaxOrNan>(top);
    for (int64_t j = threadIdx.x; j < keys; j += TEAM_THREADS) {
        x[j] = exponential(a, x[j], top);
        sum += x[j];
    }
    sum = team_take<TEAM_WARPS, TakeSum>(sum);
    if (a.half_softmax && threadIdx.x == 0)
        kept = narrow_sum(a, x, keys);
    __syncthreads();
    sum = a.half_softmax ? kept : sum;
    for (int64_t j = threadIdx.x; j < keys; j += TEAM_THREADS) {
        x[j] = rounded(format_of(a), x[j] / sum);
        all += x[j];
    }
    all = team_take<TEAM_WARPS, TakeSum>(all);
    if (threadIdx.x == 0) {
        a.top[row] = top;
        a.total[row] = sum;
        a.weights[row] = all;
    }
    __syncthreads();
}

static __device__ void mix_row(const RoundedAttendCall &a, const double *x, const double *v,
                               int64_t keys, double *out)
{
    for (int64_t c = threadIdx.x; c < a.v.cols; c += TEAM_THREADS) {
        double sum = 0;

        for (int64_t j = 0; j < keys; j++)
            sum = add(a, sum, x[j], v[j * a.v.row_stride + c]);
        out[c] = a.half_sums ? sum : rounded(format_of(a), sum);
    }
}

static __global__ void __launch_bounds__(TEAM_THREADS) rounded_rows(RoundedAttendCall a)
{
    double *score = a.scores + (int64_t)blockIdx.x * a.m;

    for (int64_t row = blockIdx.x; row < a.heads * a.n; row += gridDim.x) {
        int64_t head = row / a.n, i = row % a.n, keys = a.causal ? i + a.offset + 1 : a.m;
        int     infinite;

        keys = keys < 0 ? 0 : keys < a.m ? keys : a.m;
        infinite = score_row(a, head_of<double>(a.q, head, a.heads) + i * a.q.row_stride,
                             head_of<double>(a.k, head, a.heads), keys, score);
        infinite = team_take<TEAM_WARPS, TakeSum>(infinite);
        if (threadIdx.x == 0)
            a.overflows[row] = infinite;
        soften_row(a, row, score, keys);
        mix_row(a, score, head_of<double>(a.v, head, a.heads), keys, a.out + row * a.v.cols);
        __syncthreads();
    }
}

extern "C" int call_rounded_attend(const RoundedAttendCall *a)
{
    return a->heads * a->n <= 0 ? 0 : LAUNCH(rounded_rows, (unsigned)a->blocks, TEAM_THREADS, 0, *a);
}
