/* attn/cuda/host/library.h -- opening attnscope-cuda.so and a GPU.
 *
 * The search takes $ATTNSCOPE_DEVICE_LIBRARY, else attnscope-cuda.so beside the program (for the
 * module of stock Lua: beside the module, then in the folder above), then in PREFIX/lib/attnscope.
 * All users in a process share one device, because the library has one stream.
 */
#ifndef ATTN_CUDA_HOST_LIBRARY_H
#define ATTN_CUDA_HOST_LIBRARY_H

#include <stdatomic.h>

#include "attn/cuda/device.h"
#include "attn/ops/ops.h"
#include "core/error.h"

typedef struct Device Device;

#define NO_GPU "no GPU" /* messages about a missing GPU begin with it */

/* The first GPU; release it once, from any thread.  NULL: err says what is missing and what to
 * do. */
Device           *device_open(Error *err);
/* Reference count, from any thread; runs in the device's memory hold references too.  In all
 * these functions NULL is no device. */
void              device_retain(Device *device);
void              device_release(Device *device);
/* Until device_leave this thread has the device alone: runs would disturb each other's times,
 * and a run started while another thread captures a graph would become part of it.  Recursive.
 * False: *cancel (may be NULL) was set before the device was free. */
bool              device_hold(Device *device, const atomic_bool *cancel);
bool              device_hold_now(Device *device); /* false: another thread has it */
void              device_leave(Device *device);
Device           *device_of(const Ops *ops); /* NULL: the CPU's, or ops NULL */
const DeviceInfo *device_info(const Device *device);
const DeviceApi  *device_api(const Device *device);
const char       *device_path(const Device *device); /* of the library */
/* "cuDNN 9.19", or why it is not used; valid until the next call of the device. */
const char       *device_cudnn(const Device *device);
/* Its operations, with matrix products in that arithmetic; valid as long as the device. */
const Ops        *device_ops(Device *device, Arithmetic arithmetic);
/* "f32", "tf32", "bf16", "f16"; the CPU computes in the first. */
Arithmetic        arithmetic_of(const Ops *ops);

/* Bytes taken from the device now, and their peak; for the profiler. */
int64_t device_in_use(const Device *device);
int64_t device_peak(const Device *device);
void    device_peak_reset(Device *device);

const char *arithmetic_name(Arithmetic arithmetic); /* "bf16" */
#define COMPUTED_CUDNN 16u /* in Run.computed, beside bits by Arithmetic */
#define COMPUTED_WARPGROUP 32u
/* The arithmetic of a run's products: "bf16", "f32 and bf16, cuDNN".  Returns text. */
char *computed_text(unsigned computed, char *text, size_t size);

/* Faster ways of the GPU, which could give wrong results or hang on untested GPUs.
 *
 * A way is taken only after a trial on the same machine has shown that it is right and faster
 * (app/session/session.h).  Its variable, if set, decides instead: "0" never, "auto" after a
 * trial, any other value without one.  The emulated device, for tests, tries only with "auto".
 */

typedef enum DeviceWay {
    WAY_WARPGROUP, /* attention by Hopper's warpgroups: ATTNSCOPE_WGMMA */
    WAY_GRAPHS,    /* runs ahead of the device, replayed as CUDA graphs: ATTNSCOPE_GRAPHS */
    DEVICE_WAYS
} DeviceWay;

typedef enum WayState {
    WAY_ABSENT,  /* this GPU or its driver does not have it */
    WAY_DECIDED, /* by its variable, or because the device is emulated */
    WAY_UNTRIED, /* therefore not taken */
    WAY_REFUSED, /* by a trial */
    WAY_TRUSTED
} WayState;

const char *way_name(DeviceWay way);     /* "wgmma", "graphs" */
const char *way_variable(DeviceWay way); /* "ATTNSCOPE_WGMMA" */
bool        way_named(const char *name, DeviceWay *out);

WayState device_way(const Device *device, DeviceWay way);
/* Whether runs take it where it fits. */
bool     device_way_taken(const Device *device, DeviceWay way);
/* Stores a trial's verdict and report; not during runs. */
void     device_way_settle(Device *device, DeviceWay way, bool good, const char *what);
/* Its state as a text for doctor; valid until the next call of the device. */
const char *device_way_text(Device *device, DeviceWay way);

#endif
