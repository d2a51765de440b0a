// mma.cuh -- one step of the tensor cores, mma.sync, by words.
//
// A word of 32 bits holds one number in TF32 or two neighbours along the inner axis in BF16 or
// F16; counted in words, all three have one layout.  A step takes 8 words of 16 rows (a) and
// of 8 columns (b).  With g = lane / 4 and t = lane % 4 a lane holds
//     a0 (row g, word t)  a1 (g + 8, t)  a2 (g, t + 4)  a3 (g + 8, t + 4)
//     b0 (word t, col g)  b1 (t + 4, g)
//     d0 (row g, col 2t)  d1 (g, 2t + 1)  d2 (g + 8, 2t)  d3 (g + 8, 2t + 1)
// and d += a b in float32.  word(low, high): low comes first; TF32 takes it alone.
#ifndef ATTN_CUDA_MMA_CUH
#define ATTN_CUDA_MMA_CUH

#include "attn/cuda/portable.cuh"

#define MMA_WORDS 8 // of the inner axis in a step

#ifdef DEVICE_EMULATED

struct MmaLane {
    uint32_t a[4], b[2];
};

template <typename Format>
static inline void mma_emulated(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    int     lane = emulation.lane->number & 31, g = lane / 4, t = lane % 4;
    MmaLane own = { { a[0], a[1], a[2], a[3] }, { b[0], b[1] } };
    float   out[4];

    emulated_leave(&own, sizeof(own));
    for (int e = 0; e < 4; e++) {
        int row = g + 8 * (e / 2), col = 2 * t + e % 2;

        out[e] = d[e];
        for (int w = 0; w < MMA_WORDS; w++) {
            const MmaLane *left = (const MmaLane *)emulated_word(row % 8 * 4 + w % 4);
            const MmaLane *right = (const MmaLane *)emulated_word(col * 4 + w % 4);

            for (int part = 0; part < Format::PER_WORD; part++)
                out[e] += Format::part(left->a[row / 8 + 2 * (w / 4)], part) *
                          Format::part(right->b[w / 4], part);
        }
    }
    emulated_gather();
    for (int e = 0; e < 4; e++)
        d[e] = out[e];
}

// The upper 32 - drop bits, rounded to nearest: ties to even, or away from zero.
static inline uint32_t mma_rounded(float x, int drop, bool even)
{
    uint32_t bits = __float_as_uint(x), half = (uint32_t)1 << (drop - 1);

    if ((bits & 0x7f800000u) == 0x7f800000u)
        return (bits | (bits & 0x7fffffu ? 0x400000u : 0)) >> drop << drop;
    return (bits + half - (even && !(bits >> drop & 1))) >> drop << drop;
}

struct Tf32 {
    static const int PER_WORD = 1;
    static uint32_t word(float low, float) { return mma_rounded(low, 13, false); }
    static float part(uint32_t word, int) { return __uint_as_float(word); }
    static void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_emulated<Tf32>(d, a, b);
    }
};

struct Bf16 {
    static const int PER_WORD = 2;
    static uint32_t word(float low, float high)
    {
        return mma_rounded(low, 16, true) >> 16 | mma_rounded(high, 16, true);
    }
    static float part(uint32_t word, int part)
    {
        return __uint_as_float(part ? word & 0xffff0000u : word << 16);
    }
    static void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_emulated<Bf16>(d, a, b);
    }
};

struct F16 {
    static const int PER_WORD = 2;
    static uint32_t word(float low, float high)
    {
        _Float16 both[2] = { (_Float16)low, (_Float16)high };
        uint32_t out;

        memcpy(&out, both, sizeof(out));
        return out;
    }
    static float part(uint32_t word, int part)
    {
        _Float16 both[2];

        memcpy(both, &word, sizeof(word));
        return (float)both[part];
    }
    static void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_emulated<F16>(d, a, b);
    }
};

#else

#define MMA_STEP(shape, type)                                                                  \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "              \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                      \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

struct Tf32 {
    static const int PER_WORD = 1;
    static __device__ __forceinline__ uint32_t word(float low, float)
    {
        uint32_t out;

        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(low));
        return out;
    }
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        MMA_STEP("m16n8k8", "tf32");
    }
};

struct Bf16 {
    static const int PER_WORD = 2;
    static __device__ __forceinline__ uint32_t word(float low, float high)
    {
        uint32_t out;

        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
        return out;
    }
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        MMA_STEP("m16n8k16", "bf16");
    }
};

struct F16 {
    static const int PER_WORD = 2;
    static __device__ __forceinline__ uint32_t word(float low, float high)
    {
        uint32_t out;

        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
        return out;
    }
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], const uint32_t b[2])
    {
        MMA_STEP("m16n8k16", "f16");
    }
};

#endif
#endif
