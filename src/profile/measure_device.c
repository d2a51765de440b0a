/* measure_device.c -- what a measurement does on a GPU besides the timed runs: a traced run and
 * counted ones, and the run replayed as a graph.
 */
#include "profile/measure_parts.h"

#include "attn/cuda/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MS 20

/* ---- the GPU's own numbers -------------------------------------------------------- */

/* Runs of the profiler's own, in an arena of their own. */
typedef struct Apart {
    Measurement *m;
    Arena       *arena;
} Apart;

/* One of them; a failure is not the record's. */
static bool run_apart(void *context)
{
    const Apart *a = context;
    Run         *run;
    bool         ok;

    a->m->watch.memory = false;
    run = a->arena ? watch_run(&a->m->watch, &a->m->spec, a->arena) : NULL;
    ok = run && run->err.code == ERR_NONE;
    run_free(run);
    return ok;
}

static bool may_go_on(const void *context)
{
    return measure_time_left(((const Apart *)context)->m);
}

/* Memory that both sides see is nobody's until it is touched, and a kernel that touches it first
 * waits for each page: so the first of these runs, as with the timed ones, is for that alone.  What
 * it took is taken while the others go on. */
static void profile(Measurement *m, const int *first, DeviceProfile *gpu)
{
    Apart  apart = { .m = m, .arena = arena_new_from(m->spec.ops->memory) };
    double held;

    run_apart(&apart);
    held = apart.arena ? (double)arena_reserved(apart.arena) : 0;
    device_watch_trace(m->gpu, run_apart, &apart, first, gpu);
    if (gpu->allocated.valid)
        gpu->allocated.value += held;
    device_watch_count(m->gpu, run_apart, may_go_on, &apart, gpu);
    arena_free(apart.arena);
}

/* For each stage the first one of its name; owned by the caller; NULL: no memory. */
static int *first_of_name(const Record *r)
{
    int *first = malloc(((size_t)r->stage_count + 1) * sizeof(*first));

    for (int i = 0; first && i < r->stage_count; i++) {
        first[i] = 0;
        while (strcmp(r->stages[first[i]].name, r->stages[i].name) != 0)
            first[i]++;
    }
    return first;
}

void measure_device(Measurement *m, bool more)
{
    Record        *out = m->out;
    DeviceProfile *gpu = m->gpu ? device_profile_new(out->stage_count) : NULL;
    int           *first = gpu ? first_of_name(out) : NULL;

    if (!gpu)
        return;
    m->began = clock_wall();
    if (more && first)
        profile(m, first, gpu);
    device_watch_summarise(m->gpu, gpu);
    gpu->graph = m->graph;
    for (int tier = TIER_ACTIVITY; tier < DEVICE_TIERS; tier++)
        if (!more)
            snprintf(gpu->lacks[tier], sizeof(gpu->lacks[tier]),
                     "one run only; --repeat makes more");
    free(first);
    device_profile_free(out->gpu);
    out->gpu = gpu;
    out->hardware = (HardwareCounts){ .flops = gpu->counted.flops };
    snprintf(out->hardware_note, sizeof(out->hardware_note), "%s", gpu->lacks[TIER_COUNTERS]);
}

/* ---- as a graph ----------------------------------------------------------------- */

static bool replay_once(Measurement *m, RunGraph *graph)
{
    Watch  *w = &m->watch;
    int64_t switches = clock_switches();
    double  cpu = clock_cpu(), wall = clock_wall();
    bool    ok = run_graph_replay(graph);

    w->wall = clock_wall() - wall;
    w->cpu = clock_cpu() - cpu;
    w->switches = clock_switches() - switches;
    if (!ok) {
        m->out->code = ERR_UNSUPPORTED;
        m->out->status = record_status_of(m->out->code);
        snprintf(m->out->message, sizeof(m->out->message), "%s on the GPU: a replay of its graph "
                 "failed; ATTNSCOPE_GRAPHS=0 does without", m->spec.mechanism->id);
    }
    return ok;
}

/* Replays take the place of the timed runs so far, with as large a budget. */
static bool time_replays(Measurement *m, RunGraph *graph, Error *err)
{
    Timing *time = &m->out->time;
    bool    ok = true;

    timing_summarise(time);
    m->graph.plain_ms = time->median;
    m->graph.replayed = true;
    time->count = 0;
    m->timed = 0;
    m->switches = 0;
    m->began = clock_wall();
    m->watch.wall = 0;
    while (ok && !(time->count && measure_enough(m)) && replay_once(m, graph))
        ok = measure_add_times(m, err);
    return ok;
}

/* Launches are a small part of a long run, which is replayed only where somebody asks for it. */
static bool is_worth_it(Measurement *m)
{
    Timing *time = &m->out->time;

    timing_summarise(time);
    return device_way(m->watch.device, WAY_GRAPHS) == WAY_DECIDED ||
           !(time->median.value > LONG_MS);
}

bool measure_graph(Measurement *m, Arena *arena, Error *err)
{
    RunGraph *graph;
    bool      ok;

    if (!m->watch.device || !device_wants_graphs(m->watch.device) || !is_worth_it(m))
        return true;
    m->graph.asked = true;
    graph = run_graph_new(&m->spec, arena, m->graph.why, sizeof(m->graph.why));
    ok = !graph || time_replays(m, graph, err);
    run_graph_free(graph);
    return ok;
}
