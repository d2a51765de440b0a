// sinkhorn.cu -- one step of Sinkhorn's balancing, in double.
//
//     L_uv <- L_uv - ln sum_v exp(L_uv)      over the allowed entries of a row, or column
//
// Rows have teams; of columns a block has 32 beside each other, so that both read along rows.
#include "attn/cuda/kernels/team.cuh"

// What a line loses; 0 where there is nothing to share.
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

// Of the entries of one column that the block's warps have found, each in its row of `parts`.
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
