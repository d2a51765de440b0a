// format.cuh -- numbers of a narrower format, emulated in double; see attn/precision.h.
#ifndef ATTN_CUDA_KERNELS_FORMAT_CUH
#define ATTN_CUDA_KERNELS_FORMAT_CUH

#include "attn/cuda/kernels/portable.cuh"

struct Format {
    int    bits;         // of the significand
    double least, limit; // the smallest normal number; from here on infinite
};

// A normal double to fewer bits of significand, ties to even.
static __device__ __forceinline__ double round_normal(double a, int bits)
{
    int                cut = 53 - bits;
    unsigned long long u = (unsigned long long)__double_as_longlong(a), half = 1ull << (cut - 1);

    u += half - 1 + (u >> cut & 1);
    u &= ~((half << 1) - 1);
    return __longlong_as_double((long long)u);
}

static __device__ double rounded(const Format &f, double a)
{
    double size = fabs(a), coarse;

    if (f.bits == 53 || !(size <= 1.7976931348623157e308)) // itself, infinite, NaN
        return a;
    if (size < f.least) {
        coarse = f.least * 13510798882111488.0 / (double)(1ll << f.bits); // 1.5 2^53
        size = __dadd_rn(__dadd_rn(size, coarse), -coarse);
    } else {
        size = round_normal(size, f.bits);
    }
    return copysign(size >= f.limit ? (double)INFINITY : size, a);
}

#endif
