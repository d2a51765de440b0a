/* device_profile.c -- the life of a DeviceProfile and its words; see device_profile.h. */
#include "profile/device_profile.h"

#include <stdlib.h>
#include <string.h>

const char *device_tier_name(DeviceTier tier)
{
    switch (tier) {
    case TIER_EVENTS: return "events";
    case TIER_ACTIVITY: return "activity";
    default: return "counters";
    }
}

const char *device_copy_name(DeviceCopyKind kind)
{
    switch (kind) {
    case DEVICE_COPY_TO_DEVICE: return "host to device";
    case DEVICE_COPY_TO_HOST: return "device to host";
    case DEVICE_COPY_WITHIN: return "within the device";
    case DEVICE_COPY_SET: return "filled";
    case DEVICE_PAGES_TO_DEVICE: return "pages to the device";
    default: return "pages to the host";
    }
}

bool device_reached(const DeviceProfile *p, DeviceTier tier)
{
    switch (tier) {
    case TIER_EVENTS: return p->span_ms.valid;
    case TIER_ACTIVITY: return p->busy_ms.valid;
    default: return p->passes > 0;
    }
}

/* Spans are medians of timed runs and kernels those of a traced one, which is slower: where their
 * difference falls below 0 nobody knows what the host adds, and it is not nothing. */
static Number idle_of(Number span, Number busy, Number copy)
{
    double idle = span.value - busy.value - copy.value;

    return span.valid && busy.valid && idle >= 0 ? number_of(idle) : NUMBER_NONE;
}

Number device_idle_ms(const DeviceProfile *p, int stage)
{
    if (!p || stage >= p->stage_count)
        return NUMBER_NONE;
    if (stage < 0)
        return idle_of(p->span_ms, p->busy_ms, p->copy_ms);
    return idle_of(p->stages[stage].span_ms, p->stages[stage].busy_ms, p->stages[stage].copy_ms);
}

Number device_idle_share(const DeviceProfile *p, int stage)
{
    Number idle = device_idle_ms(p, stage), span = NUMBER_NONE;

    if (idle.valid)
        span = stage < 0 ? p->span_ms : p->stages[stage].span_ms;
    return span.valid && span.value > 0 ? number_of(idle.value / span.value) : NUMBER_NONE;
}

DeviceProfile *device_profile_new(int stages)
{
    DeviceProfile *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->stage_count = stages;
    p->stages = calloc((size_t)stages + 1, sizeof(*p->stages));
    if (p->stages)
        return p;
    free(p);
    return NULL;
}

static void *copy_of(const void *from, int count, size_t size)
{
    void *copy = malloc(((size_t)count + 1) * size);

    if (copy && count)
        memcpy(copy, from, (size_t)count * size);
    return copy;
}

DeviceProfile *device_profile_copy(const DeviceProfile *from)
{
    DeviceProfile *to = malloc(sizeof(*to));

    if (!to)
        return NULL;
    *to = *from;
    to->stages = copy_of(from->stages, from->stage_count, sizeof(*from->stages));
    to->kernels = copy_of(from->kernels, from->kernel_count, sizeof(*from->kernels));
    to->spans = copy_of(from->spans, from->span_count, sizeof(*from->spans));
    to->copy_spans = copy_of(from->copy_spans, from->copy_span_count, sizeof(*from->copy_spans));
    if (to->stages && to->kernels && to->spans && to->copy_spans)
        return to;
    device_profile_free(to);
    return NULL;
}

void device_profile_free(DeviceProfile *p)
{
    if (p) {
        free(p->stages);
        free(p->kernels);
        free(p->spans);
        free(p->copy_spans);
    }
    free(p);
}
