/* measure.c -- first call, warm-up, repeats, and the Record of it; see measure.h.
 *
 * Order of the runs:
 *   1. the first call, in an arena of its own: `first`, what the run says of
 *      itself, and memory in case it stays the only run;
 *   2. the warm-up, again in a fresh arena: memory, now that libraries have
 *      their one-time allocations behind them;
 *   3. timed runs in the warm-up's arena, whose pages are touched: samples.
 */
#include "profile/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "profile/counters.h"
#include "profile/measure_parts.h"

#define OUTLIERS_USUAL 0.05 /* share of samples not worth a warning */
#define DRIFT_USUAL 0.1     /* of the median, between the first and the last third */
#define SPREAD_USUAL 0.05   /* distance of the quartiles, of the median */
#define PAGE 4096

static bool out_of_memory(const Measurement *m, Error *err)
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

bool measure_add_times(Measurement *m, Error *err)
{
    Timing *time = &m->out->time;
    int     stages = m->out->stage_count, more = m->capacity ? 2 * m->capacity : 16;

    if (time->count == m->capacity) {
        if (!grow(&time->samples, more, 1) || !grow(&m->cpu_ms, more, 1) ||
            !grow(&m->stage_ms, more, stages))
            return out_of_memory(m, err);
        m->capacity = more;
    }
    m->cpu_ms[time->count] = 1e3 * m->watch.cpu;
    time->samples[time->count++] = 1e3 * m->watch.wall;
    m->timed += m->watch.wall;
    m->switches += m->watch.switches;
    return true;
}

/* Where operations are not waited for, the host's clock knows nothing of stages. */
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

/* The run itself could not be made: what the record can still say. */
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

static bool first_call(Measurement *m, Error *err)
{
    Arena *arena = arena_new_from(m->spec.ops ? m->spec.ops->memory : NULL);
    Run   *run;
    bool   ok = true;

    m->watch.memory = true;
    run = arena ? watched_run(m, arena) : NULL;
    if (run)
        ok = record_of_run(run, m->out, err);
    else
        take_nothing(m);
    if (ok && m->out->status == RECORD_OK) {
        take_memory(m);
        m->out->time.first = number_of(1e3 * m->watch.wall);
    }
    run_free(run);
    arena_free(arena);
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

bool measure_time_left(const Measurement *m)
{
    return clock_wall() - m->began + m->watch.wall <= m->plan.max_seconds;
}

bool measure_enough(const Measurement *m)
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

/* False only when there is no memory for bookkeeping. */
static bool repeat(Measurement *m, Error *err)
{
    Arena *arena;
    bool   ok = true;

    if (m->plan.repeats <= 0 || !measure_time_left(m)) {
        snprintf(m->out->hardware_note, sizeof(m->out->hardware_note), "%s",
                 "one run only, and it was not counted");
        ok = add_sample(m, err);
        if (ok)
            measure_device(m, false);
        return ok;
    }
    arena = arena_new_from(m->spec.ops ? m->spec.ops->memory : NULL);
    if (!arena)
        return out_of_memory(m, err);
    if (run_again(m, arena, true)) {
        if (!measure_time_left(m))
            ok = add_sample(m, err);
        while (ok && !measure_enough(m) && run_again(m, arena, false))
            ok = add_sample(m, err);
        if (ok && m->out->status == RECORD_OK)
            count_in_hardware(m, arena);
        if (ok && m->out->status == RECORD_OK)
            ok = measure_graph(m, arena, err);
    }
    arena_free(arena);
    if (ok && m->out->status == RECORD_OK)
        measure_device(m, true);
    return ok;
}

static bool prepare(Measurement *m, const RunSpec *spec, const MeasurePlan *plan, Record *out,
                    Error *err)
{
    m->spec = *spec;
    if (spec->given && !assignments_copy(&m->given, spec->given, err))
        return false;
    m->spec.given = spec->given ? &m->given : NULL;
    m->spec.views = false;
    m->spec.progress = NULL; /* a clock has no use for it */
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
    if (m->plan.most < m->plan.repeats)
        m->plan.most = m->plan.repeats;
    m->out = out;
    m->began = clock_wall();
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
    ok = prepare(m, spec, plan, out, err) && first_call(m, err) &&
         (out->status != RECORD_OK || repeat(m, err));
    if (ok) {
        summarise(m);
        out->when = (int64_t)time(NULL);
    } else {
        record_free(out);
    }
    assignments_free(&m->given);
    device_watch_free(m->gpu);
    free(m->cpu_ms);
    free(m->stage_ms);
    free(m);
    return ok;
}
