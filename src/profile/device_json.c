/* device_json.c -- a DeviceProfile as JSON: one object for each tier.
 *
 *   events    span_ms
 *   activity  busy_ms, copy_ms, idle_ms (of the span, without either: the host's), launches,
 *             allocated; copies[], kernels[] (most time first) and
 *             spans[]: [index of kernels, index of stages or null, start_ms, end_ms],
 *             copy_spans[]: [index of copies, index of stages or null, start_ms, end_ms]
 *   counters  flops, fp32, fp64, tensor, fused, dram_read, dram_written, occupancy; passes
 *
 * Each has `lacks`: why it is not there, null where it is.
 */
#include "profile/record_parts.h"

#define SPANS_WRITTEN 512 /* of a line of results */

static void key_whole(Json *j, const char *key, int64_t value)
{
    jsonw_key(j, key);
    jsonw_int(j, value);
}

static void open_tier(const DeviceProfile *p, DeviceTier tier, Json *j)
{
    jsonw_key(j, device_tier_name(tier));
    jsonw_open(j, '{');
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
    jsonw_key(j, key);
    jsonw_open(j, '[');
    for (int i = 0; i < 3; i++)
        jsonw_int(j, size[i]);
    jsonw_close(j, ']');
}

static void kernel(const DeviceKernelRow *row, Json *j)
{
    jsonw_open(j, '{');
    record_key_string(j, "name", row->name);
    record_key_number(j, "stage", row->stage >= 0 ? number_of(row->stage) : NUMBER_NONE);
    key_whole(j, "launches", row->launches);
    record_key_number(j, "total_ms", number_of(row->total_ms));
    record_key_number(j, "least_ms", number_of(row->least_ms));
    record_key_number(j, "most_ms", number_of(row->most_ms));
    sizes(j, "grid", row->grid);
    sizes(j, "block", row->block);
    record_key_number(j, "registers",
                      row->registers >= 0 ? number_of(row->registers) : NUMBER_NONE);
    key_whole(j, "shared", row->shared);
    record_key_number(j, "local", row->local >= 0 ? number_of((double)row->local) : NUMBER_NONE);
    jsonw_close(j, '}');
}

static void span(const DeviceSpan *span, int row, Json *j)
{
    jsonw_open(j, '[');
    jsonw_int(j, row);
    if (span->stage >= 0)
        jsonw_int(j, span->stage);
    else
        jsonw_null(j);
    jsonw_number(j, span->start_ms);
    jsonw_number(j, span->end_ms);
    jsonw_close(j, ']');
}

static void spans(const DeviceProfile *p, Json *j)
{
    jsonw_key(j, "spans");
    jsonw_open(j, '[');
    for (int i = 0; i < p->span_count && i < SPANS_WRITTEN; i++)
        span(&p->spans[i], p->spans[i].row, j);
    jsonw_close(j, ']');
}

/* Kinds without a copy are not written, so the index of a kind is that among the others. */
static void copy_spans(const DeviceProfile *p, Json *j)
{
    int at[DEVICE_COPY_KINDS], written = 0;

    for (int kind = 0; kind < DEVICE_COPY_KINDS; kind++)
        at[kind] = p->copies[kind].count ? written++ : -1;
    jsonw_key(j, "copy_spans");
    jsonw_open(j, '[');
    for (int i = 0; i < p->copy_span_count && i < SPANS_WRITTEN; i++)
        span(&p->copy_spans[i], at[p->copy_spans[i].row], j);
    jsonw_close(j, ']');
}

static void copies(const DeviceProfile *p, Json *j)
{
    jsonw_key(j, "copies");
    jsonw_open(j, '[');
    for (int kind = 0; kind < DEVICE_COPY_KINDS; kind++) {
        if (!p->copies[kind].count)
            continue;
        jsonw_open(j, '{');
        record_key_string(j, "kind", device_copy_name((DeviceCopyKind)kind));
        key_whole(j, "count", p->copies[kind].count);
        key_whole(j, "bytes", p->copies[kind].bytes);
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
    record_key_number(j, "launches", there ? number_of((double)p->launches) : NUMBER_NONE);
    record_key_number(j, "allocated", p->allocated);
    record_key_number(j, "dropped", there ? number_of((double)p->dropped) : NUMBER_NONE);
    copies(p, j);
    jsonw_key(j, "kernels");
    jsonw_open(j, '[');
    for (int i = 0; i < p->kernel_count; i++)
        kernel(&p->kernels[i], j);
    jsonw_close(j, ']');
    spans(p, j);
    copy_spans(p, j);
    jsonw_close(j, '}');
}

/* null: not asked for. */
static void graph(const DeviceGraph *g, Json *j)
{
    jsonw_key(j, "graph");
    if (!g->asked) {
        jsonw_null(j);
        return;
    }
    jsonw_open(j, '{');
    jsonw_key(j, "replayed");
    jsonw_bool(j, g->replayed);
    record_key_string(j, "why", g->why);
    record_key_number(j, "plain_ms", g->plain_ms);
    jsonw_close(j, '}');
}

void device_profile_json(const DeviceProfile *p, Json *j)
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
    record_key_number(j, "passes", p->passes ? number_of(p->passes) : NUMBER_NONE);
    jsonw_close(j, '}');
    jsonw_close(j, '}');
}

void device_stage_json(const DeviceProfile *p, int stage, Json *j)
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
