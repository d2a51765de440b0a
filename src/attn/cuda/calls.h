/* attn/cuda/calls.h -- the arguments of the device's calls; see device.h. */
#ifndef ATTN_CUDA_CALLS_H
#define ATTN_CUDA_CALLS_H

#include "attn/cuda/attend_call.h"
#include "attn/cuda/matrix_call.h"
#include "attn/cuda/fused_call.h"
#include "attn/cuda/ceilings_call.h"
#include "attn/cuda/columns_call.h"
#include "attn/cuda/entries_call.h"
#include "attn/cuda/gemm_call.h"
#include "attn/cuda/group_call.h"
#include "attn/cuda/kernel_call.h"
#include "attn/cuda/lists_call.h"
#include "attn/cuda/means_call.h"
#include "attn/cuda/lambda_call.h"
#include "attn/cuda/logits_call.h"
#include "attn/cuda/panel_call.h"
#include "attn/cuda/row_attend_call.h"
#include "attn/cuda/rows_call.h"
#include "attn/cuda/select_call.h"

#endif
