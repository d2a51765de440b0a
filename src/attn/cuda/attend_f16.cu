// attend_f16.cu -- attention on tensor cores with numbers in F16; see attend_matrix.cuh.
#include "attn/cuda/attend_matrix.cuh"

namespace {
struct F16 {
    static constexpr int  BYTES = 2;
    static constexpr bool PAIRS = true;

    static __device__ __forceinline__ uint32_t pair(float low, float high)
    {
        return f16_pair(low, high);
    }
    static __device__ __forceinline__ void product(float c[4], const uint32_t a[4],
                                                   const uint32_t b[2])
    {
        product_f16(c, a, b);
    }
};
} // namespace: files of products have others of that name

extern "C" int call_attend_f16(const MatrixAttendCall *a)
{
    return launch_form<F16>(*a);
}
