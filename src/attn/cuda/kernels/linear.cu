// linear.cu -- attention through features, without its matrix products: sums, prefixes, masks, and
// the division.  See attn/cpu/recurrent/linear.c for the formulas.
#include "attn/cuda/kernels/portable.cuh"
#include "attn/cuda/kernels/team.cuh"

// Columns of the rows of one piece; a block has 32 columns, each warp a row at a time.
template <typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) add_rows(RowSumsCall a)
{
    SHARED_ARRAY(double, parts, [TEAM_WARPS][32]);
    int64_t           strips = (a.x.cols + 31) / 32, lane = threadIdx.x % 32;
    int64_t           c = blockIdx.x % strips * 32 + lane, item = blockIdx.x / strips;
    int64_t           head = item / a.pieces, first = item % a.pieces * a.rows;
    int64_t           end = first + a.rows < a.x.rows ? first + a.rows : a.x.rows;
    const T          *x = head_of<T>(a.x, head, a.heads) + c;
    double            sum = 0;

    for (int64_t i = first + threadIdx.x / 32; i < end && c < a.x.cols; i += TEAM_WARPS)
        sum += (double)x[i * a.x.row_stride];
    parts[threadIdx.x / 32][lane] = sum;
    __syncthreads();
    if (threadIdx.x >= 32 || c >= a.x.cols)
        return;
    for (int w = 1; w < TEAM_WARPS; w++)
        sum += parts[w][lane];
    a.sums[item * a.x.cols + c] = sum;
}

extern "C" int call_row_sums(const RowSumsCall *a)
{
    int64_t blocks = a->heads * a->pieces * ((a->x.cols + 31) / 32);

    if (blocks <= 0)
        return 0;
    return a->x.dtype == DEVICE_F64
               ? LAUNCH((add_rows<double>), (unsigned)blocks, TEAM_THREADS, 0, *a)
               : LAUNCH((add_rows<float>), (unsigned)blocks, TEAM_THREADS, 0, *a);
}

template <typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) scan_pieces(ScanCall a)
{
    int64_t step = (int64_t)gridDim.x * TEAM_THREADS;

    for (int64_t at = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x; at < a.heads * a.size;
         at += step) {
        T     *part = (T *)a.parts + at / a.size * a.pieces * a.size + at % a.size;
        double sum = a.carry[at];

        for (int64_t p = 0; p < a.pieces; p++, part += a.size) {
            double own = (double)*part;

            *part = (T)sum;
            sum += own;
        }
        a.carry[at] = sum;
    }
}

extern "C" int call_scan(const ScanCall *a)
{
    unsigned blocks = blocks_for(a->heads * a->size, TEAM_THREADS);

    if (a->heads * a->size <= 0)
        return 0;
    return a->wide ? LAUNCH((scan_pieces<double>), blocks, TEAM_THREADS, 0, *a)
                   : LAUNCH((scan_pieces<float>), blocks, TEAM_THREADS, 0, *a);
}

/* ---- denominators -------------------------------------------------------------------- */

template <int WARPS, typename T>
static __device__ double dot(const T *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t t = Team<WARPS>::member(); t < count; t += Team<WARPS>::size())
        sum += (double)a[t] * b[t];
    return team_take<WARPS, TakeSum>(sum);
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) read_sums(ReadCall a)
{
    int64_t n = a.fq.rows, f = a.fq.cols;

    for (int64_t x = Team<WARPS>::first(); x < a.heads * n; x += Team<WARPS>::step()) {
        int64_t       head = x / n, i = x % n;
        const double *z = a.z + (head * a.pieces + i / a.rows) * f;
        double        sum;

        if (a.fq.dtype == DEVICE_F64)
            sum = dot<WARPS>(head_of<double>(a.fq, head, a.heads) + i * a.fq.row_stride, z, f);
        else
            sum = dot<WARPS>(head_of<float>(a.fq, head, a.heads) + i * a.fq.row_stride, z, f);
        if (Team<WARPS>::member() == 0)
            a.sums[head * a.pitch + i] = sum;
    }
}

extern "C" int call_read_sums(const ReadCall *a)
{
    return TEAM_LAUNCH(read_sums, a->heads * a->fq.rows, a->fq.cols, *a);
}

template <int WARPS, typename T>
static __device__ double mask_row(T *a, int64_t cols, int64_t last)
{
    double sum = 0;

    for (int64_t c = Team<WARPS>::member(); c < cols; c += Team<WARPS>::size()) {
        if (c > last)
            a[c] = 0;
        sum += (double)a[c];
    }
    return team_take<WARPS, TakeSum>(sum);
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) mask_rows(MaskCall m)
{
    int64_t all = m.pieces * m.rows;

    for (int64_t x = Team<WARPS>::first(); x < m.heads * all; x += Team<WARPS>::step()) {
        int64_t head = x / all, i = x % all, last = m.causal ? i % m.rows + m.shift : m.cols;
        double *to = m.sums + head * m.pitch + i, sum;

        if (i >= m.all_rows)
            continue;
        sum = m.wide ? mask_row<WARPS>((double *)m.a + x * m.cols, m.cols, last)
                     : mask_row<WARPS>((float *)m.a + x * m.cols, m.cols, last);
        if (Team<WARPS>::member() == 0)
            *to = m.add ? *to + sum : sum;
    }
}

extern "C" int call_mask(const MaskCall *m)
{
    return TEAM_LAUNCH(mask_rows, m->heads * m->pieces * m->rows, m->cols, *m);
}

/* ---- the division ------------------------------------------------------------------- */

static __device__ double guarded(const FinishCall &a, double z, double features)
{
    switch (a.form) {
    case DIVISOR_GUARD: return fabs(z) <= a.eps ? z + 2 * a.eps : z;
    case DIVISOR_ADD: return z + a.eps;
    case DIVISOR_ADD_FEATURES: return z + a.eps * features;
    case DIVISOR_FLOOR: return fmax(z, a.eps);
    default: return 1;
    }
}

/* 0: no feature of the query occurs in a key, and there is no guard; then the row is 0. */
static __device__ double divisor_of(const FinishCall &a, double z, double features)
{
    double divisor = guarded(a, z, features);

    return divisor != 0 ? divisor : 1;
}

template <int WARPS, typename T>
static __device__ double total(const T *fq, int64_t f)
{
    double sum = 0;

    for (int64_t t = Team<WARPS>::member(); t < f; t += Team<WARPS>::size())
        sum += (double)fq[t];
    return team_take<WARPS, TakeSum>(sum);
}

static __device__ __forceinline__ float quotient(float sum, double divisor)
{
    return sum * (float)(1 / divisor);
}

static __device__ __forceinline__ double quotient(double sum, double divisor)
{
    return sum / divisor;
}

template <int WARPS, typename T>
static __device__ void finish_row(const FinishCall &a, int64_t row)
{
    const T *fq = head_of<T>(a.fq, row / a.n, a.heads) + row % a.n * a.fq.row_stride;
    const T *sums = (const T *)a.sums + row * a.e;
    double   features = a.form == DIVISOR_ADD_FEATURES ? total<WARPS>(fq, a.fq.cols) : 0;
    double   z = a.z[row], divisor = divisor_of(a, z, features);

    for (int64_t c = Team<WARPS>::member(); c < a.e; c += Team<WARPS>::size())
        if (a.wide_out)
            ((double *)a.out)[row * a.e + c] = (double)quotient(sums[c], divisor);
        else
            ((float *)a.out)[row * a.e + c] = (float)quotient(sums[c], divisor);
    if (Team<WARPS>::member() == 0) {
        a.denominator[row] = (float)z;
        a.divisor[row] = divisor;
    }
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) finish_rows(FinishCall a)
{
    for (int64_t i = Team<WARPS>::first(); i < a.heads * a.n; i += Team<WARPS>::step())
        if (a.fq.dtype == DEVICE_F64)
            finish_row<WARPS, double>(a, i);
        else
            finish_row<WARPS, float>(a, i);
}

extern "C" int call_linear_finish(const FinishCall *a)
{
    return TEAM_LAUNCH(finish_rows, a->heads * a->n, a->e > a->fq.cols ? a->e : a->fq.cols, *a);
}

// Attention through features, token by token: the state stays on the chip.
//
// A block has RECUR_COLUMNS columns of the state of one head, or, the last one, z as the
// column that v = 1 makes, in double.  A warp has 4 columns; the 8 lanes of a column hold
// every eighth row of it, so that a token costs f / 8 steps and a sum over 8 lanes.  Features
// and values of some tokens at a time lie in shared memory.

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

// Stores the sum of the first slice of the features; adds that of a later slice.
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

// Lambdas, in double; see attn/ops/lambdas.h.

#define CONTENT_COLS 128
#define COLS 32
#define PARTS 8 // of the key channels

// One key channel: a running softmax over the positions, and the values it weighs, for
// CONTENT_COLS columns; causal, the context that ends at each position is kept.
static __device__ void scan(const LambdaContentCall &a, int64_t kk, int64_t head, int64_t c,
                            int64_t uu)
{
    const float *key = head_of<float>(a.key, head, a.heads) + kk * a.u + uu;
    const float *v = head_of<float>(a.v, head, a.heads) + c * a.u + uu;
    int64_t      last = a.contexts > 1 ? a.contexts : a.m;
    double       top = -(double)INFINITY, z = 0, sum = 0;

    for (int64_t j = 0; j < last; j++) {
        int64_t plane = head * a.contexts + (a.contexts > 1 ? j : 0);
        int64_t at = (plane * a.k + kk) * a.e + c;

        if (j < a.m) {
            double score = (double)key[j * a.key.row_stride], weight;

            if (score > top) {
                double shrink = exp(top - score);

                z *= shrink;
                sum *= shrink;
                top = score;
            }
            weight = exp(score - top);
            z += weight;
            sum += weight * (double)v[j * a.v.row_stride];
        }
        if (a.contexts == 1 && j + 1 < last)
            continue;
        a.content[at] = (float)((uu ? (double)a.content[at] : 0) + sum / z);
        if (c == 0)
            a.lse[(plane * a.k + kk) * a.u + uu] = top + log(z);
    }
}

static __global__ void __launch_bounds__(CONTENT_COLS) content(LambdaContentCall a)
{
    int64_t kk = blockIdx.x;

    for (int64_t head = blockIdx.y; head < a.heads; head += gridDim.y)
        for (int64_t c = threadIdx.x; c < a.e; c += CONTENT_COLS)
            for (int64_t uu = 0; uu < a.u; uu++)
                scan(a, kk, head, c, uu);
}

extern "C" int call_lambda_content(const LambdaContentCall *a)
{
    dim3 grid((unsigned)a->k, (unsigned)(a->heads < 65535 ? a->heads : 65535));

    return LAUNCH(content, grid, CONTENT_COLS, 0, *a);
}

static __device__ int64_t entry_of(const LambdaApplyCall &a, int64_t i, int64_t j)
{
    const LambdaEntry &e = a.entry;

    if (e.absolute)
        return i * a.m + j;
    if (e.width > 0)
        return (j / e.width - i / e.width + e.up) * (2 * e.side + 1) + j % e.width - i % e.width +
               e.side;
    return j - i + e.side;
}

// One entry of query i's lambda: the content's, and the positions' within reach.
static __device__ double lambda(const LambdaApplyCall &a, int64_t head, int64_t i, int64_t kk,
                                int64_t c)
{
    int64_t      plane = head * a.contexts + (a.contexts > 1 ? i : 0);
    const float *v = head_of<float>(a.v, head, a.heads) + c * a.u;
    double       sum = (double)a.content[(plane * a.k + kk) * a.e + c];

    for (int64_t at = a.reach.start[i]; at < a.reach.start[i + 1]; at++)
        for (int64_t x = 0; x < a.reach.runs[at].count; x++) {
            int64_t      j = a.reach.runs[at].start + x * a.reach.runs[at].step;
            const float *e = a.table + (entry_of(a, i, j) * a.k + kk) * a.u;

            for (int64_t uu = 0; uu < a.u; uu++)
                sum += (double)e[uu] * (double)v[j * a.v.row_stride + uu];
        }
    return sum;
}

// Query i of the heads that share a key head: thread (c, part) has the channels part,
// part + PARTS, ... of column c; the parts of a head are added at last.
static __global__ void __launch_bounds__(COLS *PARTS) apply(LambdaApplyCall a)
{
    SHARED(double, parts); // [group][PARTS][COLS]
    int64_t i = blockIdx.x, head = blockIdx.y, x = threadIdx.y * COLS + threadIdx.x;

    for (int64_t first = 0; first < a.e; first += COLS) {
        int64_t c = first + threadIdx.x;

        for (int64_t g = 0; g < a.group; g++)
            parts[g * PARTS * COLS + x] = 0;
        for (int64_t kk = threadIdx.y; kk < a.k && c < a.e; kk += PARTS) {
            double value = lambda(a, head, i, kk, c);

            for (int64_t g = 0; g < a.group; g++)
                parts[g * PARTS * COLS + x] +=
                    (double)a.q[((head * a.group + g) * a.n + i) * a.k + kk] * value;
        }
        __syncthreads();
        for (int64_t g = threadIdx.y; g < a.group && c < a.e; g += PARTS) {
            int64_t t = head * a.group + g;
            double  sum = 0;

            for (int p = 0; p < PARTS; p++)
                sum += parts[(g * PARTS + p) * COLS + threadIdx.x];
            a.out[(a.joined ? i * a.heads * a.group + t : t * a.n + i) * a.e + c] = (float)sum;
        }
        __syncthreads();
    }
}

extern "C" int call_lambda_apply(const LambdaApplyCall *a)
{
    static_assert(LAMBDA_GROUP_BYTES == PARTS * COLS * sizeof(double), "the host knows it");
    size_t shared = (size_t)a->group * LAMBDA_GROUP_BYTES;

    ALLOW_SHARED(apply, shared);
    return LAUNCH(apply, dim3((unsigned)a->n, (unsigned)a->heads), dim3(COLS, PARTS), shared, *a);
}
