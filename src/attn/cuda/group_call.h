/* attn/cuda/group_call.h -- attention inside groups, and of few queries; part of device.h. */
#ifndef ATTN_CUDA_GROUP_CALL_H
#define ATTN_CUDA_GROUP_CALL_H

#include "attn/cuda/panel_call.h"

/* Rows of q and of k, v by the panels' lists; index absent: row x is entry x. */
typedef struct PanelInput {
    int64_t      heads;
    DeviceTensor q, k, v, more; /* f32; more: other values of the same weights, or absent */
    double       scale;
    DeviceTensor query_index, key_index; /* i32 [h',1,entries] */
    PanelWork    work;
    PanelOut     to;
} PanelInput;

/* As Visits of attn/ops/ops.h; chunk absent: none are counted. */
typedef struct VisitCall {
    DeviceTensor tag, chunk; /* i32 [h,lists,positions] */
    int64_t      before, after, ring;
    bool         cross;
} VisitCall;

/* As GroupAttend of attn/ops/ops.h; a panel's group is RowPanel.group. */
typedef struct GroupCall {
    PanelInput   in;
    DeviceTensor key_start;           /* i32 [h',1,groups+1] */
    DeviceTensor query_tag, key_tag;  /* i32 [h',1,rows] */
    DeviceTensor query_at, key_at;
    bool         causal, self_last;
    double       self_penalty;
    VisitCall    visits;
    DeviceTensor skip;                /* i32 [h',rows of q,s] */
} GroupCall;

typedef struct FewCall {
    PanelInput in;
} FewCall;

#endif
