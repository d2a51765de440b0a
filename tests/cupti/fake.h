/* fake.h -- a CUPTI of the tests' own, and as much of the CUDA runtime as cupti/ calls; see fake.c.
 *
 * build/tests/attnscope-cupti.so holds it and the real cupti/: the same objects as in
 * attnscope-cuda.so.  ATTNSCOPE_CUPTI names the same file, so that they find it in their own way.
 */
#ifndef TESTS_CUPTI_FAKE_H
#define TESTS_CUPTI_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/cuda/profiling.h"

#define FAKE_ENTRY "fake_cupti"

typedef struct FakeCupti {
    const DeviceProfiler *(*profiler)(void);
    void (*reset)(void);       /* as if nothing had been called yet */
    /* What a program does: a kernel of `ns` nanoseconds, pages that move, memory that is taken. */
    void (*launch)(const char *name, uint64_t ns);
    void (*move_pages)(uint64_t bytes);
    void (*take)(int64_t bytes); /* negative: gives it back */
    /* What CUPTI and the runtime answer; 0: well. */
    int  devices;              /* how many there are */
    int  activity, pages, enable, config, wait;
    bool untimed;              /* kernels leave no times */
    bool early;                /* kernels begin before everything else */
    bool busy;                 /* whatever is asked, a buffer is being handed back meanwhile */
    /* What was broken first of the rules; NULL: none. */
    const char *broken;
    int  buffers, hosts, open; /* that are not given back: buffers, host objects, sessions */
} FakeCupti;

FakeCupti *fake_cupti(void);

#endif
