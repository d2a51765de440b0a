// rounded.cu -- attention as a narrow format would compute it; see attn/cpu/rounded.c.
//
// A block has a row: its scores stand in memory of the block's own.  A thread has a key, then a
// column of values, and adds up in index order, because every rounding depends on the one before.
#include "attn/cuda/kernels/format.cuh"
#include "attn/cuda/kernels/team.cuh"

#define PART 8 // terms of a product at a time

static __device__ __forceinline__ Format format_of(const RoundedAttendCall &a)
{
    return Format{ a.bits, a.least, a.limit };
}

// sum + x y as the format's sums are made.
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
