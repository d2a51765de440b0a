// attend_bf16.cu -- attention on tensor cores with numbers in BF16; see attend_matrix.cuh.
#include "attn/cuda/attend_matrix.cuh"

namespace {
struct Bf16 {
    static constexpr int  BYTES = 2;
    static constexpr bool PAIRS = true;

    static __device__ __forceinline__ uint32_t pair(float low, float high)
    {
        return bf16_pair(low, high);
    }
    static __device__ __forceinline__ void product(float c[4], const uint32_t a[4],
                                                   const uint32_t b[2])
    {
        product_bf16(c, a, b);
    }
};
} // namespace: files of products have others of that name

extern "C" int call_attend_bf16(const MatrixAttendCall *a)
{
    return launch_form<Bf16>(*a);
}
