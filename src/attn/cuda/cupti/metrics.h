/* attn/cuda/cupti/metrics.h -- which metrics make a DeviceCount, and what a chip has of them.
 *
 * One unknown name makes CUPTI refuse a whole list, so each group is tried by itself.  Names
 * and passes are known without a GPU, from libcupti and libnvperf_host.
 */
#ifndef ATTN_CUDA_CUPTI_METRICS_H
#define ATTN_CUDA_CUPTI_METRICS_H

#include "attn/cuda/cupti/library.h"

#define METRICS_MOST 32

typedef struct MetricPlan {
    CUpti_Profiler_Host_Object *host;
    uint8_t    *config; /* owned */
    size_t      config_size, passes;
    const char *names[METRICS_MOST];
    DeviceCount counts[METRICS_MOST]; /* what each adds to */
    size_t      count;
} MetricPlan;

/* availability NULL: as if all of the chip's counters were free.  Free it also after a
 * refusal. */
int  metrics_plan(const char *chip, const uint8_t *availability, MetricPlan *out);
void metrics_free(MetricPlan *plan);
/* As DeviceProfiler.plan. */
int  metrics_of_chip(const char *chip, DevicePlan *out);

#endif
