// rows.cu -- softmax, normalisation, activations, lengths and Sinkhorn's balancing of rows.
// Statistics are in double, as on the CPU.
#include "attn/cuda/kernels/team.cuh"

static __device__ __forceinline__ float share(float x, double sum)
{
    return x * (float)(1 / sum);
}

static __device__ __forceinline__ double share(double x, double sum) { return x / sum; }

// Of the first `count` entries; returns the log of the sum of the exponentials.
template <int WARPS, typename T>
static __device__ double softmax_row(T *x, int64_t count, int64_t cols)
{
    int    member = Team<WARPS>::member(), size = Team<WARPS>::size();
    T      top = -(T)INFINITY;
    double sum = 0;

    for (int64_t c = member; c < count; c += size)
        top = x[c] > top ? x[c] : top;
    top = team_take<WARPS, TakeMax>(top);
    for (int64_t c = member; c < count; c += size) {
        x[c] = exp_of(x[c] - top);
        sum += (double)x[c];
    }
    sum = team_take<WARPS, TakeSum>(sum);
    for (int64_t c = member; c < cols; c += size)
        x[c] = c < count ? share(x[c], sum) : (T)0;
    return (double)top + log(sum);
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) softmax_rows(SoftmaxCall s)
{
    for (int64_t at = Team<WARPS>::first(); at < s.heads * s.rows; at += Team<WARPS>::step()) {
        int64_t head = at / s.rows, i = at % s.rows, from = head * s.pitch + i * s.cols;
        int64_t seen = i + s.offset + 1, count = s.causal && seen < s.cols ? seen : s.cols;
        double  lse;

        count = count < 0 ? 0 : count;
        lse = s.wide ? softmax_row<WARPS>((double *)s.x + from, count, s.cols)
                     : softmax_row<WARPS>((float *)s.x + from, count, s.cols);
        if (s.lse && Team<WARPS>::member() == 0)
            s.lse[head * s.lse_pitch + i] = lse;
    }
}

extern "C" int call_softmax(const SoftmaxCall *s)
{
    return TEAM_LAUNCH(softmax_rows, s->cols > 0 ? s->heads * s->rows : 0, s->cols, *s);
}

/* ---- normalisation ------------------------------------------------------------------ */

template <int WARPS>
static __device__ double squares_of(const float *x, int64_t cols, double mean)
{
    double sum = 0;

    for (int64_t c = Team<WARPS>::member(); c < cols; c += Team<WARPS>::size())
        sum += ((double)x[c] - mean) * ((double)x[c] - mean);
    return team_take<WARPS, TakeSum>(sum);
}

static __device__ double row_factor(const NormaliseCall &a, double squares)
{
    double norm = sqrt(squares);

    if (a.length == LENGTH_ONE)
        return 1;
    if (a.length == LENGTH_ROOT_MEAN)
        return 1 / sqrt(squares / (double)a.x.cols + a.eps);
    return 1 / fmax(norm, a.eps);
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) normalise_rows(NormaliseCall a)
{
    int64_t cols = a.x.cols, n = a.y.rows;

    for (int64_t i = Team<WARPS>::first(); i < a.heads * n; i += Team<WARPS>::step()) {
        const float *x = head_of<float>(a.x, i / n, a.heads) + i % n * a.x.row_stride;
        float       *y = head_of<float>(a.y, i / n, a.heads) + i % n * a.y.row_stride;
        double       mean = 0, factor;

        for (int64_t c = Team<WARPS>::member(); c < cols && a.centre; c += Team<WARPS>::size())
            mean += (double)x[c];
        mean = a.centre ? team_take<WARPS, TakeSum>(mean) / (double)cols : 0;
        factor = row_factor(a, squares_of<WARPS>(x, cols, mean));
        for (int64_t c = Team<WARPS>::member(); c < cols; c += Team<WARPS>::size())
            y[c] = (float)(((double)x[c] - mean) * factor * (a.gain ? (double)a.gain[c] : 1.0) +
                           (a.bias ? (double)a.bias[c] : 0.0));
    }
}

extern "C" int call_normalise(const NormaliseCall *a)
{
    return TEAM_LAUNCH(normalise_rows, a->heads * a->y.rows, a->x.cols, *a);
}

/* ---- lengths ---------------------------------------------------------------------- */

static __global__ void __launch_bounds__(TEAM_THREADS) largest_squares(NormsCall a)
{
    int64_t n = a.x.rows, rows = a.x.heads * n;
    double  most = 0;

    for (int64_t i = (int64_t)blockIdx.x * TEAM_WARPS + threadIdx.x / 32; i < rows;
         i += (int64_t)gridDim.x * TEAM_WARPS) {
        const float *x = head_of<float>(a.x, i / n, a.x.heads) + i % n * a.x.row_stride;

        most = TakeMaxOrNan::both(most, squares_of<1>(x, a.x.cols, 0));
    }
    most = team_take<TEAM_WARPS, TakeMaxOrNan>(most);
    if (threadIdx.x == 0)
        a.found[blockIdx.x] = most;
}

extern "C" int call_norms(const NormsCall *a)
{
    return LAUNCH(largest_squares, NORM_BLOCKS, TEAM_THREADS, 0, *a);
}

/* ---- activation -------------------------------------------------------------------- */

// x / (1 + 2^u), u = -2 sqrt(2/pi) log2 e (x + 0.044715 x^3), which 2^120 bounds.
static __device__ __forceinline__ float gelu_of(float x)
{
    float u = -2.302208198f * (x + 0.044715f * x * x * x);

    return x / (1.0f + exp2f(fminf(u, 120.0f)));
}

static __global__ void __launch_bounds__(TEAM_THREADS) gelu_entries(GeluCall a)
{
    for (int64_t at = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x; at < a.count;
         at += (int64_t)gridDim.x * TEAM_THREADS)
        a.x[at] = gelu_of(a.x[at] + (a.bias ? a.bias[at % a.width] : 0.0f));
}

extern "C" int call_gelu(const GeluCall *a)
{
    return a->count <= 0 ? 0 : LAUNCH(gelu_entries, blocks_for(a->count, TEAM_THREADS),
                                      TEAM_THREADS, 0, *a);
}

// Rows in double: normalised, and standardised over one or more lines.

// A thread computes a row.  Sums in index order without fused multiply-adds give the CPU's bits,
// because choices are made on them.
template <typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) normalise64(Normalise64Call a)
{
    int64_t rows = a.y.heads * a.y.rows, step = (int64_t)gridDim.x * TEAM_THREADS, d = a.y.cols;

    for (int64_t i = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x; i < rows; i += step) {
        int64_t  t = i / a.y.rows, row = i % a.y.rows;
        const T *x = head_of<T>(a.x, t, a.y.heads) + row * a.x.row_stride;
        double  *y = head_of<double>(a.y, t, a.y.heads) + row * a.y.row_stride;
        double   mean = 0, squares = 0, size = 1;

        for (int64_t c = 0; c < d && a.kind == 3; c++)
            mean += (double)x[c];
        mean /= (double)d;
        for (int64_t c = 0; c < d; c++)
            squares = __dadd_rn(squares, __dmul_rn((double)x[c] - mean, (double)x[c] - mean));
        if (a.kind == 3 || a.kind == 1)
            size = sqrt(squares / (double)d + a.eps);
        if (a.kind == 2)
            size = fmax(sqrt(squares), a.eps);
        for (int64_t c = 0; c < d; c++)
            y[c] = ((double)x[c] - mean) / size;
    }
}

extern "C" int call_normalise64(const Normalise64Call *a)
{
    unsigned grid = at_most((a->y.heads * a->y.rows + TEAM_THREADS - 1) / TEAM_THREADS);

    return a->x.dtype == DEVICE_F64 ? LAUNCH((normalise64<double>), grid, TEAM_THREADS, 0, *a)
                                    : LAUNCH((normalise64<float>), grid, TEAM_THREADS, 0, *a);
}

/* ---- standardised ---------------------------------------------------------------------- */

static __device__ __forceinline__ double entry_at(const EntryTensor &t, int64_t i, int64_t line,
                                                  int64_t c)
{
    int64_t at = i * t.stride[0] + line * t.stride[1] + c * t.stride[2];

    return t.dtype == DEVICE_F64 ? ((const double *)t.data)[at]
                                 : (double)((const float *)t.data)[at];
}

// The sum of x - mean, or of its square, over lines [first, end) of row i.
template <int WARPS>
static __device__ double sum_lines(const Standardise64Call &a, int64_t i, int64_t first,
                                   int64_t end, bool squares, double mean)
{
    double sum = 0;

    for (int64_t line = first; line < end; line++)
        for (int64_t c = Team<WARPS>::member(); c < a.shape[2]; c += Team<WARPS>::size()) {
            double x = entry_at(a.x, i, line, c) - mean;

            sum += squares ? x * x : x;
        }
    return team_take<WARPS, TakeSum>(sum);
}

template <int WARPS>
static __device__ void finish_lines(const Standardise64Call &a, int64_t i, int64_t first,
                                    int64_t end, double mean, double factor)
{
    for (int64_t line = first; line < end; line++)
        for (int64_t c = Team<WARPS>::member(); c < a.shape[2]; c += Team<WARPS>::size()) {
            int64_t at = i * a.y.stride[0] + line * a.y.stride[1] + c * a.y.stride[2];
            double  x = (entry_at(a.x, i, line, c) - mean) * factor;

            x *= a.gain ? (double)a.gain[line * a.gain_step + c] : 1.0;
            x += a.bias ? (double)a.bias[line * a.bias_step + c] : 0.0;
            if (a.y.dtype == DEVICE_F64)
                ((double *)a.y.data)[at] = x;
            else
                ((float *)a.y.data)[at] = (float)x;
        }
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) standardise_rows(Standardise64Call a)
{
    double size = (double)(a.shape[1] * a.shape[2]);

    for (int64_t i = Team<WARPS>::first(); i < a.shape[0]; i += Team<WARPS>::step()) {
        double mean = sum_lines<WARPS>(a, i, 0, a.shape[1], false, 0) / size;
        double squares = sum_lines<WARPS>(a, i, 0, a.shape[1], true, mean);

        finish_lines<WARPS>(a, i, 0, a.shape[1], mean, 1 / sqrt(squares / size + a.eps));
    }
}

// The sum of a row's pieces, in a fixed order.
static __device__ double whole(const double *parts, int64_t splits)
{
    double sum = 0;

    for (int64_t p = 0; p < splits; p++)
        sum += parts[p];
    return sum;
}

// Block (p, i) computes piece p of row i.  step 0: sums; 1: squares; 2: the result.
static __global__ void __launch_bounds__(TEAM_THREADS) standardise_piece(Standardise64Call a,
                                                                        int step)
{
    int64_t p = blockIdx.x, first = a.shape[1] * p / a.splits;
    int64_t end = a.shape[1] * (p + 1) / a.splits;
    double  size = (double)(a.shape[1] * a.shape[2]);

    for (int64_t i = blockIdx.y; i < a.shape[0]; i += gridDim.y) {
        double *sums = a.sums + i * a.splits, *squares = sums + a.shape[0] * a.splits;
        double  mean = step ? whole(sums, a.splits) / size : 0, part;

        if (step == 2) {
            finish_lines<TEAM_WARPS>(a, i, first, end, mean,
                                     1 / sqrt(whole(squares, a.splits) / size + a.eps));
            continue;
        }
        part = sum_lines<TEAM_WARPS>(a, i, first, end, step == 1, mean);
        if (threadIdx.x == 0)
            (step ? squares : sums)[p] = part;
    }
}

extern "C" int call_standardise64(const Standardise64Call *a)
{
    dim3 grid((unsigned)a->splits, grid_of(a->shape[0]));
    int  code = 0;

    if (a->splits == 1)
        return TEAM_LAUNCH(standardise_rows, a->shape[0], a->shape[1] * a->shape[2], *a);
    for (int step = 0; step < 3 && !code; step++)
        code = LAUNCH(standardise_piece, grid, TEAM_THREADS, 0, *a, step);
    return code;
}

// One step of Sinkhorn's balancing, in double.
//
//     L_uv <- L_uv - ln sum_v exp(L_uv)      over the allowed entries of a row, or column
//
// A team computes a row, a block 32 neighbouring columns, so that both read along rows.

// The log-sum-exp to subtract from a line; 0 for a line without allowed entries.
static __device__ __forceinline__ double loss(double top, double sum)
{
    return top > -(double)INFINITY ? top + log(sum) : 0.0;
}

template <int WARPS>
static __global__ void __launch_bounds__(TEAM_THREADS) balance_rows(SinkhornCall s)
{
    int member = Team<WARPS>::member(), size = Team<WARPS>::size();

    for (int64_t u = Team<WARPS>::first(); u < s.heads * s.b; u += Team<WARPS>::step()) {
        double        *x = s.log_p + u * s.b;
        const uint8_t *allowed = s.allowed ? s.allowed + u % s.b * s.b : NULL;
        double         top = -(double)INFINITY, sum = 0, all;

        for (int64_t c = member; c < s.b; c += size)
            if (!allowed || allowed[c])
                top = x[c] > top ? x[c] : top;
        top = team_take<WARPS, TakeMax>(top);
        for (int64_t c = member; c < s.b; c += size)
            if (!allowed || allowed[c])
                sum += exp(x[c] - top);
        all = loss(top, team_take<WARPS, TakeSum>(sum));
        for (int64_t c = member; c < s.b; c += size)
            if (!allowed || allowed[c])
                x[c] -= all;
    }
}

// Reduces x of one column over the block's warps, through `parts`.
template <typename Take>
static __device__ double column_take(double (*parts)[32], double x)
{
    int lane = threadIdx.x % 32;

    __syncthreads();
    parts[threadIdx.x / 32][lane] = x;
    __syncthreads();
    x = parts[0][lane];
    for (int w = 1; w < TEAM_WARPS; w++)
        x = Take::both(x, parts[w][lane]);
    return x;
}

static __global__ void __launch_bounds__(TEAM_THREADS) balance_columns(SinkhornCall s)
{
    SHARED_ARRAY(double, parts, [TEAM_WARPS][32]);
    int64_t           strips = (s.b + 31) / 32, head = blockIdx.x / strips;
    int64_t           c = blockIdx.x % strips * 32 + threadIdx.x % 32, first = threadIdx.x / 32;
    double           *x = s.log_p + head * s.b * s.b + c;
    const uint8_t    *allowed = s.allowed ? s.allowed + c : NULL;
    double            top = -(double)INFINITY, sum = 0, all;
    int64_t           rows = c < s.b ? s.b : 0;

    for (int64_t u = first; u < rows; u += TEAM_WARPS)
        if (!allowed || allowed[u * s.b])
            top = x[u * s.b] > top ? x[u * s.b] : top;
    top = column_take<TakeMax>(parts, top);
    for (int64_t u = first; u < rows; u += TEAM_WARPS)
        if (!allowed || allowed[u * s.b])
            sum += exp(x[u * s.b] - top);
    all = loss(top, column_take<TakeSum>(parts, sum));
    for (int64_t u = first; u < rows; u += TEAM_WARPS)
        if (!allowed || allowed[u * s.b])
            x[u * s.b] -= all;
}

extern "C" int call_sinkhorn(const SinkhornCall *s)
{
    if (s->heads * s->b <= 0)
        return 0;
    if (!s->columns)
        return TEAM_LAUNCH(balance_rows, s->heads * s->b, s->b, *s);
    return LAUNCH(balance_columns, (unsigned)(s->heads * ((s->b + 31) / 32)), TEAM_THREADS, 0, *s);
}
