// mma.cuh -- the products of matrix.cuh, by words.
//
// A word of 32 bits holds one number in TF32 or two neighbours along the inner axis in BF16 or
// F16; counted in words, all three have one layout.  A product takes MMA_WORDS words of 16
// rows (a) and of 8 columns (b).  With g = lane / 4 and t = lane % 4 a lane holds
//     a0 (row g, word t)  a1 (g + 8, t)  a2 (g, t + 4)  a3 (g + 8, t + 4)
//     b0 (word t, col g)  b1 (t + 4, g)
//     d0 (row g, col 2t)  d1 (g, 2t + 1)  d2 (g + 8, 2t)  d3 (g + 8, 2t + 1)
// and d += a b in float32.  word(low, high): low comes first; TF32 takes it alone.
#ifndef ATTN_CUDA_KERNELS_MMA_CUH
#define ATTN_CUDA_KERNELS_MMA_CUH

#include "attn/cuda/kernels/matrix.cuh"

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
