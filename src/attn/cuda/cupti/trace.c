/* attn/cuda/cupti/trace.c -- the activity tier: records of kernels, copies and allocations.
 *
 * A launch inside a region leaves a record that maps its correlation number to the region
 * (external correlation).  Pages that move without a call have no such number and belong to the
 * region that was open at that time.  CUPTI returns buffers on its own thread, so a lock guards
 * the trace.
 */
#include "attn/cuda/cupti/library.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER ((size_t)4 << 20)
#define NEST 16

typedef struct List {
    void  *items;
    size_t count, capacity;
} List;

/* The region of a correlation number. */
typedef struct Numbered {
    uint32_t number; /* first: pairs are sorted by it */
    int      region;
} Numbered;

typedef struct Opened {
    uint64_t at;
    int      region;
} Opened;

static struct Trace {
    pthread_mutex_t lock;
    List     kernels, copies, allocations;       /* DeviceKernel, ... */
    List     kernel_numbers, copy_numbers, allocation_numbers; /* uint32_t beside them */
    List     joins;                              /* Numbered */
    List     opened;                             /* Opened, by time */
    int      stack[NEST], depth;
    size_t   dropped;
    bool     no_memory, active, pages;
    uint64_t began;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* External correlation needs RUNTIME and DRIVER. */
static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET,            CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};
#define KINDS ((int)(sizeof(kinds) / sizeof(*kinds)))

/* ---- lists ------------------------------------------------------------------ */

static void *list_add(List *list, size_t size)
{
    size_t capacity = list->capacity ? 2 * list->capacity : 256;
    void  *grown;

    if (list->count == list->capacity) {
        grown = realloc(list->items, capacity * size);
        if (!grown) {
            trace.no_memory = true;
            return NULL;
        }
        list->items = grown;
        list->capacity = capacity;
    }
    return memset((char *)list->items + size * list->count++, 0, size);
}

static void list_free(List *list)
{
    free(list->items);
    *list = (List){ 0 };
}

static void number_add(List *list, uint32_t number)
{
    uint32_t *at = list_add(list, sizeof(*at));

    if (at)
        *at = number;
}

/* ---- records ------------------------------------------------------------------ */

static int64_t since(uint64_t time)
{
    return (int64_t)(time - trace.began);
}

/* A record without times (CUPTI_TIMESTAMP_UNKNOWN: CUPTI had no memory for them) counts as dropped.
 * One that began before the trace is of earlier work: pages still move, and blocks are still
 * released, when that has ended. */
static bool is_timed(uint64_t start, uint64_t end)
{
    bool known = start && end;

    trace.dropped += !known;
    return known && start >= trace.began;
}

static void take_kernel(const CuptiKernel *a)
{
    DeviceKernel *k = is_timed(a->start, a->end) ? list_add(&trace.kernels, sizeof(*k)) : NULL;

    if (!k)
        return;
    snprintf(k->name, sizeof(k->name), "%s", a->name ? a->name : "?");
    k->start = since(a->start);
    k->end = since(a->end);
    k->grid[0] = a->gridX, k->grid[1] = a->gridY, k->grid[2] = a->gridZ;
    k->block[0] = a->blockX, k->block[1] = a->blockY, k->block[2] = a->blockZ;
    k->registers = a->registersPerThread;
    k->shared = (int64_t)a->staticSharedMemory + a->dynamicSharedMemory;
    k->local = a->localMemoryPerThread;
    number_add(&trace.kernel_numbers, a->correlationId);
}

static DeviceCopyKind copy_kind(unsigned kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return DEVICE_COPY_TO_DEVICE;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return DEVICE_COPY_TO_HOST;
    default: return DEVICE_COPY_WITHIN;
    }
}

static void take_copy(DeviceCopyKind kind, uint64_t start, uint64_t end, uint64_t bytes,
                      uint32_t number)
{
    DeviceCopy *c = is_timed(start, end) ? list_add(&trace.copies, sizeof(*c)) : NULL;

    if (!c)
        return;
    *c = (DeviceCopy){ kind, -1, since(start), since(end), (int64_t)bytes };
    number_add(&trace.copy_numbers, number);
}

static void take_allocation(const CUpti_ActivityMemory4 *a)
{
    bool taken = a->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    DeviceAllocation *item;

    if (a->memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_DEVICE &&
        a->memoryKind != CUPTI_ACTIVITY_MEMORY_KIND_MANAGED)
        return;
    if (!is_timed(a->timestamp, a->timestamp))
        return;
    item = list_add(&trace.allocations, sizeof(*item));
    if (!item)
        return;
    *item = (DeviceAllocation){ -1, since(a->timestamp),
                                taken ? (int64_t)a->bytes : -(int64_t)a->bytes };
    number_add(&trace.allocation_numbers, a->correlationId);
}

static void take_pages(const CUpti_ActivityUnifiedMemoryCounter3 *a)
{
    if (a->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD)
        take_copy(DEVICE_PAGES_TO_DEVICE, a->start, a->end, a->value, 0);
    else if (a->counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH)
        take_copy(DEVICE_PAGES_TO_HOST, a->start, a->end, a->value, 0);
}

static void take_join(const CUpti_ActivityExternalCorrelation *a)
{
    Numbered *join;

    if (a->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        return;
    join = list_add(&trace.joins, sizeof(*join));
    if (join)
        *join = (Numbered){ a->correlationId, (int)a->externalId };
}

static void take_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        take_kernel((const CuptiKernel *)(const void *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *a = (const void *)record;

        take_copy(copy_kind(a->copyKind), a->start, a->end, a->bytes, a->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *a = (const void *)record;

        take_copy(DEVICE_COPY_SET, a->start, a->end, a->bytes, a->correlationId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        take_allocation((const void *)record);
        break;
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
        take_pages((const void *)record);
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        take_join((const void *)record);
        break;
    default:
        break;
    }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    const CuptiLibrary *c = cupti_library();
    CUpti_Activity     *record = NULL;
    size_t              dropped = 0;

    (void)size;
    pthread_mutex_lock(&trace.lock);
    while (trace.active && c->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        take_record(record);
    if (c->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
        trace.dropped += dropped;
    pthread_mutex_unlock(&trace.lock);
    free(buffer);
}

/* ---- begin and end ------------------------------------------------------------ */

static void clear(void)
{
    List *lists[] = { &trace.kernels,      &trace.copies,             &trace.allocations,
                      &trace.joins,        &trace.kernel_numbers,     &trace.copy_numbers,
                      &trace.allocation_numbers, &trace.opened };

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        list_free(lists[i]);
    trace.depth = 0;
    trace.dropped = 0;
    trace.no_memory = false;
}

static void disable(const CuptiLibrary *c, int count)
{
    for (int i = 0; i < count; i++)
        c->cuptiActivityDisable(kinds[i]);
    if (trace.pages)
        c->cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    trace.pages = false;
}

/* A trace has no pages if the driver does not report them. */
static void enable_pages(const CuptiLibrary *c)
{
    CUpti_ActivityUnifiedMemoryCounterConfig wanted[2];

    for (int i = 0; i < 2; i++)
        wanted[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
            .kind = i ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH
                      : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
            .deviceId = 0,
            .enable = 1,
        };
    trace.pages = c->cuptiActivityConfigureUnifiedMemoryCounter(wanted, 2) == CUPTI_SUCCESS &&
                  c->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) ==
                      CUPTI_SUCCESS;
}

static int enable(const CuptiLibrary *c)
{
    CUptiResult code = c->cuptiActivityRegisterCallbacks(give_buffer, take_buffer);

    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiActivityRegisterCallbacks", code);
    for (int i = 0; i < KINDS; i++) {
        code = c->cuptiActivityEnable(kinds[i]);
        if (code != CUPTI_SUCCESS) {
            disable(c, i);
            return cupti_refused("cuptiActivityEnable", code);
        }
    }
    return 0;
}

/* Must precede all calls of CUPTI, because one of them crashes without a driver. */
static int usable(void)
{
    int         devices = 0;
    cudaError_t code = cudaGetDeviceCount(&devices);

    return code == cudaSuccess && devices > 0
               ? 0
               : cupti_refuse("no GPU: %s", cudaGetErrorString(code));
}

int trace_can(void)
{
    const CuptiLibrary *c = usable() ? NULL : cupti_library();

    if (!c || enable(c))
        return -1;
    disable(c, KINDS);
    return 0;
}

int trace_begin(void)
{
    const CuptiLibrary *c = usable() ? NULL : cupti_library();
    uint64_t            now = 0;

    if (!c)
        return -1;
    c->cuptiGetTimestamp(&now);
    pthread_mutex_lock(&trace.lock);
    clear();
    trace.active = true;
    trace.began = now;
    pthread_mutex_unlock(&trace.lock);
    if (enable(c)) {
        trace.active = false;
        return -1;
    }
    enable_pages(c);
    return 0;
}

/* Records which region is open from now on, for records without a correlation number.  CUPTI is
 * not called under the lock, because its thread may wait for the lock to return a buffer. */
static void note_region(int region)
{
    Opened  *opened;
    uint64_t now = 0;

    cupti_library()->cuptiGetTimestamp(&now);
    pthread_mutex_lock(&trace.lock);
    opened = list_add(&trace.opened, sizeof(*opened));
    if (opened)
        *opened = (Opened){ now, region };
    pthread_mutex_unlock(&trace.lock);
}

int trace_enter(int region)
{
    CUptiResult code;

    if (trace.depth == NEST)
        return cupti_refuse("more than %d regions inside each other", NEST);
    code = cupti_library()->cuptiActivityPushExternalCorrelationId(
        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, (uint64_t)region);
    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiActivityPushExternalCorrelationId", code);
    trace.stack[trace.depth++] = region;
    note_region(region);
    return 0;
}

int trace_leave(void)
{
    uint64_t    last = 0;
    CUptiResult code;

    if (!trace.depth)
        return cupti_refuse("no region is open");
    code = cupti_library()->cuptiActivityPopExternalCorrelationId(
        CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiActivityPopExternalCorrelationId", code);
    trace.depth--;
    note_region(trace.depth ? trace.stack[trace.depth - 1] : -1);
    return 0;
}

/* ---- regions ------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    uint32_t x = ((const Numbered *)a)->number, y = ((const Numbered *)b)->number;

    return (x > y) - (x < y);
}

static int region_of(const List *numbers, int64_t at)
{
    Numbered  key = { .number = ((const uint32_t *)numbers->items)[at] };
    Numbered *found = trace.joins.count ? bsearch(&key, trace.joins.items, trace.joins.count,
                                                  sizeof(key), by_number)
                                        : NULL;

    return found ? found->region : -1;
}

static int region_at(int64_t time)
{
    const Opened *opened = trace.opened.items;
    int           region = -1;

    for (size_t i = 0; i < trace.opened.count && since(opened[i].at) <= time; i++)
        region = opened[i].region;
    return region;
}

static void join_regions(DeviceTrace *out)
{
    if (trace.joins.count)
        qsort(trace.joins.items, trace.joins.count, sizeof(Numbered), by_number);
    for (int64_t i = 0; i < out->kernel_count; i++)
        out->kernels[i].region = region_of(&trace.kernel_numbers, i);
    for (int64_t i = 0; i < out->copy_count; i++) {
        DeviceCopy *c = &out->copies[i];

        c->region = c->kind >= DEVICE_PAGES_TO_DEVICE ? region_at(c->start)
                                                      : region_of(&trace.copy_numbers, i);
    }
    for (int64_t i = 0; i < out->allocation_count; i++)
        out->allocations[i].region = region_of(&trace.allocation_numbers, i);
}

static int by_start(const void *a, const void *b)
{
    int64_t x = ((const DeviceKernel *)a)->start, y = ((const DeviceKernel *)b)->start;

    return (x > y) - (x < y);
}

/* Transfers the lists' memory to the caller. */
static void hand_over(DeviceTrace *out)
{
    *out = (DeviceTrace){
        .kernels = trace.kernels.items, .kernel_count = (int64_t)trace.kernels.count,
        .copies = trace.copies.items, .copy_count = (int64_t)trace.copies.count,
        .allocations = trace.allocations.items,
        .allocation_count = (int64_t)trace.allocations.count,
        .dropped = (int64_t)trace.dropped,
    };
    if (!trace.no_memory) /* else some records lack a number */
        join_regions(out);
    if (out->kernel_count)
        qsort(out->kernels, (size_t)out->kernel_count, sizeof(*out->kernels), by_start);
    trace.kernels = trace.copies = trace.allocations = (List){ 0 };
    clear();
}

/* Flushes twice: some kinds return their records only when disabled. */
static CUptiResult flush_all(const CuptiLibrary *c)
{
    CUptiResult code = c->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), late;

    disable(c, KINDS);
    late = c->cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    return code != CUPTI_SUCCESS ? code : late;
}

int trace_end(DeviceTrace *out)
{
    const CuptiLibrary *c = cupti_library();
    cudaError_t         waited = cudaDeviceSynchronize();
    CUptiResult         code;
    bool                no_memory;

    while (trace.depth > 0 && !trace_leave())
        ;
    code = flush_all(c);
    pthread_mutex_lock(&trace.lock);
    trace.active = false;
    no_memory = trace.no_memory;
    hand_over(out);
    pthread_mutex_unlock(&trace.lock);
    if (waited != cudaSuccess)
        return cupti_refuse("the traced run: %s", cudaGetErrorString(waited));
    if (code != CUPTI_SUCCESS)
        return cupti_refused("cuptiActivityFlushAll", code);
    return no_memory ? cupti_refuse("not enough memory for the records of the trace") : 0;
}

void trace_free(DeviceTrace *t)
{
    free(t->kernels);
    free(t->copies);
    free(t->allocations);
    *t = (DeviceTrace){ 0 };
}
