/* device_text.c -- a DeviceProfile as lines of a terminal; the tier stands behind numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/record_parts.h"

#define NUMBERS_WIDTH 48 /* of a line of kernels, with the gaps before and between */
#define MORE_WIDTH    29 /* ... of those that stand where there is room for them */
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

/* Kernels are of a traced run, which is slower: what they leave of a timed one may be nothing. */
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

static void time_lines(const DeviceProfile *p, Text *out)
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

/* Why what was done as matrix work is not what was counted. */
static const char *difference_text(double ratio)
{
    if (ratio > 1 + AGREES)
        return ":\n           tiles computed beyond the allowed cells, exp, indices";
    return ratio < 1 - AGREES ? ":\n           a part ran on the host or was not fused" : "";
}

/* What the hardware did, and how that stands to what was counted. */
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

void device_profile_text(const DeviceProfile *p, double counted, double matrix, Text *out)
{
    graph_lines(&p->graph, out);
    tier_lines(p, out);
    time_lines(p, out);
    copies_line(p, out);
    counters_lines(p, counted, matrix, out);
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

/* Names and stages take what the numbers leave; with much room there are more numbers, with
 * little there is no shape. */
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
                         const char *(*stage_name)(const void *context, int stage),
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
        kernel_line(&p->kernels[i], c, stage_name(context, p->kernels[i].stage), out);
    if (shown < p->kernel_count)
        text_addf(out, "    ... and %d more\n", p->kernel_count - shown);
}
