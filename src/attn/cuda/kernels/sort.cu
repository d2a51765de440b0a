// sort.cu -- a stable radix sort of lines of int32, lowest byte first.
//
// Of each byte that differs anywhere: every tile counts its digits, the counts of a line are
// summed up in order of (digit, tile), and each tile puts its places where they belong.  A warp
// has neighbouring keys of its tile, so that ranks among equal digits are counted in order.
#include "attn/cuda/kernels/digits.cuh"

#define WARPS 8
#define THREADS (WARPS * 32)
#define EACH (SORT_TILE / THREADS) // keys of a thread
#define SCAN 1024
#define TURN 0x80000000u

struct Pass {
    int32_t *from, *to; // places; from NULL: 0, 1, 2, ...
    int      shift;     // -1: there are no more bytes to sort by
};

// What the number-th pass does: it knows only on the device how many there are.
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
static __global__ void __launch_bounds__(THREADS) differing(SortCall a, int64_t tiles)
{
    int64_t        line = blockIdx.x / tiles, end = (blockIdx.x % tiles + 1) * SORT_TILE;
    const int32_t *key = a.key + line * a.n;
    uint32_t       mask = 0;

    for (int64_t i = end - SORT_TILE + threadIdx.x; i < end && i < a.n; i += THREADS)
        mask |= (uint32_t)(key[i] ^ key[0]);
    for (int lane = 16; lane; lane >>= 1)
        mask |= __shfl_xor_sync(0xffffffffu, mask, lane);
    if ((threadIdx.x & 31) == 0 && mask)
        atomicOr(a.mask, mask);
}

static __global__ void __launch_bounds__(THREADS) in_order(SortCall a, int64_t tiles)
{
    int64_t line = blockIdx.x / tiles, end = (blockIdx.x % tiles + 1) * SORT_TILE;

    if (*a.mask)
        return;
    for (int64_t i = end - SORT_TILE + threadIdx.x; i < end && i < a.n; i += THREADS)
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

static __global__ void __launch_bounds__(THREADS) count_tile(SortCall a, int64_t tiles, int number)
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
        count_digit(count, digit_at(a, pass, line, tile * SORT_TILE + x * THREADS + threadIdx.x,
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

static __global__ void __launch_bounds__(THREADS) put_tile(SortCall a, int64_t tiles, int number)
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
        code = LAUNCH((differing), blocks, THREADS, 0, *a, tiles);
    if (!code)
        code = LAUNCH((in_order), blocks, THREADS, 0, *a, tiles);
    for (int number = 0; number < 4 && !code; number++) {
        code = LAUNCH((count_tile), blocks, THREADS, 0, *a, tiles, number);
        if (!code)
            code = LAUNCH((sum_up), (unsigned)a->lines, SCAN, 0, *a, tiles, number);
        if (!code)
            code = LAUNCH((put_tile), blocks, THREADS, 0, *a, tiles, number);
    }
    return code;
}
