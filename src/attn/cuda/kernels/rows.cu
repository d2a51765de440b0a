// rows.cu -- softmax, normalisation, activations and lengths of rows.  Statistics are in
// double, as on the CPU.
#include "attn/cuda/kernels/team.cuh"

static __device__ __forceinline__ float exp_of(float x) { return expf(x); }
static __device__ __forceinline__ double exp_of(double x) { return exp(x); }

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
