/* record_gpu.c -- what a GPU told of a run, as lines of a terminal; see record.h.
 *
 * Numbers of the whole run, then the counters of each stage, then kernels.  The tier stands
 * behind numbers and above columns.
 */
#include "profile/record_parts.h"

#include <stdio.h>

#define SHOWN_STAGES 24

static const char *stage_name(const void *record, int stage)
{
    return stage < 0 ? "(before)" : ((const Record *)record)->stages[stage].name;
}

static void counters_line(const Record *r, int stage, Text *out)
{
    const StageRecord   *s = &r->stages[stage];
    const DeviceCounted *c = &r->gpu->stages[stage].counted;
    char                 name[80], a[32], b[32], d[32], occupancy[16] = "-";

    if (s->iteration >= 0)
        snprintf(name, sizeof(name), "%s %lld", s->name, (long long)s->iteration);
    else
        snprintf(name, sizeof(name), "%s", s->name);
    if (c->occupancy.valid)
        snprintf(occupancy, sizeof(occupancy), "%.0f", 100 * c->occupancy.value);
    text_addf(out, "    %-17.17s %8s %9s %8s", name,
              record_count_text(number_of(flops_total(s->flops)), a, sizeof(a)),
              record_count_text(c->flops, b, sizeof(b)),
              record_count_text(c->tensor, d, sizeof(d)));
    text_addf(out, " %9s %9s %9s\n", record_bytes_text(c->dram_read, a, sizeof(a)),
              record_bytes_text(c->dram_written, b, sizeof(b)), occupancy);
}

static void counters_table(const Record *r, Text *out)
{
    int stages = r->stage_count < r->gpu->stage_count ? r->stage_count : r->gpu->stage_count;
    int shown = stages > SHOWN_STAGES ? SHOWN_STAGES : stages;

    if (!device_reached(r->gpu, TIER_COUNTERS) || !shown)
        return;
    text_addf(out, "    %-17s %8s %9s %8s %9s %9s %9s\n", "stage [counters]", "counted", "hw flops",
              "tensor", "DRAM read", "written", "occupied%");
    for (int i = 0; i < shown; i++)
        counters_line(r, i, out);
    if (shown < stages)
        text_addf(out, "    ... and %d more stages\n", stages - shown);
}

static bool has_gpu(const Record *r)
{
    return r->gpu && r->status == RECORD_OK;
}

void record_gpu_text(const Record *r, Text *out)
{
    if (has_gpu(r))
        device_profile_text(r->gpu, flops_total(r->counted), r->counted.score + r->counted.mix,
                            out);
}

void record_kernels_text(const Record *r, int width, int most, Text *out)
{
    if (!has_gpu(r))
        return;
    counters_table(r, out);
    device_kernels_text(r->gpu, width, most, stage_name, r, out);
}
