// largest.cu -- argmax of rows, and the k largest of a line of keys.
#include "attn/cuda/kernels/digits.cuh"
#include "attn/cuda/kernels/exact.cuh"

#define THREADS 256

/* ---- argmax: as many lanes as a row needs, a warp at most ------------------------------- */

static __device__ __forceinline__ void consider(double *top, int32_t *best, double x, int32_t index)
{
    if (x > *top || (x == *top && index < *best)) {
        *top = x;
        *best = index;
    }
}

static __global__ void __launch_bounds__(THREADS) argmax_rows(ArgmaxCall a, int width)
{
    int64_t       line = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / width;
    int           lane = threadIdx.x % width;
    const double *x = a.x + line * a.count;
    double        top = -INFINITY;
    int32_t       best = INT32_MAX;

    if (line < a.lines)
        for (int64_t c = lane; c < a.count; c += width) {
            consider(&top, &best, x[c], (int32_t)c);
            if (a.negative)
                consider(&top, &best, -x[c], (int32_t)(a.count + c));
        }
    for (int step = width / 2; step; step >>= 1) {
        double  other = __shfl_xor_sync(0xffffffffu, top, step);
        int32_t index = __shfl_xor_sync(0xffffffffu, best, step);

        consider(&top, &best, other, index);
    }
    if (line < a.lines && lane == 0)
        a.index[line] = isnan(x[0]) ? 0 : best; // nothing is larger than a NaN
}

extern "C" int call_argmax(const ArgmaxCall *a)
{
    int     width = 1;
    int64_t blocks;

    while (width < 32 && width < a->count)
        width *= 2;
    blocks = (a->lines * width + THREADS - 1) / THREADS;
    return LAUNCH((argmax_rows), (unsigned)blocks, THREADS, 0, *a, width);
}

/* ---- keys of columns: a transposition ----------------------------------------------------- */

#define SQUARE 32

static __global__ void __launch_bounds__(THREADS) column_keys(ColumnKeysCall a)
{
    SHARED_ARRAY(int64_t, keys, [SQUARE][SQUARE + 1]);
    int64_t            row = (int64_t)blockIdx.x * SQUARE, column = (int64_t)blockIdx.y * SQUARE;
    int                lane = threadIdx.x % SQUARE;

    for (int r = threadIdx.x / SQUARE; r < SQUARE; r += THREADS / SQUARE)
        if (row + r < a.n && column + lane < a.columns) {
            int64_t at = (row + r) * a.columns + column + lane;
            int64_t bits = __double_as_longlong(a.x[at]);

            keys[lane][r] = order_key(isnan(a.x[at]) ? bits | WIDE_QUIET : bits);
        }
    __syncthreads();
    for (int c = threadIdx.x / SQUARE; c < SQUARE; c += THREADS / SQUARE)
        if (column + c < a.columns && row + lane < a.n)
            a.key[(column + c) * a.n + row + lane] = keys[c][lane];
}

extern "C" int call_column_keys(const ColumnKeysCall *a)
{
    dim3 grid((unsigned)((a->n + SQUARE - 1) / SQUARE),
              (unsigned)((a->columns + SQUARE - 1) / SQUARE));

    return LAUNCH((column_keys), grid, THREADS, 0, *a);
}

/* ---- the k largest ------------------------------------------------------------------------- */

#define LINE 512 // threads of a line
#define DIGITS 256

struct Bound {
    int64_t key;   // of the k-th largest
    int     equal; // so many of those equal to it are taken
};

// Of the digits, counted, the one that the wanted-th largest has; *wanted is then its place
// among those.  By the first warp: lane x has digits 255 - 8x and the seven below.
static __device__ unsigned find_digit(const int *count, int *wanted)
{
    int lane = threadIdx.x, own = 0, sum, want = *wanted;

    for (int x = 0; x < DIGITS / 32; x++)
        own += count[DIGITS - 1 - lane * (DIGITS / 32) - x];
    sum = own;
    for (int step = 1; step < 32; step <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, sum, step);

        sum += lane >= step ? other : 0;
    }
    int      before = sum - own, digit = DIGITS - 1 - lane * (DIGITS / 32);
    unsigned here = __ballot_sync(0xffffffffu, before < want && want <= sum);
    int      from = __ffs((int)here) - 1;

    for (int x = 1; x < DIGITS / 32 && before + count[digit] < want; x++)
        before += count[digit--];
    *wanted = want - __shfl_sync(0xffffffffu, before, from);
    return (unsigned)__shfl_sync(0xffffffffu, digit, from);
}

// By radix, from the highest byte on.
static __device__ Bound find_bound(const int64_t *key, int64_t n, int64_t k)
{
    SHARED_ARRAY(int, count, [DIGITS]);
    SHARED_VALUE(int, place);
    SHARED_VALUE(uint64_t, found);
    uint64_t            turn = (uint64_t)1 << 63;
    Bound               bound;

    if (threadIdx.x == 0) {
        place = (int)k;
        found = 0;
    }
    for (int shift = 56; shift >= 0; shift -= 8) {
        if (threadIdx.x < DIGITS)
            count[threadIdx.x] = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < (n + LINE - 1) / LINE * LINE; i += LINE) {
            uint64_t u = i < n ? (uint64_t)key[i] ^ turn : 0;
            bool     in = i < n && (shift == 56 || (u ^ found) >> shift >> 8 == 0);

            count_digit(count, in ? (unsigned)(u >> shift & 255) : NO_DIGIT);
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            int      wanted = place;
            unsigned digit = find_digit(count, &wanted);

            __syncwarp();
            if (threadIdx.x == 0) {
                place = wanted;
                found |= (uint64_t)digit << shift;
            }
        }
        __syncthreads();
    }
    bound.key = (int64_t)(found ^ turn);
    bound.equal = place;
    return bound;
}

static __global__ void __launch_bounds__(LINE) select_line(SelectCall a)
{
    SHARED_ARRAY(int, warps, [32]);
    const int64_t *key = a.key + (int64_t)blockIdx.x * a.n;
    int32_t       *out = a.index + (int64_t)blockIdx.x * a.k;
    Bound          bound = find_bound(key, a.n, a.k);
    int            above = 0, equal = 0; // before this piece

    for (int64_t first = 0; first < a.n; first += LINE) {
        int64_t i = first + threadIdx.x;
        bool    more = i < a.n && key[i] > bound.key, same = i < a.n && key[i] == bound.key;
        int     all_more, all_same;
        int     more_before = above + block_before(more, warps, &all_more);
        int     same_before = equal + block_before(same, warps, &all_same);

        if (more || (same && same_before < bound.equal))
            out[more_before + min(same_before, bound.equal)] = (int32_t)i;
        above += all_more;
        equal += all_same;
    }
}

extern "C" int call_select(const SelectCall *a)
{
    return LAUNCH((select_line), (unsigned)a->lines, LINE, 0, *a);
}
