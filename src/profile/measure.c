/* measure.c -- first call, warm-up, repeats, and the Record of it; see measure.h.
 *
 * Order of the runs:
 *   1. the first call, in an arena of its own: `first`, what the run says of
 *      itself, and memory in case it stays the only run;
 *   2. the warm-up, again in a fresh arena: memory, now that libraries have
 *      their one-time allocations behind them;
 *   3. timed runs in the warm-up's arena, whose pages are touched: samples.
 * Where only one sample is wanted, or there is time for no more, it follows the first call at once,
 * in its arena.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attn/cuda/host/graph.h"
#include "attn/cuda/host/library.h"
#include "attn/run/position.h"
#include "profile/machine.h"
#include "profile/measure.h"
#include "profile/watch.h"

typedef struct Measurement {
    RunSpec     spec;     /* with our observer, without views */
    Assignments given;    /* owned copy */
    MeasurePlan plan;
    Watch       watch;
    Record     *out;
    Arena      *arena;    /* of the newest run; owned */
    double      began;    /* clock_wall */
    double      timed;    /* seconds in timed runs so far */
    double     *cpu_ms;   /* one per sample; owned */
    int64_t     switches; /* of all samples */
    Load        before;   /* the first run */
    double     *stage_ms; /* [sample][stage]; owned */
    DeviceWatch *gpu;     /* NULL: on the CPU */
    MemoryTrace trace;    /* of the last run that looked at memory */
    int         capacity; /* samples there is room for */
    int         staged;   /* samples whose stages were timed: replays have none */
    bool        counting; /* a run under the GPU's counters is over */
    DeviceGraph graph;
} Measurement;

/* Adds the GPU's numbers: of the timed runs and, with `more`, of a traced run and of counted ones.
 * These have a budget of max_seconds of their own, because the timed runs may use up the first. */
static void measure_device(Measurement *m, bool more);
/* Replays in place of the timed runs, where the device wants graphs; false: no memory. */
static bool measure_graph(Measurement *m, Arena *arena, Error *err);

#define OUTLIERS_USUAL 0.05 /* share of samples not worth a warning */
#define DRIFT_USUAL 0.1     /* of the median, between the first and the last third */
#define SPREAD_USUAL 0.05   /* distance of the quartiles, of the median */
#define PAGE 4096

static bool measure_out_of_memory(const Measurement *m, Error *err)
{
    return error_set(err, ERR_NOMEM, "%s: not enough memory to keep the measurement",
                     m->spec.mechanism->id);
}

/* ---- samples ---------------------------------------------------------------- */

static bool grow(double **values, int count, int width)
{
    double *grown = realloc(*values, (size_t)count * (size_t)(width ? width : 1) *
                                         sizeof(*grown));

    if (grown)
        *values = grown;
    return grown != NULL;
}

/* What the watch has seen of a run, stages apart. */
static bool measure_add_times(Measurement *m, Error *err)
{
    Timing *time = &m->out->time;
    int     stages = m->out->stage_count, more = m->capacity ? 2 * m->capacity : 16;

    if (time->count == m->capacity) {
        if (!grow(&time->samples, more, 1) || !grow(&m->cpu_ms, more, 1) ||
            !grow(&m->stage_ms, more, stages))
            return measure_out_of_memory(m, err);
        m->capacity = more;
    }
    m->cpu_ms[time->count] = 1e3 * m->watch.cpu;
    time->samples[time->count++] = 1e3 * m->watch.wall;
    m->timed += m->watch.wall;
    m->switches += m->watch.switches;
    return true;
}

/* Leaves what a decoder keeps out of the newest sample. */
static void leave_kept(Measurement *m, const double *stage_ms)
{
    double kept = 0;

    for (int i = 0; i < m->out->stage_count; i++)
        if (m->out->stages[i].kept)
            kept += stage_ms[i];
    if (kept > 0)
        m->out->time.samples[m->out->time.count - 1] -= kept;
}

/* Where operations are asynchronous, the host's clock measures no stages. */
static bool add_sample(Measurement *m, Error *err)
{
    bool    ahead = m->watch.device && device_goes_ahead(m->watch.device);
    int     stages = m->out->stage_count;
    double *row;

    if (!measure_add_times(m, err))
        return false;
    row = m->stage_ms + (int64_t)m->staged++ * stages;
    for (int i = 0; i < stages; i++)
        row[i] = ahead ? device_watch_stage_ms(m->gpu, i) : m->watch.stage_ms[i];
    device_watch_keep(m->gpu);
    if (m->plan.step)
        leave_kept(m, row);
    return true;
}

/* The median of column `stage` over all samples. */
static Number stage_median(Measurement *m, int stage)
{
    int     count = m->staged, stages = m->out->stage_count;
    double *column = malloc((size_t)count * sizeof(*column));
    Number  median = NUMBER_NONE;

    for (int i = 0; column && i < count; i++)
        column[i] = m->stage_ms[(int64_t)i * stages + stage];
    if (column)
        median = number_of(stats_quantile(column, count, 0.5));
    free(column);
    return isnan(median.value) ? NUMBER_NONE : median;
}

/* What makes the times of this run doubtful, in words. */
static void warn_of_spoilers(Record *out)
{
    const Timing *t = &out->time;
    double        spread = (t->q3.value - t->q1.value) / t->median.value;

    if (t->outliers > OUTLIERS_USUAL * t->count)
        record_warn(out, "%d of %d timed runs are outliers: something else used the machine",
                    t->outliers, t->count);
    if (t->drift.valid && fabs(t->drift.value) > DRIFT_USUAL && fabs(t->drift.value) > spread)
        record_warn(out, "the last timed runs took %.0f %% %s than the first: the clock of the "
                    "processor changed, or the machine's load did",
                    100 * fabs(t->drift.value), t->drift.value > 0 ? "longer" : "less");
    if (t->switches.value >= t->count && spread > SPREAD_USUAL)
        record_warn(out, "taken off the processor %.0f times in %d timed runs, and the quartiles "
                    "are %.0f %% apart: use fewer threads or an idle machine",
                    t->switches.value, t->count, 100 * spread);
}

/* What other processes used meanwhile is not free for threads of this one. */
static void take_free_processors(Measurement *m)
{
    Record *out = m->out;
    Load    now;

    if (m->gpu)
        return;
    now = load_now();
    out->free_processors =
        number_of(fmax(machine_processors() - load_of_others(&m->before, &now), 0));
    if (load_is_over(out->threads, out->free_processors.value))
        record_warn(out, "oversubscribed: %d thread%s, but %.1f processors were free, so the "
                    "times are too long: use fewer threads or an idle machine", out->threads,
                    out->threads == 1 ? "" : "s", out->free_processors.value);
}

static void summarise(Measurement *m)
{
    Record *out = m->out;

    if (!out->time.count)
        return;
    timing_summarise(&out->time);
    out->cpu_ms = number_of(stats_quantile(m->cpu_ms, out->time.count, 0.5));
    for (int i = 0; i < out->stage_count; i++)
        out->stages[i].time_ms = stage_median(m, i);
    out->time.switches = number_of((double)m->switches);
    take_free_processors(m);
    warn_of_spoilers(out);
}

/* ---- runs ------------------------------------------------------------------- */

/* glibc makes a block up to 16 bytes larger than asked for, depending on what
 * was freed before: whole pages hide that. */
static Number whole_pages(int64_t bytes)
{
    return number_of((double)((bytes + PAGE - 1) / PAGE * PAGE));
}

static void take_memory(Measurement *m)
{
    const Watch *w = &m->watch;
    Record      *out = m->out;
    const char  *why = "";
    bool         heap = heap_hooks_active(&why);

    out->arena_peak = number_of((double)w->arena);
    out->device_peak = w->device ? number_of((double)w->on_device) : NUMBER_NONE;
    out->heap_peak = heap ? whole_pages(w->heap) : NUMBER_NONE;
    out->rss_peak = w->rss >= 0 ? number_of((double)w->rss) : NUMBER_NONE;
    snprintf(out->heap_note, sizeof(out->heap_note), "%s", heap ? "" : why);
    out->prepare_ms = m->watch.preparing > 0 ? number_of(1e3 * m->watch.preparing) : NUMBER_NONE;
    out->allocations = heap ? number_of((double)w->calls) : NUMBER_NONE;
    out->arena_allocations = number_of((double)m->trace.arena_calls);
    for (int i = 0; i < out->stage_count; i++) {
        out->stages[i].heap_peak = heap ? number_of((double)w->stage_heap[i]) : NUMBER_NONE;
        out->stages[i].allocations = heap ? number_of((double)w->stage_calls[i]) : NUMBER_NONE;
    }
    if (!out->timeline)
        out->timeline = malloc(sizeof(*out->timeline));
    if (out->timeline)
        *out->timeline = m->trace.line;
}

static void take_failure(Measurement *m, const Run *run)
{
    Record *out = m->out;

    out->code = run ? run->err.code : ERR_NOMEM;
    out->status = record_status_of(out->code);
    snprintf(out->message, sizeof(out->message), "%s",
             run ? run->err.text : "not enough memory to begin the run");
}

/* Fills what a record can hold when the Run could not be constructed. */
static void take_nothing(Measurement *m)
{
    Record *out = m->out;

    snprintf(out->mechanism, sizeof(out->mechanism), "%s", m->spec.mechanism->id);
    snprintf(out->position, sizeof(out->position), "%s",
             m->spec.position ? m->spec.position->id : "none");
    out->quality.worst_query = out->quality.worst_head = -1;
    take_failure(m, NULL);
}

static Run *watched_run(Measurement *m, Arena *arena)
{
    Run *run;

    device_watch_begin(m->gpu);
    run = watch_run(&m->watch, &m->spec, arena);
    device_watch_end(m->gpu);
    return run;
}

/* A fresh arena in place of the one before. */
static bool arena_afresh(Measurement *m, Error *err)
{
    arena_free(m->arena);
    m->arena = arena_new_from(m->spec.ops ? m->spec.ops->memory : NULL);
    return m->arena || measure_out_of_memory(m, err);
}

static bool first_call(Measurement *m, Error *err)
{
    Run *run;
    bool ok = true;

    if (!arena_afresh(m, err))
        return false;
    m->watch.memory = true;
    run = watched_run(m, m->arena);
    if (run)
        ok = record_of_run(run, m->out, err);
    else
        take_nothing(m);
    if (ok && m->out->status == RECORD_OK) {
        take_memory(m);
        m->out->time.first = number_of(1e3 * (m->watch.wall + m->watch.touching));
    }
    run_free(run);
    return ok;
}

/* One more run in `arena`.  False: it failed and the record says how. */
static bool run_again(Measurement *m, Arena *arena, bool memory)
{
    Run *run;
    bool ok;

    m->watch.memory = memory;
    run = watched_run(m, arena);
    ok = run && run->err.code == ERR_NONE;
    if (!ok)
        take_failure(m, run);
    else if (memory)
        take_memory(m);
    run_free(run);
    return ok;
}

/* Half the interval of the median, as a share of it; infinite while unknown. */
static double width(Timing *time)
{
    timing_summarise(time);
    if (!time->low.valid || !(time->median.value > 0))
        return (double)INFINITY;
    return (time->high.value - time->low.value) / (2 * time->median.value);
}

/* The budget has room for so many more runs as long as the last. */
static bool measure_time_for(const Measurement *m, int runs)
{
    return clock_wall() - m->began + runs * m->watch.wall <= m->plan.max_seconds;
}

static bool measure_time_left(const Measurement *m)
{
    return measure_time_for(m, 1);
}

/* Nothing more is learned by repeating, or the budget ends. */
static bool measure_enough(const Measurement *m)
{
    Timing *time = &m->out->time;

    if (!measure_time_left(m) || time->count >= m->plan.most)
        return true;
    if (time->count < m->plan.repeats || m->timed < m->plan.min_seconds)
        return false;
    return width(time) <= m->plan.width;
}

/* ---- on the CPU ----------------------------------------------------------------- */

/* One run more under the processor's counters, where there are any. */
static void count_in_hardware(Measurement *m, Arena *arena)
{
    Record   *out = m->out;
    Counters *counters;

    if (m->spec.ops && m->spec.ops->memory)
        return; /* what the processor counts is not the GPU's work */
    if (!measure_time_left(m)) {
        snprintf(out->hardware_note, sizeof(out->hardware_note), "%s",
                 "no time left for a run under the counters");
        return;
    }
    counters = counters_open(out->hardware_note, sizeof(out->hardware_note));
    if (!counters)
        return;
    counters_start(counters);
    run_again(m, arena, false);
    counters_stop(counters, &out->hardware);
    counters_close(counters);
    if (!out->hardware.flops.valid)
        snprintf(out->hardware_note, sizeof(out->hardware_note), "%s",
                 "no counter of floating point operations is known for this processor");
}

/* One sample without a warm-up: in the arena of the first call, whose pages are touched, or the
 * first call itself if there is no time. */
static bool repeat_once(Measurement *m, Error *err)
{
    bool ok;

    snprintf(m->out->hardware_note, sizeof(m->out->hardware_note), "%s",
             "one run only, and it was not counted");
    if (measure_time_left(m) && !run_again(m, m->arena, false))
        return true;
    ok = add_sample(m, err);
    if (ok)
        measure_device(m, false);
    return ok;
}

/* False only when there is no memory for bookkeeping.  No sample is the warm-up, in which the
 * system clears pages: one timed run follows it in any case. */
static bool repeat(Measurement *m, Error *err)
{
    bool ok = true;

    if (m->plan.repeats <= 0 || !measure_time_for(m, 2))
        return repeat_once(m, err);
    if (!arena_afresh(m, err))
        return false;
    if (run_again(m, m->arena, true)) {
        do
            ok = !run_again(m, m->arena, false) || add_sample(m, err);
        while (ok && m->out->status == RECORD_OK && !measure_enough(m));
        if (ok && m->out->status == RECORD_OK)
            count_in_hardware(m, m->arena);
        if (ok && m->out->status == RECORD_OK)
            ok = measure_graph(m, m->arena, err);
    }
    arena_free(m->arena);
    m->arena = NULL;
    if (ok && m->out->status == RECORD_OK)
        measure_device(m, true);
    return ok;
}

double clock_setting(const char *name, double usual)
{
    const char *text = getenv(name);
    char       *end = NULL;
    double      given = text ? strtod(text, &end) : usual;

    return text && end != text && !*end && given >= 0 ? given : usual;
}

/* ATTNSCOPE_TIMED_SECONDS shortens a measurement where nobody reads its times, as in tests. */
static double least_seconds(double planned)
{
    double given = clock_setting("ATTNSCOPE_TIMED_SECONDS", planned);

    return given < planned ? given : planned;
}

static bool prepare_measurement(Measurement *m, const RunSpec *spec, const MeasurePlan *plan,
                                Record *out, Error *err)
{
    m->spec = *spec;
    if (spec->given && !assignments_copy(&m->given, spec->given, err))
        return false;
    m->spec.given = spec->given ? &m->given : NULL;
    m->spec.views = false;
    m->spec.progress = NULL; /* timing needs no progress */
    m->spec.observer = watch_stage;
    m->spec.preparing = watch_preparing;
    m->spec.observer_context = &m->watch;
    m->watch.next = spec->observer;
    m->watch.next_context = spec->observer_context;
    m->watch.device = device_of(spec->ops);
    m->gpu = device_watch_new(spec->ops, spec->observer, spec->observer_context);
    if (m->gpu) {
        m->watch.next = device_watch_stage;
        m->watch.next_preparing = device_watch_preparing;
        m->watch.next_context = m->gpu;
    }
    m->watch.trace = &m->trace;
    m->plan = *plan;
    m->plan.min_seconds = least_seconds(plan->min_seconds);
    if (m->plan.most < m->plan.repeats)
        m->plan.most = m->plan.repeats;
    m->out = out;
    m->began = clock_wall();
    m->before = load_now();
    return true;
}

bool measure(const RunSpec *spec, const MeasurePlan *plan, Record *out, Error *err)
{
    Measurement *m = calloc(1, sizeof(*m));
    bool         ok;

    *out = (Record){ 0 };
    if (!m)
        return error_set(err, ERR_NOMEM, "%s: not enough memory to measure",
                         spec->mechanism->id);
    ok = prepare_measurement(m, spec, plan, out, err) && first_call(m, err) &&
         (out->status != RECORD_OK || repeat(m, err));
    if (ok) {
        summarise(m);
        out->when = out->ended = (int64_t)time(NULL);
    } else {
        record_free(out);
    }
    arena_free(m->arena);
    assignments_free(&m->given);
    device_watch_free(m->gpu);
    free(m->cpu_ms);
    free(m->stage_ms);
    free(m);
    return ok;
}

/* What a measurement does on a GPU besides the timed runs: a traced run and
 * counted ones, and the run replayed as a graph.
 */

#define LONG_MS 20

/* ---- the GPU's own numbers -------------------------------------------------------- */

/* Extra runs for the profiler, in an arena of their own. */
typedef struct Apart {
    Measurement *m;
    Arena       *arena;
} Apart;

/* One extra run; its failure does not fail the record. */
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

/* Opening the counters takes seconds, more than some budgets.  So the budget starts after the first
 * run under them. */
static bool may_go_on(const void *context)
{
    Measurement *m = ((const Apart *)context)->m;

    if (!m->counting)
        m->began = clock_wall();
    m->counting = true;
    return measure_time_left(m);
}

/* A kernel that touches managed memory first waits for each page.  So the first of these runs only
 * touches the memory, as with the timed runs, and the others use it again; it counts as
 * allocated. */
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

static void measure_device(Measurement *m, bool more)
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

/* Replaces the timed runs so far by replays, with a budget of the same size. */
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

/* Launches are a small part of a long run, so a long run is replayed only on request. */
static bool is_worth_it(Measurement *m)
{
    Timing *time = &m->out->time;

    timing_summarise(time);
    return device_way(m->watch.device, WAY_GRAPHS) == WAY_DECIDED ||
           !(time->median.value > LONG_MS);
}

static bool measure_graph(Measurement *m, Arena *arena, Error *err)
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
