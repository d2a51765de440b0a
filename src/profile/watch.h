/* profile/watch.h -- one run under observation: clocks and heap, per stage.
 *
 * The observer of a RunSpec is the only place where a clock meets a run.  A
 * Watch passes every stage on to the observer the caller had set.
 */
#ifndef PROFILE_WATCH_H
#define PROFILE_WATCH_H

#include "attn/run.h"
#include "core/arena.h"
#include "profile/device_profile.h"
#include "profile/memory.h"

typedef struct Watch {
    RunObserver next;         /* the caller's; NULL: none */
    void      (*next_preparing)(void *context, bool begins); /* NULL: none */
    void       *next_context;
    Device     *device;       /* whose memory is followed too; NULL: none */
    bool        memory;       /* look at heap and resident memory too */
    MemoryTrace *trace;       /* and follow it over time; NULL: not */
    /* results of the last watch_run */
    double  wall, cpu;        /* seconds, without what follows */
    double  preparing;        /* seconds in which parameters were drawn */
    double  touching;         /* seconds in which fresh pages were touched, others than these */
    int64_t switches;         /* involuntary */
    double  stage_ms[RUN_MAX_STAGES];
    int64_t stage_heap[RUN_MAX_STAGES]; /* bytes above the stage's start */
    int64_t stage_calls[RUN_MAX_STAGES]; /* allocations of the malloc family */
    int64_t arena;            /* bytes, largest use */
    int64_t on_device;        /* bytes above the start, largest */
    int64_t heap;             /* bytes above the start of the run */
    int64_t rss;              /* bytes; -1: unknown */
    int64_t calls;            /* allocations of the malloc family */
    /* while it runs */
    double  prepare_since, prepare_cpu_since;
    bool    prepares;
    Threads *threads;         /* the run's */
    double  preparing_cpu, touching_cpu; /* processor seconds */
    int     stage;            /* -1: before the first */
    double  since;            /* when the stage began */
    int64_t top, base;        /* largest heap so far; level when the stage began */
    int64_t counted;          /* heap_allocations then */
} Watch;

/* Runs spec in `arena`.  spec's observer must be watch_stage with this watch. */
Run *watch_run(Watch *watch, const RunSpec *spec, Arena *arena);
void watch_stage(void *context, const Run *run, const Stage *stage);
void watch_preparing(void *context, bool begins); /* spec's preparing */

/* A run on a GPU under observation: marks, a trace, counters.
 *
 * It is the next observer of a Watch (watch.h), so its work between two stages is in neither's wall
 * time.  A failure ends its tier, never the run.
 */

typedef struct DeviceWatch DeviceWatch;

/* NULL: the ops are the CPU's, or the device has no profiler, or there is no memory.  It
 * passes stages on to next(context). */
DeviceWatch *device_watch_new(const Ops *ops, RunObserver next, void *context);
void         device_watch_free(DeviceWatch *watch);

/* ---- around a timed run: NULL is nothing to do ---------------------------------- */
void device_watch_begin(DeviceWatch *watch);
void device_watch_end(DeviceWatch *watch);
void device_watch_keep(DeviceWatch *watch); /* the last run is a sample */
/* Of the last run by its marks; NaN: not measured. */
double device_watch_stage_ms(const DeviceWatch *watch, int stage);
/* RunObserver and the preparing callback, both with the watch as context. */
void device_watch_stage(void *context, const Run *run, const Stage *stage);
void device_watch_preparing(void *context, bool begins);

/* ---- runs of their own ------------------------------------------------------------ */

/* Runs once more; false: the run failed. */
typedef bool DeviceRerun(void *context);
/* In an arena of its own, so that its allocations are seen; first: as device_sum_trace. */
void device_watch_trace(DeviceWatch *watch, DeviceRerun *rerun, void *context, const int *first,
                        DeviceProfile *out);
/* may_go_on: whether there is time for one run more. */
void device_watch_count(DeviceWatch *watch, DeviceRerun *rerun,
                        bool (*may_go_on)(const void *context), void *context,
                        DeviceProfile *out);
/* What the samples say; names the device. */
void device_watch_summarise(DeviceWatch *watch, DeviceProfile *out);

#endif
