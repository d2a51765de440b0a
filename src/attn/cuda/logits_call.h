/* attn/cuda/logits_call.h -- attention over logits that are no product of queries and keys; part
 * of device.h. */
#ifndef ATTN_CUDA_LOGITS_CALL_H
#define ATTN_CUDA_LOGITS_CALL_H

#include "attn/cuda/panel_call.h"

/* As LogitAttend of attn/ops/ops.h; kind is a LogitKind of there. */
typedef struct LogitsCall {
    int64_t      heads;
    int32_t      kind;
    DeviceTensor left, right; /* f32 or f64 */
    DeviceTensor bias;        /* f32 [h',1,>=m] */
    bool         turned;
    uint64_t     seed, stream;
    double       bound;
    int64_t      n, m;
    DeviceTensor v;           /* f32 [h',m,e] */
    bool         causal;
    int64_t      offset;
    PanelWork    work;
    PanelOut     to;
} LogitsCall;

#endif
