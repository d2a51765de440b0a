// plans.cc -- fused.cu as it is, with the real libcudnn and no GPU: cuDNN makes plans for a device
// that it is told of (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) where a handle would stand for one.
#define ATTN_CUDA_KERNELS_MATRIX_CUH // what is for the device's compiler
#include "attn/cuda/device.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
static inline T __shfl_xor_sync(unsigned, T x, int) { return x; }

#include "attn/cuda/kernels/fused.cu"

#include "plans.h"

extern "C" cudaStream_t device_stream(void) { return NULL; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMalloc(void **, size_t) { return cudaErrorMemoryAllocation; }
cudaError_t cudaFree(void *) { return cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }

static Descriptor described;
static decltype(&cudnnBackendSetAttribute) real_set;

// The device for a handle; where graphs ask for a handle they do without.
static cudnnStatus_t set_described(Descriptor d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count,
                                   const void *value)
{
    cudnnStatus_t status;

    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return real_set(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                        &described);
    status = real_set(d, name, type, count, value);
    return name == CUDNN_ATTR_ENGINEHEUR_MODE && !status
               ? real_set(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                          &described)
               : status;
}

// Nothing runs: what is left of an execution is the list of pointers, which cuDNN has checked before.
static cudnnStatus_t execute_nothing(cudnnHandle_t, Descriptor, Descriptor)
{
    return CUDNN_STATUS_SUCCESS;
}

static void describe(int capability, char *json, size_t size)
{
    bool large = capability == 800 || capability == 900 || capability == 1000;

    snprintf(json, size,
             "{\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,\"regsPerBlock\":65536,"
             "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
             "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,"
             "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,"
             "\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"smClockRateKHz\":1700000,\"memClockRateKHz\":2600000,\"memoryBusWidth\":5120,"
             "\"l2CacheSize\":50331648,\"totalGlobalMem\":84000000000,\"deviceName\":\"a GPU\"}",
             capability, large ? 132 : 100, capability == 800 ? 166912 : large ? 232448 : 101376,
             large ? 32 : 24, large ? 2048 : 1536);
}

static bool open_plans(int capability, char *why, int size)
{
    void *found = lib.Create ? NULL : open_cudnn();
    char  json[1500];
    Graph own = {};

    if ((!lib.Create && (!found || !find_functions(found))) || !find_companions()) {
        snprintf(why, (size_t)size, "%s", found || lib.Create ? reason : dlerror());
        return false;
    }
    real_set = real_set ? real_set : lib.BackendSetAttribute;
    lib.BackendSetAttribute = real_set;
    if (described)
        lib.BackendDestroyDescriptor(described);
    describe(capability, json, sizeof(json));
    described = make(&own, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    set(&own, described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
        (int64_t)strlen(json), json);
    finish(&own, described);
    lib.BackendSetAttribute = set_described;
    lib.BackendExecute = execute_nothing;
    if (own.status)
        snprintf(why, (size_t)size, "no device can be described: %s",
                 lib.GetErrorString(own.status));
    return !own.status;
}

static bool plan(const FusedCall *call, int64_t *workspace, char *why, int size)
{
    Plan    p = Plan();
    int64_t one;
    bool    made;

    p.shape = *call;
    p.graph.shape = &p.shape;
    p.graph.next = VIRTUAL;
    p.plan = first_plan(&p.graph, graph(&p.graph));
    made = p.plan && !lib.BackendGetAttribute(p.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &one, workspace);
    if (!made)
        words_of(p.graph.status, p.why);
    else if (run(&p, call))
        made = (snprintf(p.why, sizeof(p.why), "%.290s", reason), false);
    snprintf(why, (size_t)size, "%s", p.why);
    drop(&p);
    return made;
}

const CudnnPlans *cudnn_plans(void)
{
    static const CudnnPlans all = { open_plans, plan };

    return &all;
}
