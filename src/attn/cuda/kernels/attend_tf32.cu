// attend_tf32.cu -- attention on tensor cores with numbers in TF32; see attend_matrix.cuh.
#include "attn/cuda/kernels/attend_matrix.cuh"

extern "C" int call_attend_tf32(const MatrixAttendCall *a)
{
    return launch_form<Tf32>(*a);
}
