/* attn/cuda/cupti/metrics.h -- the metrics of each DeviceCount, and which of them a chip has.
 *
 * One unknown name makes CUPTI refuse a whole list, so each group is tried alone.  libcupti and
 * libnvperf_host know names and passes without a GPU.
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
    DeviceCount counts[METRICS_MOST]; /* the count that each metric adds to */
    size_t      count;
} MetricPlan;

/* availability NULL: assumes that all counters are free.  Free the plan also after a refusal. */
int  metrics_plan(const char *chip, const uint8_t *availability, MetricPlan *out);
void metrics_free(MetricPlan *plan);
/* As DeviceProfiler.plan. */
int  metrics_of_chip(const char *chip, DevicePlan *out);

#endif
