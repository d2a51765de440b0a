/* record_text.c -- a Record as a few lines for a terminal of 80 columns.
 *
 * Plain ASCII, no colour.  A line appears only when at least one of its numbers
 * was measured; a number that was not is a dash.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/record.h"

#define SHOWN_STAGES 24
#define SHOWN_KERNELS 12
#define WIDTH 80
#define SHOWN_WORST 4

/* ---- numbers ---------------------------------------------------------------- */

/* "12.3 us", "1.234 ms", "-". */
static const char *record_ms_text(Number ms, char *text, size_t size)
{
    if (!ms.valid)
        snprintf(text, size, "-");
    else if (ms.value < 0.1)
        snprintf(text, size, "%.2f us", 1e3 * ms.value);
    else if (ms.value < 1e4)
        snprintf(text, size, "%.*f ms", ms.value < 10 ? 3 : ms.value < 100 ? 2 : 1, ms.value);
    else
        snprintf(text, size, "%.2f s", 1e-3 * ms.value);
    return text;
}

static const char *record_bytes_text(Number bytes, char *text, size_t size)
{
    if (!bytes.valid)
        snprintf(text, size, "-");
    else
        format_bytes((int64_t)bytes.value, text, size);
    return text;
}

static const char *record_count_text(Number count, char *text, size_t size)
{
    if (count.valid)
        format_count(count.value, text, size);
    else
        snprintf(text, size, "-");
    return text;
}

static const char *share_text(Number number, char *text, size_t size)
{
    if (number.valid)
        snprintf(text, size, fabs(number.value) < 1e-3 ? "%.1e" : "%.4f", number.value);
    else
        snprintf(text, size, "-");
    return text;
}

/* ---- lines ------------------------------------------------------------------ */

void record_computed(const Record *r, Text *out)
{
    text_add(out, r->computed);
    if (strncmp(r->computed, r->precision, strlen(r->precision)) != 0)
        text_addf(out, " (%s asked)", r->precision);
}

static void head_line(const Record *r, Text *out)
{
    bool plain = !*r->computed || !strcmp(r->device, "cpu");

    text_addf(out, "%s  n=%lld", r->mechanism, (long long)r->n);
    if (r->m != r->n)
        text_addf(out, " m=%lld", (long long)r->m);
    text_addf(out, " d=%lld heads=%lld", (long long)r->d, (long long)r->heads);
    if (r->kv_heads > 0 && r->kv_heads < r->heads)
        text_addf(out, " kv_heads=%lld", (long long)r->kv_heads);
    text_add(out, r->causal ? " causal" : "");
    if (strcmp(r->position, "none") != 0)
        text_addf(out, " position=%s", r->position);
    text_addf(out, "  seed %llu  %s%s", (unsigned long long)r->seed, r->device, plain ? "" : " ");
    if (!plain)
        record_computed(r, out);
    text_addf(out, ", %d thread%s\n", r->threads, r->threads == 1 ? "" : "s");
    if (r->status != RECORD_OK)
        text_addf(out, "  %-8s %s\n", record_status_name(r->status), r->message);
}

static void time_lines(const Record *r, Text *out)
{
    const Timing *t = &r->time;
    char          a[32], b[32], c[32], d[32];

    if (t->count > 1) {
        text_addf(out, "  time     %s", record_ms_text(t->median, a, sizeof(a)));
        if (t->low.valid)
            text_addf(out, " +- %.1f %%",
                      50 * (t->high.value - t->low.value) / t->median.value);
        text_addf(out, " median of %d (q1 %s, q3 %s, min %s)\n", t->count,
                  record_ms_text(t->q1, b, sizeof(b)), record_ms_text(t->q3, c, sizeof(c)),
                  record_ms_text(t->min, d, sizeof(d)));
    }
    else if (t->count)
        text_addf(out, "  time     %s, one run\n", record_ms_text(t->median, a, sizeof(a)));
    if (t->first.valid)
        text_addf(out, "           first call %s; cpu %s a run",
                  record_ms_text(t->first, a, sizeof(a)), record_ms_text(r->cpu_ms, b, sizeof(b)));
    if (t->first.valid && r->prepare_ms.valid)
        text_addf(out, "; prepared in %s, apart",
                  record_ms_text(r->prepare_ms, a, sizeof(a)));
    if (t->first.valid)
        text_add(out, "\n");
}

/* The run used tensor cores, and no counter measures them. */
static bool lacks_tensors(const Record *r)
{
    return r->gpu && !r->gpu->counted.tensor.valid &&
           (strstr(r->computed, "f16") || strstr(r->computed, "tf32"));
}

static void flops_line(const Record *r, Text *out)
{
    double counted = flops_total(r->counted), closed = flops_total(r->closed_form);
    char   text[32];

    if (r->status != RECORD_OK)
        return;
    text_addf(out, "  flops    %s counted", format_count(counted, text, sizeof(text)));
    if (r->has_closed_form) {
        text_addf(out, ", %s%s closed form", r->closed_form_is_bound ? "at most " : "",
                  format_count(closed, text, sizeof(text)));
        if (closed > 0)
            text_addf(out, " (%+.1f %%)", 100 * (counted - closed) / closed);
    }
    if (r->hardware.flops.valid)
        text_addf(out, ", %s hardware%s",
                  format_count(r->hardware.flops.value, text, sizeof(text)),
                  lacks_tensors(r) ? " without tensor cores" : "");
    if (r->time.median.valid && r->time.median.value > 0)
        text_addf(out, counted / r->time.median.value < 1e5 ? "; %.2g GF/s" : "; %.1f GF/s",
                  counted / r->time.median.value * 1e-6);
    text_add(out, "\n");
}

static void memory_line(const Record *r, Text *out)
{
    Number traffic = record_traffic(r->bytes);
    char   text[32];

    if (!r->arena_peak.valid && !r->heap_peak.valid && !r->rss_peak.valid)
        return;
    text_addf(out, "  memory   arena %s", record_bytes_text(r->arena_peak, text, sizeof(text)));
    text_addf(out, ", heap %s", record_bytes_text(r->heap_peak, text, sizeof(text)));
    if (r->device_peak.valid)
        text_addf(out, ", device %s", record_bytes_text(r->device_peak, text, sizeof(text)));
    text_addf(out, ", process %s", record_bytes_text(r->rss_peak, text, sizeof(text)));
    if (r->status == RECORD_OK)
        text_addf(out, "; traffic %s",
                  traffic.valid ? record_bytes_text(traffic, text, sizeof(text)) : "not counted");
    text_add(out, "\n");
}

/* "allocations 12 arena, 3 heap; the largest 33.0 MiB of arena in attend" */
static void largest_line(const Record *r, Text *out)
{
    const MemoryTimeline  *line = r->timeline;
    const LargeAllocation *a;
    char                   text[32];
    bool                   staged;

    if (!line || !line->largest_count || r->status != RECORD_OK)
        return;
    a = &line->largest[0];
    staged = a->stage >= 0 && a->stage < r->stage_count;
    text_addf(out, "           allocations %.0f arena", r->arena_allocations.value);
    if (r->allocations.valid)
        text_addf(out, ", %.0f heap", r->allocations.value);
    text_addf(out, "; the largest %s of %s %s%s\n", format_bytes(a->bytes, text, sizeof(text)),
              a->heap ? "heap" : "arena", staged ? "in " : "before the first stage",
              staged ? r->stages[a->stage].name : "");
}

/* "12 (0.031)", with several heads "12@3 (0.031)" as panels write it. */
static void worst_text(const WorstQuery *worst, int64_t heads, const char *before, Text *out)
{
    text_addf(out, "%s%lld", before, (long long)worst->query);
    if (heads > 1)
        text_addf(out, "@%lld", (long long)worst->head);
    text_addf(out, " (%.3g)", worst->value);
}

/* `before`: what parts it from the mean before, if any. */
static void mean_text(const char *name, Number mean, Number margin, const char **before,
                      Text *out)
{
    char a[32], b[32];

    if (!mean.valid)
        return;
    text_addf(out, "%s%s %s +- %s", *before, name, share_text(mean, a, sizeof(a)),
              share_text(margin, b, sizeof(b)));
    *before = ", ";
}

/* Means of a sample of rows. */
static void sampled_lines(const Record *r, Text *out)
{
    const Quality *q = &r->quality;
    const char    *before = "  quality  ";

    mean_text("mass kept", q->mass_mean, q->mass_margin, &before, out);
    mean_text("output error", q->output_error, q->output_error_margin, &before, out);
    mean_text("total variation", q->total_variation, q->variation_margin, &before, out);
    mean_text("KL", q->kl, q->kl_margin, &before, out);
    text_addf(out, "\n           of %lld of %lld rows of each head, drawn; +-: 95 %% interval\n",
              (long long)q->rows, (long long)r->n);
}

/* Of a cache without steady growth: whether it is full after n tokens. */
static void bound_text(const StepRecord *step, int64_t n, Text *out)
{
    double  most = step->state_bytes.value;
    int64_t at = 0;
    bool    known = false;
    char    text[32];

    for (int x = 0; x < STEP_LENGTHS; x++) {
        if (((int64_t)STEP_FIRST << x) <= n || !step->held[x].valid)
            continue;
        known = true;
        if (step->held[x].value > most) {
            most = step->held[x].value;
            at = (int64_t)STEP_FIRST << x;
        }
    }
    if (at)
        text_addf(out, "which grows to %s by %lld tokens",
                  record_bytes_text(number_of(most), text, sizeof(text)), (long long)at);
    else
        text_add(out, known ? "which grows no more" : "which is bounded");
}

static void decode_cost_line(const StepRecord *step, int64_t n, Text *out)
{
    char text[32];

    if (!step->state_bytes.valid) {
        text_addf(out, "  decode   cost not known: %s\n", step->lacks);
        return;
    }
    text_addf(out, "  decode   cache %s, ",
              record_bytes_text(step->state_bytes, text, sizeof(text)));
    if (step->kv_bytes_per_token.valid && step->kv_bytes_per_token.value <= 0)
        bound_text(step, n, out);
    else
        text_addf(out, "%s for each further token",
                  record_bytes_text(step->kv_bytes_per_token, text, sizeof(text)));
    text_addf(out, "; a step reads %s",
              record_bytes_text(step->step_bytes, text, sizeof(text)));
    if (step->decode_flops.valid)
        text_addf(out, " and takes %s FLOPs",
                  record_count_text(step->decode_flops, text, sizeof(text)));
    if (step->number_bytes)
        text_addf(out, "; cached numbers of %lld bytes (cache_bytes)",
                  (long long)step->number_bytes);
    if (!step->decode_flops.valid)
        text_addf(out, "; its FLOPs are not known: %s", step->lacks);
    text_add(out, "\n");
}

/* What one token more costs; see step.h. */
static void decode_lines(const StepRecord *step, int64_t n, Text *out)
{
    char text[32];

    if (!step->asked)
        return;
    decode_cost_line(step, n, out);
    if (step->way == STEP_NONE) {
        if (strcmp(step->lacks, step->time_lacks) != 0)
            text_addf(out, "           step time not measured: %s\n", step->time_lacks);
        return;
    }
    text_addf(out, "           step %s", record_ms_text(step->median, text, sizeof(text)));
    if (step->low.valid && step->median.value > 0)
        text_addf(out, " +- %.1f %%",
                  50 * (step->high.value - step->low.value) / step->median.value);
    text_addf(out, ", %s FLOPs counted: ", record_count_text(step->counted, text, sizeof(text)));
    text_add(out, step->way == STEP_RECURRENT ? "one of all tokens, by form=recurrent"
                                              : "the last query alone");
    if (step->kept.valid)
        text_addf(out, "; what a decoder keeps is made again in %s, apart",
                  record_ms_text(step->kept, text, sizeof(text)));
    text_addf(out, "%s\n", step_makes_again(step) ? ", with what a decoder keeps made again"
                           : step_does_less(step) ? ", fewer than the closed form" : "");
}

static void quality_lines(const Record *r, Text *out)
{
    const Quality *q = &r->quality;
    char a[32], b[32], c[32];

    if (q->rows) {
        sampled_lines(r, out);
        return;
    }
    if (q->mass_mean.valid)
        text_addf(out, "  quality  mass kept %s mean, %s p5, %s min\n",
                  share_text(q->mass_mean, a, sizeof(a)), share_text(q->mass_p5, b, sizeof(b)),
                  share_text(q->mass_min, c, sizeof(c)));
    if (q->output_error.valid || q->total_variation.valid)
        text_addf(out, "  %-8s output error %s, total variation %s", q->mass_mean.valid ? "" :
                  "quality", share_text(q->output_error, a, sizeof(a)),
                  share_text(q->total_variation, b, sizeof(b)));
    if (q->kl.valid)
        text_addf(out, ", KL %.4g nats", q->kl.value);
    if (q->output_error.valid || q->total_variation.valid)
        text_add(out, "\n");
    for (int i = 0; i < q->worst_count && i < SHOWN_WORST; i++)
        worst_text(&q->worst[i], r->heads, i ? ", " : "           worst queries: ", out);
    if (q->worst_count)
        text_addf(out, ", %s\n", q->mass_mean.valid      ? "their mass kept"
                                 : q->output_error.valid ? "their error"
                                                         : "their variation");
}

static void band_text(const char *name, const SeedBand *b, Text *out)
{
    char mean[32], min[32], max[32];

    if (b->mean.valid)
        text_addf(out, "  %s %s [%s, %s]", name, share_text(b->mean, mean, sizeof(mean)),
                  share_text(b->min, min, sizeof(min)), share_text(b->max, max, sizeof(max)));
}

static void seeds_line(const SeedSpread *s, Text *out)
{
    if (!s->count)
        return;
    if (s->lacks) {
        text_addf(out, "  seeds    %d runs; no exact attention to compare with: %s\n", s->count,
                  s->lacks);
        return;
    }
    text_addf(out, "  seeds    %d runs, mean [least, most]:", s->count);
    band_text("mass kept", &s->mass, out);
    band_text("output error", &s->output_error, out);
    if (!s->mass.mean.valid && !s->output_error.mean.valid)
        text_add(out, " not measured");
    text_add(out, "\n");
}

/* Prints {"rotations":"random seed 0"} without braces and quotes. */
static void tensors_line(const char *json, Text *out)
{
    if (!json || !strcmp(json, "{}"))
        return;
    text_add(out, "  tensors  ");
    for (; *json; json++) {
        if (*json == '"' || *json == '{' || *json == '}')
            continue;
        text_addf(out, *json == ':' ? ": " : *json == ',' ? ", " : "%c", *json);
    }
    text_add(out, "\n");
}

#define FIGURES_WIDTH 96

/* {"peak_bytes":4096} as names and numbers, wrapped at FIGURES_WIDTH. */
static void figures_lines(const char *json, Text *out)
{
    const char *lead = "  figures  ";
    size_t      line = out->length;
    char        item[96];

    while (json && (json = strchr(json, '"'))) {
        int    name = (int)strcspn(json + 1, "\"");
        char  *end;
        double value = strtod(json + name + 3, &end);

        if (end == json + name + 3)
            snprintf(item, sizeof(item), "%.*s n/a", name, json + 1);
        else
            snprintf(item, sizeof(item), "%.*s %.*g", name, json + 1,
                     value == floor(value) && fabs(value) < 1e15 ? 15 : 5, value);
        json = end;
        if (out->length - line + strlen(item) > FIGURES_WIDTH) {
            line = out->length;
            lead = ",\n           ";
        }
        text_addf(out, "%s%s", lead, item);
        lead = ", ";
    }
    if (out->length > line)
        text_add(out, "\n");
}

/* Time of the device's kernels, and the stage's share without work on the device. */
static void device_cells(const DeviceProfile *gpu, int stage, Text *out)
{
    Number share = device_idle_share(gpu, stage), busy = NUMBER_NONE;
    char   text[32], idle[16] = "-";

    if (stage < gpu->stage_count)
        busy = gpu->stages[stage].busy_ms;
    if (share.valid)
        snprintf(idle, sizeof(idle), "%.0f", 100 * share.value);
    text_addf(out, " %10s %6s", record_ms_text(busy, text, sizeof(text)), idle);
}

/* "attend", or "round 3" of an iterated stage. */
static const char *stage_label(const StageRecord *s, char *text, size_t size)
{
    if (s->iteration >= 0)
        snprintf(text, size, "%s %lld", s->name, (long long)s->iteration);
    else
        snprintf(text, size, "%s", s->name);
    return text;
}

static void stage_line(const Record *r, int stage, double total, Text *out)
{
    const StageRecord *s = &r->stages[stage];
    Number             traffic = record_traffic(s->bytes);
    char               name[80], text[32], share[16] = "-", intensity[16] = "-";

    if (s->time_ms.valid && total > 0)
        snprintf(share, sizeof(share), "%.1f", 100 * s->time_ms.value / total);
    if (traffic.valid)
        snprintf(intensity, sizeof(intensity), "%.3g", flops_total(s->flops) / traffic.value);
    text_addf(out, "    %-17.17s %10s %5s", stage_label(s, name, sizeof(name)),
              record_ms_text(s->time_ms, text, sizeof(text)), share);
    if (r->gpu)
        device_cells(r->gpu, stage, out);
    text_addf(out, " %8s", format_count(flops_total(s->flops), text, sizeof(text)));
    text_addf(out, " %9s", record_bytes_text(traffic, text, sizeof(text)));
    if (!r->gpu)
        text_addf(out, " %6s %9s", intensity, record_bytes_text(s->arena_peak, text, sizeof(text)));
    text_add(out, "\n");
}

/* With a GPU two other columns replace F/B and arena, so the table is as wide. */
static void stage_table(const Record *r, Text *out)
{
    int    shown = r->stage_count > SHOWN_STAGES ? SHOWN_STAGES : r->stage_count;
    double total = 0;

    if (r->status != RECORD_OK || !r->stage_count)
        return;
    for (int i = 0; i < r->stage_count; i++)
        total += r->stages[i].time_ms.value;
    text_addf(out, "    %-17s %10s %5s", "stage", "time", "%");
    if (r->gpu)
        text_addf(out, " %10s %6s %8s %9s\n", "kernels", "host %", "flops", "traffic");
    else
        text_addf(out, " %8s %9s %6s %9s\n", "flops", "traffic", "F/B", "arena");
    for (int i = 0; i < shown; i++)
        stage_line(r, i, total, out);
    if (shown < r->stage_count)
        text_addf(out, "    ... and %d more stages\n", r->stage_count - shown);
}

static void marked_lines(const char *mark, const char *lines, Text *out)
{
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");

        if (length)
            text_addf(out, "  %s  %.*s\n", mark, (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void record_text(const Record *record, Text *out)
{
    head_line(record, out);
    time_lines(record, out);
    flops_line(record, out);
    memory_line(record, out);
    largest_line(record, out);
    record_gpu_text(record, out);
    decode_lines(&record->step, record->n, out);
    quality_lines(record, out);
    seeds_line(&record->seeds, out);
    tensors_line(record->tensors, out);
    figures_lines(record->figures, out);
    stage_table(record, out);
    record_kernels_text(record, WIDTH, SHOWN_KERNELS, out);
    marked_lines("note   ", record->notes, out);
    marked_lines("warning", record->warnings, out);
}

/* ---- a GPU's part of the record (record.h) ------------------------------------------------
 *
 * Numbers of the whole run, then the counters of each stage, then kernels.  The tier follows
 * numbers and heads columns.
 */

static const char *stage_name(const void *record, int stage)
{
    return stage < 0 ? "(before)" : ((const Record *)record)->stages[stage].name;
}

static void counters_line(const Record *r, int stage, Text *out)
{
    const StageRecord   *s = &r->stages[stage];
    const DeviceCounted *c = &r->gpu->stages[stage].counted;
    char                 name[80], a[32], b[32], d[32], occupancy[16] = "-";

    if (c->occupancy.valid)
        snprintf(occupancy, sizeof(occupancy), "%.0f", 100 * c->occupancy.value);
    text_addf(out, "    %-17.17s %8s %9s %8s", stage_label(s, name, sizeof(name)),
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

void record_kernels_text(const Record *r, int width, int most, Text *out)
{
    if (!has_gpu(r))
        return;
    counters_table(r, out);
    device_kernels_text(r->gpu, width, most, stage_name, r, out);
}

#define NUMBERS_WIDTH 48 /* of a line of kernels, with the gaps before and between */
#define MORE_WIDTH    29 /* of the columns that only wide tables have */
#define SHAPE_WIDTH   15
#define NARROW        74
#define WIDE          120

/* "events, activity; not counters: <why>" */
static void tier_lines(const DeviceProfile *p, Text *out)
{
    const char *before = "";

    text_addf(out, "  gpu      %s, %s: ", p->name, p->source);
    for (int tier = 0; tier < DEVICE_TIERS; tier++)
        if (device_reached(p, (DeviceTier)tier)) {
            text_addf(out, "%s%s", before, device_tier_name((DeviceTier)tier));
            before = ", ";
        }
    text_addf(out, "%s\n", *before ? "" : "nothing is measured");
    for (int tier = 0; tier < DEVICE_TIERS; tier++)
        if (!device_reached(p, (DeviceTier)tier))
            text_addf(out, "           no %s: %s\n", device_tier_name((DeviceTier)tier),
                      p->lacks[tier][0] ? p->lacks[tier] : "not asked for");
}

/* Kernel times are of a traced run, slower than the timed ones: they may exceed the span. */
static void idle_line(const DeviceProfile *p, Text *out)
{
    Number idle = device_idle_ms(p, -1);
    char   text[32];

    if (idle.valid)
        text_addf(out, "           %s, %.0f %%, without either: the host's loops, launches, "
                       "waits\n",
                  record_ms_text(idle, text, sizeof(text)),
                  100 * device_idle_share(p, -1).value);
    else
        text_add(out, "           what the host adds is not seen: the traced run was slower than "
                      "the timed\n");
}

static void device_time_lines(const DeviceProfile *p, Text *out)
{
    char span[32], busy[32], copy[32];

    if (p->span_ms.valid)
        text_addf(out, "           %s a run on its own clock [events]\n",
                  record_ms_text(p->span_ms, span, sizeof(span)));
    if (p->busy_ms.valid)
        text_addf(out, "           %lld launch%s in %s, copies in %s [activity]\n",
                  (long long)p->launches, p->launches == 1 ? "" : "es",
                  record_ms_text(p->busy_ms, busy, sizeof(busy)),
                  record_ms_text(p->copy_ms, copy, sizeof(copy)));
    if (p->span_ms.valid && p->busy_ms.valid)
        idle_line(p, out);
    if (p->dropped)
        text_addf(out, "           %lld records were lost: these numbers are too small\n",
                  (long long)p->dropped);
}

static void copies_line(const DeviceProfile *p, Text *out)
{
    const char *before = "           ";
    char        bytes[32];

    for (int kind = 0; kind < DEVICE_COPY_KINDS; kind++) {
        const DeviceCopies *c = &p->copies[kind];

        if (!c->count)
            continue;
        text_addf(out, "%s%s %s in %lld", before, device_copy_name((DeviceCopyKind)kind),
                  format_bytes(c->bytes, bytes, sizeof(bytes)), (long long)c->count);
        before = ", ";
    }
    if (*before == ',')
        text_add(out, " [activity]\n");
    if (p->allocated.valid)
        text_addf(out, "           at most %s taken at once [activity]\n",
                  record_bytes_text(p->allocated, bytes, sizeof(bytes)));
}

#define AGREES 0.02 /* masked edges of tiles and fused additions of a softmax stay below it */

/* Why matrix work in hardware differs from the counted FLOPs. */
static const char *difference_text(double ratio)
{
    if (ratio > 1 + AGREES)
        return ":\n           tiles computed beyond the allowed cells, exp, indices";
    return ratio < 1 - AGREES ? ":\n           a part ran on the host or was not fused" : "";
}

/* Hardware counters, and their ratio to counted FLOPs. */
static void counters_lines(const DeviceProfile *p, double total, double matrix, Text *out)
{
    const DeviceCounted *c = &p->counted;
    char                 a[32], b[32];

    if (!p->passes)
        return;
    text_addf(out, "           flops %s fp32, %s fp64, ", record_count_text(c->fp32, a, sizeof(a)),
              record_count_text(c->fp64, b, sizeof(b)));
    if (c->tensor.valid)
        text_addf(out, "%s tensor", record_count_text(c->tensor, a, sizeof(a)));
    else
        text_add(out, "tensor n/a");
    if (c->flops.valid && total > 0)
        text_addf(out, "; %.3g of count", c->flops.value / total);
    text_add(out, " [counters]\n");
    if (c->fused.valid && matrix > 0)
        text_addf(out, "           fused and tensor %s, %.4g of score and mixing%s [counters]\n",
                  record_count_text(c->fused, a, sizeof(a)), c->fused.value / matrix,
                  difference_text(c->fused.value / matrix));
    text_addf(out, "           DRAM %s read, %s written",
              record_bytes_text(c->dram_read, a, sizeof(a)),
              record_bytes_text(c->dram_written, b, sizeof(b)));
    if (c->occupancy.valid)
        text_addf(out, "; occupancy %.1f %%", 100 * c->occupancy.value);
    text_add(out, " [counters]\n");
}

static void graph_lines(const DeviceGraph *g, Text *out)
{
    char ms[32];

    if (!g->asked)
        return;
    if (g->replayed)
        text_addf(out, "  graph    yes: replays are timed; a run without it takes %s, and\n"
                  "           stages and the numbers below are of such runs\n",
                  record_ms_text(g->plain_ms, ms, sizeof(ms)));
    else
        text_addf(out, "  graph    no: %s\n", g->why);
}

void record_gpu_text(const Record *r, Text *out)
{
    if (!has_gpu(r))
        return;
    graph_lines(&r->gpu->graph, out);
    tier_lines(r->gpu, out);
    device_time_lines(r->gpu, out);
    copies_line(r->gpu, out);
    counters_lines(r->gpu, flops_total(r->counted), r->counted.score + r->counted.mix, out);
}

/* ---- kernels ------------------------------------------------------------------- */

const char *device_size_text(const int32_t s[3], char *text, size_t size)
{
    if (s[2] > 1)
        snprintf(text, size, "%dx%dx%d", s[0], s[1], s[2]);
    else if (s[1] > 1)
        snprintf(text, size, "%dx%d", s[0], s[1]);
    else
        snprintf(text, size, "%d", s[0]);
    return text;
}

/* Names and stages take the width that numbers leave.  Wide tables have more numbers, narrow ones
 * no shape. */
typedef struct KernelColumns {
    int  name, stage;
    bool more, shape;
} KernelColumns;

static KernelColumns columns_of(int width)
{
    bool more = width >= WIDE, shape = width >= NARROW;
    int  room = width - NUMBERS_WIDTH - (more ? MORE_WIDTH : 0) + (shape ? 0 : SHAPE_WIDTH);
    int  stage = more ? 16 : 9, name = room - stage;

    return (KernelColumns){ name > 56 ? 56 : name < 8 ? 8 : name, stage, more, shape };
}

static const char *unknown_or(int64_t number, char *text, size_t size)
{
    if (number >= 0)
        format_bytes(number, text, size);
    else
        snprintf(text, size, "-");
    return text;
}

static void kernel_line(const DeviceKernelRow *row, KernelColumns c, const char *stage, Text *out)
{
    char ms[32], grid[48], block[48], shared[32], registers[16] = "-";

    if (row->registers >= 0)
        snprintf(registers, sizeof(registers), "%d", row->registers);
    text_addf(out, "    %-*.*s %-*.*s %4lld %9s", c.name, c.name, row->name, c.stage, c.stage,
              stage, (long long)row->launches,
              record_ms_text(number_of(row->total_ms), ms, sizeof(ms)));
    if (c.more) {
        text_addf(out, " %9s", record_ms_text(number_of(row->least_ms), ms, sizeof(ms)));
        text_addf(out, " %9s", record_ms_text(number_of(row->most_ms), ms, sizeof(ms)));
    }
    if (c.shape)
        text_addf(out, " %8s %5s", device_size_text(row->grid, grid, sizeof(grid)),
                  device_size_text(row->block, block, sizeof(block)));
    text_addf(out, " %4s %7s", registers, format_bytes(row->shared, shared, sizeof(shared)));
    if (c.more)
        text_addf(out, " %8s", unknown_or(row->local, shared, sizeof(shared)));
    text_add(out, "\n");
}

void device_kernels_text(const DeviceProfile *p, int width, int most,
                         const char *(*name_of)(const void *context, int stage),
                         const void *context, Text *out)
{
    int           shown = p->kernel_count < most ? p->kernel_count : most;
    KernelColumns c = columns_of(width);

    if (!shown)
        return;
    text_addf(out, "    %-*s %-*s %4s %9s", c.name, "kernel [activity]", c.stage, "stage", "runs",
              "time");
    if (c.more)
        text_addf(out, " %9s %9s", "shortest", "longest");
    if (c.shape)
        text_addf(out, " %8s %5s", "grid", "block");
    text_addf(out, " %4s %7s%s\n", "regs", "smem", c.more ? " local/th" : "");
    for (int i = 0; i < shown; i++)
        kernel_line(&p->kernels[i], c, name_of(context, p->kernels[i].stage), out);
    if (shown < p->kernel_count)
        text_addf(out, "    ... and %d more\n", p->kernel_count - shown);
}
