// features.cu -- feature maps of kernel attention; attn/cpu/features.c has the formulas.
//
// The first pass stores u (the projection, or x' itself) in y, |x'|^2 / 2, and the row's maximum.
// Where c is one number for each head, the maxima of rows are reduced.  The second pass maps u.
#include "attn/cuda/kernels/team.cuh"

static __device__ __forceinline__ void waves_of(float x, float *sine, float *cosine)
{
    sincosf(x, sine, cosine);
}

static __device__ __forceinline__ void waves_of(double x, double *sine, double *cosine)
{
    sincos(x, sine, cosine);
}

// The factor of u; half: |x'|^2 / 2.
static __device__ double row_factor(const FeaturesCall &a, double squares, double *half)
{
    double factor = a.scale;

    if (a.unit)
        factor = 1 / (sqrt(squares) + a.norm_eps);
    if (a.unit && !isfinite(factor)) // a zero vector and norm_eps = 0
        factor = 0;
    *half = squares * factor * factor / 2;
    return a.unit || !a.projected ? factor : 1;
}

template <int WARPS, typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) first_pass(FeaturesCall a)
{
    int     member = Team<WARPS>::member(), size = Team<WARPS>::size();
    int64_t count = a.projected ? a.m : a.f;

    for (int64_t i = Team<WARPS>::first(); i < a.heads * a.n; i += Team<WARPS>::step()) {
        const float *x = head_of<float>(a.x, i / a.n, a.heads) + i % a.n * a.x.row_stride;
        T           *y = (T *)a.y + i * a.f;
        double       squares = 0, top = -(double)INFINITY, half;
        T            factor;

        for (int64_t t = member; t < a.x.cols; t += size)
            squares += (double)x[t] * (double)x[t];
        factor = (T)row_factor(a, team_take<WARPS, TakeSum>(squares), &half);
        for (int64_t t = member; t < count; t += size) {
            y[t] = factor * (a.projected ? y[t] : (T)x[t]);
            top = fmax(top, (double)(a.kind == FEATURES_HYPERBOLIC ? fabs(y[t]) : y[t]));
        }
        top = team_take<WARPS, TakeMax>(top);
        if (member == 0) {
            a.half[i] = half;
            a.top[i] = a.kind == FEATURES_TRIG ? half : top;
        }
    }
}

static __global__ void __launch_bounds__(TEAM_THREADS) tops_of_heads(FeaturesCall a)
{
    const double *from = a.top + blockIdx.x * a.n;
    double        top = -(double)INFINITY;

    for (int64_t i = threadIdx.x; i < a.n; i += TEAM_THREADS)
        top = fmax(top, from[i]);
    top = team_take<TEAM_WARPS, TakeMax>(top);
    if (threadIdx.x == 0)
        a.head[blockIdx.x] = top;
}

template <typename T>
static __device__ void shifted_exponentials(const FeaturesCall &a, T *y, int64_t t, double shift)
{
    double norm = 1 / sqrt((double)a.f), u = (double)y[t];

    y[t] = (T)((exp(u - shift) + a.eps) * norm);
    if (a.kind == FEATURES_HYPERBOLIC)
        y[a.m + t] = (T)((exp(-u - shift) + a.eps) * norm);
}

// sines at y[first_sine + t], cosines in the other half.
template <typename T>
static __device__ void waves(const FeaturesCall &a, T *y, int64_t t, T size, int64_t first_sine)
{
    T sine, cosine;

    waves_of(y[t], &sine, &cosine);
    y[first_sine + t] = size * sine;
    y[a.m - first_sine + t] = size * cosine;
}

// Feature t of a row, or both of projection t; treats NaN as the CPU does.
template <typename T>
static __device__ void map_entry(const FeaturesCall &a, T *y, int64_t t, double half, double c)
{
    T u = y[t];

    switch (a.kind) {
    case FEATURES_POSITIVE:
    case FEATURES_HYPERBOLIC: shifted_exponentials(a, y, t, half + c); break;
    case FEATURES_TRIG: waves(a, y, t, (T)(exp(half - c) / sqrt((double)a.m)), a.m); break;
    case FEATURES_RELU:
        y[t] = ((a.wide ? !(u <= 0) : u > 0) ? u : (T)0) + (T)a.eps;
        break;
    case FEATURES_ELU: // alpha (e^u - 1) + 1, without cancellation far below 0
        y[t] = u >= 0 ? u + 1 : (T)a.alpha * exp_of(u) + (T)(1 - a.alpha);
        break;
    case FEATURES_RECTIFIED: y[t] = 0 > u ? (T)0 : u; break;
    case FEATURES_EXP: y[t] = exp_of(u); break;
    case FEATURES_SOFTMAX: y[t] = exp_of(u - (T)c); break;
    case FEATURES_SIN_COS: waves(a, y, t, (T)a.amplitude, 0); break;
    case FEATURES_ARC_COS: y[t] = u <= 0 ? (T)0 : (T)a.amplitude * u; break;
    default: break;
    }
}

template <int WARPS, typename T>
static __global__ void __launch_bounds__(TEAM_THREADS) second_pass(FeaturesCall a)
{
    int     member = Team<WARPS>::member(), size = Team<WARPS>::size();
    int64_t count = a.projected ? a.m : a.f;

    for (int64_t i = Team<WARPS>::first(); i < a.heads * a.n; i += Team<WARPS>::step()) {
        T     *y = (T *)a.y + i * a.f;
        double c = a.kind == FEATURES_SOFTMAX ? a.top[i]
                   : !a.stabilise              ? 0
                   : a.head_top                ? a.head[i / a.n]
                                               : a.top[i];
        double sum = 0;

        for (int64_t t = member; t < count; t += size) {
            map_entry(a, y, t, a.half[i], c);
            sum += (double)y[t];
        }
        if (a.kind != FEATURES_SOFTMAX)
            continue;
        sum = team_take<WARPS, TakeSum>(sum);
        for (int64_t t = member; t < count; t += size)
            y[t] = (T)((double)y[t] / sum);
    }
}

template <int WARPS>
struct Passes { // a name for TEAM_LAUNCH's two sizes
    template <typename T>
    static int start(const FeaturesCall &a)
    {
        unsigned blocks = team_blocks<WARPS>(a.heads * a.n);
        int      code = LAUNCH((first_pass<WARPS, T>), blocks, TEAM_THREADS, 0, a);

        if (!code && a.head_top)
            code = LAUNCH(tops_of_heads, (unsigned)a.heads, TEAM_THREADS, 0, a);
        return code ? code : LAUNCH((second_pass<WARPS, T>), blocks, TEAM_THREADS, 0, a);
    }
};

extern "C" int call_features(const FeaturesCall *a)
{
    bool longer = a->f >= TEAM_LONG;

    if (a->heads * a->n <= 0 || a->f <= 0)
        return 0;
    if (a->wide)
        return longer ? Passes<TEAM_WARPS>::start<double>(*a) : Passes<1>::start<double>(*a);
    return longer ? Passes<TEAM_WARPS>::start<float>(*a) : Passes<1>::start<float>(*a);
}

/* ---- softmax of columns ------------------------------------------------------------ */

struct Share {
    double top, sum;
};

// Combines the shares of one column from different rows.
static __device__ Share both(Share a, Share b)
{
    double top = fmax(a.top, b.top);
    Share  out = { top, 0 };

    out.sum += a.sum != 0 ? a.sum * exp(a.top - top) : 0;
    out.sum += b.sum != 0 ? b.sum * exp(b.top - top) : 0;
    return out;
}

// A block computes 32 columns of COLUMN_ROWS rows; each warp a row at a time.
static __global__ void __launch_bounds__(TEAM_THREADS) measure_columns(ColumnSoftmaxCall a)
{
    SHARED_ARRAY(Share, parts, [TEAM_WARPS][32]);
    int64_t          slices = gridDim.y, head = blockIdx.z, lane = threadIdx.x % 32;
    int64_t          first = (int64_t)blockIdx.y * COLUMN_ROWS, c = (int64_t)blockIdx.x * 32 + lane;
    int64_t          end = first + COLUMN_ROWS < a.x.rows ? first + COLUMN_ROWS : a.x.rows;
    const float     *x = head_of<float>(a.x, head, a.y.heads) + c;
    Share            mine = { -(double)INFINITY, 0 };

    for (int64_t i = first + threadIdx.x / 32; i < end && c < a.x.cols; i += TEAM_WARPS)
        mine.top = fmax(mine.top, (double)x[i * a.x.row_stride]);
    for (int64_t i = first + threadIdx.x / 32; i < end && c < a.x.cols; i += TEAM_WARPS)
        mine.sum += (double)expf(x[i * a.x.row_stride] - (float)mine.top);
    parts[threadIdx.x / 32][lane] = mine;
    __syncthreads();
    if (threadIdx.x >= 32 || c >= a.x.cols)
        return;
    for (int w = 1; w < TEAM_WARPS; w++)
        mine = both(mine, parts[w][lane]);
    a.top[(head * slices + blockIdx.y) * a.x.cols + c] = mine.top;
    a.sum[(head * slices + blockIdx.y) * a.x.cols + c] = mine.sum;
}

static __global__ void __launch_bounds__(TEAM_THREADS) join_columns(ColumnSoftmaxCall a,
                                                                   int64_t slices)
{
    int64_t c = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x, cols = a.x.cols;
    int64_t at = c / cols * slices * cols + c % cols;
    Share   mine;

    if (c >= a.y.heads * cols)
        return;
    mine = { a.top[at], a.sum[at] };
    for (int64_t s = 1; s < slices; s++)
        mine = both(mine, { a.top[at + s * cols], a.sum[at + s * cols] });
    a.top[at] = mine.top;
    a.sum[at] = mine.sum;
}

static __global__ void __launch_bounds__(TEAM_THREADS) share_columns(ColumnSoftmaxCall a,
                                                                    int64_t slices)
{
    int64_t cols = a.x.cols, size = a.x.rows * cols, step = (int64_t)gridDim.x * TEAM_THREADS;

    for (int64_t at = (int64_t)blockIdx.x * TEAM_THREADS + threadIdx.x; at < a.y.heads * size;
         at += step) {
        int64_t head = at / size, i = at % size / cols, c = at % cols;
        float   x = head_of<float>(a.x, head, a.y.heads)[i * a.x.row_stride + c];
        int64_t of = head * slices * cols + c;

        head_of<float>(a.y, head, a.y.heads)[i * a.y.row_stride + c] =
            (float)((double)expf(x - (float)a.top[of]) / a.sum[of]);
    }
}

extern "C" int call_column_softmax(const ColumnSoftmaxCall *a)
{
    int64_t slices = (a->x.rows + COLUMN_ROWS - 1) / COLUMN_ROWS, columns = a->y.heads * a->x.cols;
    dim3    grid((unsigned)((a->x.cols + 31) / 32), (unsigned)slices, (unsigned)a->y.heads);
    int     code;

    if (columns <= 0 || a->x.rows <= 0)
        return 0;
    code = LAUNCH(measure_columns, grid, TEAM_THREADS, 0, *a);
    if (!code)
        code = LAUNCH(join_columns, blocks_for(columns, TEAM_THREADS), TEAM_THREADS, 0, *a, slices);
    return code ? code : LAUNCH(share_columns, blocks_for(columns * a->x.rows, TEAM_THREADS),
                                TEAM_THREADS, 0, *a, slices);
}
