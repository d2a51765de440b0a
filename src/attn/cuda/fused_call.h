/* attn/cuda/fused_call.h -- full and causal attention by cuDNN; part of device.h. */
#ifndef ATTN_CUDA_FUSED_CALL_H
#define ATTN_CUDA_FUSED_CALL_H

/* A code: cuDNN does not do this, or is not there; text() says why. */
#define FUSED_DECLINED (-77)

typedef struct FusedCall {
    int64_t heads;       /* 0: only whether cuDNN can be used at all */
    int64_t n, m, d, e;
    bool    causal;      /* row i sees keys up to i */
    int32_t arithmetic;  /* BF16 or F16 */
    double  scale;
    Packed  q, k, v;
    Packed  narrow;      /* [heads, rows, size]: the output as cuDNN writes it */
    DeviceTensor out, lse; /* f32; lse contiguous */
} FusedCall;

#endif
