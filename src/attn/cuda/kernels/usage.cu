// usage.cu -- how much keys are used: softmaxes of rows in double, added up by keys.
//
// A block has a row; then a thread has a key and takes the rows in order, the same way for every
// key, because choices are made on the result.
#include "attn/cuda/kernels/score_rows.cuh"

// z = e^(z - max z) of what the row sees; their sum.
static __global__ void __launch_bounds__(ROW_THREADS) usage_rows(UsageCall a)
{
    SHARED_ARRAY(double, words, [ROW_WARPS]);
    int64_t at = blockIdx.y * a.at.rows + blockIdx.x;
    int64_t count = row_sees(a.at, a.at.first + blockIdx.x);
    double *z = a.at.z + at * a.at.pitch, most = -INFINITY, sum = 0;

    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS)
        most = z[j] > most ? z[j] : most;
    most = block_max(most, words);
    for (int64_t j = threadIdx.x; j < count; j += ROW_THREADS) {
        z[j] = exp(z[j] - most);
        sum += z[j];
    }
    sum = block_sum(sum, words);
    if (threadIdx.x == 0)
        a.total[at] = sum;
}

static __global__ void __launch_bounds__(ROW_THREADS) usage_keys(UsageCall a)
{
    int64_t j = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x, m = a.at.k.rows;
    double  sum;

    if (j >= m)
        return;
    sum = a.at.first ? a.sums[blockIdx.y * m + j] : 0;
    for (int64_t i = 0; i < a.at.rows; i++)
        if (j < row_sees(a.at, a.at.first + i)) {
            int64_t at = blockIdx.y * a.at.rows + i;

            sum += a.at.z[at * a.at.pitch + j] / a.total[at];
        }
    a.sums[blockIdx.y * m + j] = sum;
}

extern "C" int call_usage(const UsageCall *a)
{
    int64_t keys = (a->at.k.rows + ROW_THREADS - 1) / ROW_THREADS;
    int     code = LAUNCH(usage_rows, dim3((unsigned)a->at.rows, (unsigned)a->at.heads),
                          ROW_THREADS, 0, *a);

    return code ? code
                : LAUNCH(usage_keys, dim3((unsigned)keys, (unsigned)a->at.heads), ROW_THREADS, 0,
                         *a);
}

static __global__ void __launch_bounds__(ROW_THREADS) usage_mean(UsageMeanCall a)
{
    int64_t j = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    double  sum = 0;

    if (j >= a.m)
        return;
    for (int64_t t = 0; t < a.heads; t++)
        sum += a.sums[t * a.m + j];
    a.usage[j] = sum / (double)(a.heads * a.n);
}

extern "C" int call_usage_mean(const UsageMeanCall *a)
{
    return LAUNCH(usage_mean, (unsigned)((a->m + ROW_THREADS - 1) / ROW_THREADS), ROW_THREADS, 0,
                  *a);
}
