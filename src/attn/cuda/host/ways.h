/* attn/cuda/host/ways.h -- faster ways of the GPU's, each taken only where it was tried.
 *
 * A way that could be wrong, or never end, on a GPU that nobody has seen it on is not taken before
 * a trial on that very machine has shown that it is right and faster (app/session/session.h).
 * Its variable decides instead where it is set: "0" not, "1" (or anything else but "auto") without
 * a trial.  The emulated device is for tests, and tries only where the variable says "auto".
 */
#ifndef ATTN_CUDA_HOST_WAYS_H
#define ATTN_CUDA_HOST_WAYS_H

#include "attn/cuda/host/library.h"

typedef enum DeviceWay {
    WAY_WARPGROUP, /* attention by Hopper's warpgroups: ATTNSCOPE_WGMMA */
    WAY_GRAPHS,    /* runs that go ahead, replayed as CUDA graphs: ATTNSCOPE_GRAPHS */
    DEVICE_WAYS
} DeviceWay;

typedef enum WayState {
    WAY_ABSENT,  /* this GPU, or this driver, has it not */
    WAY_DECIDED, /* by its variable, or by the device being emulated */
    WAY_UNTRIED, /* and therefore not taken */
    WAY_REFUSED, /* by a trial */
    WAY_TRUSTED
} WayState;

const char *way_name(DeviceWay way);     /* "wgmma", "graphs" */
const char *way_variable(DeviceWay way); /* "ATTNSCOPE_WGMMA" */
bool        way_named(const char *name, DeviceWay *out);

WayState device_way(const Device *device, DeviceWay way);
/* Whether runs take it where it fits. */
bool     device_way_taken(const Device *device, DeviceWay way);
/* What a trial came to, and in which words; before runs begin, or between them. */
void     device_way_settle(Device *device, DeviceWay way, bool good, const char *what);
/* What there is to say of it, for doctor; valid until the next call of the device. */
const char *device_way_text(Device *device, DeviceWay way);

#endif
