// matrix.cuh -- a warp's operations on matrices: products on tensor cores, loads of fragments from
// shared memory, and asynchronous copies into it.
//
// On a GPU these are PTX instructions (compute capability 8.0 and newer); emulated ones
// follow the same documented layouts.  With g = lane / 4 and t = lane % 4, a product of 16
// rows, 8 columns and 32 bytes of inner axis (16 numbers of 16 bits, 8 of 32) holds:
//
//   a  16 bits: rows g, g + 8 of numbers 2t, 2t + 1, then of 2t + 8, 2t + 9
//      32 bits: rows g, g + 8 of number t, then of t + 4
//   b  as a row of a, with column g for the row
//   c  rows g, g + 8, of columns 2t, 2t + 1
#ifndef ATTN_CUDA_KERNELS_MATRIX_CUH
#define ATTN_CUDA_KERNELS_MATRIX_CUH

#include "attn/cuda/kernels/portable.cuh"

#ifdef DEVICE_EMULATED
#include "emulated_matrix.h"
#else

static __device__ __forceinline__ uint32_t bf16_pair(float low, float high)
{
    uint32_t out;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

static __device__ __forceinline__ uint32_t f16_pair(float low, float high)
{
    uint32_t out;

    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

static __device__ __forceinline__ uint32_t tf32_bits(float x)
{
    uint32_t out;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
    return out;
}

static __device__ __forceinline__ float exp2_fast(float x)
{
    float out;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}

#define PRODUCT(name, shape, type)                                                             \
    static __device__ __forceinline__ void name(float c[4], const uint32_t a[4],               \
                                                const uint32_t b[2])                           \
    {                                                                                          \
        asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "           \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                   \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));      \
    }
PRODUCT(product_bf16, "m16n8k16", "bf16")
PRODUCT(product_f16, "m16n8k16", "f16")
PRODUCT(product_tf32, "m16n8k8", "tf32")
#undef PRODUCT

// Four matrices of 8 rows of 16 bytes: lane x points to row x % 8 of matrix x / 8, and gets
// of each the 4 bytes t of row g.
static __device__ __forceinline__ void load_matrices(uint32_t out[4], const void *row)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at) : "memory");
}

// As above, but a lane gets column g of rows 2t and 2t + 1 (of 16-bit numbers).
static __device__ __forceinline__ void load_turned(uint32_t out[4], const void *row)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at) : "memory");
}

// 16 bytes from global to shared memory, both aligned to 16.
static __device__ __forceinline__ void copy_ahead(void *to, const void *from)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(to);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
}

// Ends a group: the copies that this thread started since the last call.
static __device__ __forceinline__ void copies_end(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `left` of this thread's groups are running.
template <int left>
static __device__ __forceinline__ void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory");
}

#endif

// The products of matrix.cuh, by words.
//
// A word of 32 bits holds one number in TF32 or two neighbours along the inner axis in BF16 or
// F16; counted in words, all three have one layout.  A product takes MMA_WORDS words of 16
// rows (a) and of 8 columns (b).  With g = lane / 4 and t = lane % 4 a lane holds
//     a0 (row g, word t)  a1 (g + 8, t)  a2 (g, t + 4)  a3 (g + 8, t + 4)
//     b0 (word t, col g)  b1 (t + 4, g)
//     d0 (row g, col 2t)  d1 (g, 2t + 1)  d2 (g + 8, 2t)  d3 (g + 8, 2t + 1)
// and d += a b in float32.  word(low, high): low comes first; TF32 takes it alone.

#define MMA_WORDS 8 // of the inner axis in a product

#define MMA_FORMAT(Name, numbers, convert, product)                                            \
    struct Name {                                                                              \
        static const int PER_WORD = numbers;                                                   \
        static __device__ __forceinline__ uint32_t word(float low, float high)                 \
        {                                                                                      \
            (void)high;                                                                        \
            return convert;                                                                    \
        }                                                                                      \
        static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4],            \
                                                   const uint32_t b[2])                        \
        {                                                                                      \
            product(d, a, b);                                                                  \
        }                                                                                      \
    }
MMA_FORMAT(Tf32, 1, tf32_bits(low), product_tf32);
MMA_FORMAT(Bf16, 2, bf16_pair(low, high), product_bf16);
MMA_FORMAT(F16, 2, f16_pair(low, high), product_f16);
#undef MMA_FORMAT

#endif
