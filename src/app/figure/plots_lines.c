/* plots_lines.c -- memory over time, caches, and costs over n; see plots.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/figure/plots.h"

/* ---- memory over time ------------------------------------------------------- */

#define NAMED_LARGEST 4   /* allocations that get their size written */
#define FAR_APART     8.0 /* ratio of durations from which times are shares of each run */

static const MemoryTimeline *line_of(const PlotSubject *subject)
{
    return subject_ok(subject) ? subject->record->timeline : NULL;
}

static bool add_level(Plot *plot, const char *name, const MemoryTimeline *line,
                      const int64_t *levels, double scale)
{
    PlotSeries *s = plot_add(plot, name, CURVE_STEPS, line->count + 1, false);

    for (int i = 0; s && i <= line->count; i++) {
        s->x[i] = i * line->step * scale;
        s->y[i] = (double)levels[i < line->count ? i : line->count - 1];
    }
    return s != NULL;
}

/* Adds a curve of the device's memory; its hue follows those of the largest allocations. */
static bool add_device_level(Plot *plot, const MemoryTimeline *line)
{
    bool ok = add_level(plot, "GPU memory", line, line->device, 1e3);

    if (ok)
        plot->series[plot->count - 1].hue = 4;
    return ok;
}

/* Marks the largest allocations of the arena, or of the heap, on the curve. */
static bool add_largest(Plot *plot, const MemoryTimeline *line, bool heap, double scale, int hue)
{
    int         count = 0, at = 0;
    PlotSeries *s;

    for (int i = 0; i < line->largest_count; i++)
        count += line->largest[i].heap == heap;
    if (!count)
        return true;
    s = plot_add(plot, heap ? "largest, heap" : "largest allocations", CURVE_POINTS, count, false);
    if (!s || !plot_label(s))
        return false;
    s->hue = hue;
    for (int i = 0; i < line->largest_count; i++) {
        const LargeAllocation *a = &line->largest[i];
        int                    step = (int)(a->at / line->step);

        if (a->heap != heap)
            continue;
        step = step < line->count ? step : line->count - 1;
        s->x[at] = a->at * scale;
        s->y[at] = (double)(heap ? line->heap[step] : line->arena[step]);
        if (at < NAMED_LARGEST)
            format_bytes(a->bytes, s->labels[at], sizeof(s->labels[at]));
        at++;
    }
    return true;
}

/* Marks the start of each stage that lasts longer than a step of the curve. */
static void add_stages(Plot *plot, const Record *r, double scale)
{
    const MemoryTimeline *line = r->timeline;
    int                   stage = -1;

    for (int i = 0; i < line->count; i++) {
        if (line->stage[i] == stage || line->stage[i] < 0 || line->stage[i] >= r->stage_count)
            continue;
        stage = line->stage[i];
        plot_guide(plot, r->stages[stage].name, true, i * line->step * scale);
    }
}

static bool fill_one(Plot *plot, const PlotSubject *subject, Error *err)
{
    const MemoryTimeline *line = line_of(subject);
    bool                  heap = subject->record->heap_peak.valid;

    if (!add_level(plot, "own memory", line, line->arena, 1e3) ||
        (heap && !add_level(plot, "heap", line, line->heap, 1e3)) ||
        (line->on_device && !add_device_level(plot, line)) ||
        !add_largest(plot, line, false, 1e3, 2) ||
        (heap && !add_largest(plot, line, true, 1e3, 3)))
        return plot_no_memory(err);
    add_stages(plot, subject->record, 1e3);
    snprintf(plot->note, sizeof(plot->note), "one run, slowed by being watched; its stages are "
             "dashed%s%.80s", heap ? "" : "; no heap: ", heap ? "" : subject->record->heap_note);
    return true;
}

static double seconds_of(const MemoryTimeline *line)
{
    return line->step * line->count;
}

static bool fill_several(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    double least = HUGE_VAL, most = 0;
    bool   share;
    Text   missing = { 0 };

    for (int i = 0; i < count; i++)
        if (line_of(&subjects[i])) {
            least = fmin(least, seconds_of(line_of(&subjects[i])));
            most = fmax(most, seconds_of(line_of(&subjects[i])));
        }
    share = most > FAR_APART * least;
    for (int i = 0; i < count; i++) {
        const MemoryTimeline *line = line_of(&subjects[i]);
        char                  name[PLOT_NAME];

        if (!line) {
            text_addf(&missing, "; %s: %s", subjects[i].name, subject_lacks(&subjects[i]));
            continue;
        }
        if (share)
            snprintf(name, sizeof(name), "%.100s, %.3g ms", subjects[i].name,
                     1e3 * seconds_of(line));
        else
            snprintf(name, sizeof(name), "%.120s", subjects[i].name);
        if (!add_level(plot, name, line, line->arena, share ? 100 / seconds_of(line) : 1e3)) {
            text_free(&missing);
            return plot_no_memory(err);
        }
    }
    snprintf(plot->note, sizeof(plot->note), "each mechanism's own memory over one run%.160s",
             text_str(&missing));
    snprintf(plot->x.name, sizeof(plot->x.name), "%s",
             share ? "share of the run (%)" : "time (ms)");
    text_free(&missing);
    return true;
}

bool plot_fill_timeline(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    int known = 0;

    for (int i = 0; i < count; i++)
        known += line_of(&subjects[i]) != NULL;
    if (!known)
        return error_set(err, ERR_DATA, "memory over time: %s",
                         count ? subject_lacks(&subjects[0]) : "nothing to show");
    snprintf(plot->x.name, sizeof(plot->x.name), "time (ms)");
    snprintf(plot->y.name, sizeof(plot->y.name), "memory (bytes)");
    return count == 1 ? fill_one(plot, &subjects[0], err)
                      : fill_several(plot, subjects, count, err);
}

/* ---- the cache of a decoder over the number of tokens ----------------------------- */

static int cache_points(const StepRecord *step)
{
    int count = 0;

    for (int x = 0; x < STEP_LENGTHS; x++)
        count += step->held[x].valid;
    return count;
}

/* The value of a whole parameter; 0: unknown. */
static int64_t param_of(const Record *r, const char *name)
{
    char        key[64];
    const char *at;

    snprintf(key, sizeof(key), "\"%.50s\":", name);
    at = r->params ? strstr(r->params, key) : NULL;
    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

/* The name has it already: "window(window=28)", "Sliding window, window 28". */
static bool names_size(const char *subject, const char *name)
{
    const char *at = strpbrk(subject, "(,");

    return at && strstr(at, name);
}

/* The sizes that make the cache, which the names lack: those left out, and what 0 stands for. */
static void add_sizes(const PlotSubject *subject, Text *out)
{
    const Record    *r = subject->record;
    const Mechanism *m = mechanism_find(r->mechanism);
    int64_t          size = m && m->size ? param_of(r, m->size) : 0;

    if (m && m->size && names_size(subject->name, m->size))
        return;
    if (r->notes && *r->notes)
        text_addf(out, "; %s: %.*s", subject->name, (int)strcspn(r->notes, "\n"), r->notes);
    else if (size > 0)
        text_addf(out, "; %s: %s %lld", subject->name, m->size, (long long)size);
}

static bool add_cache(Plot *plot, const PlotSubject *subject, Text *missing)
{
    const StepRecord *step = &subject->record->step;
    int               count = cache_points(step), at = 0;
    PlotSeries       *s = plot_add(plot, subject->name, count > 1 ? CURVE_LINE : CURVE_POINTS,
                                   count, false);

    for (int x = 0; s && x < STEP_LENGTHS; x++)
        if (step->held[x].valid) {
            s->x[at] = (double)((int64_t)STEP_FIRST << x);
            s->y[at++] = step->held[x].value;
        }
    if (count < STEP_LENGTHS)
        text_addf(missing, "%s%s: %s", missing->length ? "; " : "", subject->name,
                  step->held[0].valid ? "it reaches as far as the run; run it on more tokens"
                                      : "on a grid, so known of the run's length alone");
    return s != NULL;
}

static void add_missing(const PlotSubject *subject, Text *missing)
{
    bool ok = subject_ok(subject);

    text_addf(missing, "%s%s: %s", missing->length ? "; " : "", subject->name,
              !ok                            ? subject_lacks(subject)
              : *subject->record->step.lacks ? subject->record->step.lacks
                                             : "known of the run's length alone");
}

bool plot_fill_cache(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    Text missing = { 0 }, sizes = { 0 }, words = { 0 };
    bool ok = true;

    for (int i = 0; ok && i < count; i++) {
        if (!subject_ok(&subjects[i]) || !cache_points(&subjects[i].record->step)) {
            add_missing(&subjects[i], &missing);
            continue;
        }
        ok = add_cache(plot, &subjects[i], &missing);
        if (!sizes.length)
            text_addf(&sizes, "by closed form; sizes of the run, n = %lld, at every length",
                      (long long)subjects[i].record->n);
        add_sizes(&subjects[i], &sizes);
    }
    if (!ok)
        plot_no_memory(err);
    else if (!plot->count)
        ok = error_set(err, ERR_DATA, "cache of a decoder: %.400s",
                       missing.length ? text_str(&missing) : "nothing to show");
    plot->x.log = plot->y.log = true;
    snprintf(plot->x.name, sizeof(plot->x.name), "tokens");
    snprintf(plot->y.name, sizeof(plot->y.name), "cache (bytes)");
    add_reader_words(text_str(&sizes), &words);
    snprintf(plot->note, sizeof(plot->note), "%.400s%s%.200s", text_str(&words),
             missing.length ? "; " : "", text_str(&missing));
    text_free(&missing);
    text_free(&sizes);
    text_free(&words);
    return ok;
}

/* ---- costs over n ----------------------------------------------------------- */

/* The last point with a number; -1: there is none. */
static int last_known(const ScalingCurve *c)
{
    for (int i = c->count - 1; i >= 0; i--)
        if (c->cost[i] > 0 && c->n[i] > 0 && isfinite(c->cost[i]))
            return i;
    return -1;
}

static bool add_curve(Plot *plot, const ScalingCurve *c)
{
    bool        interval = c->low && c->high;
    PlotSeries *s = plot_add(plot, c->name, CURVE_LINE, c->count, interval);

    for (int i = 0; s && i < c->count; i++) {
        s->x[i] = c->n[i];
        s->y[i] = c->cost[i];
        if (interval) {
            s->low[i] = c->low[i];
            s->high[i] = c->high[i];
        }
    }
    if (s)
        s->whiskers = interval;
    for (int i = 0; s && c->busy && i < c->count; i++)
        if (c->busy[i] && !plot_busy(s, i))
            return false;
    return s != NULL;
}

/* The key names the claim: beside its line the words would stand across the other curves. */
static void name_claim(PlotSeries *curve, const ScalingCurve *c)
{
    size_t used = strlen(curve->name), room = sizeof(curve->name) - used;

    if (c->claimed)
        snprintf(curve->name + used, room, ", %s", c->claimed);
    else
        snprintf(curve->name + used, room, ", n^%.3g", c->claim);
}

static bool add_claim_curve(Plot *plot, const ScalingCurve *c, int hue)
{
    int    last = last_known(c);
    double least = HUGE_VAL, at;

    if (isnan(c->claim) || last < 0)
        return true;
    for (int i = 0; i < c->count; i++)
        if (c->n[i] > 0 && c->cost[i] > 0)
            least = fmin(least, c->n[i]);
    if (!(least < c->n[last]))
        return true;
    at = c->cost[last] * pow(least / c->n[last], c->claim);
    name_claim(&plot->series[hue], c);
    return plot_line(plot, "", hue, (double[]){ least, c->n[last] },
                     (double[]){ at, c->cost[last] }, 2) != NULL;
}

#define NAMED_LENGTHS_MOST 11

/* Uses the measured lengths as ticks, where they have room. */
static bool name_lengths(Plot *plot, const ScalingCurve *c)
{
    Text names = { 0 };
    bool ok;

    if (c->count < 2 || c->count > NAMED_LENGTHS_MOST)
        return true;
    for (int i = 0; i < c->count; i++)
        text_addf(&names, "%s%.6g", i ? "|" : "", c->n[i]);
    ok = text_ok(&names) && plot_name_points(plot, text_str(&names));
    text_free(&names);
    return ok;
}

Plot *plot_of_costs(const ScalingCurve *curves, int count, const CostAxes *axes,
                    const char *measured, Error *err)
{
    Plot *plot = plot_new(err);
    bool  ok = plot != NULL, claims = false;

    for (int i = 0; ok && i < count; i++) {
        ok = add_curve(plot, &curves[i]);
        claims |= !isnan(curves[i].claim);
    }
    ok = ok && name_lengths(plot, &curves[0]);
    for (int i = 0; ok && i < count; i++)
        ok = add_claim_curve(plot, &curves[i], i);
    if (!ok) {
        plot_free(plot);
        plot_no_memory(err);
        return NULL;
    }
    plot->x.log = !axes->even_x;
    plot->y.log = !axes->even_y;
    snprintf(plot->x.name, sizeof(plot->x.name), "%s", axes->x ? axes->x : "n");
    snprintf(plot->y.name, sizeof(plot->y.name), "%s", axes->cost);
    snprintf(plot->measured, sizeof(plot->measured), "%s", measured);
    if (claims)
        snprintf(plot->note, sizeof(plot->note), "dashed: the slope that is claimed, logs not "
                 "counted, through the last point");
    plot_settle(plot);
    return plot;
}

Plot *plot_of_scaling(const ScalingCurve *curves, int count, const char *cost,
                      const char *measured, Error *err)
{
    return plot_of_costs(curves, count, &(CostAxes){ .cost = cost }, measured, err);
}
