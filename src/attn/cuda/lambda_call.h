/* attn/cuda/lambda_call.h -- lambdas; part of device.h.  Letters as in attn/lambdas.h. */
#ifndef ATTN_CUDA_LAMBDA_CALL_H
#define ATTN_CUDA_LAMBDA_CALL_H

typedef struct LambdaContentCall {
    int64_t      heads, m, k, u, e, contexts; /* heads of keys */
    DeviceTensor key, v;                      /* f32 [heads,m,k u], [heads,m,e u] */
    double      *lse;                         /* [heads,contexts,k u] */
    float       *content;                     /* [heads,contexts,k,e] */
} LambdaContentCall;

/* Where the position's vector E[i,j] [k,u] stands in its table. */
typedef struct LambdaEntry {
    int64_t width, up, side;
    bool    absolute;
} LambdaEntry;

#define LAMBDA_GROUP_BYTES 2048 /* of shared memory, for each head that shares a key head */

typedef struct LambdaApplyCall {
    int64_t        heads, group, n, m, k, u, e, contexts; /* heads of keys; of queries to each */
    bool           joined;
    DeviceTensor   v;
    const float   *q, *content, *table; /* q [heads group,n,k] */
    RowRuns        reach;               /* who is within it; one head */
    LambdaEntry    entry;
    float         *out;
} LambdaApplyCall;

#endif
