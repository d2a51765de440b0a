// emulated_warpgroup.h -- warpgroup.cuh on the host, by what PTX documents of descriptors,
// fragments, swizzles and barriers.
//
// It is as unkind as the hardware may be: a product is computed when it is waited for and no
// thread can go on, from what shared memory holds then; until that its accumulators are no
// numbers, and whoever writes them, or the left side, is found.  A bulk copy spoils its
// destination when it is begun and comes after that, the last begun first.
#ifndef TESTS_EMULATED_WARPGROUP_H
#define TESTS_EMULATED_WARPGROUP_H

#include "emulated_matrix.h"

/* ---- the driver's maps of tensors ------------------------------------------------------- */

typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef int      CUresult;
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B = 3 };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

struct CUtensorMap { // of 16-bit numbers, three axes
    const unsigned char *data;
    uint64_t size[3], stride[3]; // stride in bytes
    uint32_t box[3];
    bool     swizzled;
};

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *data, const cuuint64_t *size, const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *each,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill);

/* ---- shared memory, barriers, copies ------------------------------------------------------- */

uint32_t emulated_shared_address(const void *at);
void     emulated_barrier_init(uint32_t at, uint32_t arrivals);
void     emulated_barriers_begin(void);
void     emulated_barrier_arrive(uint32_t at, uint32_t bytes);
void     emulated_barrier_wait(uint32_t at, uint32_t parity);
void     emulated_copy_tile(uint32_t to, const CUtensorMap &map, int x, int y, int z,
                            uint32_t barrier);
void     emulated_copy_bytes(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier);

static inline uint32_t shared_address(const void *at) { return emulated_shared_address(at); }
static inline void barrier_init(uint32_t at, uint32_t arrivals)
{
    emulated_barrier_init(at, arrivals);
}
static inline void barriers_begin(void) { emulated_barriers_begin(); }
static inline void copies_may_follow(void) {}
static inline void barrier_arrive(uint32_t at) { emulated_barrier_arrive(at, 0); }
static inline void barrier_expect(uint32_t at, uint32_t bytes)
{
    emulated_barrier_arrive(at, bytes);
}
static inline void barrier_wait(uint32_t at, uint32_t parity)
{
    emulated_barrier_wait(at, parity);
}
static inline void copy_tile(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                             uint32_t barrier)
{
    emulated_copy_tile(to, *map, x, y, z, barrier);
}
static inline void copy_bytes(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    emulated_copy_bytes(to, from, bytes, barrier);
}

/* ---- products -------------------------------------------------------------------------------- */

struct EmulatedGroupProduct {
    float          *d;       // [columns / 8][4]
    const uint32_t *a;       // where the left side stands
    uint32_t        left[4]; // and what it was
    uint64_t        b;
    int             columns;
    bool            adds, turned, bf16;
    int             group;
};

void emulated_group_begin(void);
void emulated_group_product(const EmulatedGroupProduct &product);
void emulated_group_commit(void);
void emulated_group_wait(int left);

static inline void group_begin(void) { emulated_group_begin(); }
static inline void group_commit(void) { emulated_group_commit(); }
template <int left>
static inline void group_wait(void) { emulated_group_wait(left); }
template <int TILES>
static inline void group_written(float (&)[TILES][4]) {}
template <int count>
static inline void registers_more(void)
{
    static_assert(count % 8 == 0 && count >= 24 && count <= 256, "what setmaxnreg takes");
}
template <int count>
static inline void registers_less(void)
{
    registers_more<count>();
}

template <bool ADDS, bool TURNED, typename Form, int TILES>
static inline void group_product(Form, float (&d)[TILES][4], const uint32_t (&a)[4], uint64_t b)
{
    emulated_group_product({ &d[0][0], a, { a[0], a[1], a[2], a[3] }, b, 8 * TILES, ADDS, TURNED,
                             std::is_same<Form, Bf16>::value, 0 });
}

#endif
