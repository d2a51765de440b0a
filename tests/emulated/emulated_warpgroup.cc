// emulated_warpgroup.cc -- see emulated_warpgroup.h.
#include "attn/cuda/kernels/warpgroup.cuh"
#include "emulated_races.h"

#include <map>
#include <vector>

#define GROUPS_MOST 8 // warpgroups of a block
#define FIRST 16u     // shared address of the dynamic part: no multiple of what tiles need

/* ---- shared memory ------------------------------------------------------------------------ */

uint32_t emulated_shared_address(const void *at)
{
    return FIRST + (uint32_t)((const unsigned char *)at - (unsigned char *)emulated_shared());
}

static unsigned char *memory_at(uint32_t address, size_t bytes)
{
    if (address < FIRST || address - FIRST + bytes > emulated_shared_size())
        emulated_broken("an address is outside of its shared memory");
    return (unsigned char *)emulated_shared() + (address - FIRST);
}

// "128-byte swizzle": bits 4 to 6 of an address are changed by bits 7 to 9.
static uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 7 & 7) << 4;
}

/* ---- barriers ------------------------------------------------------------------------------- */

struct Barrier {
    uint8_t arrivals, left, phase, known;
    int32_t bytes; // announced and not there yet
};
static_assert(sizeof(Barrier) == sizeof(uint64_t), "a barrier is a word of 64 bits");
#define KNOWN 0x5a

static Barrier *barrier_at(uint32_t at)
{
    Barrier *b = (Barrier *)memory_at(at, sizeof(*b));

    if (at % 8 || b->known != KNOWN)
        emulated_broken("what is used as a barrier is none");
    return b;
}

static bool barriers_begun; // what was made is there for copies

void emulated_barriers_begin(void) { barriers_begun = true; }

void emulated_barrier_init(uint32_t at, uint32_t arrivals)
{
    barriers_begun = false;
    *(Barrier *)memory_at(at, sizeof(Barrier)) = { (uint8_t)arrivals, (uint8_t)arrivals, 0, KNOWN,
                                                   0 };
}

// What its phase of that parity puts in order.
static char *order_of(Barrier *b, uint32_t parity) { return (char *)b + parity; }

static void barrier_end(Barrier *b)
{
    if (b->left || b->bytes)
        return;
    b->left = b->arrivals;
    b->phase ^= 1;
}

void emulated_barrier_arrive(uint32_t at, uint32_t bytes)
{
    Barrier *b = barrier_at(at);

    if (!b->left)
        emulated_broken("more threads arrive at a barrier than it has room for");
    race_gives(order_of(b, b->phase));
    b->left--;
    b->bytes += (int32_t)bytes;
    barrier_end(b);
}

static bool phase_is_0(const void *barrier) { return ((const Barrier *)barrier)->phase == 0; }
static bool phase_is_1(const void *barrier) { return ((const Barrier *)barrier)->phase == 1; }

void emulated_barrier_wait(uint32_t at, uint32_t parity)
{
    emulated_wait(parity ? phase_is_0 : phase_is_1, barrier_at(at));
    race_takes(order_of(barrier_at(at), parity));
}

/* ---- copies ----------------------------------------------------------------------------------- */

struct BulkCopy {
    uint32_t             to, bytes, barrier;
    const unsigned char *from; // NULL: of a map
    CUtensorMap          map;
    int                  at[3];
    void                *race; // of who began it
};

static std::vector<BulkCopy> copies;

// Where 16 bytes of a copy come to stand.
static unsigned char *chunk_at(const BulkCopy &c, uint32_t offset)
{
    return memory_at(!c.from && c.map.swizzled ? swizzled(c.to + offset) : c.to + offset, 16);
}

static void begin_copy(const BulkCopy &c)
{
    if (c.to % 16 || c.bytes % 16)
        emulated_broken("a bulk copy is not of whole chunks of 16 bytes");
    if (!barriers_begun)
        emulated_broken("a copy begins without fence.mbarrier_init behind its barrier");
    for (uint32_t x = 0; x < c.bytes; x += 16) {
        race_writes(chunk_at(c, x), 16);
        memset(chunk_at(c, x), 0xff, 16);
    }
    copies.push_back(c);
    copies.back().race = emulated_race();
}

void emulated_copy_bytes(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    if ((uintptr_t)from % 16)
        emulated_broken("a bulk copy's source is not at a multiple of 16");
    begin_copy({ to, bytes, barrier, (const unsigned char *)from, {}, {}, NULL });
}

void emulated_copy_tile(uint32_t to, const CUtensorMap &map, int x, int y, int z, uint32_t barrier)
{
    if (to % 128)
        emulated_broken("a tile's copy goes to no multiple of 128");
    begin_copy({ to, 2 * map.box[0] * map.box[1] * map.box[2], barrier, NULL, map,
                 { x, y, z }, NULL });
}

static void copy_box(const BulkCopy &c)
{
    uint32_t line = 2 * c.map.box[0], lines = c.map.box[1];

    for (uint32_t x = 0; x < c.bytes; x += 2) {
        uint64_t at[3] = { (uint64_t)c.at[0] + x % line / 2, (uint64_t)c.at[1] + x / line % lines,
                           (uint64_t)c.at[2] + x / line / lines };
        const unsigned char *from = c.map.data;
        bool                 there = true;

        for (int axis = 0; axis < 3; axis++) {
            there &= at[axis] < c.map.size[axis];
            from += at[axis] * c.map.stride[axis];
        }
        if (there)
            memcpy(chunk_at(c, x / 16 * 16) + x % 16, from, 2);
        else
            memset(chunk_at(c, x / 16 * 16) + x % 16, 0, 2);
    }
}

static bool deliver_copy(void)
{
    BulkCopy c;
    Barrier *b;

    if (copies.empty())
        return false;
    c = copies.back();
    copies.pop_back();
    for (uint32_t x = 0; c.from && x < c.bytes; x += 16)
        memcpy(chunk_at(c, x), c.from + x, 16);
    if (!c.from)
        copy_box(c);
    b = barrier_at(c.barrier);
    race_as(c.race, [&] {
        for (uint32_t x = 0; x < c.bytes; x += 16)
            race_writes(chunk_at(c, x), 16);
        race_reads(c.from, c.from ? c.bytes : 0);
        race_gives(order_of(b, b->phase));
    });
    b->bytes -= (int32_t)c.bytes;
    barrier_end(b);
    return true;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *data, const cuuint64_t *size, const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *each,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
{
    bool good = type == CU_TENSOR_MAP_DATA_TYPE_UINT16 && rank == 3 && (uintptr_t)data % 16 == 0 &&
                interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && 2 * box[0] % 16 == 0 &&
                (swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || 2 * box[0] <= 128);

    *map = {};
    map->data = (const unsigned char *)data;
    map->swizzled = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    for (int x = 0; x < 3; x++) {
        map->size[x] = size[x];
        map->stride[x] = x ? stride[x - 1] : 2;
        map->box[x] = box[x];
        good &= size[x] >= 1 && size[x] <= (uint64_t)1 << 32 && box[x] >= 1 && box[x] <= 256 &&
                each[x] == 1 && (!x || map->stride[x] % 16 == 0);
    }
    return good ? 0 : 1;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned,
                                             unsigned long long, cudaDriverEntryPointQueryResult *)
{
    *entry = strcmp(name, "cuTensorMapEncodeTiled") ? NULL : (void *)cuTensorMapEncodeTiled;
    return cudaSuccess;
}

/* ---- products --------------------------------------------------------------------------------- */

// What a thread has under way.
struct Work {
    std::vector<EmulatedGroupProduct>    products;
    std::map<float *, std::vector<float>> sums; // of accumulators that are no numbers meanwhile
    int                                  group; // of the next product
    bool                                 begun;
    void                                *race;
};

struct Group {
    Work work[GROUP_THREADS];
    int  arrived, left, meetings; // those that wait, for what, and how often they did
};

struct Meeting {
    const Group *group;
    int          number;
};

static Group groups[GROUPS_MOST];

static Group &group_now(void) { return groups[emulation.lane->number / GROUP_THREADS]; }
static Work  &work_now(void) { return group_now().work[emulation.lane->number % GROUP_THREADS]; }

void emulated_block_begins(void)
{
    copies.clear();
    for (Group &g : groups) {
        g.arrived = g.meetings = 0;
        for (Work &w : g.work)
            w = Work();
    }
}

const char *emulated_block_ends(void)
{
    if (!copies.empty())
        return "it ended before its bulk copies";
    for (const Group &g : groups)
        for (const Work &w : g.work)
            if (!w.products.empty())
                return "it ended before its products";
    return NULL;
}

void emulated_group_begin(void) { work_now().begun = true; }
void emulated_group_commit(void) { work_now().group++; }

void emulated_group_product(const EmulatedGroupProduct &product)
{
    Work  &w = work_now();
    size_t count = (size_t)product.columns / 2;

    if (!w.begun)
        emulated_broken("products begin without wgmma.fence behind the wait before");
    if (!w.sums.count(product.d)) {
        w.sums[product.d] = std::vector<float>(product.d, product.d + count);
        memset(product.d, 0xff, count * sizeof(float));
    }
    w.products.push_back(product);
    w.products.back().group = w.group;
    w.race = emulated_race();
}

static bool same(const EmulatedGroupProduct &x, const EmulatedGroupProduct &y)
{
    return x.b == y.b && x.columns == y.columns && x.adds == y.adds && x.turned == y.turned &&
           x.bf16 == y.bf16 && x.group == y.group;
}

static float number(bool bf16, uint16_t bits)
{
    return bf16 ? emulated_from_bf16(bits) : emulated_from_f16(bits);
}

// Entry (k, column) of the right side, as its descriptor says.
static const unsigned char *right_at(const EmulatedGroupProduct &p, uint32_t k, uint32_t column)
{
    uint32_t start = (uint32_t)(p.b & 0x3fff) << 4, across = (uint32_t)(p.b >> 16 & 0x3fff) << 4;
    uint32_t next = (uint32_t)(p.b >> 32 & 0x3fff) << 4;
    uint32_t at = p.turned ? column / 64 * across + column % 64 * 2 + k / 8 * next + k % 8 * 128
                           : column / 8 * next + column % 8 * 128 + k * 2;

    if (p.b >> 62 != 1 || (p.b >> 49 & 7))
        emulated_broken("a descriptor that is not emulated: 128-byte swizzle, base offset 0");
    if (start >> 7 & 7)
        emulated_broken("a descriptor's pattern begins at no multiple of 1024");
    return memory_at(swizzled(start + at), 2);
}

static float right_of(const EmulatedGroupProduct &p, uint32_t k, uint32_t column)
{
    uint16_t bits;

    memcpy(&bits, right_at(p, k, column), 2);
    return number(p.bf16, bits);
}

// Each warp reads the right side, by chunks of 8 numbers, and says for itself when it is done.
static void see_reads(const Group &g, const EmulatedGroupProduct &p)
{
    int step_k = p.turned ? 1 : 8, step_c = p.turned ? 8 : 1;

    for (int warp = 0; warp < GROUP_THREADS / 32; warp++)
        race_as(g.work[32 * warp].race, [&] {
            for (int k = 0; k < 16; k += step_k)
                for (int c = 0; c < p.columns; c += step_c)
                    race_reads(right_at(p, (uint32_t)k, (uint32_t)c), 16);
        });
}

// The x-th product of all threads.
static void compute(Group &g, size_t x)
{
    const EmulatedGroupProduct &first = g.work[0].products[x];
    int                         columns = first.columns;
    std::vector<float>          left(64 * 16), right(16 * (size_t)columns);

    for (int thread = 0; thread < GROUP_THREADS; thread++) {
        const EmulatedGroupProduct &p = g.work[thread].products[x];
        int row = thread / 32 * 16 + thread % 32 / 4, col = thread % 4 * 2;

        if (!same(p, first))
            emulated_broken("the threads of a warpgroup ask for different products");
        if (memcmp(p.a, p.left, sizeof(p.left)) != 0)
            emulated_broken("a product's left side was written before the product was waited for");
        for (int half = 0; half < 8; half++)
            left[(size_t)((row + half / 2 % 2 * 8) * 16 + col + half / 4 * 8 + half % 2)] =
                number(p.bf16, (uint16_t)(p.left[half / 2] >> 16 * (half % 2)));
    }
    if (SETS > 1)
        see_reads(g, first);
    for (int k = 0; k < 16; k++)
        for (int c = 0; c < columns; c++)
            right[(size_t)(k * columns + c)] = right_of(first, (uint32_t)k, (uint32_t)c);
    for (int thread = 0; thread < GROUP_THREADS; thread++) {
        EmulatedGroupProduct &p = g.work[thread].products[x];
        std::vector<float>   &sums = g.work[thread].sums[p.d];

        for (int y = 0; y < columns / 2; y++) {
            int   row = thread / 32 * 16 + thread % 32 / 4 + y / 2 % 2 * 8;
            int   col = y / 4 * 8 + thread % 4 * 2 + y % 2;
            float sum = p.adds ? sums[(size_t)y] : 0;

            for (int k = 0; k < 16; k++)
                sum += left[(size_t)(row * 16 + k)] * right[(size_t)(k * columns + col)];
            sums[(size_t)y] = sum;
        }
    }
}

// Accumulators that nothing is under way for are there again.
static void give_back(Work &w)
{
    for (auto at = w.sums.begin(); at != w.sums.end();) {
        size_t bytes = at->second.size() * sizeof(float);
        bool   busy = false;

        for (const EmulatedGroupProduct &p : w.products)
            busy |= p.d == at->first;
        for (size_t x = 0; !busy && x < bytes; x++)
            if (((unsigned char *)at->first)[x] != 0xff)
                emulated_broken("accumulators were written while a product was under way");
        if (!busy)
            memcpy(at->first, at->second.data(), bytes);
        at = busy ? std::next(at) : w.sums.erase(at);
    }
}

static void complete(Group &g, int left)
{
    const char *fail = getenv("EMULATED_FAIL");
    size_t      count = 0, all = g.work[0].products.size();

    for (const Work &w : g.work)
        if (w.products.size() != all || w.group != g.work[0].group)
            emulated_broken("the threads of a warpgroup wait with different products under way");
    for (; count < all && g.work[0].products[count].group < g.work[0].group - left; count++)
        if (!fail || strcmp(fail, "wgmma"))
            compute(g, count);
    for (Work &w : g.work) {
        w.products.erase(w.products.begin(), w.products.begin() + (long)count);
        w.begun = false;
        give_back(w);
    }
}

static bool met(const void *meeting)
{
    const Meeting *m = (const Meeting *)meeting;

    return m->group->meetings > m->number;
}

void emulated_group_wait(int left)
{
    Group  &g = group_now();
    Meeting here = { &g, g.meetings };

    g.arrived++;
    g.left = left;
    emulated_wait(met, &here);
}

static bool complete_one(void)
{
    for (Group &g : groups)
        if (g.arrived == GROUP_THREADS) {
            g.arrived = 0;
            complete(g, g.left);
            g.meetings++;
            return true;
        }
    return false;
}

// By nobody's hand: who is to be seen doing it is said where it is done.
bool emulated_deliver(void)
{
    bool done;

    race_quiet(true);
    done = complete_one() || deliver_copy();
    race_quiet(false);
    return done;
}
