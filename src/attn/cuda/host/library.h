/* attn/cuda/host/library.h -- opening attnscope-cuda.so and a GPU.
 *
 * Looked for: $ATTNSCOPE_DEVICE_LIBRARY, then attnscope-cuda.so beside the program (the module
 * of stock Lua: beside that, then in the folder above), then in PREFIX/lib/attnscope.  A process
 * has one device, which whoever opens it shares: the library has one stream and one of everything
 * else.
 */
#ifndef ATTN_CUDA_HOST_LIBRARY_H
#define ATTN_CUDA_HOST_LIBRARY_H

#include <stdatomic.h>

#include "attn/cuda/device.h"
#include "attn/ops/ops.h"
#include "core/error.h"

typedef struct Device Device;

#define NO_GPU "no GPU" /* how each message begins that says so */

/* The first GPU, to be released once, from any thread; NULL: err says what is missing and what to
 * do. */
Device           *device_open(Error *err);
/* Counted, from any thread: runs in its memory hold it too.  NULL is no device. */
void              device_retain(Device *device);
void              device_release(Device *device);
/* From here to device_leave this thread has the device alone: runs would disturb each other's
 * times, and one begun while another thread captures a graph would become part of it.  It may
 * hold it more than once.  False: *cancel (or NULL) was set before it was free.  NULL is no
 * device. */
bool              device_hold(Device *device, const atomic_bool *cancel);
bool              device_hold_now(Device *device); /* false: another thread has it */
void              device_leave(Device *device);
Device           *device_of(const Ops *ops); /* NULL: the CPU's, or ops NULL */
const DeviceInfo *device_info(const Device *device);
const DeviceApi  *device_api(const Device *device);
const char       *device_path(const Device *device); /* of the library */
/* "cuDNN 9.19", or why it is not used; valid until the next call of the device. */
const char       *device_cudnn(const Device *device);
/* Its operations, with matrix products of that kind; live as long as the device. */
const Ops        *device_ops(Device *device, Arithmetic arithmetic);
/* "f32", "tf32", "bf16", "f16"; the CPU computes in the first. */
Arithmetic        arithmetic_of(const Ops *ops);

/* Bytes taken from the device now, and the most so far; for the profiler. */
int64_t device_in_use(const Device *device);
int64_t device_peak(const Device *device);
void    device_peak_reset(Device *device);

const char *arithmetic_name(Arithmetic arithmetic); /* "bf16" */
#define COMPUTED_CUDNN 16u /* in Run.computed, beside bits by Arithmetic */
#define COMPUTED_WARPGROUP 32u
/* What a run's products were computed in: "bf16", "f32 and bf16, cuDNN".  Returns text. */
char *computed_text(unsigned computed, char *text, size_t size);

/* Faster ways of the GPU's, each taken only where it was tried.
 *
 * A way that could be wrong, or never end, on a GPU that nobody has seen it on is not taken before
 * a trial on that very machine has shown that it is right and faster (app/session/session.h).
 * Its variable decides instead where it is set: "0" not, "1" (or anything else but "auto") without
 * a trial.  The emulated device is for tests, and tries only where the variable says "auto".
 */

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
