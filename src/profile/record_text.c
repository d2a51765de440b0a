/* record_text.c -- a Record as a few lines for a terminal of 80 columns.
 *
 * Plain ASCII, no colour.  A line appears only when at least one of its numbers
 * was measured; a number that was not is a dash.
 */
#include "profile/record_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_STAGES 24
#define SHOWN_KERNELS 12
#define WIDTH 80
#define SHOWN_WORST 4

/* ---- numbers ---------------------------------------------------------------- */

const char *record_ms_text(Number ms, char *text, size_t size)
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

const char *record_bytes_text(Number bytes, char *text, size_t size)
{
    if (!bytes.valid)
        snprintf(text, size, "-");
    else
        format_bytes((int64_t)bytes.value, text, size);
    return text;
}

const char *record_count_text(Number count, char *text, size_t size)
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
    text_addf(out, " d=%lld heads=%lld%s", (long long)r->d, (long long)r->heads,
              r->causal ? " causal" : "");
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

/* Its tensor cores took part, and no counter tells how much. */
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
    char text[32];

    if (!r->arena_peak.valid && !r->heap_peak.valid && !r->rss_peak.valid)
        return;
    text_addf(out, "  memory   arena %s", record_bytes_text(r->arena_peak, text, sizeof(text)));
    text_addf(out, ", heap %s", record_bytes_text(r->heap_peak, text, sizeof(text)));
    if (r->device_peak.valid)
        text_addf(out, ", device %s", record_bytes_text(r->device_peak, text, sizeof(text)));
    text_addf(out, ", process %s", record_bytes_text(r->rss_peak, text, sizeof(text)));
    if (r->status == RECORD_OK)
        text_addf(out, "; traffic %s",
                  format_bytes((int64_t)(r->bytes.read + r->bytes.written), text, sizeof(text)));
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

static void quality_lines(const Record *r, Text *out)
{
    const Quality *q = &r->quality;
    char a[32], b[32], c[32];

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

/* {"rotations":"random seed 0"}: the braces and quotes are not for people. */
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

/* {"peak_bytes":4096}: names and numbers, as many in a line as it holds. */
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

/* What the device's kernels took, and the share of the stage in which nothing ran there. */
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

static void stage_line(const Record *r, int stage, double total, Text *out)
{
    const StageRecord *s = &r->stages[stage];
    double             traffic = s->bytes.read + s->bytes.written;
    char               name[80], text[32], share[16] = "-", intensity[16] = "-";

    if (s->iteration >= 0)
        snprintf(name, sizeof(name), "%s %lld", s->name, (long long)s->iteration);
    else
        snprintf(name, sizeof(name), "%s", s->name);
    if (s->time_ms.valid && total > 0)
        snprintf(share, sizeof(share), "%.1f", 100 * s->time_ms.value / total);
    if (traffic > 0)
        snprintf(intensity, sizeof(intensity), "%.3g", flops_total(s->flops) / traffic);
    text_addf(out, "    %-17.17s %10s %5s", name, record_ms_text(s->time_ms, text, sizeof(text)),
              share);
    if (r->gpu)
        device_cells(r->gpu, stage, out);
    text_addf(out, " %8s", format_count(flops_total(s->flops), text, sizeof(text)));
    text_addf(out, " %9s", record_bytes_text(traffic > 0 ? number_of(traffic) : NUMBER_NONE, text,
                                             sizeof(text)));
    if (!r->gpu)
        text_addf(out, " %6s %9s", intensity, record_bytes_text(s->arena_peak, text, sizeof(text)));
    text_add(out, "\n");
}

/* A device's stages are as wide as the others: its columns stand for two that --json has too. */
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

static void warning_lines(const char *lines, Text *out)
{
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");

        if (length)
            text_addf(out, "  warning  %.*s\n", (int)length, lines);
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
    quality_lines(record, out);
    seeds_line(&record->seeds, out);
    tensors_line(record->tensors, out);
    figures_lines(record->figures, out);
    stage_table(record, out);
    record_kernels_text(record, WIDTH, SHOWN_KERNELS, out);
    warning_lines(record->warnings, out);
}
