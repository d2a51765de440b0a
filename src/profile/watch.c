/* watch.c -- see watch.h.
 *
 * Time before the first stage (checks, binding) belongs to no stage.  A stage
 * that is entered again (the last one of a very long iteration) adds up.
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "attn/cuda/host/library.h"
#include "core/threads.h"
#include "profile/device_profile.h"
#include "profile/measure.h"
#include "profile/memory.h"
#include "profile/watch.h"

/* Adds the heap's changes since the last call to the current stage. */
static void heap_account(Watch *w)
{
    int64_t peak = heap_peak();

    w->top = max_i64(w->top, peak);
    if (w->stage >= 0) {
        w->stage_heap[w->stage] = max_i64(w->stage_heap[w->stage], peak - w->base);
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

/* The time of preparation is excluded by moving the stage's start. */
void watch_preparing(void *context, bool begins)
{
    Watch *w = context;
    double now = clock_wall(), cpu = clock_cpu();

    if (w->next_preparing)
        w->next_preparing(w->next_context, begins);
    w->prepares = begins;
    if (begins) {
        w->prepare_since = now;
        w->prepare_cpu_since = cpu;
        return;
    }
    w->preparing += now - w->prepare_since;
    w->preparing_cpu += cpu - w->prepare_cpu_since;
    w->since += now - w->prepare_since;
}

#define PAGE 4096
#define PIECE ((int64_t)2 << 20)

typedef struct Fresh {
    uint8_t *data;
    int64_t  bytes;
} Fresh;

static void touch_piece(void *context, int64_t item, int worker)
{
    const Fresh      *f = context;
    volatile uint8_t *data = f->data;
    int64_t           end = min_i64(f->bytes, (item + 1) * PIECE);

    (void)worker;
    for (int64_t at = item * PIECE; at < end; at += PAGE)
        data[at] = 0;
}

/* The system clears pages when they are first written, which took up to 670 ms for 256 MiB.  That
 * is the machine's time and no stage's, so it is done here, between their clocks. */
static void touch(void *context, void *data, int64_t bytes)
{
    Watch *w = context;
    Fresh  f = { .data = data, .bytes = bytes };
    double cpu = clock_cpu(), wall = clock_wall();

    threads_run(w->threads, (bytes + PIECE - 1) / PIECE, touch_piece, &f);
    cpu = clock_cpu() - cpu;
    wall = clock_wall() - wall;
    if (w->prepares)
        return; /* which is outside of all clocks already */
    w->touching_cpu += cpu;
    w->touching += wall;
    w->since += wall;
}

/* Bytes of the Run struct, which are not the mechanism's. */
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
    w->preparing = w->touching = w->preparing_cpu = w->touching_cpu = 0;
    w->prepares = false;
    w->threads = spec->threads;
    w->stage = -1;
    w->top = w->base = start;
    w->counted = w->calls = heap_allocations();
    if (w->memory)
        heap_peak_reset();
    if (w->memory && w->trace)
        memory_trace_start(w->trace, arena, w->device);
    if (w->device)
        device_peak_reset(w->device);
    arena_on_fresh(arena, touch, w);
    cpu = clock_cpu();
    wall = clock_wall();
    run = run_new_in(spec, arena);
    run_execute(run);
    w->wall = clock_wall() - wall - w->preparing - w->touching;
    w->cpu = clock_cpu() - cpu - w->preparing_cpu - w->touching_cpu;
    arena_on_fresh(arena, NULL, NULL);
    w->switches = clock_switches() - switches;
    w->arena = arena_peak(arena);
    w->on_device = w->device ? device_peak(w->device) - on_device : 0;
    w->calls = heap_allocations() - w->calls;
    if (w->memory && w->trace)
        memory_trace_stop(w->trace, bookkeeping(run));
    if (w->memory) {
        heap_account(w);
        w->heap = max_i64(0, w->top - start - bookkeeping(run));
        w->rss = rss ? rss_peak() : -1;
    }
    return run;
}

/* ---- clocks (measure.h) ---------------------------------------------------------------
 *
 * Wall time is the monotonic clock: never set back, about 20 ns to read.  CPU time is the
 * whole process's, with every worker of a pool; reading it is a system call, so it is read
 * once per run and for what no time includes, never per stage.
 */

static double seconds(clockid_t clock)
{
    struct timespec t = { 0 };

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_wall(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double clock_cpu(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_switches(void)
{
    struct rusage usage = { 0 };

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

/* ---- a GPU's run ------------------------------------------------------------------------
 *
 * A run is a sequence of pieces: the time before its first stage, each entry of a stage, and
 * preparations.  Marks separate pieces.  A region of the trace is a stage.  A range of the
 * counters is a piece, named by its number, because names must be unique.
 */

#define PASSES_MOST 64
#define PREPARING (-2) /* pieces that are no stage */
#define BEFORE (-1)

typedef enum Mode { MODE_OFF, MODE_MARKS, MODE_TRACE, MODE_COUNT } Mode;

struct DeviceWatch {
    Device               *device;
    const DeviceProfiler *api;
    RunObserver           next;
    void                 *next_context;
    Mode                  mode;
    bool                  refused;      /* the tier failed in this run */
    char                  lacks[DEVICE_TIERS][256];
    int                   stage;        /* the current one */
    /* marks */
    int                   pieces;
    int                   piece[DEVICE_MARKS]; /* stage that begins at the mark */
    double                stage_ms[RUN_MAX_STAGES], total_ms; /* of the last run */
    bool                  spans;        /* these are valid */
    double               *samples;      /* [sample][stages + 1], the total last; owned */
    int                   sample_count, capacity, stages;
    /* counters */
    int                   entered;      /* stages entered in this run */
    int                   entries;      /* pieces of the last run with marks */
    int                  *entry_stage;  /* [entries]; owned; NULL unless counting */
    bool                  in_range;
};

DeviceWatch *device_watch_new(const Ops *ops, RunObserver next, void *context)
{
    Device               *device = device_of(ops);
    const DeviceApi      *api = device ? device_api(device) : NULL;
    const DeviceProfiler *profiler = api && api->profiler ? api->profiler() : NULL;
    DeviceWatch          *w = profiler ? calloc(1, sizeof(*w)) : NULL;

    if (!w)
        return NULL;
    w->device = device;
    w->api = profiler;
    w->next = next;
    w->next_context = context;
    return w;
}

void device_watch_free(DeviceWatch *w)
{
    if (w)
        free(w->samples);
    free(w);
}

/* ---- refusals --------------------------------------------------------------------- */

static void refuse_tier(DeviceWatch *w, DeviceTier tier, const char *why)
{
    w->refused = true;
    if (!w->lacks[tier][0])
        snprintf(w->lacks[tier], sizeof(w->lacks[tier]), "%s", why);
}

/* False after a failure, whose reason it stores. */
static bool done(DeviceWatch *w, DeviceTier tier, int code)
{
    if (code)
        refuse_tier(w, tier, w->api->why());
    return !code;
}

/* ---- pieces ----------------------------------------------------------------------- */

static void mark(DeviceWatch *w, int piece)
{
    if (w->refused)
        return;
    if (w->pieces == DEVICE_MARKS)
        refuse_tier(w, TIER_EVENTS, "the run has more stages than there are marks");
    else if (done(w, TIER_EVENTS, w->api->mark(w->pieces)))
        w->piece[w->pieces++] = piece;
}

static void next_range(DeviceWatch *w, int stage, bool last)
{
    if (w->in_range && !w->refused)
        done(w, TIER_COUNTERS, w->api->range_end());
    w->in_range = false;
    if (last || w->refused)
        return;
    if (w->entered >= w->entries) {
        refuse_tier(w, TIER_COUNTERS, "the run had other stages than before");
        return;
    }
    w->entry_stage[w->entered] = stage;
    w->in_range = done(w, TIER_COUNTERS, w->api->range_begin(w->entered));
}

static void next_region(DeviceWatch *w, int stage)
{
    if (w->stage >= 0 && !w->refused)
        done(w, TIER_ACTIVITY, w->api->trace_leave());
    if (stage >= 0 && !w->refused)
        done(w, TIER_ACTIVITY, w->api->trace_enter(stage));
}

void device_watch_stage(void *context, const Run *run, const Stage *stage)
{
    DeviceWatch *w = context;
    int          index = stage ? (int)(stage - run->stages) : BEFORE;

    w->entered++;
    if (w->mode == MODE_MARKS)
        mark(w, index);
    else if (w->mode == MODE_TRACE)
        next_region(w, index);
    else if (w->mode == MODE_COUNT)
        next_range(w, index, !stage);
    w->stage = index;
    if (w->next)
        w->next(w->next_context, run, stage);
}

void device_watch_preparing(void *context, bool begins)
{
    DeviceWatch *w = context;

    if (w->mode == MODE_MARKS)
        mark(w, begins ? PREPARING : w->stage);
}

/* ---- timed runs --------------------------------------------------------------------- */

static void start(DeviceWatch *w, Mode mode)
{
    w->mode = mode;
    w->refused = false;
    w->stage = BEFORE;
    w->entered = 0;
    w->pieces = 0;
    w->in_range = false;
}

void device_watch_begin(DeviceWatch *w)
{
    if (!w)
        return;
    start(w, MODE_MARKS);
    w->spans = false;
    mark(w, BEFORE);
}

static void read_marks(DeviceWatch *w)
{
    memset(w->stage_ms, 0, sizeof(w->stage_ms));
    w->total_ms = 0;
    for (int i = 0; i + 1 < w->pieces && !w->refused; i++) {
        double ms = 0;

        if (!done(w, TIER_EVENTS, w->api->between(i, i + 1, &ms)) || w->piece[i] == PREPARING)
            continue;
        w->total_ms += ms;
        if (w->piece[i] >= 0)
            w->stage_ms[w->piece[i]] += ms;
    }
    w->spans = !w->refused && w->pieces > 1;
}

/* The last entry was the end of the run, so there are as many pieces as entries. */
void device_watch_end(DeviceWatch *w)
{
    if (!w || w->mode != MODE_MARKS)
        return;
    read_marks(w);
    w->entries = w->entered > 0 ? w->entered : 1;
    w->mode = MODE_OFF;
}

void device_watch_keep(DeviceWatch *w)
{
    double *grown;
    int     more;

    if (!w || !w->spans)
        return;
    if (!w->samples)
        w->stages = w->entries < RUN_MAX_STAGES ? w->entries : RUN_MAX_STAGES;
    if (w->sample_count == w->capacity) {
        more = w->capacity ? 2 * w->capacity : 16;
        grown = realloc(w->samples, (size_t)more * (size_t)(w->stages + 1) * sizeof(*grown));
        if (!grown)
            return;
        w->samples = grown;
        w->capacity = more;
    }
    grown = w->samples + (int64_t)w->sample_count++ * (w->stages + 1);
    memcpy(grown, w->stage_ms, (size_t)w->stages * sizeof(*grown));
    grown[w->stages] = w->total_ms;
}

double device_watch_stage_ms(const DeviceWatch *w, int stage)
{
    return w && w->spans ? w->stage_ms[stage] : (double)NAN;
}

static Number median_of(const DeviceWatch *w, int column)
{
    double *values = malloc((size_t)(w->sample_count + 1) * sizeof(*values));
    Number  median = NUMBER_NONE;

    for (int i = 0; values && i < w->sample_count; i++)
        values[i] = w->samples[(int64_t)i * (w->stages + 1) + column];
    if (values && w->sample_count)
        median = number_of(stats_quantile(values, w->sample_count, 0.5));
    free(values);
    return median;
}

void device_watch_summarise(DeviceWatch *w, DeviceProfile *out)
{
    snprintf(out->name, sizeof(out->name), "%s", device_info(w->device)->name);
    snprintf(out->source, sizeof(out->source), "%s", w->api->source());
    if (w->sample_count)
        out->span_ms = median_of(w, w->stages);
    for (int i = 0; w->sample_count && i < out->stage_count && i < w->stages; i++)
        out->stages[i].span_ms = median_of(w, i);
    for (int tier = 0; tier < DEVICE_TIERS; tier++)
        memcpy(out->lacks[tier], w->lacks[tier], sizeof(out->lacks[tier]));
    if (!out->span_ms.valid && !out->lacks[TIER_EVENTS][0])
        snprintf(out->lacks[TIER_EVENTS], sizeof(out->lacks[0]), "no run was timed");
}

/* ---- the traced run ----------------------------------------------------------------- */

void device_watch_trace(DeviceWatch *w, DeviceRerun *rerun, void *context, const int *first,
                        DeviceProfile *out)
{
    DeviceTrace trace = { 0 };
    bool        ran;

    start(w, MODE_TRACE);
    if (!done(w, TIER_ACTIVITY, w->api->trace_begin())) {
        w->mode = MODE_OFF;
        return;
    }
    ran = rerun(context);
    w->mode = MODE_OFF;
    done(w, TIER_ACTIVITY, w->api->trace_end(&trace));
    if (!ran)
        refuse_tier(w, TIER_ACTIVITY, "the traced run failed");
    if (!w->refused && !device_sum_trace(&trace, first, out))
        refuse_tier(w, TIER_ACTIVITY, "not enough memory to keep the trace");
    w->api->trace_free(&trace);
}

/* ---- counted runs ------------------------------------------------------------------- */

/* One run as a pass; *more: another one is needed. */
static bool pass(DeviceWatch *w, DeviceRerun *rerun, void *context, bool *more)
{
    start(w, MODE_COUNT);
    if (!done(w, TIER_COUNTERS, w->api->pass_begin()))
        return false;
    w->in_range = done(w, TIER_COUNTERS, w->api->range_begin(0));
    w->entry_stage[0] = BEFORE;
    if (!rerun(context)) {
        refuse_tier(w, TIER_COUNTERS, "a run under the counters failed");
        return false;
    }
    return !w->refused && done(w, TIER_COUNTERS, w->api->pass_end(more));
}

static bool all_passes(DeviceWatch *w, DeviceRerun *rerun,
                       bool (*may_go_on)(const void *context), void *context, int *passes)
{
    bool more = true;

    for (*passes = 0; more && *passes < PASSES_MOST; (*passes)++) {
        if (*passes && !may_go_on(context)) {
            refuse_tier(w, TIER_COUNTERS, "no time left for all passes");
            return false;
        }
        if (!pass(w, rerun, context, &more))
            return false;
    }
    return true;
}

void device_watch_count(DeviceWatch *w, DeviceRerun *rerun,
                        bool (*may_go_on)(const void *context), void *context,
                        DeviceProfile *out)
{
    int          entries = w->entries, passes = 0;
    DeviceRange *ranges = calloc((size_t)entries + 1, sizeof(*ranges));
    bool         all;

    start(w, MODE_COUNT);
    w->entry_stage = calloc((size_t)entries + 1, sizeof(*w->entry_stage));
    if (!ranges || !w->entry_stage) {
        refuse_tier(w, TIER_COUNTERS, "not enough memory for the counters");
    } else if (done(w, TIER_COUNTERS, w->api->count_begin(entries))) {
        all = all_passes(w, rerun, may_go_on, context, &passes);
        if (!w->api->count_end(ranges) && all)
            device_sum_counts(ranges, w->entry_stage, entries, passes, out);
        else if (all)
            refuse_tier(w, TIER_COUNTERS, w->api->why());
    }
    w->mode = MODE_OFF;
    free(ranges);
    free(w->entry_stage);
    w->entry_stage = NULL;
}
