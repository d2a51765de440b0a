/* attn/cuda/host/gpu_matrix.h -- pattern attention on tensor cores, the host's side. */
#ifndef ATTN_CUDA_HOST_GPU_MATRIX_H
#define ATTN_CUDA_HOST_GPU_MATRIX_H

#include "attn/cuda/host/gpu.h"

#define MATRIX_INPUTS 3

/* The run's q, k and v as tensor cores read them, made before it begins (Run.prepared). */
typedef struct Prepared {
    Tensor from[MATRIX_INPUTS];
    Packed to[MATRIX_INPUTS];
} Prepared;

/* Whether these scores can be computed there: no term but distances and single cells. */
bool    gpu_matrix_fits(const Run *r, const AttendInput *in);
void    gpu_attend_matrix(Run *r, const AttendInput *in, const Pattern *pattern,
                          AttendResult *out, double *cells);
/* Begins it by cuDNN; false: that is for other kernels. */
bool    gpu_attend_fused(Run *r, const AttendInput *in, const MatrixAttendCall *call);
/* Begins it by our kernel for Hopper's warpgroups, by call's items; false: as above. */
bool    gpu_attend_warpgroup(Run *r, const MatrixAttendCall *call);
/* Starts our own kernel; a code. */
int     gpu_attend_begin(Run *r, const MatrixAttendCall *call);
/* Fills items, joins and parts for call->tiles. */
void    gpu_items(Run *r, MatrixAttendCall *call);

/* Another way to call->out and call->lse (gpu_rival.c). */
typedef struct RivalWay {
    Rival       which;
    const char *name;
    double      near; /* apart by that share of the largest output at most */
    int       (*begin)(Run *r, const void *context); /* all of the call; a code */
    const void *context;
} RivalWay;

/* Whether what it gives for calls of this kind may be used; tried once, before the clock. */
bool gpu_rival_trusted(Run *r, const MatrixAttendCall *call, const RivalWay *way);

#endif
