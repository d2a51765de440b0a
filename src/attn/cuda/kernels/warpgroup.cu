// warpgroup.cu -- exact attention over listed tiles by Hopper's warpgroups; sm_90a only.
//
// A block has 128 queries of one head: two warpgroups with 64 each, and a warp that fetches.  With
// s = S scale log2 e, and tiles j of 64 keys in the order of the list, a warpgroup does
//
//   S_j = Q K_j^T                                    begun together with
//   O   = O + P_(j-1) V_(j-1)                        what is left of the tile before
//   m'  = max(m, max s_j),  P_j = 2^(s_j - m'),  l = l 2^(m - m') + sum P_j
//   O   = O 2^(m - m')                               where some m has changed
//
// so that exponentials are computed while the tensor cores mix.  S, P, O and Q stay in registers:
// a thread's part of S is its part of P, as the left side of the second product.  P is rounded
// to the numbers' format for it and not for l.  The fetching warp goes ahead by up to STAGES
// tiles; the hardware's copies write K_j and V_j as the products read them, and bits of a tile
// that is allowed in part.  A warpgroup whose rows see nothing of a tile passes it by.
//
// As nvcc 13.0 compiles it, in bf16 and f16 alike: 168 registers a thread at the start, then up to
// 175 of the 224 that a warpgroup's threads have, nothing spilled.  For each tile 12 products (HGMMA;
// 8 for 64 columns) begun in one row; behind the wait for the scores 34 exponentials and the next
// tile's barrier, and only then the wait for the mixing.  105592 bytes of shared memory for 64
// columns and 203896 for 128: one block a multiprocessor.
#include "attn/cuda/kernels/portable.cuh"

static char reason[256] = "not asked for";

const char *warpgroup_reason(void)
{
    return reason;
}

#define decline(...) declined(reason, WARPGROUP_DECLINED, __VA_ARGS__)

int ceiling_groups(const CeilingCall *a);

#ifdef WITHOUT_WARPGROUP

extern "C" int call_attend_warpgroup(const WarpgroupCall *)
{
    return decline("not compiled in: CUDA_ARCH has no 90");
}

int ceiling_groups(const CeilingCall *)
{
    return WARPGROUP_DECLINED;
}

#else
#include "attn/cuda/kernels/attend_rows.cuh"
#include "attn/cuda/kernels/warpgroup.cuh"

#define GROUPS 2
#define HEIGHT (64 * GROUPS) // queries of a block
#define WARPS (GROUP_THREADS / 32 * GROUPS)
#define THREADS (GROUP_THREADS * (GROUPS + 1))
#define FETCH_REGISTERS 56 // a thread of the fetching warp's warpgroup
#define OWN_REGISTERS 224
#define STAGES 6
#define HALF (KEYS * LINE)   // bytes of a tile's 64 columns

// What a stage says of its tile; beside it the barriers.
struct Board {
    uint64_t full[STAGES], empty[STAGES];
    int32_t  tile[STAGES]; // twice its number, and 1 where it has bits; -1: there are no more
};

template <int SIZE>
struct Stage {
    static constexpr int TILE = SIZE / 64 * HALF; // of keys, or of values
    static constexpr int KEEP = HEIGHT * 8;       // bits of the cells
    static constexpr int BYTES = 2 * TILE + KEEP;
    static constexpr int SHARED_BYTES = PATTERN + STAGES * BYTES + (int)sizeof(Board);
};
static_assert(Stage<64>::SHARED_BYTES == 105592 && Stage<128>::SHARED_BYTES == 203896,
              "as is said above");
static_assert(GROUPS * OWN_REGISTERS + FETCH_REGISTERS <= 512, "of what a multiprocessor has");

struct TileMaps {
    CUtensorMap k, v; // [heads][rows][size], boxes of 64 rows and columns
};

// Where a warp is among the stages.
struct Ring {
    unsigned char *stages;
    Board         *board;
    int            stage;
    uint32_t       parity;
};

template <int SIZE>
static __device__ __forceinline__ Ring ring_of(unsigned char *shared)
{
    uint32_t at = shared_address(shared);
    Ring     r = {};

    r.stages = shared + ((at + PATTERN - 1) / PATTERN * PATTERN - at);
    r.board = (Board *)(r.stages + STAGES * Stage<SIZE>::BYTES);
    return r;
}

static __device__ __forceinline__ void ring_on(Ring &r)
{
    if (++r.stage == STAGES) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

// Keys; behind them the values, and the bits.
template <int SIZE>
static __device__ __forceinline__ unsigned char *stage_at(const Ring &r, int stage)
{
    return r.stages + stage * Stage<SIZE>::BYTES;
}

/* ---- the warp that fetches ---------------------------------------------------------------- */

template <int SIZE>
static __device__ __forceinline__ void fetch_tile(const MatrixAttendCall &a, const TileMaps &maps,
                                                  const Ring &r, int of_k, int of_v, int32_t key,
                                                  int32_t mask)
{
    uint32_t full = shared_address(&r.board->full[r.stage]);
    uint32_t to = shared_address(stage_at<SIZE>(r, r.stage));

    r.board->tile[r.stage] = 2 * key + (mask >= 0);
    barrier_expect(full, 2 * Stage<SIZE>::TILE + (mask >= 0 ? Stage<SIZE>::KEEP : 0));
    for (int half = 0; half < SIZE / 64; half++) {
        copy_tile(to + half * HALF, &maps.k, 64 * half, key * KEYS, of_k, full);
        copy_tile(to + Stage<SIZE>::TILE + half * HALF, &maps.v, 64 * half, key * KEYS, of_v,
                  full);
    }
    if (mask >= 0)
        copy_bytes(to + 2 * Stage<SIZE>::TILE, a.tiles.keep + (int64_t)mask * HEIGHT,
                   Stage<SIZE>::KEEP, full);
}

template <int SIZE>
static __device__ __forceinline__ void fetch_item(const MatrixAttendCall &a, const TileMaps &maps,
                                                  const AttendItem &item, int64_t head, Ring &r)
{
    int of_k = (int)(head * a.k.heads / a.heads), of_v = (int)(head * a.v.heads / a.heads);

    for (Walk w = walk_of(a, item, head); w.key < w.end; walk_on(w), ring_on(r)) {
        barrier_wait(shared_address(&r.board->empty[r.stage]), r.parity ^ 1);
        fetch_tile<SIZE>(a, maps, r, of_k, of_v, w.key, w.run.mask);
    }
    barrier_wait(shared_address(&r.board->empty[r.stage]), r.parity ^ 1);
    r.board->tile[r.stage] = -1;
    barrier_arrive(shared_address(&r.board->full[r.stage]));
    ring_on(r);
}

/* ---- the warpgroups ------------------------------------------------------------------------ */

// This thread's first row among the warpgroup's 64; its second row is 8 further.
static __device__ __forceinline__ int own_row(void)
{
    return warp_now() % 4 * 16 + lane_now() / 4;
}

static __device__ __forceinline__ int own_group(void) { return threadIdx.x / GROUP_THREADS; }

struct Tile {
    bool     last;    // end of the list; this is no tile
    Seen     which;   // how much of the tile the warpgroup's rows see
    uint64_t keep[2]; // the keys that this thread's rows see
};

// x of lane 0 in all lanes.  Lanes that left the wait at different times reconverge here, and the
// compiler knows that the value is uniform.
static __device__ __forceinline__ int32_t by_warp(int32_t x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

// Waits for the tile at hand.
template <int SIZE>
static __device__ __forceinline__ Tile take_tile(const MatrixAttendCall &a, const Ring &r)
{
    const uint64_t *rows = (const uint64_t *)(stage_at<SIZE>(r, r.stage) + 2 * Stage<SIZE>::TILE) +
                           64 * own_group();
    Tile            t = {};
    int32_t         tile;

    barrier_wait(shared_address(&r.board->full[r.stage]), r.parity);
    tile = by_warp(r.board->tile[r.stage]);
    t.last = tile < 0;
    t.which = Seen::none;
    if (t.last)
        return t;
    t.keep[0] = t.keep[1] = keys_there(a, tile / 2);
    t.which = t.keep[0] == ~(uint64_t)0 ? Seen::all : Seen::some;
    if (tile % 2 == 0)
        return t;
    // All four warps test the same 64 rows, because they must take the same branch.
    uint64_t one = rows[lane_now()], other = rows[lane_now() + 32];

    t.which = __all_sync(0xffffffffu, (one | other) == 0)              ? Seen::none
              : __all_sync(0xffffffffu, (one & other) == ~(uint64_t)0) ? Seen::all
                                                                       : Seen::some;
    t.keep[0] &= rows[own_row()];
    t.keep[1] &= rows[own_row() + 8];
    copies_may_follow();
    return t;
}

// Releases a stage that the warp has read.
static __device__ __forceinline__ void leave(const Ring &r, int stage)
{
    __syncwarp();
    if (lane_now() == 0)
        barrier_arrive(shared_address(&r.board->empty[stage]));
}

template <int SIZE>
static __device__ __forceinline__ void load_queries(const MatrixAttendCall &a, int64_t head,
                                                    int64_t first, uint32_t q[SIZE / 16][4])
{
    const uint32_t *row = (const uint32_t *)matrix_head(a.q, head, a.heads, 2 * SIZE) +
                          (first + own_row()) * (SIZE / 2) + lane_now() % 4;

#pragma unroll
    for (int step = 0; step < SIZE / 16; step++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            q[step][x] = row[x % 2 * 8 * (SIZE / 2) + 8 * step + x / 2 * 4];
}

// s = Q K^T
template <typename Form, int SIZE>
static __device__ __forceinline__ void score(const Ring &r, uint32_t (&q)[SIZE / 16][4],
                                             float (&s)[COLUMNS][4])
{
    uint64_t keys = tile_words(shared_address(stage_at<SIZE>(r, r.stage)), 0, PATTERN);

    group_product<false, false>(Form(), s, q[0], keys);
#pragma unroll
    for (int step = 1; step < SIZE / 16; step++)
        group_product<true, false>(Form(), s, q[step],
                                   keys + (step / 4 * HALF + step % 4 * 32) / 16);
}

// out += P V
template <typename Form, int SIZE>
static __device__ __forceinline__ void mix(const Ring &r, int stage, uint32_t (&p)[KEYS / 16][4],
                                           float (&out)[SIZE / 8][4])
{
    uint64_t values = tile_words(shared_address(stage_at<SIZE>(r, stage)) + Stage<SIZE>::TILE, HALF,
                                 PATTERN);

#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
        group_product<true, true>(Form(), out, p[step], values + step * 2 * PATTERN / 16);
}

template <typename Form>
static __device__ __forceinline__ void pack(const float s[COLUMNS][4], uint32_t p[KEYS / 16][4])
{
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++)
#pragma unroll
        for (int x = 0; x < 4; x++)
            p[step][x] = Form::word(s[2 * step + x / 2][x % 2 * 2],
                                    s[2 * step + x / 2][x % 2 * 2 + 1]);
}

// A warpgroup's rows of one head.
template <int SIZE>
struct Rows {
    uint32_t q[SIZE / 16][4], p[KEYS / 16][4];
    float    out[SIZE / 8][4], largest[2], sum[2];
    int      held; // the stage whose values are to be mixed in with p; -1: none
};

// A tile that the rows do not see, or the end: mixes in the held tile now, because the fetching
// warp may wait for its stage.
template <typename Form, int SIZE>
static __device__ __forceinline__ void pass_by(Ring &r, Rows<SIZE> &own)
{
    if (own.held >= 0) {
        group_begin();
        mix<Form, SIZE>(r, own.held, own.p, own.out);
        group_commit();
        group_wait<0>();
        group_written(own.out);
        leave(r, own.held);
    }
    leave(r, r.stage);
    ring_on(r);
    own.held = -1;
}

// A tile that the rows see; MIXES: a tile is held; MASKED: the rows may see only a part of it.
// Takes the next tile.
template <typename Form, int SIZE, bool MIXES, bool MASKED>
static __device__ __forceinline__ void attend_tile(const MatrixAttendCall &a, Ring &r, float by,
                                                   Tile &tile, Rows<SIZE> &own)
{
    float s[COLUMNS][4], factor[2];
    int   stage = r.stage;

    group_begin();
    score<Form, SIZE>(r, own.q, s);
    group_commit();
    if (MIXES) {
        mix<Form, SIZE>(r, own.held, own.p, own.out);
        group_commit();
    }
    group_wait<MIXES ? 1 : 0>(); // the scores
    group_written(s);
    if (MASKED) {
        hide(s, 0, tile.keep[0]);
        hide(s, 1, tile.keep[1]);
    }
    soften(s, by, own.largest, own.sum, factor);
    ring_on(r);
    // Its branches keep the compiler from moving the exponentials behind the wait.
    tile = take_tile<SIZE>(a, r);
    if (MIXES) {
        group_wait<0>();
        group_written(own.out);
        leave(r, own.held);
    }
    own.held = stage;
    if (__any_sync(0xffffffffu, factor[0] != 1 || factor[1] != 1))
        rescale<SIZE>(own.out, factor);
    pack<Form>(s, own.p);
}

template <typename Form, int SIZE>
static __device__ __forceinline__ void attend_item(const MatrixAttendCall &a,
                                                   const AttendItem &item, int64_t head, Ring &r)
{
    float      by = (float)a.scale * LOG2_E;
    Rows<SIZE> own = {};
    Tile       tile;

    own.largest[0] = own.largest[1] = -INFINITY;
    own.held = -1;
    load_queries<SIZE>(a, head, (int64_t)item.row * HEIGHT + 64 * own_group(), own.q);
    tile = take_tile<SIZE>(a, r);
    while (!tile.last) {
        if (tile.which == Seen::none) {
            pass_by<Form, SIZE>(r, own);
            tile = take_tile<SIZE>(a, r);
        } else if (own.held < 0) {
            attend_tile<Form, SIZE, false, true>(a, r, by, tile, own);
        } else if (tile.which == Seen::some) {
            attend_tile<Form, SIZE, true, true>(a, r, by, tile, own);
        } else {
            attend_tile<Form, SIZE, true, false>(a, r, by, tile, own);
        }
    }
    pass_by<Form, SIZE>(r, own);
#pragma unroll
    for (int half = 0; half < 2; half++)
        put_row<SIZE>(a, item, head, 64 * own_group() + own_row() + 8 * half, HEIGHT,
                      own.largest[half] * by, own.sum[half], own.out, half);
}

/* ---- the block ------------------------------------------------------------------------------ */

static __device__ __forceinline__ void barriers_init(Board *board)
{
    for (int x = 0; x < STAGES; x++) {
        barrier_init(shared_address(&board->full[x]), 1);
        barrier_init(shared_address(&board->empty[x]), WARPS);
    }
    barriers_begin();
    copies_may_follow();
}

// Block (x, y): item x, for its own head or heads y, y + gridDim.y, ...
template <typename Form, int SIZE>
static __global__ void __launch_bounds__(THREADS, 1)
attend_groups(const __grid_constant__ MatrixAttendCall a, const __grid_constant__ TileMaps maps)
{
    SHARED(unsigned char, shared);
    Ring       r = ring_of<SIZE>(shared);
    AttendItem item = a.items[blockIdx.x];
    int64_t    head = item.head >= 0 ? item.head : blockIdx.y;
    int64_t    end = item.head >= 0 ? item.head + 1 : a.heads;

    if (threadIdx.x == 0)
        barriers_init(r.board);
    __syncthreads();
    if (by_warp(warp_now()) < WARPS) {
        registers_more<OWN_REGISTERS>();
        for (; head < end; head += gridDim.y)
            attend_item<Form, SIZE>(a, item, head, r);
    } else {
        registers_less<FETCH_REGISTERS>();
        if (threadIdx.x == WARPS * 32)
            for (; head < end; head += gridDim.y)
                fetch_item<SIZE>(a, maps, item, head, r);
    }
}

/* ---- the call: whether this GPU and this driver do it, maps of the keys and values ------- */

typedef decltype(&cuTensorMapEncodeTiled) MapMaker;

// sm_90a code runs on capability 9.0 and nothing else.
static int find_maker(MapMaker *maker)
{
    cudaDriverEntryPointQueryResult found;
    int   index = 0, major = 0, minor = 0;
    void *entry = NULL;

    if (cudaGetDevice(&index) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess)
        return decline("the device does not say what it is");
    if (major != 9 || minor != 0)
        return decline("made for compute capability 9.0, this is %d.%d", major, minor);
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                         cudaEnableDefault, &found) != cudaSuccess || !entry)
        return decline("the driver has no cuTensorMapEncodeTiled");
    *maker = (MapMaker)entry;
    return 0;
}

static int map_tiles(MapMaker make, const Packed &t, CUtensorMap *map)
{
    cuuint64_t size[3] = { (cuuint64_t)t.size, (cuuint64_t)t.rows, (cuuint64_t)t.heads };
    cuuint64_t stride[2] = { (cuuint64_t)(2 * t.size), (cuuint64_t)(2 * t.size * t.rows) };
    cuuint32_t box[3] = { 64, KEYS, 1 }, each[3] = { 1, 1, 1 };
    int        code = make(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, t.data, size, stride, box, each,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    return code ? decline("no map of [%lld, %lld, %lld] numbers: code %d", (long long)t.heads,
                          (long long)t.rows, (long long)t.size, code) : 0;
}

template <typename Form, int SIZE>
static int launch(const MatrixAttendCall &a, const TileMaps &maps)
{
    constexpr int bytes = Stage<SIZE>::SHARED_BYTES;
    dim3          grid((unsigned)a.item_count, a.tiles.per_head ? 1u : grid_of(a.heads));

    if (ALLOW_SHARED((attend_groups<Form, SIZE>), bytes) != cudaSuccess)
        return cudaGetLastError();
    return LAUNCH((attend_groups<Form, SIZE>), grid, THREADS, bytes, a, maps);
}

template <typename Form>
static int launch_form(const MatrixAttendCall &a, const TileMaps &maps)
{
    return a.size == 64 ? launch<Form, 64>(a, maps) : launch<Form, 128>(a, maps);
}

extern "C" int call_attend_warpgroup(const WarpgroupCall *call)
{
    const MatrixAttendCall &a = call->attend;
    MapMaker                make = NULL;
    TileMaps                maps;
    int                     code = find_maker(&make);

    if (code || !a.heads)
        return code ? code : (decline("there"), 0);
    if ((a.size != 64 && a.size != 128) || a.tiles.height != HEIGHT || a.distance.data ||
        a.tiles.extra || a.cap.top > 0 || !(a.scale > 0))
        return decline("made for 64 or 128 columns, a scale above 0 and nothing added to scores");
    code = map_tiles(make, a.k, &maps.k);
    code = code ? code : map_tiles(make, a.v, &maps.v);
    if (code)
        return code;
    return call->arithmetic == ARITHMETIC_BF16 ? launch_form<Bf16>(a, maps)
                                               : launch_form<F16>(a, maps);
}

/* ---- the peak: products of warpgroups, left sides and sums in registers ------------------ */

// The products of ceilings.cu, a warp each, do not reach the peak of Hopper's tensor cores.
#define PEAK_COLUMNS 128 // of a product
#define PEAK_TILE (PEAK_COLUMNS * LINE)
#define PEAK_STEPS CEILING_GROUPS_STEPS
static_assert(CEILING_GROUPS_FLOPS ==
                  2.0 * 64 * PEAK_COLUMNS * 16 * PEAK_STEPS * (CEILING_THREADS / GROUP_THREADS),
              "the host counts them");

template <typename Form>
static __global__ void __launch_bounds__(CEILING_THREADS) group_steps(CeilingCall a)
{
    SHARED(unsigned char, shared);
    uint32_t  at = shared_address(shared), first = (PATTERN - at % PATTERN) % PATTERN;
    uint32_t *words = (uint32_t *)(shared + first);
    uint32_t  left[PEAK_STEPS][4]; // one for each product: a shared one would be copied each time
    uint64_t  right = tile_words(at + first, 0, PATTERN);
    float     sum[PEAK_COLUMNS / 8][4], all = 0;

    for (int x = (int)threadIdx.x; x < PEAK_TILE / 4; x += CEILING_THREADS)
        words[x] = Form::word(1e-3f * (float)(x % 64), 0.25f);
#pragma unroll
    for (int x = 0; x < 4 * PEAK_STEPS; x++)
        left[x / 4][x % 4] = Form::word(1e-3f * (float)(threadIdx.x + x), 0.5f);
#pragma unroll
    for (int x = 0; x < PEAK_COLUMNS / 2; x++)
        sum[x / 4][x % 4] = 0;
    copies_may_follow(); // products read as copies do
    __syncthreads();
    for (int64_t round = 0; round < a.rounds; round++) {
        group_begin();
#pragma unroll
        for (int s = 0; s < PEAK_STEPS; s++)
            group_product<true, false>(Form(), sum, left[s], right + s % 4 * 32 / 16);
        group_commit();
        group_wait<0>();
        group_written(sum);
    }
#pragma unroll
    for (int x = 0; x < PEAK_COLUMNS / 2; x++)
        all += sum[x / 4][x % 4];
    if (all == -1.0f) // keeps the compiler from removing the sum
        a.a[0] = all;
}

int ceiling_groups(const CeilingCall *a)
{
    size_t   shared = PATTERN + PEAK_TILE;
    unsigned blocks = (unsigned)a->blocks;

    return a->arithmetic == ARITHMETIC_BF16
               ? LAUNCH((group_steps<Bf16>), blocks, CEILING_THREADS, shared, *a)
               : LAUNCH((group_steps<F16>), blocks, CEILING_THREADS, shared, *a);
}

#endif
