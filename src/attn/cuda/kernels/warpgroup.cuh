// warpgroup.cuh -- operations of a Hopper warpgroup (four warps) on tiles in shared memory:
// products, copies of tiles, and the barriers that say when these have come.
//
// On a GPU a function is the PTX instruction it names, for sm_90a only; emulated ones follow
// the same documented layouts (tests/emulated/emulated_warpgroup.h).  Shared memory is named
// by addresses of its own, of 32 bits.
//
//   product   d += a b of 64 rows, N columns and 16 numbers of 16 bits of the inner axis, all
//             128 threads together.  Warp w, lane 4 g + t holds rows 16 w + g and + 8: of d the
//             columns 8 c + 2 t, + 1 in d[c][0 .. 1] (+ 8: [2 .. 3]); of a the words as
//             matrix.cuh has them.  b is in shared memory.
//   tile      of b: lines of 128 bytes, whose chunk c of 16 bytes stands at place c ^ (line % 8)
//             ("128-byte swizzle"); 8 lines are a pattern of 1024 bytes, at a multiple of that.
//             b as lines of columns ("K-major"): `next` bytes to the next 8 columns.
//             b as lines of the inner axis, turned ("MN-major"): `next` bytes to the next 8 of
//             it, `across` bytes to the next 64 columns.
//   wait      a barrier's phases have parities 0, 1, 0, ...; waiting for the parity of the
//             phase before the present one, at the beginning 1, does not wait.
#ifndef ATTN_CUDA_KERNELS_WARPGROUP_CUH
#define ATTN_CUDA_KERNELS_WARPGROUP_CUH

#include "attn/cuda/kernels/matrix.cuh"

#define GROUP_THREADS 128
#define LINE 128                // bytes of a tile's line
#define PATTERN 1024            // bytes after which its swizzle repeats
#define PATIENCE 20000000000ull // ns after which a barrier that never comes is an error

// A tile for a product: start address, offsets, and how chunks are placed; all in 16 bytes.
static __device__ __forceinline__ uint64_t tile_words(uint32_t at, uint32_t across, uint32_t next)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(across >> 4) << 16 |
           (uint64_t)(next >> 4) << 32 | (uint64_t)1 << 62;
}

#ifdef DEVICE_EMULATED
#include "emulated_warpgroup.h"
#else
#include <cuda.h>

static __device__ __forceinline__ uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* ---- barriers -------------------------------------------------------------------------- */

// mbarrier.init: a phase ends with so many arrivals and all bytes that were announced.
static __device__ __forceinline__ void barrier_init(uint32_t at, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
}

// fence.mbarrier_init: makes this thread's barriers visible to other threads and to copies.
static __device__ __forceinline__ void barriers_begin(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// fence.proxy.async, of shared memory: copies that follow come after earlier reads and writes.  A
// fence of all memory would wait until the whole GPU sees the writes.
static __device__ __forceinline__ void copies_may_follow(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// mbarrier.arrive
static __device__ __forceinline__ void barrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
}

// mbarrier.arrive.expect_tx: arrives, and so many bytes will.
static __device__ __forceinline__ void barrier_expect(uint32_t at, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at), "r"(bytes) : "memory");
}

// mbarrier.try_wait.parity
static __device__ __forceinline__ bool barrier_passed(uint32_t at, uint32_t parity)
{
    uint32_t yes;

    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(yes) : "r"(at), "r"(parity) : "memory");
    return yes;
}

static __device__ __forceinline__ uint64_t clock_now(void)
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

static __device__ __forceinline__ void barrier_wait(uint32_t at, uint32_t parity)
{
    uint64_t began;

    if (barrier_passed(at, parity))
        return;
    began = clock_now();
    while (!barrier_passed(at, parity))
        if (clock_now() - began > PATIENCE)
            __trap();
}

/* ---- copies ------------------------------------------------------------------------------ */

// cp.async.bulk.tensor.3d: the map's box from (x, y, z) on; its bytes arrive at the barrier.
static __device__ __forceinline__ void copy_tile(uint32_t to, const CUtensorMap *map, int x, int y,
                                                 int z, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 :: "r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}

// cp.async.bulk: so many bytes; addresses and their number are multiples of 16.
static __device__ __forceinline__ void copy_bytes(uint32_t to, const void *from, uint32_t bytes,
                                                  uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* ---- products ---------------------------------------------------------------------------- */

// wgmma.fence: products that follow read the registers as they were written.
static __device__ __forceinline__ void group_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group: ends a group: the products since the last call.
static __device__ __forceinline__ void group_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group: waits until at most `left` groups are running.
template <int left>
static __device__ __forceinline__ void group_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(left) : "memory");
}

// Behind a wait: what products have written may be read from here on.  The compiler knows the wait
// as an instruction without operands, and could read ahead of it.
template <int TILES>
static __device__ __forceinline__ void group_written(float (&d)[TILES][4])
{
#pragma unroll
    for (int c = 0; c < TILES; c++)
        asm volatile("" : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3]) :: "memory");
}

// setmaxnreg: sets the registers per thread of the warpgroup; it can gain only what others
// released.
template <int count>
static __device__ __forceinline__ void registers_more(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(count));
}

template <int count>
static __device__ __forceinline__ void registers_less(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(count));
}

#define FOUR(d, c) "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
#define EIGHT_FOURS(d, c)                                                                      \
    FOUR(d, c), FOUR(d, c + 1), FOUR(d, c + 2), FOUR(d, c + 3), FOUR(d, c + 4),                \
        FOUR(d, c + 5), FOUR(d, c + 6), FOUR(d, c + 7)
#define LOWER "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,"     \
              "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define UPPER "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,"   \
              "%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

// wgmma.mma_async with a in registers: d (ADDS: d and) a b, 64 or 128 columns; TURNED: b is
// given by lines of the inner axis.
#define GROUP_PRODUCT(Form, type)                                                              \
    template <bool ADDS, bool TURNED>                                                          \
    static __device__ __forceinline__ void group_product(Form, float (&d)[8][4],               \
                                                         const uint32_t (&a)[4], uint64_t b)   \
    {                                                                                          \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                              \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type               \
                     " {" LOWER "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}"                  \
                     : EIGHT_FOURS(d, 0)                                                       \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS),          \
                       "n"(TURNED));                                                           \
    }                                                                                          \
    template <bool ADDS, bool TURNED>                                                          \
    static __device__ __forceinline__ void group_product(Form, float (&d)[16][4],              \
                                                         const uint32_t (&a)[4], uint64_t b)   \
    {                                                                                          \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                              \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type              \
                     " {" LOWER "," UPPER "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70;\n}"        \
                     : EIGHT_FOURS(d, 0), EIGHT_FOURS(d, 8)                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS),          \
                       "n"(TURNED));                                                           \
    }
GROUP_PRODUCT(Bf16, "bf16")
GROUP_PRODUCT(F16, "f16")
#undef GROUP_PRODUCT
#undef FOUR
#undef EIGHT_FOURS
#undef LOWER
#undef UPPER

#endif
#endif
