/* attn/cuda/host/gpu.h -- the shared part of the GPU's operations.
 *
 * Host and device both see a run's arena (Ops.memory), so a mechanism's own loops read and
 * write the results of operations.  gpu_tensor() copies other tensors (parameters, inputs of
 * other owners) into the arena.  Each op waits for the device before it returns, except in runs
 * without views that run ahead of the device (GpuAhead): such an op only counts its launch, and
 * the reader calls op_wait.  Memory released meanwhile keeps its contents (core/arena.h).
 */
#ifndef ATTN_CUDA_HOST_GPU_H
#define ATTN_CUDA_HOST_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "attn/cuda/device.h"
#include "attn/cuda/host/library.h"
#include "attn/run.h"

/* How far runs without views run ahead, by WAY_GRAPHS; ATTNSCOPE_GRAPHS=ahead: without graphs. */
typedef enum GpuAhead { AHEAD_NOT, AHEAD_WORK, AHEAD_GRAPHS } GpuAhead;
/* A run that becomes a graph (graph.h) releases no memory and records the host's reads.  During
 * the capture waiting is not allowed either. */
typedef enum GraphMode { GRAPH_NONE, GRAPH_REHEARSAL, GRAPH_CAPTURE } GraphMode;

typedef struct DeviceKind {
    Ops        ops; /* first, so that an Ops * of this back end is a DeviceKind * */
    Device    *device;
    Arithmetic arithmetic;
} DeviceKind;

/* Alternatives to the base kernel for attention over tiles, which runs on all GPUs. */
typedef enum Rival { RIVAL_CUDNN, RIVAL_WARPGROUP, RIVALS } Rival;

struct Device {
    void            *library;
    const DeviceApi *api;
    DeviceInfo       info;
    char             path[4096];
    char            *named;              /* the variable's value at opening; owned or NULL */
    int              holders;            /* guarded by library.c's lock */
    pthread_mutex_t  use;                /* device_hold; recursive */
    ArenaSource      memory;
    _Atomic int64_t  in_use, peak;       /* bytes taken from the device */
    _Atomic int64_t  free_at_first;      /* bytes while in_use was 0 */
    /* by size (64, 128, 256) and TileShape: 1 trusted, -1 not, 0 untried */
    atomic_int       rivals[RIVALS][ARITHMETIC_F16 + 1][3][3];
    struct {
        atomic_int verdict;              /* of a trial: 1 good, -1 not, 0 no trial yet */
        char       what[256], text[512]; /* the trial's report; the line of doctor */
    } ways[DEVICE_WAYS];
    GpuAhead         ahead;
    _Atomic int64_t  launched, finished; /* launches; the device works while they differ */
    _Atomic(const char *) begun;         /* the newest launch; static */
    atomic_int       lost;               /* error code that ended the GPU's use; 0: none */
    atomic_int       late;               /* error code of a wait that no run has reported */
    atomic_int       graph_mode;         /* GraphMode */
    int64_t          graph_first;        /* `launched` when the mode began */
    const char      *graph_lost;         /* why no graph is possible; static; NULL: possible */
    DeviceKind       kinds[ARITHMETIC_F16 + 1];
};

void gpu_fill_ops(Device *device);

static inline const DeviceKind *gpu_kind(const Run *r)
{
    return (const DeviceKind *)r->ops;
}

static inline const DeviceApi *gpu_api(const Run *r)
{
    return gpu_kind(r)->device->api;
}

/* count * size bytes of the run's arena; NULL: the run has failed.  Take it between arena_mark
 * and arena_release: an op returns only when the device has finished with it. */
void *gpu_scratch(Run *r, int64_t count, int64_t size);
/* Likewise, for lists that the host fills; shares no page with the device's results. */
void *gpu_list(Run *r, int64_t count, int64_t size);
/* t (rank 3) in the run's arithmetic, rows of `size` numbers: as prepared (Ops.prepare), else
 * packed now. */
Packed gpu_packed(Run *r, const Tensor *t, int64_t size);
/* t as the device sees it: [heads, rows, cols], ranks 1 and 2 with extents of 1 in front.
 * Copied into the arena if t lies outside or its last axis has a stride. */
DeviceTensor gpu_tensor(Run *r, const Tensor *t);
/* [..,n] as one row for each head. */
DeviceTensor gpu_lines(DeviceTensor t);
/* An op's result.  A tensor outside of the arena fails the run. */
DeviceTensor gpu_result(Run *r, const Tensor *t);
/* count floats as the device sees them; NULL stays NULL. */
const float *gpu_floats(Run *r, const float *data, int64_t count);
/* Records the arithmetic of this op's products. */
void gpu_computed(Run *r, Arithmetic arithmetic);
/* False: start nothing, because the run has failed or was cancelled. */
bool gpu_ready(Run *r);
/* Ends an op of one call; waits unless the run is ahead of the device. */
void gpu_done(Run *r, const char *what, int code);
/* Between calls of one op: reports failures, and waits only if the host may not touch memory
 * while the device works. */
bool gpu_began(Run *r, const char *what, int code);
/* Ends an op that started work.  Waits also if the run has failed, because the work may still
 * use its memory. */
void gpu_finish(Run *r, const char *what);
/* Waits in any run, before the host reads results or writes the device's inputs (op_wait). */
void gpu_wait(Run *r, const char *reads);
/* An op that is the one call NAME of DeviceApi: runs it, then releases the scratch since mark. */
#define GPU_OP(r, mark, what, NAME, call)                                                      \
    do {                                                                                       \
        if (gpu_ready(r))                                                                      \
            gpu_done(r, what, gpu_api(r)->NAME(call));                                         \
        arena_release((r)->arena, mark);                                                       \
    } while (0)

/* Returns code, and keeps it if this process can no longer use the GPU after it. */
int gpu_note(Device *device, int code);
const char *gpu_broken(void *device); /* ArenaSource.broken */
bool gpu_is_busy(const Device *device);
GpuAhead gpu_ahead_of(const Device *device);
/* Enters the mode.  GRAPH_NONE ends it and keeps graph_lost for the caller. */
void gpu_graph_begin(Device *device, GraphMode mode);

/* Moves memory that the host wrote to the device ahead of a call. */
void gpu_toward(Run *r, const void *data, int64_t bytes);

/* The tiles of a pattern that hold allowed cells, with the terms of in->cell_term, in rows of
 * `height` queries, in the run's arena; *cells: number of cells over all heads.  Counts as
 * preparation (run_prepare). */
TileList gpu_tiles(Run *r, const AttendInput *in, const Pattern *pattern, int64_t height,
                   double *cells);

/* A pattern's rows as runs, in the run's arena; *cells: number of cells over all heads.  Counts
 * as preparation. */
RowRuns gpu_row_runs(Run *r, const Pattern *pattern, double *cells);

/* The back end's operations: gpu_NAME is Ops.NAME. */
#define GPU_OPS(OP)                                                                           \
    OP(attend) OP(pattern_means) OP(few_attend) OP(group_attend) OP(row_attend)               \
    OP(rounded_attend) OP(logit_attend) OP(key_usage) OP(features) OP(linear_attend)          \
    OP(lambda_content) OP(lambda_apply) OP(entries) OP(turn_pairs) OP(tap_sums) OP(gather)    \
    OP(scatter) OP(merge_rows) OP(sum_lists) OP(pool_windows) OP(pair_dots)                   \
    OP(best_columns) OP(softmax) OP(standardised_product) OP(standardise64) OP(normalise)     \
    OP(normalise64) OP(unit_rows) OP(largest_norm) OP(gelu) OP(sinkhorn) OP(argmax)           \
    OP(best_rows) OP(bit_sums) OP(codes) OP(member_sums) OP(nearest) OP(nearest_codes)        \
    OP(sort) OP(tally) OP(top_k) OP(gemm) OP(gemm_long) OP(pinv) OP(dots64) OP(product64)     \
    OP(mix_blocks) OP(state_attend) OP(ceilings) OP(prepare)
#define OP(name) __typeof__(*((Ops *)0)->name) gpu_##name;
GPU_OPS(OP)
#undef OP

void gpu_zero(Run *r, double *data, int64_t count); /* starts only; the caller's op waits */

/* Starts a product.  One with few tiles and a long inner axis is cut along that axis; the pieces
 * stay in the arena until the device has finished.  False: the run has failed. */
bool gpu_product(Run *r, GemmCall call);

/* [heads, rows, cols] without gaps. */
static inline DeviceTensor gpu_block(void *data, DeviceDType dtype, int64_t heads, int64_t rows,
                                     int64_t cols)
{
    return (DeviceTensor){ .data = data, .dtype = (int32_t)dtype, .heads = heads, .rows = rows,
                           .cols = cols, .head_stride = rows * cols, .row_stride = cols };
}

/* Fills items, joins and parts for call->tiles. */
void gpu_items(Run *r, MatrixAttendCall *call);

/* Rows of a head that all have the same keys. */
typedef struct PanelSpan {
    int64_t head, group, first, rows, first_key, keys;
} PanelSpan;

/* The panels of the spans (calls.h), in the run's arena, longest first; `width` columns of
 * results.  Keys are cut so that every multiprocessor has some panels.  Spans without rows have
 * no panels. */
PanelWork gpu_panels(Run *r, const PanelSpan *spans, int64_t count, int64_t width);

#endif
