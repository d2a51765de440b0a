/* roof_point.c -- see roof_point.h. */
#include "app/figure/roof_point.h"

#include <math.h>
#include <string.h>

static Number positive(double value)
{
    return value > 0 ? number_of(value) : NUMBER_NONE;
}

static bool on_tensor_cores(const Record *r)
{
    return strstr(r->computed, "f16") || strstr(r->computed, "tf32");
}

bool roof_by_counters(const Record *r)
{
    const DeviceCounted *c = r->gpu ? &r->gpu->counted : NULL;

    return c && c->flops.valid && c->dram_read.valid && (c->tensor.valid || !on_tensor_cores(r));
}

/* Either both by the counters or neither, so that their ratio means something. */
static void take_work(const Record *r, const StageRecord *s, const DeviceStage *gpu, RoofPoint *p)
{
    p->bytes = positive(s->bytes.read + s->bytes.written);
    p->flops = positive(flops_total(s->flops));
    if (!gpu || !roof_by_counters(r) || !gpu->counted.flops.valid ||
        !gpu->counted.dram_read.valid)
        return;
    p->flops = positive(gpu->counted.flops.value);
    p->bytes = positive(gpu->counted.dram_read.value + gpu->counted.dram_written.value);
}

static Number time_of(const StageRecord *s, const DeviceStage *gpu)
{
    if (gpu && gpu->busy_ms.valid && gpu->busy_ms.value > 0)
        return gpu->busy_ms;
    if (gpu && gpu->span_ms.valid)
        return gpu->span_ms;
    return s->time_ms;
}

bool roof_is_of(const Ceilings *c, const Record *r)
{
    return !*c->device || !strcmp(c->device, r->device);
}

RoofPoint roof_point(const Record *r, int stage, const Ceilings *ceilings)
{
    const StageRecord *s = &r->stages[stage];
    const DeviceStage *gpu = r->gpu && stage < r->gpu->stage_count ? &r->gpu->stages[stage] : NULL;
    RoofPoint          p = { .time_ms = time_of(s, gpu) };

    take_work(r, s, gpu, &p);
    if (p.bytes.valid && p.flops.valid)
        p.intensity = number_of(p.flops.value / p.bytes.value);
    if (p.flops.valid && p.time_ms.valid && p.time_ms.value > 0)
        p.rate = number_of(1e3 * p.flops.value / p.time_ms.value);
    if (p.intensity.valid && ceilings && !isnan(ceilings->peak) && roof_is_of(ceilings, r))
        p.roof = number_of(ceilings_roof(ceilings, p.intensity.value));
    return p;
}

const char *roof_point_source(const Record *r)
{
    if (!r->gpu)
        return "counted FLOPs and traffic, wall time";
    if (roof_by_counters(r))
        return "FLOPs and DRAM bytes [counters], time of kernels [activity]";
    if (r->gpu->busy_ms.valid)
        return "counted FLOPs and traffic, time of kernels [activity]";
    return "counted FLOPs and traffic, time on the GPU's clock [events]";
}
