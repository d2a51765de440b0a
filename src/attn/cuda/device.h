/* attn/cuda/device.h -- what the program and attnscope-cuda.so share; plain C, no CUDA header.
 *
 * The program is built by the C compiler alone.  Kernels stand in *.cu, which only the shared
 * object holds; the program opens it when a GPU is asked for (attn/cuda/host/library.c) and gets
 * one table of functions, DeviceApi.  Host code that prepares a call (the ops of the back end, in
 * host) is ordinary C in the program.
 *
 * Every function returns 0, or a code that text() explains.  A call starts work in order on
 * one stream and returns; finish() waits for it.  Pointers in arguments are device memory
 * from take(), which the host reads and writes too once the device has finished.
 */
#ifndef ATTN_CUDA_DEVICE_H
#define ATTN_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_ABI 5
#define DEVICE_ENTRY "attnscope_device"
#define DEVICE_REAL "cuda"

typedef enum DeviceDType { DEVICE_F32, DEVICE_F64, DEVICE_I32, DEVICE_I64, DEVICE_U8,
                           DEVICE_BF16, DEVICE_F16 } DeviceDType; /* the first as DType */

/* [heads, rows, cols]; the last axis is contiguous.  One with fewer heads than a call has is
 * shared by groups, as tensor_head() does it.  data NULL: not given. */
typedef struct DeviceTensor {
    void   *data;
    int32_t dtype; /* DeviceDType */
    int64_t heads, rows, cols;
    int64_t head_stride, row_stride; /* in elements */
} DeviceTensor;

/* How exactly matrix products are computed; sums are always in float32 at least. */
typedef enum Arithmetic { ARITHMETIC_F32, ARITHMETIC_TF32, ARITHMETIC_BF16, ARITHMETIC_F16 }
    Arithmetic;

typedef struct DeviceInfo {
    char    name[96];
    int     major, minor;     /* compute capability */
    int     processors;       /* multiprocessors */
    int64_t memory;           /* bytes */
    int64_t shared;           /* bytes a block may ask for */
    int     driver, runtime;  /* 13000: 13.0 */
    bool    managed;          /* the host may touch memory while the device works; else attach */
} DeviceInfo;

#include "attn/cuda/calls.h"
#include "attn/cuda/profiling.h"

typedef struct DeviceApi {
    int         abi;  /* DEVICE_ABI */
    const char *name; /* what records say: DEVICE_REAL, or "emulated" */
    int (*open)(int index, DeviceInfo *info); /* first of all */
    void (*close)(void);
    const char *(*text)(int code);            /* static, or valid until the next call */
    int (*take)(int64_t bytes, void **data);  /* memory both sides see, 256-byte aligned */
    int (*give)(void *data);
    /* Without DeviceInfo.managed memory is the host's, and no call may use it, until it is attached
     * to the device: then calls use it, and the host while finish() has waited for the newest of
     * them.  All of what one take() gave; waits. */
    int (*attach)(void *data, bool device);
    int (*room)(int64_t *free, int64_t *total); /* bytes of device memory */
    int (*toward)(const void *data, int64_t bytes, bool device); /* moves pages ahead of use */
    int (*finish)(void);                      /* waits; also reports what failed meanwhile */
    /* What this thread's calls begin between these two becomes a graph and does not happen; any
     * wait or allocation in between ends it, and then capture_end gives none.  replay() begins
     * the whole of it again, with the same addresses. */
    int (*capture_begin)(void);
    int (*capture_end)(void **graph);
    int (*replay)(void *graph);
    void (*graph_free)(void *graph);
    const DeviceProfiler *(*profiler)(void);  /* NULL: it was built without CUPTI's headers */
#define CALL(name, Args) int (*name)(const Args *args);
#include "attn/cuda/calls.def"
#undef CALL
} DeviceApi;

/* The shared object's one symbol; NULL: it does not speak that version. */
typedef const DeviceApi *DeviceEntry(int abi);

#endif
