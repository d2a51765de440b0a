// linear.cu -- attention through features, besides its products of matrices: sums, prefixes,
// masks, and the division.  See attn/cpu/linear.c for the formulas.
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

/* 0: no feature of the query is any key's, and nothing guards; then the row is 0. */
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
