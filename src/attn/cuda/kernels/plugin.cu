// plugin.cu -- the shared object's table: the device, its memory, its calls; see device.h.
#include "attn/cuda/kernels/portable.cuh"

#include <stdio.h>

static cudaStream_t the_stream; // not the default stream, to which memory cannot be attached
static bool         shared;     // host and device may touch memory at the same time

cudaStream_t device_stream(void)
{
    return the_stream;
}

#define CALL(name, Args) extern "C" int call_##name(const Args *args);
#include "attn/cuda/calls.def"
#undef CALL

// Clears the last error once it is reported: a library would take it for its own.
static int reported(cudaError_t code)
{
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    return code;
}

static int count_devices(int index)
{
    int         count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);

    if (code == cudaSuccess && index >= count)
        return cudaErrorNoDevice;
    return code;
}

static int attribute(cudaDeviceAttr which, int index)
{
    int value = 0;

    return cudaDeviceGetAttribute(&value, which, index) == cudaSuccess ? value : 0;
}

static int describe(int index, DeviceInfo *info)
{
    cudaDeviceProp about;
    cudaError_t    code = cudaGetDeviceProperties(&about, index);

    if (code != cudaSuccess)
        return code;
    snprintf(info->name, sizeof(info->name), "%.90s", about.name);
    info->major = about.major;
    info->minor = about.minor;
    info->processors = about.multiProcessorCount;
    info->memory = (int64_t)about.totalGlobalMem;
    info->shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
    info->managed = attribute(cudaDevAttrConcurrentManagedAccess, index) != 0;
    code = cudaDriverGetVersion(&info->driver);
    return code != cudaSuccess ? code : cudaRuntimeGetVersion(&info->runtime);
}

static __global__ void nothing(void)
{
}

// Whether the file has machine code or PTX for this GPU.  The answer holds for all kernels but
// those of a single architecture.
static int find_code(void)
{
    cudaFuncAttributes about;

    return reported(cudaFuncGetAttributes(&about, nothing));
}

static int open_device(int index, DeviceInfo *info)
{
    int code = count_devices(index);

    *info = DeviceInfo();
    if (!code)
        code = cudaSetDevice(index);
    if (!code)
        code = describe(index, info);
    if (!code)
        code = find_code();
    if (!code && !the_stream)
        code = cudaStreamCreateWithFlags(&the_stream, cudaStreamNonBlocking);
    shared = info->managed;
    return code;
}

void fused_close(void);

static void close_device(void)
{
    fused_close();
    if (the_stream)
        cudaStreamDestroy(the_stream);
    the_stream = NULL;
}

const char *fused_reason(void);
const char *warpgroup_reason(void);

static const char *text_of(int code)
{
    static char text[256];

    if (code == FUSED_DECLINED)
        return fused_reason();
    if (code == WARPGROUP_DECLINED)
        return warpgroup_reason();
    snprintf(text, sizeof(text), "%s (%s)", cudaGetErrorString((cudaError_t)code),
             cudaGetErrorName((cudaError_t)code));
    return text;
}

// Managed memory.  Without concurrent access it is attached to the host at once: memory attached to
// all streams is not accessible to the host while any stream works.
static int take(int64_t bytes, void **data)
{
    return reported(cudaMallocManaged(data, (size_t)bytes,
                                      shared ? cudaMemAttachGlobal : cudaMemAttachHost));
}

static int give(void *data)
{
    return cudaFree(data);
}

static int finish(void)
{
    return reported(cudaStreamSynchronize(the_stream));
}

// The change happens in stream order, so the call waits for it.
static int attach(void *data, bool device)
{
    unsigned who = device ? cudaMemAttachSingle : cudaMemAttachHost;
    int      code = shared ? 0 : reported(cudaStreamAttachMemAsync(the_stream, data, 0, who));

    return shared || code ? code : finish();
}

static int room(int64_t *free_bytes, int64_t *total)
{
    size_t      left = 0, all = 0;
    cudaError_t code = cudaMemGetInfo(&left, &all);

    *free_bytes = (int64_t)left;
    *total = (int64_t)all;
    return code;
}

// Where pages cannot be prefetched they move on the first access: that is no error.
static int toward(const void *data, int64_t bytes, bool device)
{
    cudaMemLocation where = {};
    int             index = 0;
    cudaError_t     code = cudaGetDevice(&index);

    if (code != cudaSuccess || !shared)
        return code;
    where.type = device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
    where.id = device ? index : 0;
    return reported(cudaMemPrefetchAsync(data, (size_t)bytes, where, 0, the_stream));
}

extern "C" int device_settle(void)
{
    return shared ? 0 : finish();
}

static int capture_begin(void)
{
    return cudaStreamBeginCapture(the_stream, cudaStreamCaptureModeThreadLocal);
}

// An invalidated capture leaves an error that belongs to no launch.
static int capture_end(void **graph)
{
    cudaGraph_t     all = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t     code = (cudaError_t)cudaStreamEndCapture(the_stream, &all);

    if (code == cudaSuccess)
        code = (cudaError_t)cudaGraphInstantiate(&exec, all, 0);
    if (code == cudaSuccess)
        code = (cudaError_t)cudaGraphUpload(exec, the_stream);
    if (all)
        cudaGraphDestroy(all);
    if (code != cudaSuccess && exec)
        cudaGraphExecDestroy(exec);
    *graph = code == cudaSuccess ? exec : NULL;
    if (code != cudaSuccess)
        cudaGetLastError();
    return code;
}

static int replay(void *graph)
{
    return cudaGraphLaunch((cudaGraphExec_t)graph, the_stream);
}

static void graph_free(void *graph)
{
    if (graph)
        cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

#ifdef WITHOUT_PROFILER
#define PROFILER NULL
#else
#define PROFILER device_profiler
#endif

extern "C" __attribute__((visibility("default"))) const DeviceApi *attnscope_device(int abi)
{
    static const DeviceApi api = {
        DEVICE_ABI, DEVICE_NAME, open_device, close_device, text_of, take, give, attach, room,
        toward, finish, capture_begin, capture_end, replay, graph_free, PROFILER,
#define CALL(name, Args) call_##name,
#include "attn/cuda/calls.def"
#undef CALL
    };

    return abi == DEVICE_ABI ? &api : NULL;
}
