// lambda.cu -- lambdas, in double; see attn/lambdas.h.
#include "attn/cuda/kernels/portable.cuh"

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
