// nearest.cu -- which vector is the nearest, codes of bits, keys of products, sums and counts of a
// cluster's members; all in double.
#include "attn/cuda/kernels/exact.cuh"

#define TILE_THREADS (EXACT_SIDE * EXACT_SIDE)

struct Best {
    double  value;
    int32_t index;
};

static __device__ __forceinline__ void consider(Best *best, double value, int32_t index)
{
    if (value > best->value || (value == best->value && index < best->index)) {
        best->value = value;
        best->index = index;
    }
}

// The best of the 16 threads of a row.
static __device__ Best row_best(Best best)
{
    for (int lane = EXACT_SIDE / 2; lane; lane >>= 1) {
        double  value = __shfl_xor_sync(0xffffffffu, best.value, lane);
        int32_t index = __shfl_xor_sync(0xffffffffu, best.index, lane);

        consider(&best, value, index);
    }
    return best;
}

template <typename V>
static __device__ ExactRows<V> rows_of(const DeviceTensor &t, int64_t head, int64_t heads,
                                       int64_t first, int64_t count)
{
    return { head_of<const V>(t, head, heads) + first * t.row_stride, t.row_stride, count, t.cols };
}

/* ---- the nearest ------------------------------------------------------------------- */

// Takes the columns of one tile into each row's best.  A NaN in front of all others stays the
// best, as none is larger; elsewhere it is larger than nothing.
template <bool COSINE>
static __device__ void take_columns(const NearestCall &a, const ExactTile *tile, int64_t first,
                                    double acc[EXACT_OWN][EXACT_OWN], Best *best, bool *stuck)
{
    int down = threadIdx.x / EXACT_SIDE, along = threadIdx.x % EXACT_SIDE;

    for (int r = 0; r < EXACT_OWN; r++)
        for (int c = 0; c < EXACT_OWN; c++) {
            int     place = along + EXACT_SIDE * c;
            int64_t column = first + place;
            double  z = acc[r][c];

            if (column >= a.count)
                continue;
            if (COSINE)
                z /= __dmul_rn(exact_length(tile->squares_x[EXACT_OWN * down + r]),
                               exact_length(tile->squares_y[place]));
            stuck[r] = stuck[r] || (column == 0 && isnan(z));
            consider(&best[r], z, (int32_t)column);
            if (a.negative)
                consider(&best[r], -z, (int32_t)(a.count + column));
        }
}

template <bool COSINE, typename X, typename Y>
static __global__ void __launch_bounds__(TILE_THREADS) nearest_rows(NearestCall a)
{
    SHARED_VALUE(ExactTile, tile);
    int64_t              first = (int64_t)blockIdx.x * EXACT_TILE, part = blockIdx.y;
    int64_t              head = blockIdx.z;
    int                  down = threadIdx.x / EXACT_SIDE, along = threadIdx.x % EXACT_SIDE;
    ExactRows<X>         x = rows_of<X>(a.x, head, a.heads, 0, a.x.rows);
    ExactRows<Y>         y = rows_of<Y>(a.y, head, a.heads, part * a.count, a.count);
    Best                 best[EXACT_OWN];
    bool                 stuck[EXACT_OWN];
    double               acc[EXACT_OWN][EXACT_OWN];

    for (int r = 0; r < EXACT_OWN; r++) {
        best[r] = { -INFINITY, INT32_MAX };
        stuck[r] = false;
    }
    for (int64_t column = 0; column < a.count; column += EXACT_TILE) {
        exact_products<COSINE>(&tile, x, first, y, column, acc);
        take_columns<COSINE>(a, &tile, column, acc, best, stuck);
    }
    for (int r = 0; r < EXACT_OWN; r++) {
        int64_t i = first + EXACT_OWN * down + r;

        best[r] = row_best(best[r]);
        if (along == 0 && i < a.x.rows)
            a.index[(head * a.parts + part) * a.x.rows + i] = stuck[r] ? 0 : best[r].index;
    }
}

template <typename X, typename Y>
static int launch_nearest(const NearestCall *a)
{
    dim3 grid((unsigned)((a->x.rows + EXACT_TILE - 1) / EXACT_TILE), (unsigned)a->parts,
              (unsigned)a->heads);

    return a->cosine ? LAUNCH((nearest_rows<true, X, Y>), grid, TILE_THREADS, 0, *a)
                     : LAUNCH((nearest_rows<false, X, Y>), grid, TILE_THREADS, 0, *a);
}

extern "C" int call_nearest(const NearestCall *a)
{
    if (a->x.dtype == DEVICE_F64)
        return a->y.dtype == DEVICE_F64 ? launch_nearest<double, double>(a)
                                        : launch_nearest<double, float>(a);
    return a->y.dtype == DEVICE_F64 ? launch_nearest<float, double>(a)
                                    : launch_nearest<float, float>(a);
}

/* ---- keys of products ----------------------------------------------------------------- */

// The vectors stand down the tile and the rows along it, so that keys are written in rows.
template <typename X, typename Y>
static __global__ void __launch_bounds__(TILE_THREADS) product_keys(ProductKeysCall a)
{
    SHARED_VALUE(ExactTile, tile);
    int64_t              head = blockIdx.z, n = a.x.rows;
    int64_t              first = (int64_t)blockIdx.y * EXACT_TILE;
    int                  down = threadIdx.x / EXACT_SIDE, along = threadIdx.x % EXACT_SIDE;
    ExactRows<X>         x = rows_of<X>(a.x, a.first_head + head, a.heads, 0, n);
    ExactRows<Y>         y = rows_of<Y>(a.y, a.first_head + head, a.heads, a.first_column,
                                        a.columns_now);
    double               acc[EXACT_OWN][EXACT_OWN];

    exact_products<false>(&tile, y, first, x, (int64_t)blockIdx.x * EXACT_TILE, acc);
    for (int r = 0; r < EXACT_OWN; r++)
        for (int c = 0; c < EXACT_OWN; c++) {
            int64_t column = first + EXACT_OWN * down + r;
            int64_t i = (int64_t)blockIdx.x * EXACT_TILE + along + EXACT_SIDE * c;
            int64_t bits = __double_as_longlong(acc[r][c]);

            if (column >= a.columns_now || i >= n)
                continue;
            if (isnan(acc[r][c]))
                bits = nan_sum(x.data + i * x.stride, y.data + column * y.stride, x.d);
            a.key[(head * a.columns_now + column) * n + i] = order_key(bits);
        }
}

template <typename X, typename Y>
static int launch_keys(const ProductKeysCall *a)
{
    dim3 grid((unsigned)((a->x.rows + EXACT_TILE - 1) / EXACT_TILE),
              (unsigned)((a->columns_now + EXACT_TILE - 1) / EXACT_TILE), (unsigned)a->heads_now);

    return LAUNCH((product_keys<X, Y>), grid, TILE_THREADS, 0, *a);
}

extern "C" int call_product_keys(const ProductKeysCall *a)
{
    if (a->x.dtype == DEVICE_F64)
        return a->y.dtype == DEVICE_F64 ? launch_keys<double, double>(a)
                                        : launch_keys<double, float>(a);
    return a->y.dtype == DEVICE_F64 ? launch_keys<float, double>(a) : launch_keys<float, float>(a);
}

/* ---- codes -------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(TILE_THREADS) code_rows(CodesCall a)
{
    SHARED_VALUE(ExactTile, tile);
    int64_t              first = (int64_t)blockIdx.x * EXACT_TILE, head = blockIdx.y;
    int                  down = threadIdx.x / EXACT_SIDE, along = threadIdx.x % EXACT_SIDE;
    ExactRows<float>     x = rows_of<float>(a.x, head, a.heads, 0, a.x.rows);
    ExactRows<float>     p = rows_of<float>(a.planes, head, a.heads, 0, a.planes.rows);
    double               acc[EXACT_OWN][EXACT_OWN];

    p.d--;
    exact_products<false>(&tile, x, first, p, 0, acc);
    for (int r = 0; r < EXACT_OWN; r++) {
        unsigned long long code = 0;
        int64_t            i = first + EXACT_OWN * down + r;

        for (int c = 0; c < EXACT_OWN; c++) {
            int    t = along + EXACT_SIDE * c;
            double bias = a.bias && t < p.count ? (double)p.data[t * p.stride + p.d] : 0;

            if (t < p.count && acc[r][c] > bias)
                code |= 1ull << t;
        }
        for (int lane = EXACT_SIDE / 2; lane; lane >>= 1)
            code |= __shfl_xor_sync(0xffffffffu, code, lane);
        if (along == 0 && i < x.count)
            a.code[head * x.count + i] = (int64_t)code;
    }
}

extern "C" int call_codes(const CodesCall *a)
{
    dim3 grid((unsigned)((a->x.rows + EXACT_TILE - 1) / EXACT_TILE), (unsigned)a->heads);

    return LAUNCH((code_rows), grid, TILE_THREADS, 0, *a);
}

// Sums over the members of clusters, and codes of bits.

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
