/* attn/cuda/library.h -- opening attnscope-cuda.so and a GPU.
 *
 * Looked for: $ATTNSCOPE_DEVICE_LIBRARY, then attnscope-cuda.so beside the program (the module
 * of stock Lua: beside that, then in the folder above), then in PREFIX/lib/attnscope.  A program
 * opens it at most once.
 */
#ifndef ATTN_CUDA_LIBRARY_H
#define ATTN_CUDA_LIBRARY_H

#include "attn/cuda/device.h"
#include "attn/ops.h"
#include "core/error.h"

typedef struct Device Device;

#define NO_GPU "no GPU" /* how each message begins that says so */

/* The first GPU, held once; NULL: err says what is missing and what to do. */
Device           *device_open(Error *err);
/* Counted, from any thread: runs in its memory hold it too.  NULL is no device. */
void              device_retain(Device *device);
void              device_release(Device *device);
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

#endif
