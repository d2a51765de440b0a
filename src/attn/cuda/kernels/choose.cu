// choose.cu -- which vector is the nearest, codes of bits, keys of products; all in double.
#include "attn/cuda/kernels/exact.cuh"

#define THREADS (EXACT_SIDE * EXACT_SIDE)

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
static __global__ void __launch_bounds__(THREADS) nearest_rows(NearestCall a)
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

    return a->cosine ? LAUNCH((nearest_rows<true, X, Y>), grid, THREADS, 0, *a)
                     : LAUNCH((nearest_rows<false, X, Y>), grid, THREADS, 0, *a);
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
static __global__ void __launch_bounds__(THREADS) product_keys(ProductKeysCall a)
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

    return LAUNCH((product_keys<X, Y>), grid, THREADS, 0, *a);
}

extern "C" int call_product_keys(const ProductKeysCall *a)
{
    if (a->x.dtype == DEVICE_F64)
        return a->y.dtype == DEVICE_F64 ? launch_keys<double, double>(a)
                                        : launch_keys<double, float>(a);
    return a->y.dtype == DEVICE_F64 ? launch_keys<float, double>(a) : launch_keys<float, float>(a);
}

/* ---- codes -------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(THREADS) code_rows(CodesCall a)
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

    return LAUNCH((code_rows), grid, THREADS, 0, *a);
}
