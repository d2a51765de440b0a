// emulated_races.h -- what ThreadSanitizer is informed of, where kernels are compiled for it
// (`make races`).
//
// Each thread of a block is a fiber of its own for it, so that it finds accesses of two threads
// to one place, of shared or of global memory, that nothing puts in order: no barrier, no
// __syncwarp, no end of a kernel.  A shuffle is none of these: CUDA does not say that it orders
// memory.  The threads of SETS blocks that follow each other are different fibers, so that blocks
// are found out that rely on each other.  Without it all this is nothing.
#ifndef TESTS_EMULATED_RACES_H
#define TESTS_EMULATED_RACES_H

#include <stddef.h>

#ifdef EMULATED_RACES
#define SETS 4
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void  __tsan_switch_to_fiber(void *fiber, unsigned flags);
void  __tsan_acquire(void *at);
void  __tsan_release(void *at);
void  __tsan_read_range(void *at, size_t bytes);
void  __tsan_write_range(void *at, size_t bytes);
void  __tsan_ignore_thread_begin(void);
void  __tsan_ignore_thread_end(void);
}
#define UNORDERED 1u // going to another fiber puts nothing in order

static inline void *race_self(void) { return __tsan_get_current_fiber(); }
static inline void *race_fiber(void) { return __tsan_create_fiber(0); }
static inline void  race_go(void *fiber) { __tsan_switch_to_fiber(fiber, UNORDERED); }
static inline void  race_gives(void *what) { __tsan_release(what); }
static inline void  race_takes(void *what) { __tsan_acquire(what); }
static inline void  race_reads(const void *at, size_t n) { __tsan_read_range((void *)at, n); }
static inline void  race_writes(void *at, size_t bytes) { __tsan_write_range(at, bytes); }
static inline void  race_quiet(bool begins)
{
    begins ? __tsan_ignore_thread_begin() : __tsan_ignore_thread_end();
}
#else
#define SETS 1
static inline void *race_self(void) { return NULL; }
static inline void *race_fiber(void) { return NULL; }
static inline void  race_go(void *) {}
static inline void  race_gives(void *) {}
static inline void  race_takes(void *) {}
static inline void  race_reads(const void *, size_t) {}
static inline void  race_writes(void *, size_t) {}
static inline void  race_quiet(bool) {}
#endif

extern void *emulated_host; // what ThreadSanitizer is to go back to
void        *emulated_race(void); // of the thread that runs

// It is to see what follows as done by a thread of the block.
template <typename Act>
static inline void race_as(void *race, Act act)
{
    race_go(race);
    act();
    race_go(emulated_host);
}

#endif
