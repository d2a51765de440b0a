// recur.cu -- attention through features, token by token: the state stays on the chip.
//
// A block has RECUR_COLUMNS columns of the state of one head, or, the last one, z as the
// column that v = 1 makes, in double.  A warp has 4 columns; the 8 lanes of a column hold
// every eighth row of it, so that a token costs f / 8 steps and a sum over 8 lanes.  Features
// and values of some tokens at a time lie in shared memory.
#include "attn/cuda/kernels/portable.cuh"

#define THREADS 256
#define LANES 8             // of a column
#define MOST_TOKENS 32      // in shared memory
#define TOKEN_BYTES (40 << 10)

static __host__ __device__ int64_t tokens_at_once(int64_t pitch, int64_t size)
{
    int64_t tokens = TOKEN_BYTES / (2 * pitch * size + RECUR_COLUMNS * (int64_t)sizeof(float));

    return tokens < 1 ? 1 : tokens > MOST_TOKENS ? MOST_TOKENS : tokens;
}

// The features and values of tokens first, first + 1, ... of one block, in shared memory.
template <typename F>
struct Tokens {
    F      *fq, *fk; // [tokens][pitch], 0 behind f
    float  *v;       // [tokens][RECUR_COLUMNS]
    int64_t pitch;

    __device__ void take(const RecurCall &a, int64_t head, int64_t first, int64_t count,
                         int64_t column)
    {
        const F     *q = head_of<F>(a.fq, head, a.heads), *k = head_of<F>(a.fk, head, a.heads);
        const float *values = head_of<float>(a.v, head, a.heads);

        __syncthreads();
        for (int64_t x = threadIdx.x; x < count * pitch; x += THREADS) {
            int64_t i = first + x / pitch, t = x % pitch;

            fq[x] = t < a.fq.cols ? q[i * a.fq.row_stride + t] : (F)0;
            fk[x] = t < a.fq.cols ? k[i * a.fk.row_stride + t] : (F)0;
        }
        for (int64_t x = threadIdx.x; x < count * RECUR_COLUMNS; x += THREADS) {
            int64_t i = first + x / RECUR_COLUMNS, c = column + x % RECUR_COLUMNS;

            v[x] = column < 0                ? 1.0f
                   : c < a.v.cols            ? values[i * a.v.row_stride + c]
                                             : 0.0f;
        }
        __syncthreads();
    }
};

// One token: this lane's rows of the column grow; the column's sum, for all its lanes.
template <typename F, typename S, int EACH>
static __device__ __forceinline__ S step(const F *fq, const F *fk, float v, S keep, S take,
                                         int each, S *state)
{
    int lane = threadIdx.x % LANES;
    S   sum = 0;

#pragma unroll(EACH < 64 ? EACH : 8)
    for (int x = 0; x < (EACH < 64 ? EACH : each); x++) {
        state[x] = keep * state[x] + take * (S)fk[lane + LANES * x] * (S)v;
        sum += (S)fq[lane + LANES * x] * state[x];
    }
    for (int other = LANES / 2; other; other >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    return sum;
}

// Of the first slice of the features, or added to what the slices before have.
template <typename T>
static __device__ __forceinline__ void keep_sum(const RecurCall &a, T *to, T sum)
{
    *to = a.first ? *to + sum : sum;
}

// column < 0: z.
template <typename F, typename S, int EACH>
static __device__ void run_column(const RecurCall &a, int64_t head, int64_t column,
                                  Tokens<F> tokens, int64_t at_once)
{
    const double *gates = a.gates.data ? head_of<double>(a.gates, head, a.heads) : NULL;
    int64_t       n = a.fq.rows, e = a.v.cols, c = column + threadIdx.x / LANES;
    int           each = (int)((a.fq.cols + LANES - 1) / LANES);
    S             state[EACH];

    for (int x = 0; x < EACH; x++)
        state[x] = 0;
    for (int64_t first = 0; first < n; first += at_once) {
        int64_t count = n - first < at_once ? n - first : at_once;

        tokens.take(a, head, first, count, column);
        for (int64_t i = 0; i < count; i++) {
            S keep = gates ? (S)gates[first + i] : 1, take = gates ? 1 - keep : 1;
            S sum = step<F, S, EACH>(tokens.fq + i * tokens.pitch, tokens.fk + i * tokens.pitch,
                                     tokens.v[i * RECUR_COLUMNS + threadIdx.x / LANES], keep,
                                     take, each, state);

            if (threadIdx.x % LANES)
                continue;
            if (column < 0 && threadIdx.x == 0)
                keep_sum(a, &a.z[head * n + first + i], (double)sum);
            if (column >= 0 && c < e)
                keep_sum(a, (F *)a.sums + (head * n + first + i) * e + c, (F)sum);
        }
    }
    for (int x = 0; x < EACH; x++) {
        int64_t t = threadIdx.x % LANES + LANES * x;

        if (column >= 0 && c < e && t < a.fq.cols)
            a.memory[(head * a.features + a.first + t) * e + c] = (float)state[x];
    }
}

template <typename F, int EACH>
static __global__ void __launch_bounds__(THREADS) run_tokens(RecurCall a, int64_t pitch,
                                                            int64_t at_once)
{
    SHARED(F, shared);
    Tokens<F> tokens = { shared, shared + at_once * pitch,
                         (float *)(shared + 2 * at_once * pitch), pitch };

    if (blockIdx.x + 1 < gridDim.x)
        run_column<F, F, EACH>(a, blockIdx.y, (int64_t)blockIdx.x * RECUR_COLUMNS, tokens, at_once);
    else
        run_column<F, double, EACH>(a, blockIdx.y, -RECUR_COLUMNS, tokens, at_once);
}

template <typename F, int EACH>
static int start(const RecurCall &a)
{
    int64_t rows = EACH < 64 ? EACH : (a.fq.cols + LANES - 1) / LANES, pitch = LANES * rows;
    int64_t tokens = tokens_at_once(pitch, sizeof(F));
    int64_t bytes = tokens * (2 * pitch * (int64_t)sizeof(F) +
                              RECUR_COLUMNS * (int64_t)sizeof(float));
    dim3    grid((unsigned)((a.v.cols + RECUR_COLUMNS - 1) / RECUR_COLUMNS + 1), (unsigned)a.heads);

    if (bytes > (48 << 10)) {
        int code = ALLOW_SHARED((run_tokens<F, EACH>), bytes);

        if (code)
            return code;
    }
    return LAUNCH((run_tokens<F, EACH>), grid, THREADS, (size_t)bytes, a, pitch, tokens);
}

template <typename F>
static int start_with(const RecurCall &a)
{
    int64_t f = a.fq.cols;

    return f <= 4 * LANES    ? start<F, 4>(a)
           : f <= 8 * LANES  ? start<F, 8>(a)
           : f <= 16 * LANES ? start<F, 16>(a)
           : f <= 32 * LANES ? start<F, 32>(a)
                             : start<F, RECUR_ROWS / LANES>(a);
}

extern "C" int call_recur(const RecurCall *a)
{
    if (a->heads <= 0)
        return 0;
    return a->fq.dtype == DEVICE_F64 ? start_with<double>(*a) : start_with<float>(*a);
}
