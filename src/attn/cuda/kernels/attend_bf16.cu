// attend_bf16.cu -- attention on tensor cores with numbers in BF16; see attend_matrix.cuh.
#include "attn/cuda/kernels/attend_matrix.cuh"

extern "C" int call_attend_bf16(const MatrixAttendCall *a)
{
    return launch_form<Bf16>(*a);
}
