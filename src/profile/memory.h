/* profile/memory.h -- the memory of one run over its time, and who took the most of it.
 *
 * The time axis has at most MEMORY_STEPS steps of equal length.  A step holds the
 * largest arena and heap seen in it; when the run outlasts the axis, neighbours
 * are merged and the step doubles, so a peak is never lost, whatever the length.
 * A step in which nothing was taken or given back keeps the level before it.
 */
#ifndef PROFILE_MEMORY_H
#define PROFILE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

typedef struct Device Device; /* attn/cuda/host/library.h */

#define MEMORY_STEPS 128
#define MEMORY_LARGEST 8

typedef struct LargeAllocation {
    int64_t bytes;
    int     stage; /* index of the run's stage; -1: before the first */
    bool    heap;  /* malloc family; else the run's arena */
    double  at;    /* seconds since the trace began */
} LargeAllocation;

typedef struct MemoryTimeline {
    double          step;  /* seconds */
    int             count; /* steps used */
    int64_t         arena[MEMORY_STEPS], heap[MEMORY_STEPS]; /* bytes; heap above the start */
    int64_t         device[MEMORY_STEPS]; /* taken from the GPU, above the start */
    bool            on_device;            /* there is a GPU whose memory was followed */
    int             stage[MEMORY_STEPS];  /* at the end of the step; -1: before the first */
    LargeAllocation largest[MEMORY_LARGEST]; /* descending */
    int             largest_count;
} MemoryTimeline;

typedef struct MemoryTrace {
    MemoryTimeline line;
    double         began;        /* clock_wall */
    int64_t        base;         /* heap when it began */
    int64_t        arena, heap;  /* levels now */
    const Device  *gpu;          /* NULL: none */
    int64_t        device, device_base; /* level now, and when it began */
    int            stage;
    int64_t        arena_calls;
    Arena         *watched;
} MemoryTrace;

/* From start to stop the trace hears the arena and the whole process's heap, and looks at
 * the GPU's memory (device NULL: none) whenever one of them changes.
 * One trace at a time in a process. */
void memory_trace_start(MemoryTrace *trace, Arena *arena, const Device *device);
void memory_trace_stage(MemoryTrace *trace, int stage);
/* `aside` bytes of heap, taken in one piece before the first stage, are not the run's. */
void memory_trace_stop(MemoryTrace *trace, int64_t aside);

/* The process's resident memory, as Linux accounts it.
 *
 * The high-water mark is of the whole process and would remember every run
 * before; it can only be trusted after rss_reset() succeeded.
 */

bool    rss_reset(void); /* false: this system cannot forget the mark */
int64_t rss_peak(void);  /* bytes since the last reset; -1: unknown */
/* Bytes now, without pages of files, which the system can take back; -1: unknown. */
int64_t rss_anonymous(void);

#endif
