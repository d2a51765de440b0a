// attend_tf32.cu -- attention on tensor cores with numbers in TF32; see attend_matrix.cuh.
#include "attn/cuda/attend_matrix.cuh"

namespace {
struct Tf32 {
    static constexpr int  BYTES = 4;
    static constexpr bool PAIRS = false;

    static __device__ __forceinline__ void product(float c[4], const uint32_t a[4],
                                                   const uint32_t b[2])
    {
        product_tf32(c, a, b);
    }
};
} // namespace: files of products have others of that name

extern "C" int call_attend_tf32(const MatrixAttendCall *a)
{
    return launch_form<Tf32>(*a);
}
