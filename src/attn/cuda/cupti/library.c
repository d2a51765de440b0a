/* attn/cuda/cupti/library.c -- CUPTI by dlopen, the profiler's table, and the tier of events. */
#define _GNU_SOURCE /* dladdr */
#include "attn/cuda/cupti/library.h"
#include "attn/cuda/cupti/library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "ATTNSCOPE_CUPTI"
#define NVPERF "libnvperf_host.so"

static char         why[400];
static CuptiLibrary the_library;

/* The reason after a function returned other than 0. */
static const char *cupti_why(void)
{
    return why;
}

int cupti_refuse(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return -1;
}

/* The meaning of an error, or what to do about it; NULL: none is known. */
static const char *meaning(CUptiResult code)
{
    switch (code) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "no permission: run as root or with CAP_SYS_ADMIN, or load the driver with "
               "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_HARDWARE_BUSY:
        return "another profiler holds the counters, or the monitoring of a cluster does: "
               "'dcgmi profile --pause' makes DCGM let go";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return "another profiler is attached to this process";
    case CUPTI_ERROR_NOT_INITIALIZED:
        return "libnvperf_host.so is not found, or the driver is not usable";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        return "a virtual GPU has no counters";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        return "confidential computing hides them";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
        return "a part of a GPU (MIG) has no counters";
    case CUPTI_ERROR_NOT_SUPPORTED:
        return "this device or its configuration has none";
#if CUPTI_API_VERSION >= CUPTI_13
    case CUPTI_ERROR_INVALID_CHIP_NAME:
        return "this libcupti is older than the GPU";
#endif
    default:
        return NULL;
    }
}

int cupti_refused(const char *call, CUptiResult code)
{
    const char *name = NULL, *means = meaning(code);

    if (the_library.cuptiGetResultString)
        the_library.cuptiGetResultString(code, &name);
    if (means)
        return cupti_refuse("%s (%s, %d)", means, name ? name : call, (int)code);
    return cupti_refuse("%s: %s (%d)", call, name ? name : "refused", (int)code);
}

/* On the loader's path, then in the folders of toolkits. */
static void *open_cuda_library(const char *soname)
{
#if defined(__aarch64__)
#define TARGET "sbsa-linux" /* NVIDIA's name of servers with ARM */
#else
#define TARGET "x86_64-linux"
#endif
    static const char *const folders[] = { "lib64", "lib", "extras/CUPTI/lib64",
                                           "targets/" TARGET "/lib" };
    const char *homes[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
    char        path[1024];
    void       *found = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

    for (size_t h = 0; h < sizeof(homes) / sizeof(*homes); h++)
        for (size_t f = 0; homes[h] && f < sizeof(folders) / sizeof(*folders) && !found; f++) {
            snprintf(path, sizeof(path), "%s/%s/%s", homes[h], folders[f], soname);
            found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    return found;
}

/* libcupti opens libnvperf_host by name alone and finds the one that is already open, so the one
 * beside libcupti, of the same version, is opened first. */
static void open_beside(const void *function)
{
    Dl_info     found;
    const char *slash;
    char        path[1024];

    if (dladdr(function, &found) && found.dli_fname && (slash = strrchr(found.dli_fname, '/'))) {
        snprintf(path, sizeof(path), "%.*s" NVPERF, (int)(slash + 1 - found.dli_fname),
                 found.dli_fname);
        if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
            return;
    }
    open_cuda_library(NVPERF);
}

static int find_functions(void *handle, CuptiLibrary *library)
{
#define X(name)                                                                                \
    *(void **)&library->name = dlsym(handle, #name);                                           \
    if (!library->name)                                                                        \
        return cupti_refuse("libcupti has no %s: it is of another version", #name);
    CUPTI_FUNCTIONS(X)
#undef X
    return 0;
}

/* Without a driver, newer libraries (13.2 was tried) recurse until the stack overflows, even for
 * cuptiGetVersion.  They are known by a function that 13.0 lacks. */
static int check_driver(void *handle)
{
    int driver = 0;

    if (!dlsym(handle, "cuptiProfilerHostGetSinglePassSets") ||
        (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0))
        return 0;
    return cupti_refuse("this libcupti answers nothing where there is no driver");
}

/* The layout of records follows the major version; CUDA 12's numbers (18 to 27) have major 0. */
static int check_version(const CuptiLibrary *library)
{
    uint32_t version = 0;

    library->cuptiGetVersion(&version);
    return version / 10000 == CUPTI_API_VERSION / 10000
               ? 0
               : cupti_refuse("libcupti is of API %u, and this was built for %d", version,
                              CUPTI_API_VERSION);
}

const CuptiLibrary *cupti_library(void)
{
    const char  *given = getenv(VARIABLE);
    char         soname[32];
    CuptiLibrary library = { .handle = NULL };

    if (given && !strcmp(given, "0")) {
        cupti_refuse("switched off by " VARIABLE "=0");
        return NULL;
    }
    if (the_library.handle)
        return &the_library;
    snprintf(soname, sizeof(soname), "libcupti.so.%d", CUPTI_MAJOR);
    library.handle = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL)
                                     : open_cuda_library(soname);
    if (!library.handle) {
        cupti_refuse("%s is not found beside the CUDA toolkit; name it by " VARIABLE,
                     given && *given ? given : soname);
        return NULL;
    }
    if (find_functions(library.handle, &library) || check_driver(library.handle) ||
        check_version(&library)) {
        dlclose(library.handle);
        return NULL;
    }
    open_beside(*(void **)&library.cuptiProfilerHostInitialize);
    the_library = library;
    return &the_library;
}

/* ---- the profiler's table (attn/cuda/profiling.h) -------------------------------------- */

static const char *source(void)
{
    static char         text[64];
    const CuptiLibrary *library = cupti_library();
    uint32_t            version = 0;

    if (!library)
        return "CUDA events";
    library->cuptiGetVersion(&version);
    snprintf(text, sizeof(text), "CUPTI %u.%u", version / 10000, version % 10000 / 100);
    return text;
}

static int events_mark(int index);
static int events_between(int from, int to, double *ms);

const DeviceProfiler *device_profiler(void)
{
    static const DeviceProfiler profiler = {
        .why = cupti_why,
        .source = source,
        .can_trace = trace_can,
        .can_count = counters_can,
        .plan = metrics_of_chip,
        .mark = events_mark,
        .between = events_between,
        .trace_begin = trace_begin,
        .trace_enter = trace_enter,
        .trace_leave = trace_leave,
        .trace_end = trace_end,
        .trace_free = trace_free,
        .count_begin = counters_begin,
        .pass_begin = counters_pass_begin,
        .range_begin = counters_range_begin,
        .range_end = counters_range_end,
        .pass_end = counters_pass_end,
        .count_end = counters_end,
    };

    return &profiler;
}

/* ---- events on the device's stream, without CUPTI --------------------------------------- */

extern cudaStream_t device_stream(void); /* plugin.cu */
extern int          device_settle(void);

static cudaEvent_t events[DEVICE_MARKS];

static int failed(cudaError_t code)
{
    return code == cudaSuccess ? 0 : cupti_refuse("cudaEvent: %s", cudaGetErrorString(code));
}

static int events_mark(int index)
{
    if (index < 0 || index >= DEVICE_MARKS)
        return cupti_refuse("more than %d marks", DEVICE_MARKS);
    if (!events[index] && failed(cudaEventCreate(&events[index])))
        return -1;
    if (failed(cudaEventRecord(events[index], device_stream())))
        return -1;
    return failed((cudaError_t)device_settle()); /* the host continues between calls */
}

static int events_between(int from, int to, double *ms)
{
    float       passed = 0;
    cudaError_t code = cudaEventSynchronize(events[to]);

    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&passed, events[from], events[to]);
    *ms = (double)passed;
    return failed(code);
}
