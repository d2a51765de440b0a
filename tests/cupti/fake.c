/* fake.c -- CUPTI's activity as its headers describe it, without a GPU, and the runtime's part; the
 * counters are in fake_counters.c.
 *
 * Each call knows what it may not follow, what its parameters have to be, and when memory is whose.
 * Records lie in a buffer as a newer CUPTI writes them, longer than ours, and come back on a thread
 * of its own.
 */
#include "fake_parts.h"

#include "attn/cuda/cupti/library.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_MORE 8   /* bytes that its records have behind ours */
#define LATER 5         /* nanoseconds from one question to the next */

FakeCupti fake;

static struct {
    uint64_t clock;
    bool     launched;             /* and not waited for */
    /* activity */
    CUpti_BuffersCallbackRequestFunc  give;
    CUpti_BuffersCallbackCompleteFunc take;
    bool     on[CUPTI_ACTIVITY_KIND_COUNT], pages_set, delivering;
    uint64_t stack[32];
    int      depth;
    uint32_t number;
    uint8_t *buffer;
    size_t   size, used;
} now;

static void broke(const char *rule)
{
    if (!fake.broken)
        fake.broken = rule;
}

bool must(bool holds, const char *rule)
{
    if (!holds)
        broke(rule);
    return holds;
}

/* ---- buffers ---------------------------------------------------------------------------- */

static void *hand_back(void *unused)
{
    uint8_t *buffer = now.buffer;

    now.buffer = NULL;
    fake.buffers--;
    now.take(NULL, 0, buffer, now.size, now.used);
    return unused;
}

/* By another thread, while the caller of CUPTI waits. */
static void deliver(void)
{
    pthread_t thread;

    if (!now.buffer || now.delivering)
        return;
    now.delivering = true;
    pthread_create(&thread, NULL, hand_back, NULL);
    pthread_join(thread, NULL);
    now.delivering = false;
}

static void called(void)
{
    now.clock += LATER;
    if (fake.busy && now.take)
        deliver();
}

static void record(const void *data, size_t size, size_t more)
{
    size_t most = 0;

    if (now.buffer && now.used + size + more > now.size)
        deliver();
    if (!now.buffer) {
        now.give(&now.buffer, &now.size, &most);
        now.used = 0;
        if (!must(now.buffer && (uintptr_t)now.buffer % 8 == 0 && now.size >= 1 << 20 && !most,
                  "a buffer is of 1 MiB and more, aligned to 8 bytes, for any number of records"))
            return;
        fake.buffers++;
    }
    memcpy(now.buffer + now.used, data, size);
    memset(now.buffer + now.used + size, 0x5a, more);
    now.used += size + more;
}

/* What any call of the runtime leaves where calls are recorded. */
static uint32_t api(void)
{
    CUpti_ActivityAPI call = { .kind = CUPTI_ACTIVITY_KIND_RUNTIME, .correlationId = ++now.number };
    CUpti_ActivityExternalCorrelation join = {
        .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
        .correlationId = now.number,
    };

    if (now.depth && now.on[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] &&
        now.on[CUPTI_ACTIVITY_KIND_RUNTIME] && now.on[CUPTI_ACTIVITY_KIND_DRIVER]) {
        join.externalId = now.stack[now.depth - 1];
        record(&join, sizeof(join), 0);
    }
    if (now.on[CUPTI_ACTIVITY_KIND_RUNTIME])
        record(&call, sizeof(call), 0);
    return now.number;
}

static void launch(const char *name, uint64_t ns)
{
    CuptiKernel k = { .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .name = name };

    k.correlationId = api();
    k.gridX = 7, k.gridY = 2, k.gridZ = 1, k.blockX = 128, k.blockY = k.blockZ = 1;
    k.registersPerThread = 40, k.staticSharedMemory = 16, k.dynamicSharedMemory = 1024;
    if (!fake.untimed)
        k.start = fake.early ? 1 : now.clock, k.end = now.clock + ns;
    now.clock += ns;
    now.launched = true;
    if (now.on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        record(&k, sizeof(k), KERNEL_MORE);
}

static void move_pages(uint64_t bytes)
{
    CUpti_ActivityUnifiedMemoryCounter3 pages = {
        .kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,
        .counterKind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        .value = bytes, .start = now.clock, .end = now.clock + 10,
    };

    now.clock += 10;
    if (now.on[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER])
        record(&pages, sizeof(pages), 0);
}

static void take(int64_t bytes)
{
    CUpti_ActivityMemory4 memory = {
        .kind = CUPTI_ACTIVITY_KIND_MEMORY2,
        .memoryOperationType = bytes < 0 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
        .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
        .bytes = (uint64_t)(bytes < 0 ? -bytes : bytes), .timestamp = now.clock,
    };

    memory.correlationId = api();
    if (now.on[CUPTI_ACTIVITY_KIND_MEMORY2])
        record(&memory, sizeof(memory), 0);
}

bool fake_activity_on(void)
{
    for (int kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; kind++)
        if (now.on[kind])
            return true;
    return false;
}

/* ---- the activity API ------------------------------------------------------------------- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult code, const char **text)
{
    *text = code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                        : "CUPTI_ERROR";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *time)
{
    called();
    *time = now.clock;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                           CUpti_BuffersCallbackCompleteFunc taken)
{
    must(give && taken, "both callbacks are given");
    now.give = give;
    now.take = taken;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    must(now.take, "callbacks are registered before a kind is enabled");
    must(!fake_counters_on(), "no kind is enabled while counters are");
    if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
        must(now.pages_set, "what is told of pages is set before the kind is enabled");
    if (fake.activity)
        return (CUptiResult)fake.activity;
    now.on[kind] = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    called();
    now.on[kind] = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
    CUpti_ActivityUnifiedMemoryCounterConfig *config, uint32_t count)
{
    must(config && count, "there is something to configure");
    for (uint32_t i = 0; i < count; i++)
        must((config[i].scope == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES ||
              config[i].scope ==
                  CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE) &&
                 config[i].kind && config[i].enable == 1, "a configuration says what and for whom");
    must(!now.on[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER], "it is set before it is enabled");
    now.pages_set = !fake.pages;
    return (CUptiResult)fake.pages;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    called();
    must(kind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 && now.depth < 32, "our ids nest");
    now.stack[now.depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *id)
{
    (void)kind;
    if (!must(now.depth > 0, "what is popped was pushed"))
        return CUPTI_ERROR_QUEUE_EMPTY;
    *id = now.stack[--now.depth];
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    must(flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, "the last flush is a forced one");
    must(!now.launched, "the device is waited for before a flush");
    deliver();
    return CUPTI_SUCCESS;
}

static size_t size_of(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return sizeof(CuptiKernel) + KERNEL_MORE;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
        return sizeof(CUpti_ActivityUnifiedMemoryCounter3);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory4);
    default: return sizeof(CUpti_ActivityAPI);
    }
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **at)
{
    uint8_t *next = *at ? (uint8_t *)*at + size_of(*at) : buffer;

    must(now.delivering, "records are read while they are handed back");
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *at = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    must(!context && !stream, "buffers are of no context");
    *dropped = 0;
    return CUPTI_SUCCESS;
}

/* ---- the runtime --------------------------------------------------------------------------- */

extern cudaStream_t device_stream(void); /* plugin.cu's */
extern int          device_settle(void);

cudaStream_t device_stream(void) { return NULL; }
int          device_settle(void) { return 0; }

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fake.devices;
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device)
{
    (void)device;
    *value = which == cudaDevAttrMaxThreadsPerMultiProcessor ? 2048 : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    now.launched = false;
    return (cudaError_t)fake.wait;
}

cudaError_t cudaFree(void *data)
{
    (void)data;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error";
}

static CUresult current(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)0x200;
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **address, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    CUresult (*entry)(CUcontext *) = current;

    (void)version, (void)flags;
    must(!strcmp(name, "cuCtxGetCurrent"), "this function of the driver's is known");
    memcpy(address, &entry, sizeof(entry));
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = (cudaEvent_t)(uintptr_t)0x300;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event, (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    (void)from, (void)to;
    *ms = 1;
    return cudaSuccess;
}

/* ---- the test's side ------------------------------------------------------------------------ */

static void reset(void)
{
    free(now.buffer);
    memset(&now, 0, sizeof(now));
    fake_counters_reset();
    now.clock = 1000;
    fake = (FakeCupti){ .profiler = device_profiler, .reset = reset, .launch = launch,
                        .move_pages = move_pages, .take = take, .devices = 1 };
}

FakeCupti *fake_cupti(void)
{
    if (!fake.reset)
        reset();
    return &fake;
}
