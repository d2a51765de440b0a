/* plans.h -- whether the real libcudnn makes plans of fused.cu's graphs, for a GPU that it is only
 * told of; see plans.cc.
 */
#ifndef TESTS_CUDNN_PLANS_H
#define TESTS_CUDNN_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cuda/device.h"

#define PLANS_ENTRY "cudnn_plans"

typedef struct CudnnPlans {
    /* By ATTNSCOPE_CUDNN, as fused.cu does it; false: why not.  capability: 900 is 9.0. */
    bool (*open)(int capability, char *why, int size);
    /* Also the workspace's bytes, and whether the call's pointers suit it; false: why not. */
    bool (*plan)(const FusedCall *call, int64_t *workspace, char *why, int size);
} CudnnPlans;

#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) const CudnnPlans *cudnn_plans(void);

#endif
