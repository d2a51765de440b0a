/* attn/cuda/ceilings_call.h -- work that measures what the device can do; part of device.h. */
#ifndef ATTN_CUDA_CEILINGS_CALL_H
#define ATTN_CUDA_CEILINGS_CALL_H

typedef enum CeilingKind {
    CEILING_FMA,    /* fused multiply-adds in float32, in registers */
    CEILING_WORDS,  /* mma.sync in `arithmetic`, in registers */
    CEILING_TRIAD,  /* a = b + s c over `count` floats */
    CEILING_GROUPS, /* wgmma in BF16 or F16, on a Hopper; WARPGROUP_DECLINED: it is not there */
} CeilingKind;

typedef struct CeilingCall {
    int32_t kind;       /* CeilingKind */
    int32_t arithmetic; /* Arithmetic, not f32; of CEILING_WORDS and _GROUPS */
    int64_t blocks;     /* to start; not of the triad */
    int64_t rounds;     /* so often; of the triad 1 */
    int64_t count;
    float  *a, *b, *c;  /* [count]; the others write nothing that counts */
} CeilingCall;

#define CEILING_THREADS 256
#define CEILING_FMA_FLOPS (2.0 * 8 * 64 * CEILING_THREADS) /* of a block and round */
#define CEILING_WORDS_STEPS 32                             /* of a warp and round */
#define CEILING_GROUPS_STEPS 16                            /* of a warpgroup and round */
#define CEILING_GROUPS_FLOPS (2.0 * 64 * 128 * 16 * CEILING_GROUPS_STEPS * CEILING_THREADS / 128)

#endif
