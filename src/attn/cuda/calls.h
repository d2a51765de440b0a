/* attn/cuda/calls.h -- the arguments of the device's calls; see device.h. */
#ifndef ATTN_CUDA_CALLS_H
#define ATTN_CUDA_CALLS_H

#include "attn/cuda/attend_call.h"
#include "attn/cuda/matrix_call.h"

#endif
