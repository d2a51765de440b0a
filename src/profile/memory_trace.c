/* memory_trace.c -- see memory_trace.h. */
#include "profile/memory_trace.h"

#include <string.h>

#include "attn/cuda/library.h"
#include "profile/measure.h"

#define FIRST_STEP 1e-6 /* seconds */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- the axis ------------------------------------------------------------------- */

static void merge_neighbours(MemoryTimeline *line)
{
    for (int i = 0; i < MEMORY_STEPS / 2; i++) {
        line->arena[i] = larger(line->arena[2 * i], line->arena[2 * i + 1]);
        line->heap[i] = larger(line->heap[2 * i], line->heap[2 * i + 1]);
        line->device[i] = larger(line->device[2 * i], line->device[2 * i + 1]);
        line->stage[i] = line->stage[2 * i + 1];
    }
    line->count = (line->count + 1) / 2;
    line->step *= 2;
}

static void fill(const MemoryTrace *t, MemoryTimeline *line)
{
    line->arena[line->count] = t->arena;
    line->heap[line->count] = t->heap;
    line->device[line->count] = t->device;
    line->stage[line->count++] = t->stage;
}

/* Fills the steps up to now with the levels as they were. */
static void advance(MemoryTrace *t, double now)
{
    MemoryTimeline *line = &t->line;
    double          passed = now - t->began;

    while (passed >= line->step * MEMORY_STEPS) {
        while (line->count < MEMORY_STEPS)
            fill(t, line);
        merge_neighbours(line);
    }
    for (int at = (int)(passed / line->step); line->count <= at;)
        fill(t, line);
}

static void levels(MemoryTrace *t, int64_t arena, int64_t heap)
{
    int last;

    advance(t, clock_wall());
    last = t->line.count - 1;
    t->arena = arena;
    t->heap = heap;
    t->device = t->gpu ? device_in_use(t->gpu) - t->device_base : 0;
    t->line.device[last] = larger(t->line.device[last], t->device);
    t->line.arena[last] = larger(t->line.arena[last], arena);
    t->line.heap[last] = larger(t->line.heap[last], heap);
    t->line.stage[last] = t->stage;
}

/* ---- the largest ---------------------------------------------------------------- */

static void remember(MemoryTrace *t, int64_t bytes, bool heap)
{
    MemoryTimeline *line = &t->line;
    int             at = line->largest_count;

    if (at == MEMORY_LARGEST && bytes <= line->largest[at - 1].bytes)
        return;
    if (at < MEMORY_LARGEST)
        line->largest_count++;
    else
        at--;
    for (; at > 0 && line->largest[at - 1].bytes < bytes; at--)
        line->largest[at] = line->largest[at - 1];
    line->largest[at] = (LargeAllocation){ .bytes = bytes, .stage = t->stage, .heap = heap,
                                          .at = clock_wall() - t->began };
}

/* ---- who is heard ----------------------------------------------------------------- */

/* The heap is heard from any thread, one at a time; the arena only from the run's
 * own, which takes the same turn. */
static void hear_heap(void *context, int64_t bytes, int64_t now)
{
    MemoryTrace *t = context;

    levels(t, t->arena, now - t->base);
    if (bytes > 0)
        remember(t, bytes, true);
}

typedef struct ArenaNews {
    int64_t bytes, used;
} ArenaNews;

static void take_arena_news(void *context, void *news)
{
    MemoryTrace     *t = context;
    const ArenaNews *a = news;

    levels(t, a->used, t->heap);
    if (a->bytes > 0) {
        remember(t, a->bytes, false);
        t->arena_calls++;
    }
}

static void hear_arena(void *context, int64_t bytes, int64_t used)
{
    ArenaNews news = { .bytes = bytes, .used = used };

    heap_in_turn(take_arena_news, context, &news);
}

static void take_stage(void *context, void *stage)
{
    MemoryTrace *t = context;

    levels(t, t->arena, t->heap);
    t->stage = *(int *)stage;
}

void memory_trace_stage(MemoryTrace *t, int stage)
{
    heap_in_turn(take_stage, t, &stage);
}

void memory_trace_start(MemoryTrace *t, Arena *arena, const Device *device)
{
    memset(t, 0, sizeof(*t));
    t->line.step = FIRST_STEP;
    t->stage = -1;
    t->base = heap_current();
    t->gpu = device;
    t->device_base = device ? device_in_use(device) : 0;
    t->line.on_device = device != NULL;
    t->arena = arena_used(arena);
    t->began = clock_wall();
    t->watched = arena;
    levels(t, t->arena, 0);
    arena_watch(arena, hear_arena, t);
    heap_listen(hear_heap, t);
}

static void set_aside(MemoryTimeline *line, int64_t bytes)
{
    int kept = 0;

    for (int i = 0; i < line->count; i++)
        line->heap[i] = larger(0, line->heap[i] - bytes);
    for (int i = 0; i < line->largest_count; i++)
        if (line->largest[i].stage >= 0 || !line->largest[i].heap ||
            line->largest[i].bytes != bytes)
            line->largest[kept++] = line->largest[i];
    line->largest_count = kept;
}

void memory_trace_stop(MemoryTrace *t, int64_t aside)
{
    heap_listen(NULL, NULL);
    arena_watch(t->watched, NULL, NULL);
    levels(t, t->arena, t->heap);
    set_aside(&t->line, aside);
    t->watched = NULL;
}
