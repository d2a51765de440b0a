/* attn/cuda/profiling.h -- what a device reports of a run besides its result; plain C.
 *
 * Three tiers, each in runs of its own, because each disturbs what the next would measure:
 *
 *   events    marks on the device's own clock, at next to no cost
 *   activity  every kernel, copy and allocation, with the region of the run it belongs to
 *   counters  what the hardware counted in each region; the caller repeats the run until all
 *             passes are done, and its times mean nothing
 *
 * Regions and ranges are numbers that the caller chooses, from 0.  Every function returns 0,
 * or another number, and why() says in words what is missing or was refused; after that the
 * tier is closed and the device works on.  One thread uses it at a time.
 */
#ifndef ATTN_CUDA_PROFILING_H
#define ATTN_CUDA_PROFILING_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_MARKS 4096 /* of a run at most */

typedef struct DeviceKernel {
    char    name[160];    /* as the compiler wrote it, "_Z6attendILb0EEv..." */
    int     region;       /* -1: outside of any */
    int64_t start, end;   /* nanoseconds since trace_begin */
    int32_t grid[3], block[3];
    int32_t registers;    /* of a thread; -1: unknown */
    int64_t shared;       /* bytes of a block, static and dynamic */
    int64_t local;        /* bytes of a thread that did not fit registers; -1: unknown */
} DeviceKernel;

typedef enum DeviceCopyKind {
    DEVICE_COPY_TO_DEVICE,   /* copied by a call */
    DEVICE_COPY_TO_HOST,
    DEVICE_COPY_WITHIN,
    DEVICE_COPY_SET,         /* filled */
    DEVICE_PAGES_TO_DEVICE,  /* pages of shared memory that moved when they were touched */
    DEVICE_PAGES_TO_HOST,
    DEVICE_COPY_KINDS
} DeviceCopyKind;

typedef struct DeviceCopy {
    DeviceCopyKind kind;
    int            region;
    int64_t        start, end, bytes;
} DeviceCopy;

typedef struct DeviceAllocation {
    int     region;
    int64_t at, bytes; /* bytes negative: given back */
} DeviceAllocation;

typedef struct DeviceTrace {
    DeviceKernel     *kernels;     /* in order of their start */
    DeviceCopy       *copies;
    DeviceAllocation *allocations;
    int64_t           kernel_count, copy_count, allocation_count;
    int64_t           dropped;     /* records the tracer had no room for */
} DeviceTrace;

/* Sums over a range; NaN: not counted. */
typedef enum DeviceCount {
#define DEVICE_COUNT(id, name) DEVICE_COUNT_##id,
#include "attn/cuda/counts.def"
#undef DEVICE_COUNT
    DEVICE_COUNTS
} DeviceCount;

typedef struct DeviceRange {
    double value[DEVICE_COUNTS];
} DeviceRange;

/* What counters a chip has, and in how many runs they are all read. */
typedef struct DevicePlan {
    bool has[DEVICE_COUNTS];
    int  passes;
} DevicePlan;

typedef struct DeviceProfiler {
    const char *(*why)(void);
    const char *(*source)(void); /* "CUPTI 13.0.1 for GH100", as far as it is known */
    /* Whether a tier can be begun, tried without a run; fails as the tier would. */
    int (*can_trace)(void);
    int (*can_count)(void);
    int (*plan)(const char *chip, DevicePlan *out); /* "GH100"; needs no GPU */

    int (*mark)(int index);                        /* 0 .. DEVICE_MARKS - 1, in order of work */
    int (*between)(int from, int to, double *ms);  /* waits for both */

    int (*trace_begin)(void);
    int (*trace_enter)(int region);
    int (*trace_leave)(void);
    int (*trace_end)(DeviceTrace *out);            /* waits; trace_free also after a failure */
    void (*trace_free)(DeviceTrace *trace);

    int (*count_begin)(int ranges);                /* numbers below `ranges` will be used */
    int (*pass_begin)(void);
    int (*range_begin)(int range);                 /* they do not nest */
    int (*range_end)(void);                        /* waits */
    int (*pass_end)(bool *more);                   /* more: the run has to be repeated */
    int (*count_end)(DeviceRange *out);            /* [ranges]; closes in any case */
} DeviceProfiler;

/* Inside the shared object: what DeviceApi.profiler is. */
#ifdef __cplusplus
extern "C"
#endif
const DeviceProfiler *device_profiler(void);

#endif
