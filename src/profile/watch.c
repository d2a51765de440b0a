/* watch.c -- see watch.h.
 *
 * Time before the first stage (checks, binding) belongs to no stage.  A stage
 * that is entered again (the last one of a very long iteration) adds up.
 */
#include "profile/watch.h"

#include <malloc.h>
#include <string.h>

#include "attn/cuda/library.h"
#include "profile/measure.h"
#include "profile/rss.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Closes the heap's account since the last call. */
static void heap_account(Watch *w)
{
    int64_t peak = heap_peak();

    w->top = larger(w->top, peak);
    if (w->stage >= 0) {
        w->stage_heap[w->stage] = larger(w->stage_heap[w->stage], peak - w->base);
        w->stage_calls[w->stage] += heap_allocations() - w->counted;
    }
    heap_peak_reset();
    w->base = heap_current();
    w->counted = heap_allocations();
}

void watch_stage(void *context, const Run *run, const Stage *stage)
{
    Watch *w = context;
    double now = clock_wall();

    if (w->stage >= 0)
        w->stage_ms[w->stage] += 1e3 * (now - w->since);
    if (w->memory)
        heap_account(w);
    w->stage = stage ? (int)(stage - run->stages) : -1;
    if (w->memory && w->trace)
        memory_trace_stage(w->trace, w->stage);
    if (w->next)
        w->next(w->next_context, run, stage);
    w->since = clock_wall();
}

/* What is set aside moves the beginning of the stage. */
void watch_preparing(void *context, bool begins)
{
    Watch *w = context;
    double now = clock_wall();

    if (w->next_preparing)
        w->next_preparing(w->next_context, begins);
    if (begins) {
        w->prepare_since = now;
        return;
    }
    w->preparing += now - w->prepare_since;
    w->since += now - w->prepare_since;
}

/* The Run itself is ours, not the mechanism's; it stands from start to end. */
static int64_t bookkeeping(Run *run)
{
    return run ? (int64_t)malloc_usable_size(run) : 0;
}

Run *watch_run(Watch *w, const RunSpec *spec, Arena *arena)
{
    bool    rss = w->memory && rss_reset();
    int64_t start = heap_current(), switches = clock_switches();
    int64_t on_device = w->device ? device_in_use(w->device) : 0;
    double  wall, cpu;
    Run    *run;

    memset(w->stage_ms, 0, sizeof(w->stage_ms));
    memset(w->stage_heap, 0, sizeof(w->stage_heap));
    memset(w->stage_calls, 0, sizeof(w->stage_calls));
    w->preparing = 0;
    w->stage = -1;
    w->top = w->base = start;
    w->counted = w->calls = heap_allocations();
    if (w->memory)
        heap_peak_reset();
    if (w->memory && w->trace)
        memory_trace_start(w->trace, arena, w->device);
    if (w->device)
        device_peak_reset(w->device);
    cpu = clock_cpu();
    wall = clock_wall();
    run = run_new_in(spec, arena);
    w->wall = clock_wall() - wall - w->preparing;
    w->cpu = clock_cpu() - cpu;
    w->switches = clock_switches() - switches;
    w->arena = arena_peak(arena);
    w->on_device = w->device ? device_peak(w->device) - on_device : 0;
    w->calls = heap_allocations() - w->calls;
    if (w->memory && w->trace)
        memory_trace_stop(w->trace, bookkeeping(run));
    if (w->memory) {
        heap_account(w);
        w->heap = larger(0, w->top - start - bookkeeping(run));
        w->rss = rss ? rss_peak() : -1;
    }
    return run;
}
