/* record_json.c -- a Record as one JSON object; the same from every front end.
 *
 *   flops.counted, flops.closed_form, flops.hardware   totals; the first two
 *       also in parts: counted_parts, closed_form_parts {score, mixing,
 *       overhead, position}
 *   bytes          traffic at least caused, read + written
 *   time_ms        of one run; samples in order of measurement; median_low and
 *       median_high: 95 % confidence interval of the median; drift: median of the
 *       last third of the samples over that of the first third, minus 1
 *   prepare_ms     drawing parameters and making tables, not part of time_ms; null: none made
 *   memory         bytes, defined in record.h; timeline: largest level in steps of equal
 *       length over the warm-up run; largest: single allocations
 *   gpu            of a run on a GPU, one object for each tier (below); else null
 *   decode         what one token more costs (step.c); null: not asked for
 *   stages[]       in order; iteration null when not iterated
 *   host, time, commit  the machine's name, the end of the run (UTC), the program's commit
 *   record_version grows when a key changes its meaning or goes; new keys leave it as it is
 *
 * Whatever was not measured is null, so a reader never mistakes it for 0.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/machine.h"
#include "profile/record.h"

#define EXACT 9007199254740992.0 /* up to here a double holds every integer */

/* Bytes and counts read better without an exponent. */
static void record_key_number(Json *j, const char *key, Number number)
{
    jsonw_key(j, key);
    if (!number.valid)
        jsonw_null(j);
    else if (fabs(number.value) < EXACT && number.value == floor(number.value))
        jsonw_int(j, (int64_t)number.value);
    else
        jsonw_number(j, number.value);
}

/* A negative index means there is none. */
static void index_or_null(Json *j, int64_t value)
{
    if (value >= 0)
        jsonw_int(j, value);
    else
        jsonw_null(j);
}

static void key_index(Json *j, const char *key, int64_t value)
{
    jsonw_key(j, key);
    index_or_null(j, value);
}

/* An empty text is null. */
static void record_key_string(Json *j, const char *key, const char *value)
{
    jsonw_key_string(j, key, *value ? value : NULL);
}

/* NaN is null. */
static void numbers(Json *j, const char *key, const double *values, int count)
{
    jsonw_key_open(j, key, '[');
    for (int i = 0; i < count; i++)
        jsonw_number(j, values[i]);
    jsonw_close(j, ']');
}

static Number when(bool valid, double value)
{
    return (Number){ .value = value, .valid = valid };
}

/* ---- groups ----------------------------------------------------------------- */

static void settings(Json *j, const Record *r)
{
    char seed[24];

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)r->seed);
    record_key_string(j, "mechanism", r->mechanism);
    jsonw_key_raw(j, "params", r->params ? r->params : "{}");
    record_key_string(j, "script", r->script);
    record_key_string(j, "script_sha256", r->script_sha256);
    record_key_string(j, "input", r->input);
    jsonw_key_int(j, "n", r->n);
    jsonw_key_int(j, "m", r->m);
    jsonw_key_int(j, "d", r->d);
    jsonw_key_int(j, "e", r->e);
    jsonw_key_int(j, "heads", r->heads);
    if (r->kv_heads > 0 && r->kv_heads < r->heads)
        jsonw_key_int(j, "kv_heads", r->kv_heads);
    jsonw_key_bool(j, "causal", r->causal);
    record_key_string(j, "position", r->position);
    jsonw_key_raw(j, "seed", seed);
    record_key_string(j, "device", r->device);
    record_key_string(j, "precision", r->precision);
    record_key_string(j, "computed", r->computed);
    jsonw_key_int(j, "threads", r->threads);
    record_key_number(j, "free_processors", r->free_processors);
    jsonw_key_raw(j, "oversubscribed", !r->free_processors.valid ? "null"
                  : record_is_oversubscribed(r) ? "true" : "false");
    record_key_string(j, "status", record_status_name(r->status));
    record_key_string(j, "message", r->message);
}

static void parts(Json *j, const char *key, bool valid, Flops flops)
{
    jsonw_key_open(j, key, '{');
    record_key_number(j, "score", when(valid, flops.score));
    record_key_number(j, "mixing", when(valid, flops.mix));
    record_key_number(j, "overhead", when(valid, flops.overhead));
    record_key_number(j, "position", when(valid, flops.position));
    jsonw_close(j, '}');
}

static void flops(Json *j, const Record *r)
{
    bool counted = r->status == RECORD_OK, closed = counted && r->has_closed_form;

    jsonw_key_open(j, "flops", '{');
    record_key_number(j, "counted", when(counted, flops_total(r->counted)));
    record_key_number(j, "closed_form", when(closed, flops_total(r->closed_form)));
    record_key_number(j, "hardware", r->hardware.flops);
    jsonw_key_raw(j, "closed_form_is_bound",
                  !closed ? "null" : r->closed_form_is_bound ? "true" : "false");
    parts(j, "counted_parts", counted, r->counted);
    parts(j, "closed_form_parts", closed, r->closed_form);
    jsonw_close(j, '}');
    record_key_number(j, "bytes", counted ? record_traffic(r->bytes) : NUMBER_NONE);
    jsonw_key_open(j, "hardware", '{');
    record_key_number(j, "cycles", r->hardware.cycles);
    record_key_number(j, "instructions", r->hardware.instructions);
    record_key_number(j, "cache_misses", r->hardware.cache_misses);
    record_key_string(j, "note", r->hardware_note);
    jsonw_close(j, '}');
}

static void timing(Json *j, const Record *r)
{
    const Timing *t = &r->time;

    jsonw_key_open(j, "time_ms", '{');
    record_key_number(j, "median", t->median);
    record_key_number(j, "q1", t->q1);
    record_key_number(j, "q3", t->q3);
    record_key_number(j, "min", t->min);
    record_key_number(j, "median_low", t->low);
    record_key_number(j, "median_high", t->high);
    if (t->count)
        numbers(j, "samples", t->samples, t->count);
    else
        jsonw_key_raw(j, "samples", "null");
    record_key_number(j, "first", t->first);
    record_key_number(j, "outliers", when(t->count > 0, t->outliers));
    record_key_number(j, "drift", t->drift);
    record_key_number(j, "involuntary_switches", t->switches);
    jsonw_close(j, '}');
    record_key_number(j, "cpu_ms", r->cpu_ms);
    record_key_number(j, "prepare_ms", r->prepare_ms);
}

static void steps(Json *j, const char *key, const int64_t *values, int count)
{
    jsonw_key_open(j, key, '[');
    for (int i = 0; i < count; i++)
        jsonw_int(j, values[i]);
    jsonw_close(j, ']');
}

static void timeline(Json *j, const MemoryTimeline *line, bool heap)
{
    jsonw_open(j, '{');
    record_key_number(j, "step_ms", number_of(1e3 * line->step));
    steps(j, "arena", line->arena, line->count);
    if (heap)
        steps(j, "heap", line->heap, line->count);
    else
        jsonw_key_raw(j, "heap", "null");
    if (line->on_device)
        steps(j, "device", line->device, line->count);
    else
        jsonw_key_raw(j, "device", "null");
    jsonw_close(j, '}');
}

static void largest(Json *j, const Record *r)
{
    jsonw_open(j, '[');
    for (int i = 0; r->timeline && i < r->timeline->largest_count; i++) {
        const LargeAllocation *a = &r->timeline->largest[i];

        jsonw_open(j, '{');
        jsonw_key_int(j, "bytes", a->bytes);
        record_key_string(j, "where", a->heap ? "heap" : "arena");
        record_key_number(j, "at_ms", number_of(1e3 * a->at));
        record_key_string(j, "stage", a->stage >= 0 && a->stage < r->stage_count
                                   ? r->stages[a->stage].name : "");
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void memory(Json *j, const Record *r)
{
    jsonw_key_open(j, "memory", '{');
    record_key_number(j, "arena_peak", r->arena_peak);
    record_key_number(j, "heap_peak", r->heap_peak);
    record_key_number(j, "device_peak", r->device_peak);
    record_key_number(j, "rss_peak", r->rss_peak);
    record_key_string(j, "heap_note", r->heap_note);
    record_key_number(j, "allocations", r->allocations);
    record_key_number(j, "arena_allocations", r->arena_allocations);
    jsonw_key(j, "timeline");
    if (r->timeline)
        timeline(j, r->timeline, r->heap_peak.valid);
    else
        jsonw_null(j);
    jsonw_key(j, "largest");
    largest(j, r);
    jsonw_close(j, '}');
}

static void quality_members(Json *j, const Quality *q)
{
    bool measured = q->mass_mean.valid || q->output_error.valid || q->total_variation.valid;

    record_key_number(j, "mass_mean", q->mass_mean);
    record_key_number(j, "mass_p5", q->mass_p5);
    record_key_number(j, "mass_min", q->mass_min);
    record_key_number(j, "output_error", q->output_error);
    record_key_number(j, "total_variation", q->total_variation);
    record_key_number(j, "kl", q->kl);
    jsonw_key_string(j, "kl_lacks", q->kl_lacks);
    if (q->rows) {
        jsonw_key_int(j, "rows", q->rows);
        record_key_number(j, "mass_margin", q->mass_margin);
        record_key_number(j, "output_error_margin", q->output_error_margin);
        record_key_number(j, "total_variation_margin", q->variation_margin);
        record_key_number(j, "kl_margin", q->kl_margin);
    }
    if (q->unknown_rows)
        jsonw_key_int(j, "unknown_rows", q->unknown_rows);
    key_index(j, "worst_query", measured ? q->worst_query : -1);
    key_index(j, "worst_head", measured ? q->worst_head : -1);
    jsonw_key_open(j, "worst", '[');
    for (int i = 0; i < q->worst_count; i++) {
        jsonw_open(j, '{');
        jsonw_key_int(j, "query", q->worst[i].query);
        jsonw_key_int(j, "head", q->worst[i].head);
        record_key_number(j, "value", number_of(q->worst[i].value));
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void quality(Json *j, const Record *r)
{
    jsonw_key_open(j, "quality", '{');
    if (r->quality_of)
        jsonw_key_int(j, "head", r->quality_of - 1);
    quality_members(j, &r->quality);
    if (r->by_head) {
        jsonw_key_open(j, "heads", '[');
        for (int h = 0; h < r->head_count; h++) {
            jsonw_open(j, '{');
            jsonw_key_int(j, "head", h);
            quality_members(j, &r->by_head[h]);
            jsonw_close(j, '}');
        }
        jsonw_close(j, ']');
    }
    jsonw_close(j, '}');
}

static void band(Json *j, const char *key, const SeedBand *b)
{
    jsonw_key_open(j, key, '{');
    record_key_number(j, "mean", b->mean);
    record_key_number(j, "min", b->min);
    record_key_number(j, "max", b->max);
    jsonw_close(j, '}');
}

static void seeds(Json *j, const SeedSpread *s)
{
    jsonw_key(j, "seeds");
    if (!s->count) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '{');
    key_index(j, "count", s->count);
    band(j, "mass", &s->mass);
    band(j, "output_error", &s->output_error);
    record_key_string(j, "lacks", s->lacks ? s->lacks : "");
    numbers(j, "mass_draws", s->mass_draws, s->kept);
    numbers(j, "output_error_draws", s->output_error_draws, s->kept);
    jsonw_close(j, '}');
}

/* FLOPs per byte of traffic. */
static Number intensity(const StageRecord *s)
{
    Number bytes = record_traffic(s->bytes);

    return when(bytes.valid, flops_total(s->flops) / bytes.value);
}

static void device_stage_json(const DeviceProfile *p, int stage, Json *j);

static void stages(Json *j, const Record *r)
{
    jsonw_key_open(j, "stages", '[');
    for (int i = 0; i < r->stage_count; i++) {
        const StageRecord *s = &r->stages[i];

        jsonw_open(j, '{');
        record_key_string(j, "name", s->name);
        key_index(j, "iteration", s->iteration);
        record_key_number(j, "time_ms", s->time_ms);
        record_key_number(j, "flops", number_of(flops_total(s->flops)));
        record_key_number(j, "bytes", record_traffic(s->bytes));
        record_key_number(j, "intensity", intensity(s));
        record_key_number(j, "allocations", s->allocations);
        record_key_number(j, "heap_peak", s->heap_peak);
        record_key_number(j, "arena_peak", s->arena_peak);
        jsonw_key(j, "gpu");
        device_stage_json(r->gpu, i, j);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void list_of_lines(Json *j, const char *key, const char *lines)
{
    Text line = { 0 };

    jsonw_key_open(j, key, '[');
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");

        text_clear(&line);
        text_add_bytes(&line, lines, length);
        if (length)
            jsonw_string(j, text_str(&line));
        lines += length + (lines[length] == '\n');
    }
    jsonw_close(j, ']');
    text_free(&line);
}

/* Where, when and by which build.  Figures do not hold these: their bytes do not depend on them. */
static void origin(Json *j, const Record *r)
{
    char      host[HOST_NAME_MAX + 1] = "", text[40] = "";
    time_t    seconds = (time_t)r->ended;
    struct tm utc;

    if (gethostname(host, sizeof(host) - 1) != 0)
        *host = '\0';
    if (r->ended && gmtime_r(&seconds, &utc))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    record_key_string(j, "host", host);
    record_key_string(j, "time", text);
    record_key_string(j, "commit", environment_commit());
}

static void device_profile_json(const DeviceProfile *p, Json *j);

void record_json_keys(const Record *record, Json *out)
{
    settings(out, record);
    flops(out, record);
    timing(out, record);
    memory(out, record);
    jsonw_key(out, "gpu");
    device_profile_json(record->gpu, out);
    quality(out, record);
    seeds(out, &record->seeds);
    step_json(&record->step, out);
    jsonw_key_raw(out, "tensors", record->tensors ? record->tensors : "{}");
    jsonw_key_raw(out, "figures", record->figures ? record->figures : "{}");
    stages(out, record);
    list_of_lines(out, "notes", record->notes);
    list_of_lines(out, "warnings", record->warnings);
    jsonw_key(out, "environment");
    environment_json(out);
    origin(out, record);
    jsonw_key_int(out, "record_version", RECORD_VERSION);
}

void record_json(const Record *record, Json *out)
{
    jsonw_open(out, '{');
    record_json_keys(record, out);
    jsonw_close(out, '}');
}

/* ---- a DeviceProfile: one object for each tier -------------------------------------------
 *
 *   events    span_ms
 *   activity  busy_ms, copy_ms, idle_ms (the rest of the span: the host's), launches, allocated;
 *             copies[], kernels[] (most time first) and
 *             spans[]: [index of kernels, index of stages or null, start_ms, end_ms],
 *             copy_spans[]: [index of copies, index of stages or null, start_ms, end_ms]
 *   counters  flops, fp32, fp64, tensor, fused, dram_read, dram_written, occupancy; passes
 *
 * Each tier has `lacks`: why it was not reached, else null.
 */

#define SPANS_WRITTEN 512 /* of a line of results */

static void open_tier(const DeviceProfile *p, DeviceTier tier, Json *j)
{
    jsonw_key_open(j, device_tier_name(tier), '{');
    record_key_string(j, "lacks", p->lacks[tier]);
}

static void counted(const DeviceCounted *c, Json *j)
{
    record_key_number(j, "flops", c->flops);
    record_key_number(j, "fp32", c->fp32);
    record_key_number(j, "fp64", c->fp64);
    record_key_number(j, "tensor", c->tensor);
    record_key_number(j, "fused", c->fused);
    record_key_number(j, "dram_read", c->dram_read);
    record_key_number(j, "dram_written", c->dram_written);
    record_key_number(j, "occupancy", c->occupancy);
}

static void sizes(Json *j, const char *key, const int32_t size[3])
{
    jsonw_key_open(j, key, '[');
    for (int i = 0; i < 3; i++)
        jsonw_int(j, size[i]);
    jsonw_close(j, ']');
}

static void kernel(const DeviceKernelRow *row, Json *j)
{
    jsonw_open(j, '{');
    record_key_string(j, "name", row->name);
    record_key_number(j, "stage", when(row->stage >= 0, row->stage));
    jsonw_key_int(j, "launches", row->launches);
    record_key_number(j, "total_ms", number_of(row->total_ms));
    record_key_number(j, "least_ms", number_of(row->least_ms));
    record_key_number(j, "most_ms", number_of(row->most_ms));
    sizes(j, "grid", row->grid);
    sizes(j, "block", row->block);
    record_key_number(j, "registers", when(row->registers >= 0, row->registers));
    jsonw_key_int(j, "shared", row->shared);
    record_key_number(j, "local", when(row->local >= 0, (double)row->local));
    jsonw_close(j, '}');
}

static void span(const DeviceSpan *span, int row, Json *j)
{
    jsonw_open(j, '[');
    jsonw_int(j, row);
    index_or_null(j, span->stage);
    jsonw_number(j, span->start_ms);
    jsonw_number(j, span->end_ms);
    jsonw_close(j, ']');
}

static void spans(const DeviceProfile *p, Json *j)
{
    jsonw_key_open(j, "spans", '[');
    for (int i = 0; i < p->span_count && i < SPANS_WRITTEN; i++)
        span(&p->spans[i], p->spans[i].row, j);
    jsonw_close(j, ']');
}

/* Kinds without a copy are not written and have no index. */
static void copy_spans(const DeviceProfile *p, Json *j)
{
    int at[DEVICE_COPY_KINDS], written = 0;

    for (int kind = 0; kind < DEVICE_COPY_KINDS; kind++)
        at[kind] = p->copies[kind].count ? written++ : -1;
    jsonw_key_open(j, "copy_spans", '[');
    for (int i = 0; i < p->copy_span_count && i < SPANS_WRITTEN; i++)
        span(&p->copy_spans[i], at[p->copy_spans[i].row], j);
    jsonw_close(j, ']');
}

static void copies(const DeviceProfile *p, Json *j)
{
    jsonw_key_open(j, "copies", '[');
    for (int kind = 0; kind < DEVICE_COPY_KINDS; kind++) {
        if (!p->copies[kind].count)
            continue;
        jsonw_open(j, '{');
        record_key_string(j, "kind", device_copy_name((DeviceCopyKind)kind));
        jsonw_key_int(j, "count", p->copies[kind].count);
        jsonw_key_int(j, "bytes", p->copies[kind].bytes);
        record_key_number(j, "ms", number_of(p->copies[kind].ms));
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static void activity(const DeviceProfile *p, Json *j)
{
    bool there = device_reached(p, TIER_ACTIVITY);

    open_tier(p, TIER_ACTIVITY, j);
    record_key_number(j, "busy_ms", p->busy_ms);
    record_key_number(j, "copy_ms", p->copy_ms);
    record_key_number(j, "idle_ms", device_idle_ms(p, -1));
    record_key_number(j, "launches", when(there, (double)p->launches));
    record_key_number(j, "allocated", p->allocated);
    record_key_number(j, "dropped", when(there, (double)p->dropped));
    copies(p, j);
    jsonw_key_open(j, "kernels", '[');
    for (int i = 0; i < p->kernel_count; i++)
        kernel(&p->kernels[i], j);
    jsonw_close(j, ']');
    spans(p, j);
    copy_spans(p, j);
    jsonw_close(j, '}');
}

/* null: not requested. */
static void graph(const DeviceGraph *g, Json *j)
{
    jsonw_key(j, "graph");
    if (!g->asked) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '{');
    jsonw_key_bool(j, "replayed", g->replayed);
    record_key_string(j, "why", g->why);
    record_key_number(j, "plain_ms", g->plain_ms);
    jsonw_close(j, '}');
}

static void device_profile_json(const DeviceProfile *p, Json *j)
{
    if (!p) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '{');
    record_key_string(j, "name", p->name);
    record_key_string(j, "source", p->source);
    graph(&p->graph, j);
    open_tier(p, TIER_EVENTS, j);
    record_key_number(j, "span_ms", p->span_ms);
    jsonw_close(j, '}');
    activity(p, j);
    open_tier(p, TIER_COUNTERS, j);
    counted(&p->counted, j);
    record_key_number(j, "passes", when(p->passes, p->passes));
    jsonw_close(j, '}');
    jsonw_close(j, '}');
}

/* One stage of it, for stages[]; null: the profile does not have the stage. */
static void device_stage_json(const DeviceProfile *p, int stage, Json *j)
{
    const DeviceStage *s = p && stage < p->stage_count ? &p->stages[stage] : NULL;

    if (!s) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '{');
    record_key_number(j, "span_ms", s->span_ms);
    record_key_number(j, "busy_ms", s->busy_ms);
    record_key_number(j, "idle_ms", device_idle_ms(p, stage));
    record_key_number(j, "copy_ms", s->copy_ms);
    record_key_number(j, "launches", s->launches);
    counted(&s->counted, j);
    jsonw_close(j, '}');
}
