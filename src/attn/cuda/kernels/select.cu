// select.cu -- argmax of rows, the k largest of a line of keys, and a stable sort of lines.
#include "attn/cuda/kernels/exact.cuh"
#include "attn/cuda/kernels/portable.cuh"

#define NO_DIGIT 256u

// The lanes of a warp that have this lane's digit.
static __device__ __forceinline__ unsigned lanes_alike(unsigned digit)
{
    return __match_any_sync(0xffffffffu, digit);
}

static __device__ __forceinline__ unsigned lanes_before(void)
{
    return (1u << (threadIdx.x & 31)) - 1;
}

// count[digit] += 1 for every lane of the warp, lanes without a digit left out.
static __device__ __forceinline__ void count_digit(int *count, unsigned digit)
{
    unsigned alike = lanes_alike(digit);

    if (digit != NO_DIGIT && !(alike & lanes_before()))
        atomicAdd(&count[digit], __popc(alike));
}

// Exclusive sums of the threads' numbers over the block; *all: the total.  `warps` [32] is shared.
static __device__ __forceinline__ int block_before(int x, int *warps, int *all)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = (blockDim.x + 31) >> 5;
    int sum = x, before = 0;

    for (int step = 1; step < 32; step <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, sum, step);

        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    *all = 0;
    for (int w = 0; w < count; w++) {
        before += w < warp ? warps[w] : 0;
        *all += warps[w];
    }
    __syncthreads();
    return before + sum - x;
}

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

// The digit of the wanted-th largest key, from the counts of the digits; *wanted becomes its place
// among keys with that digit.  Run by the first warp: lane x has digits 255 - 8x and the seven
// below.
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

// A stable radix sort of lines of int32, lowest byte first.
//
// Of each byte that differs anywhere: every tile counts its digits, the counts of a line are
// summed up in order of (digit, tile), and each tile puts its places where they belong.  A warp
// has neighbouring keys of its tile, so that ranks among equal digits are counted in order.

#define WARPS 8
#define SORT_THREADS (WARPS * 32)
#define EACH (SORT_TILE / SORT_THREADS) // keys of a thread
#define SCAN 1024
#define TURN 0x80000000u

struct Pass {
    int32_t *from, *to; // places; from NULL: 0, 1, 2, ...
    int      shift;     // -1: there are no more bytes to sort by
};

// The work of pass `number`.  Only the device knows how many passes there are.
static __device__ Pass pass_of(const SortCall &a, int64_t line, int number)
{
    int32_t *own[2] = { a.order + line * a.n, a.work + line * a.n };
    uint32_t mask = *a.mask;
    int      seen = 0;
    Pass     pass = { NULL, NULL, -1 };

    for (int shift = 0; shift < 32; shift += 8)
        if (mask >> shift & 255) {
            if (seen == number)
                pass.shift = shift;
            seen++;
        }
    // The last one ends in `order`.
    pass.to = own[(seen - 1 - number) & 1];
    pass.from = number ? own[(seen - number) & 1] : NULL;
    return pass;
}

// The bits in which keys of a line differ.
static __global__ void __launch_bounds__(SORT_THREADS) differing(SortCall a, int64_t tiles)
{
    int64_t        line = blockIdx.x / tiles, end = (blockIdx.x % tiles + 1) * SORT_TILE;
    const int32_t *key = a.key + line * a.n;
    uint32_t       mask = 0;

    for (int64_t i = end - SORT_TILE + threadIdx.x; i < end && i < a.n; i += SORT_THREADS)
        mask |= (uint32_t)(key[i] ^ key[0]);
    for (int lane = 16; lane; lane >>= 1)
        mask |= __shfl_xor_sync(0xffffffffu, mask, lane);
    if ((threadIdx.x & 31) == 0 && mask)
        atomicOr(a.mask, mask);
}

static __global__ void __launch_bounds__(SORT_THREADS) in_order(SortCall a, int64_t tiles)
{
    int64_t line = blockIdx.x / tiles, end = (blockIdx.x % tiles + 1) * SORT_TILE;

    if (*a.mask)
        return;
    for (int64_t i = end - SORT_TILE + threadIdx.x; i < end && i < a.n; i += SORT_THREADS)
        a.order[line * a.n + i] = (int32_t)i;
}

// The key at a place of the list, as a digit.
static __device__ unsigned digit_at(const SortCall &a, const Pass &pass, int64_t line, int64_t at,
                                    int32_t *place)
{
    if (at >= a.n)
        return NO_DIGIT;
    *place = pass.from ? pass.from[at] : (int32_t)at;
    return ((uint32_t)a.key[line * a.n + *place] ^ TURN) >> pass.shift & 255;
}

static __global__ void __launch_bounds__(SORT_THREADS) count_tile(SortCall a, int64_t tiles, int number)
{
    SHARED_ARRAY(int, count, [SORT_DIGITS]);
    int64_t        line = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    Pass           pass = pass_of(a, line, number);
    int32_t        place;

    if (pass.shift < 0)
        return;
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int x = 0; x < EACH; x++)
        count_digit(count, digit_at(a, pass, line, tile * SORT_TILE + x * SORT_THREADS + threadIdx.x,
                                    &place));
    __syncthreads();
    a.start[(line * SORT_DIGITS + threadIdx.x) * tiles + tile] = count[threadIdx.x];
}

// Exclusive sums of a line's counts, in place.
static __global__ void __launch_bounds__(SCAN) sum_up(SortCall a, int64_t tiles, int number)
{
    SHARED_ARRAY(int, warps, [32]);
    int64_t        count = SORT_DIGITS * tiles;
    int32_t       *start = a.start + blockIdx.x * count;
    int            carry = 0;

    if (pass_of(a, blockIdx.x, number).shift < 0)
        return;
    for (int64_t first = 0; first < count; first += SCAN) {
        int64_t at = first + threadIdx.x;
        int     own = at < count ? start[at] : 0, all;
        int     before = block_before(own, warps, &all);

        if (at < count)
            start[at] = carry + before;
        carry += all;
    }
}

// before[w][digit]: first how many keys of warp w have it, then where its first one goes.
static __device__ void place_warps(const SortCall &a, int64_t line, int64_t tile, int64_t tiles,
                                   int (*before)[SORT_DIGITS])
{
    int next = a.start[(line * SORT_DIGITS + threadIdx.x) * tiles + tile];

    for (int w = 0; w < WARPS; w++) {
        int count = before[w][threadIdx.x];

        before[w][threadIdx.x] = next;
        next += count;
    }
}

static __global__ void __launch_bounds__(SORT_THREADS) put_tile(SortCall a, int64_t tiles, int number)
{
    SHARED_ARRAY(int, before, [WARPS][SORT_DIGITS]);
    int64_t        line = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    int            warp = threadIdx.x / 32;
    int64_t        first = tile * SORT_TILE + warp * 32 * EACH + threadIdx.x % 32;
    Pass           pass = pass_of(a, line, number);
    unsigned       digit[EACH];
    int32_t        place[EACH];
    int            rank[EACH];

    if (pass.shift < 0)
        return;
    for (int w = 0; w < WARPS; w++)
        before[w][threadIdx.x] = 0;
    __syncthreads();
    for (int x = 0; x < EACH; x++) {
        unsigned alike;

        digit[x] = digit_at(a, pass, line, first + 32 * x, &place[x]);
        alike = lanes_alike(digit[x]);
        rank[x] = digit[x] == NO_DIGIT ? 0 : before[warp][digit[x]] + __popc(alike & lanes_before());
        __syncwarp();
        if (digit[x] != NO_DIGIT && !(alike & lanes_before()))
            before[warp][digit[x]] += __popc(alike);
        __syncwarp();
    }
    __syncthreads();
    place_warps(a, line, tile, tiles, before);
    __syncthreads();
    for (int x = 0; x < EACH; x++)
        if (digit[x] != NO_DIGIT)
            pass.to[before[warp][digit[x]] + rank[x]] = place[x];
}

extern "C" int call_sort(const SortCall *a)
{
    int64_t  tiles = (a->n + SORT_TILE - 1) / SORT_TILE;
    unsigned blocks = (unsigned)(tiles * a->lines);
    int      code = cudaMemsetAsync(a->mask, 0, sizeof(*a->mask), device_stream());

    if (!code)
        code = LAUNCH((differing), blocks, SORT_THREADS, 0, *a, tiles);
    if (!code)
        code = LAUNCH((in_order), blocks, SORT_THREADS, 0, *a, tiles);
    for (int number = 0; number < 4 && !code; number++) {
        code = LAUNCH((count_tile), blocks, SORT_THREADS, 0, *a, tiles, number);
        if (!code)
            code = LAUNCH((sum_up), (unsigned)a->lines, SCAN, 0, *a, tiles, number);
        if (!code)
            code = LAUNCH((put_tile), blocks, SORT_THREADS, 0, *a, tiles, number);
    }
    return code;
}
