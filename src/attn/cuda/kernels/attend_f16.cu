// attend_f16.cu -- attention on tensor cores with numbers in F16; see attend_matrix.cuh.
#include "attn/cuda/kernels/attend_matrix.cuh"

extern "C" int call_attend_f16(const MatrixAttendCall *a)
{
    return launch_form<F16>(*a);
}
