/* cupti/profiler.c -- the profiler's table; see attn/cuda/profiling.h. */
#include "attn/cuda/cupti/metrics.h"

#include <stdio.h>

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
