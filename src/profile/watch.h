/* profile/watch.h -- one run under observation: clocks and heap, per stage.
 *
 * The observer of a RunSpec is the only place where a clock meets a run.  A
 * Watch passes every stage on to the observer the caller had set.
 */
#ifndef PROFILE_WATCH_H
#define PROFILE_WATCH_H

#include "attn/run.h"
#include "profile/memory_trace.h"

typedef struct Watch {
    RunObserver next;         /* the caller's; NULL: none */
    void      (*next_preparing)(void *context, bool begins); /* NULL: none */
    void       *next_context;
    Device     *device;       /* whose memory is followed too; NULL: none */
    bool        memory;       /* look at heap and resident memory too */
    MemoryTrace *trace;       /* and follow it over time; NULL: not */
    /* results of the last watch_run */
    double  wall, cpu;        /* seconds; wall without what follows */
    double  preparing;        /* seconds in which parameters were drawn */
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
    double  prepare_since;
    int     stage;            /* -1: before the first */
    double  since;            /* when the stage began */
    int64_t top, base;        /* largest heap so far; level when the stage began */
    int64_t counted;          /* heap_allocations then */
} Watch;

/* Runs spec in `arena`.  spec's observer must be watch_stage with this watch. */
Run *watch_run(Watch *watch, const RunSpec *spec, Arena *arena);
void watch_stage(void *context, const Run *run, const Stage *stage);
void watch_preparing(void *context, bool begins); /* spec's preparing */

#endif
