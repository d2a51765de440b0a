/* attn/cuda/cupti/library.h -- CUPTI by dlopen on first use; shared by the profiler's files.
 *
 * Nothing here is linked, because libcupti and libnvperf_host may be missing.  libcupti finds
 * libnvperf_host only on the loader's path, so that one is opened too, by its path: beside libcupti
 * first, because both must have the same version.
 */
#ifndef ATTN_CUDA_CUPTI_LIBRARY_H
#define ATTN_CUDA_CUPTI_LIBRARY_H

#include <cuda.h> /* types; libcuda is the runtime's own affair */
#include <cupti_activity.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include "attn/cuda/profiling.h"

/* CUDA 12's record of a kernel is the beginning of 13's. */
#define CUPTI_13 130000
#if CUPTI_API_VERSION >= CUPTI_13
typedef CUpti_ActivityKernel10 CuptiKernel;
#define CUPTI_MAJOR (CUPTI_API_VERSION / 10000)
#else
typedef CUpti_ActivityKernel9 CuptiKernel;
#define CUPTI_MAJOR 12
#endif

#define CUPTI_FUNCTIONS(X)                                                                     \
    X(cuptiGetVersion) X(cuptiGetResultString) X(cuptiGetTimestamp)                            \
    X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable)           \
    X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord)                                     \
    X(cuptiActivityGetNumDroppedRecords) X(cuptiActivityConfigureUnifiedMemoryCounter)         \
    X(cuptiActivityPushExternalCorrelationId) X(cuptiActivityPopExternalCorrelationId)         \
    X(cuptiDeviceGetChipName) X(cuptiProfilerInitialize) X(cuptiProfilerDeInitialize)          \
    X(cuptiProfilerDeviceSupported) X(cuptiProfilerGetCounterAvailability)                     \
    X(cuptiProfilerHostInitialize) X(cuptiProfilerHostDeinitialize)                            \
    X(cuptiProfilerHostGetSupportedChips) X(cuptiProfilerHostConfigAddMetrics)                 \
    X(cuptiProfilerHostGetConfigImageSize) X(cuptiProfilerHostGetConfigImage)                  \
    X(cuptiProfilerHostGetNumOfPasses) X(cuptiProfilerHostEvaluateToGpuValues)                 \
    X(cuptiRangeProfilerEnable) X(cuptiRangeProfilerDisable)                                   \
    X(cuptiRangeProfilerGetCounterDataSize) X(cuptiRangeProfilerCounterDataImageInitialize)    \
    X(cuptiRangeProfilerSetConfig) X(cuptiRangeProfilerStart) X(cuptiRangeProfilerStop)        \
    X(cuptiRangeProfilerPushRange) X(cuptiRangeProfilerPopRange)                               \
    X(cuptiRangeProfilerDecodeData) X(cuptiRangeProfilerGetCounterDataInfo)                    \
    X(cuptiRangeProfilerCounterDataGetRangeInfo)

typedef struct CuptiLibrary {
    void *handle;
#define X(name) __typeof__(&name) name;
    CUPTI_FUNCTIONS(X)
#undef X
} CuptiLibrary;

/* NULL: DeviceProfiler.why says what is missing.  Needs no GPU. */
const CuptiLibrary *cupti_library(void);

/* Sets the reason that DeviceProfiler.why gives; not 0. */
int cupti_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same of what `call` returned, and what that means for counters or traces. */
int cupti_refused(const char *call, CUptiResult code);
/* Calls a function of CUPTI's with a parameter block; 0, or refused. */
#define CUPTI_CALL(function, block) cupti_check(#function, cupti_library()->function(&(block)))
static inline int cupti_check(const char *call, CUptiResult code)
{
    return code == CUPTI_SUCCESS ? 0 : cupti_refused(call, code);
}

/* A parameter block of the profiler: zero except for its size. */
#define CUPTI_BLOCK(type, name) type##_Params name = { .structSize = type##_Params_STRUCT_SIZE }
/* A block up to its field `last`: an older library refuses the longer block of newer headers
 * (tried with 13.0 and the headers of 13.2). */
#define CUPTI_BLOCK_TO(type, name, last)                                                       \
    type##_Params name = { .structSize = CUPTI_PROFILER_STRUCT_SIZE(type##_Params, last) }

/* ---- what DeviceProfiler calls (profiling.h) ------------------------------------ */
int  trace_can(void);
int  trace_begin(void);
int  trace_enter(int region);
int  trace_leave(void);
int  trace_end(DeviceTrace *out);
void trace_free(DeviceTrace *trace);

int counters_can(void);
int counters_begin(int ranges);
int counters_pass_begin(void);
int counters_range_begin(int range);
int counters_range_end(void);
int counters_pass_end(bool *more);
int counters_end(DeviceRange *out);

/* DeviceProfiler.plan; needs no GPU. */
int metrics_of_chip(const char *chip, DevicePlan *out);

#endif
