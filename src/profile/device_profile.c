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
    if (to->stages && to->kernels && to->spans)
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
    }
    free(p);
}
