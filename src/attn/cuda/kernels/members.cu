// members.cu -- what the members of clusters have in common, and codes of bits.
#include "attn/cuda/kernels/exact.cuh"

#define THREADS 256
#define CODE_BITS 64

/* ---- sums of vectors ---------------------------------------------------------------------- */

#define LANES 8 // of a row's squares, as the CPU sums them

// 1 / max(|x_i|, 1e-12), by eight threads a row.
static __global__ void __launch_bounds__(THREADS) row_factors(MemberSumsCall a)
{
    int64_t      i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES, head = blockIdx.y;
    int          lane = threadIdx.x % LANES;
    int64_t      d = a.x.cols, whole = d / LANES * LANES;
    bool         there = i < a.x.rows;
    const float *x = head_of<float>(a.x, head, a.heads) + (there ? i : 0) * a.x.row_stride;
    double       own = 0, squares = 0;

    for (int64_t t = lane; t < whole; t += LANES)
        own = __fma_rn((double)x[t], (double)x[t], own); // the product is exact
    for (int c = 0; c < LANES; c++)
        squares = __dadd_rn(squares, __shfl_sync(0xffffffffu, own, c, LANES));
    for (int64_t t = whole; t < d; t++)
        squares = __fma_rn((double)x[t], (double)x[t], squares);
    if (there && lane == 0)
        a.factor[head * a.x.rows + i] = 1 / fmax(sqrt(squares), LENGTH_LEAST);
}

// The first place of a sorted list of clusters that has `cluster` or a later one.
static __device__ int64_t first_member(const int32_t *index, const int32_t *order, int64_t n,
                                       int64_t cluster)
{
    int64_t low = 0, high = n;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (index[order[middle]] < cluster)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// A block has some columns of one cluster and adds its members in their order.
template <typename T>
static __global__ void __launch_bounds__(64) sum_members(MemberSumsCall a)
{
    int64_t        n = a.x.rows, head = blockIdx.z, cluster = blockIdx.x;
    int64_t        column = (int64_t)blockIdx.y * 64 + threadIdx.x;
    const int32_t *index = a.index + head * n, *order = a.order + head * n;
    int64_t        from = first_member(index, order, n, cluster);
    int64_t        to = first_member(index, order, n, cluster + 1);
    const T       *x = head_of<T>(a.x, head, a.heads) + column;
    double         sum = 0;

    if (column >= a.x.cols)
        return;
#pragma unroll 4
    for (int64_t at = from; at < to; at++) {
        int64_t i = order[at];
        double  factor = a.factor ? a.factor[head * n + i] : 1;

        sum = __dadd_rn(sum, __dmul_rn((double)x[i * a.x.row_stride], factor));
    }
    a.sum[(head * a.clusters + cluster) * a.x.cols + column] = sum;
}

extern "C" int call_member_sums(const MemberSumsCall *a)
{
    dim3 rows((unsigned)((a->x.rows * LANES + THREADS - 1) / THREADS), (unsigned)a->heads);
    dim3 grid((unsigned)a->clusters, (unsigned)((a->x.cols + 63) / 64), (unsigned)a->heads);
    int  code = a->factor ? LAUNCH((row_factors), rows, THREADS, 0, *a) : 0;

    if (code)
        return code;
    return a->x.dtype == DEVICE_F64 ? LAUNCH((sum_members<double>), grid, 64, 0, *a)
                                    : LAUNCH((sum_members<float>), grid, 64, 0, *a);
}

/* ---- how many there are ------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) tally(TallyCall a)
{
    int64_t all = a.heads * a.n, step = (int64_t)gridDim.x * THREADS;

    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < all; at += step)
        atomicAdd(&a.count[at / a.n * a.size + a.index[at]], 1);
}

extern "C" int call_tally(const TallyCall *a)
{
    size_t size = (size_t)(a->heads * a->size) * sizeof(int32_t);
    int    code = size ? cudaMemsetAsync(a->count, 0, size, device_stream()) : 0;

    return code || a->heads * a->n <= 0
               ? code
               : LAUNCH(tally, blocks_for(a->heads * a->n, THREADS), THREADS, 0, *a);
}

/* ---- codes ---------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) nearest_codes(NearestCodesCall a)
{
    SHARED_ARRAY(int64_t, centre, [THREADS]);
    int64_t            i = (int64_t)blockIdx.x * THREADS + threadIdx.x, head = blockIdx.y;
    int64_t            own = i < a.n ? a.code[head * a.n + i] : 0, best = 0;
    int                least = CODE_BITS + 1;

    for (int64_t first = 0; first < a.count; first += THREADS) {
        int64_t here = a.count - first < THREADS ? a.count - first : THREADS;

        __syncthreads();
        if (threadIdx.x < here)
            centre[threadIdx.x] = a.centre[head * a.count + first + threadIdx.x];
        __syncthreads();
        for (int64_t c = 0; c < here; c++) {
            int apart = __popcll((unsigned long long)(own ^ centre[c]));

            if (apart < least) {
                least = apart;
                best = first + c;
            }
        }
    }
    if (i < a.n)
        a.cluster[head * a.n + i] = (int32_t)best;
}

extern "C" int call_nearest_codes(const NearestCodesCall *a)
{
    dim3 grid((unsigned)((a->n + THREADS - 1) / THREADS), (unsigned)a->heads);

    return LAUNCH((nearest_codes), grid, THREADS, 0, *a);
}

#define CODES 4096     // of one block
#define SHARED_MOST 96 // clusters whose counts fit a block's shared memory

// Two warps a code, a lane for each bit; counts of few clusters are gathered in the block.
template <bool GATHER>
static __global__ void __launch_bounds__(THREADS) bit_sums(BitSumsCall a)
{
    SHARED(int, count);
    int64_t  head = blockIdx.y, size = a.clusters * CODE_BITS;
    int64_t  end = ((int64_t)blockIdx.x + 1) * CODES;
    int32_t *ones = a.ones + head * size, *to = GATHER ? count : ones;
    int      bit = threadIdx.x % CODE_BITS;

    for (int64_t x = threadIdx.x; GATHER && x < size; x += THREADS)
        count[x] = 0;
    __syncthreads();
    for (int64_t i = end - CODES + threadIdx.x / CODE_BITS; i < end && i < a.n;
         i += THREADS / CODE_BITS)
        if (a.code[head * a.n + i] >> bit & 1)
            atomicAdd(&to[a.cluster[head * a.n + i] * CODE_BITS + bit], 1);
    __syncthreads();
    for (int64_t x = threadIdx.x; GATHER && x < size; x += THREADS)
        if (count[x])
            atomicAdd(&ones[x], count[x]);
}

extern "C" int call_bit_sums(const BitSumsCall *a)
{
    dim3   grid((unsigned)((a->n + CODES - 1) / CODES), (unsigned)a->heads);
    size_t size = (size_t)(a->clusters * CODE_BITS) * sizeof(int32_t);
    int    code = cudaMemsetAsync(a->ones, 0, (size_t)a->heads * size, device_stream());

    if (code)
        return code;
    return a->clusters <= SHARED_MOST ? LAUNCH((bit_sums<true>), grid, THREADS, size, *a)
                                      : LAUNCH((bit_sums<false>), grid, THREADS, 0, *a);
}
