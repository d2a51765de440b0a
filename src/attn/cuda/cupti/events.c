/* cupti/events.c -- the tier that needs no CUPTI: events on the device's stream. */
#include "attn/cuda/cupti/library.h"

#include <cuda_runtime_api.h>

extern cudaStream_t device_stream(void); /* plugin.cu */
extern int          device_settle(void);

static cudaEvent_t events[DEVICE_MARKS];

static int failed(cudaError_t code)
{
    return code == cudaSuccess ? 0 : cupti_refuse("cudaEvent: %s", cudaGetErrorString(code));
}

int events_mark(int index)
{
    if (index < 0 || index >= DEVICE_MARKS)
        return cupti_refuse("more than %d marks", DEVICE_MARKS);
    if (!events[index] && failed(cudaEventCreate(&events[index])))
        return -1;
    if (failed(cudaEventRecord(events[index], device_stream())))
        return -1;
    return failed((cudaError_t)device_settle()); /* between calls the host goes on */
}

int events_between(int from, int to, double *ms)
{
    float       passed = 0;
    cudaError_t code = cudaEventSynchronize(events[to]);

    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&passed, events[from], events[to]);
    *ms = (double)passed;
    return failed(code);
}
