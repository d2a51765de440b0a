/* device_sums.c -- see device_sums.h. */
#include "profile/device_sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/kernel_name.h"

#define MS 1e-6 /* of a nanosecond */

static void add(Number *to, double value)
{
    *to = number_of(to->valid ? to->value + value : value);
}

/* ---- kernels -------------------------------------------------------------------- */

static bool same_row(const DeviceKernelRow *row, const DeviceKernel *k, int stage)
{
    return row->stage == stage && !strcmp(row->mangled, k->name) && row->shared == k->shared &&
           !memcmp(row->grid, k->grid, sizeof(k->grid)) &&
           !memcmp(row->block, k->block, sizeof(k->block));
}

/* The row of its kind, a new one where it is the first; -1: no memory. */
static int row_of(const DeviceKernel *k, int stage, DeviceProfile *out, int *capacity)
{
    DeviceKernelRow *grown;

    for (int i = out->kernel_count; i-- > 0;)
        if (same_row(&out->kernels[i], k, stage))
            return i;
    if (out->kernel_count == *capacity) {
        int more = *capacity ? 2 * *capacity : 32;

        grown = realloc(out->kernels, (size_t)more * sizeof(*grown));
        if (!grown)
            return -1;
        out->kernels = grown;
        *capacity = more;
    }
    grown = &out->kernels[out->kernel_count];
    *grown = (DeviceKernelRow){ .stage = stage, .least_ms = (double)INFINITY,
                                .registers = k->registers, .shared = k->shared,
                                .local = k->local };
    memcpy(grown->grid, k->grid, sizeof(k->grid));
    memcpy(grown->block, k->block, sizeof(k->block));
    kernel_name_text(k->name, grown->name, sizeof(grown->name));
    snprintf(grown->mangled, sizeof(grown->mangled), "%s", k->name);
    return out->kernel_count++;
}

static void add_launch(DeviceKernelRow *row, double ms)
{
    row->launches++;
    row->total_ms += ms;
    row->least_ms = fmin(row->least_ms, ms);
    row->most_ms = fmax(row->most_ms, ms);
}

static bool sum_kernels(const DeviceTrace *trace, const int *first, DeviceProfile *out)
{
    int64_t kept = trace->kernel_count < DEVICE_SPANS ? trace->kernel_count : DEVICE_SPANS;
    int     capacity = 0;

    out->spans = malloc((size_t)(kept + 1) * sizeof(*out->spans));
    if (!out->spans)
        return false;
    out->busy_ms = number_of(0);
    out->launches = trace->kernel_count;
    for (int64_t i = 0; i < trace->kernel_count; i++) {
        const DeviceKernel *k = &trace->kernels[i];
        int    stage = k->region < out->stage_count ? k->region : -1;
        int    row = row_of(k, stage < 0 ? stage : first[stage], out, &capacity);
        double ms = MS * (double)(k->end - k->start);

        if (row < 0)
            return false;
        add_launch(&out->kernels[row], ms);
        add(&out->busy_ms, ms);
        if (stage >= 0)
            add(&out->stages[stage].busy_ms, ms), add(&out->stages[stage].launches, 1);
        if (i < kept)
            out->spans[out->span_count++] = (DeviceSpan){ row, stage, MS * (double)k->start,
                                                          MS * (double)k->end };
    }
    return true;
}

/* ---- order ------------------------------------------------------------------------ */

typedef struct Place {
    double ms;
    int    row;
} Place;

static int by_time(const void *a, const void *b)
{
    double x = ((const Place *)a)->ms, y = ((const Place *)b)->ms;

    return x == y ? ((const Place *)a)->row - ((const Place *)b)->row : x < y ? 1 : -1;
}

/* Most time first; spans follow their rows. */
static bool sort_rows(DeviceProfile *out)
{
    size_t           count = (size_t)out->kernel_count;
    Place           *places = malloc((count + 1) * sizeof(*places));
    int             *now_at = malloc((count + 1) * sizeof(*now_at));
    DeviceKernelRow *sorted = malloc((count + 1) * sizeof(*sorted));
    bool             ok = places && now_at && sorted;

    for (size_t i = 0; ok && i < count; i++)
        places[i] = (Place){ out->kernels[i].total_ms, (int)i };
    if (ok)
        qsort(places, count, sizeof(*places), by_time);
    for (size_t i = 0; ok && i < count; i++) {
        sorted[i] = out->kernels[places[i].row];
        now_at[places[i].row] = (int)i;
    }
    for (int i = 0; ok && i < out->span_count; i++)
        out->spans[i].row = now_at[out->spans[i].row];
    if (ok) {
        free(out->kernels);
        out->kernels = sorted;
    } else {
        free(sorted);
    }
    free(places);
    free(now_at);
    return ok;
}

/* ---- copies and allocations --------------------------------------------------------- */

static bool sum_copies(const DeviceTrace *trace, DeviceProfile *out)
{
    int64_t kept = trace->copy_count < DEVICE_SPANS ? trace->copy_count : DEVICE_SPANS;

    out->copy_spans = malloc((size_t)(kept + 1) * sizeof(*out->copy_spans));
    if (!out->copy_spans)
        return false;
    out->copy_ms = number_of(0);
    for (int64_t i = 0; i < trace->copy_count; i++) {
        const DeviceCopy *c = &trace->copies[i];
        int               stage = c->region < out->stage_count ? c->region : -1;
        double            ms = MS * (double)(c->end - c->start);

        out->copies[c->kind].count++;
        out->copies[c->kind].bytes += c->bytes;
        out->copies[c->kind].ms += ms;
        add(&out->copy_ms, ms);
        if (stage >= 0)
            add(&out->stages[stage].copy_ms, ms);
        if (i < kept)
            out->copy_spans[out->copy_span_count++] =
                (DeviceSpan){ (int)c->kind, stage, MS * (double)c->start, MS * (double)c->end };
    }
    return true;
}

static int by_at(const void *a, const void *b)
{
    int64_t x = ((const DeviceAllocation *)a)->at, y = ((const DeviceAllocation *)b)->at;

    return (x > y) - (x < y);
}

static bool sum_allocations(const DeviceTrace *trace, DeviceProfile *out)
{
    size_t            count = (size_t)trace->allocation_count;
    DeviceAllocation *sorted = malloc((count + 1) * sizeof(*sorted));
    int64_t           now = 0, most = 0;

    if (!sorted)
        return false;
    if (count)
        memcpy(sorted, trace->allocations, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_at);
    for (size_t i = 0; i < count; i++) {
        now += sorted[i].bytes;
        most = now > most ? now : most;
    }
    out->allocated = number_of((double)most);
    free(sorted);
    return true;
}

bool device_sum_trace(const DeviceTrace *trace, const int *first, DeviceProfile *out)
{
    for (int i = 0; i < out->stage_count; i++)
        out->stages[i].busy_ms = out->stages[i].copy_ms = out->stages[i].launches = number_of(0);
    out->dropped = trace->dropped;
    return sum_kernels(trace, first, out) && sort_rows(out) && sum_allocations(trace, out) &&
           sum_copies(trace, out);
}

/* ---- counters ------------------------------------------------------------------------- */

static double value_of(const DeviceRange *r, DeviceCount count)
{
    return r->value[count];
}

static Number known(double value)
{
    return isnan(value) ? NUMBER_NONE : number_of(value);
}

/* NaN counts as nothing where the other one is a number. */
static double sum(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double flops_of(const DeviceRange *r, DeviceCount add_count, DeviceCount mul_count,
                       DeviceCount fused)
{
    return value_of(r, add_count) + value_of(r, mul_count) + 2 * value_of(r, fused);
}

static DeviceCounted counted_of(const DeviceRange *r)
{
    double tensor = (double)NAN;
    double fp32 = flops_of(r, DEVICE_COUNT_FP32_ADD, DEVICE_COUNT_FP32_MUL,
                           DEVICE_COUNT_FP32_FUSED);
    double fp64 = flops_of(r, DEVICE_COUNT_FP64_ADD, DEVICE_COUNT_FP64_MUL,
                           DEVICE_COUNT_FP64_FUSED);
    double fused = sum(2 * value_of(r, DEVICE_COUNT_FP32_FUSED),
                       2 * value_of(r, DEVICE_COUNT_FP64_FUSED));

    for (int t = DEVICE_COUNT_TENSOR_BF16; t <= DEVICE_COUNT_TENSOR_F64; t++)
        tensor = sum(tensor, value_of(r, (DeviceCount)t));
    return (DeviceCounted){
        .flops = known(fp32 + sum(sum(fp64, tensor), 0)),
        .fp32 = known(fp32),
        .fp64 = known(fp64),
        .tensor = known(tensor),
        .fused = known(sum(fused, tensor)),
        .dram_read = known(value_of(r, DEVICE_COUNT_DRAM_READ)),
        .dram_written = known(value_of(r, DEVICE_COUNT_DRAM_WRITTEN)),
        .occupancy = value_of(r, DEVICE_COUNT_CYCLES) > 0
                         ? known(value_of(r, DEVICE_COUNT_WARPS) /
                                 (value_of(r, DEVICE_COUNT_CYCLES) *
                                  value_of(r, DEVICE_COUNT_WARPS_MOST)))
                         : NUMBER_NONE,
    };
}

static DeviceRange no_range(void)
{
    DeviceRange none;

    for (int c = 0; c < DEVICE_COUNTS; c++)
        none.value[c] = (double)NAN;
    return none;
}

static void add_range(DeviceRange *to, const DeviceRange *from)
{
    for (int c = 0; c < DEVICE_COUNTS; c++)
        to->value[c] = c == DEVICE_COUNT_WARPS_MOST ? from->value[c]
                                                    : sum(to->value[c], from->value[c]);
}

void device_sum_counts(const DeviceRange *ranges, const int *stage_of, int count, int passes,
                       DeviceProfile *out)
{
    DeviceRange all = no_range();

    for (int i = 0; i < count; i++)
        add_range(&all, &ranges[i]);
    out->counted = counted_of(&all);
    out->passes = passes;
    for (int stage = 0; stage < out->stage_count; stage++) {
        DeviceRange of_stage = no_range();

        for (int i = 0; i < count; i++)
            if (stage_of[i] == stage)
                add_range(&of_stage, &ranges[i]);
        out->stages[stage].counted = counted_of(&of_stage);
    }
}
