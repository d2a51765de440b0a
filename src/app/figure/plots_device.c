/* plots_device.c -- a GPU's kernels over time by stage, and by kernel; see plots.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/figure/plots.h"

#define KERNELS_NAMED 4 /* kernels with a colour of their own; the rest shares one */
#define ROWS_SHOWN    24

static const DeviceProfile *gpu_of(const PlotSubject *subject)
{
    const DeviceProfile *gpu = subject_ok(subject) ? subject->record->gpu : NULL;

    return gpu && gpu->kernel_count > 0 ? gpu : NULL;
}

/* Why a subject has no kernels. */
static const char *lack_of(const PlotSubject *subject)
{
    if (!subject_ok(subject))
        return subject_lacks(subject);
    if (!subject->record->gpu)
        return "run on the CPU";
    return device_reached(subject->record->gpu, TIER_ACTIVITY) ? "nothing was launched"
                                                               : "no activity records";
}

/* Reports why there are no kernels. */
static bool report_lacking(const char *what, const PlotSubject *subjects, int count, Error *err)
{
    const Record *r = count ? subjects[0].record : NULL;

    if (!r || !subject_ok(&subjects[0]))
        return error_set(err, ERR_DATA, "%s: %s", what,
                         count ? subject_lacks(&subjects[0]) : "nothing to show");
    if (r->gpu && device_reached(r->gpu, TIER_ACTIVITY))
        return error_set(err, ERR_DATA, "%s: nothing was launched on the GPU", what);
    if (!r->gpu)
        return error_set(err, ERR_DATA, "%s: this was run on the CPU; --device cuda runs it on a "
                         "GPU", what);
    return error_set(err, ERR_DATA, "%s: no activity records: %s", what,
                     r->gpu->lacks[TIER_ACTIVITY]);
}

static int known_of(const PlotSubject *subjects, int count)
{
    int known = 0;

    for (int i = 0; i < count; i++)
        known += gpu_of(&subjects[i]) != NULL;
    return known;
}

static const char *stage_of(const Record *r, int stage)
{
    return stage < 0 ? "(before)" : r->stages[stage].name;
}

/* "full: attend"; "attend" where the title names the only subject. */
static void row_name(const PlotSubject *subjects, int count, int subject, const char *rest,
                     char *name)
{
    bool named = count > 1;

    snprintf(name, PLOT_ROW, "%.40s%s%.48s", named ? subjects[subject].name : "",
             named && *rest ? ": " : "", rest);
}

/* ---- kernels over time ---------------------------------------------------------- */

/* A copy is shown where it belongs to a stage or lies between kernels. */
static bool is_shown(const DeviceProfile *gpu, const DeviceSpan *copy)
{
    return copy->stage >= 0 || (copy->start_ms >= gpu->spans[0].start_ms &&
                                copy->start_ms <= gpu->spans[gpu->span_count - 1].end_ms);
}

static double first_of(const DeviceProfile *gpu)
{
    double first = gpu->spans[0].start_ms;

    for (int k = 0; k < gpu->copy_span_count; k++)
        if (is_shown(gpu, &gpu->copy_spans[k]))
            first = fmin(first, gpu->copy_spans[k].start_ms);
    return first;
}

/* Row of a stage in which something ran; iterations of a name share one. -1: no row. */
static int row_of(const Plot *plot, int rows, const char *name)
{
    for (int r = 0; r < rows; r++)
        if (!strcmp(plot->rows[r], name))
            return r;
    return -1;
}

static void need_row(Plot *plot, const char *name, int *rows)
{
    if (*rows < PLOT_ROWS_MOST && row_of(plot, *rows, name) < 0)
        snprintf(plot->rows[(*rows)++], PLOT_ROW, "%s", name);
}

static void name_device_rows(Plot *plot, const PlotSubject *subjects, int count, int *rows)
{
    char name[PLOT_ROW];

    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->span_count; k++) {
            row_name(subjects, count, i, stage_of(subjects[i].record, gpu->spans[k].stage), name);
            need_row(plot, name, rows);
        }
        for (int k = 0; gpu && k < gpu->copy_span_count; k++) {
            row_name(subjects, count, i, stage_of(subjects[i].record, gpu->copy_spans[k].stage),
                     name);
            if (is_shown(gpu, &gpu->copy_spans[k]))
                need_row(plot, name, rows);
        }
        if (!gpu) {
            row_name(subjects, count, i, lack_of(&subjects[i]), name);
            need_row(plot, name, rows);
        }
    }
}

/* The names with the most time, over all subjects; returns how many. */
static int name_kernels(const PlotSubject *subjects, int count, const char **names)
{
    int named = 0;

    for (int at = 0; named < KERNELS_NAMED; at++) {
        bool more = false;

        for (int i = 0; i < count && named < KERNELS_NAMED; i++) {
            const DeviceProfile *gpu = gpu_of(&subjects[i]);
            bool                 known = false;

            if (!gpu || at >= gpu->kernel_count)
                continue;
            more = true;
            for (int k = 0; k < named; k++)
                known = known || !strcmp(names[k], gpu->kernels[at].name);
            if (!known)
                names[named++] = gpu->kernels[at].name;
        }
        if (!more)
            break;
    }
    return named;
}

/* The span is a launch of this kernel; name NULL: of one without a name in the plot. */
static bool is_of_stage(const DeviceProfile *gpu, const DeviceSpan *span, const char *name,
                        const char *const *names, int named)
{
    const char *own = gpu->kernels[span->row].name;

    if (name)
        return !strcmp(own, name);
    for (int k = 0; k < named; k++)
        if (!strcmp(own, names[k]))
            return false;
    return true;
}

static int64_t count_spans(const PlotSubject *subjects, int count, const char *name,
                           const char *const *names, int named)
{
    int64_t spans = 0;

    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->span_count; k++)
            spans += is_of_stage(gpu, &gpu->spans[k], name, names, named);
    }
    return spans;
}

/* Adds a span to a series that has room for it. */
static void put_span(const Plot *plot, PlotSeries *s, int64_t *at, const PlotSubject *subjects,
                     int count, int subject, const DeviceSpan *span, double first)
{
    char name[PLOT_ROW];
    int  row;

    row_name(subjects, count, subject, stage_of(subjects[subject].record, span->stage), name);
    row = row_of(plot, plot->row_count, name);
    s->y[*at] = row < 0 ? plot->row_count - 1 : row; /* rows beyond the limit share the last one */
    s->low[*at] = span->start_ms - first;
    s->high[*at] = span->end_ms - first;
    s->x[(*at)++] = (span->start_ms + span->end_ms) / 2 - first;
}

static bool add_spans(Plot *plot, const PlotSubject *subjects, int count, const char *name,
                      const char *const *names, int named)
{
    int64_t     spans = count_spans(subjects, count, name, names, named), at = 0;
    PlotSeries *s = spans ? plot_add(plot, name ? name : "other kernels", CURVE_SPANS, spans, true)
                          : NULL;

    for (int i = 0; s && i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->span_count; k++)
            if (is_of_stage(gpu, &gpu->spans[k], name, names, named))
                put_span(plot, s, &at, subjects, count, i, &gpu->spans[k], first_of(gpu));
    }
    return s || !spans;
}

static bool add_copies(Plot *plot, const PlotSubject *subjects, int count, bool *any)
{
    int64_t     spans = 0, at = 0;
    PlotSeries *s;

    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->copy_span_count; k++)
            spans += is_shown(gpu, &gpu->copy_spans[k]);
    }
    *any = spans > 0;
    s = spans ? plot_add(plot, "copies", CURVE_SPANS, spans, true) : NULL;
    for (int i = 0; s && i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->copy_span_count; k++)
            if (is_shown(gpu, &gpu->copy_spans[k]))
                put_span(plot, s, &at, subjects, count, i, &gpu->copy_spans[k], first_of(gpu));
    }
    return s || !spans;
}

static void note_device(Plot *plot, const PlotSubject *subjects, int count)
{
    int64_t left_out = 0;
    double  busy = 0, whole = 0;

    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        if (!gpu)
            continue;
        left_out += gpu->launches - gpu->span_count;
        busy += gpu->busy_ms.value;
        whole += gpu->spans[gpu->span_count - 1].end_ms - gpu->spans[0].start_ms;
    }
    snprintf(plot->note, sizeof(plot->note), "[activity] records of one run: every launch where "
             "it ran%s%.60s", plot->count == 1 ? ", of " : "",
             plot->count == 1 ? plot->series[0].name : "");
    if (left_out)
        snprintf(plot->note + strlen(plot->note), sizeof(plot->note) - strlen(plot->note),
                 "; the last %lld are not shown", (long long)left_out);
    else if (whole > 0)
        snprintf(plot->note + strlen(plot->note), sizeof(plot->note) - strlen(plot->note),
                 "; the GPU was busy %.0f %% of the time from first to last", 100 * busy / whole);
}

bool plot_fill_device(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    const char *names[KERNELS_NAMED];
    int         rows = 0, named;
    bool        copies;

    if (!known_of(subjects, count))
        return report_lacking("kernels over time", subjects, count, err);
    if (!plot_rows(plot, PLOT_ROWS_MOST, err))
        return false;
    name_device_rows(plot, subjects, count, &rows);
    plot->row_count = rows;
    named = name_kernels(subjects, count, names);
    for (int k = 0; k <= named; k++)
        if (!add_spans(plot, subjects, count, k < named ? names[k] : NULL, names, named))
            return plot_no_memory(err);
    if (!add_copies(plot, subjects, count, &copies))
        return plot_no_memory(err);
    snprintf(plot->x.name, sizeof(plot->x.name), "time since the first launch%s (ms)",
             copies ? " or copy" : "");
    note_device(plot, subjects, count);
    return true;
}

/* ---- time by kernel ----------------------------------------------------------------- */

/* "3 ms, 2x 4x2 of 256, 2.0 KiB" */
static void label_kernel(const DeviceKernelRow *row, char *text)
{
    char grid[40], shared[32];

    snprintf(text, PLOT_LABEL, "%.3g ms, %lldx %s of %d%s%s", row->total_ms,
             (long long)row->launches, device_size_text(row->grid, grid, sizeof(grid)),
             row->block[0] * row->block[1] * row->block[2], row->shared ? ", " : "",
             row->shared ? format_bytes(row->shared, shared, sizeof(shared)) : "");
}

/* A row without a bar: the subject's name, or why it has no kernels. */
static void add_head(Plot *plot, const PlotSubject *subject, int at)
{
    const DeviceProfile *gpu = gpu_of(subject);
    PlotSeries          *s = &plot->series[0];

    snprintf(plot->rows[at], PLOT_ROW, "%s", subject->name);
    s->y[at] = at;
    s->x[at] = (double)NAN;
    if (gpu)
        snprintf(s->labels[at], PLOT_LABEL, "%lld launch%s, %.3g ms", (long long)gpu->launches,
                 gpu->launches == 1 ? "" : "es", gpu->busy_ms.value);
    else
        snprintf(s->labels[at], PLOT_LABEL, "%s", lack_of(subject));
}

/* Adds the kernels of one subject, up to `share` rows, below its name where there are several. */
static int add_kernels(Plot *plot, const PlotSubject *subject, bool named, int at, int share)
{
    const DeviceProfile *gpu = gpu_of(subject);
    PlotSeries          *s = &plot->series[0];

    if ((named || !gpu) && at < share)
        add_head(plot, subject, at++);
    for (int k = 0; gpu && k < gpu->kernel_count && at < share; k++, at++) {
        const DeviceKernelRow *row = &gpu->kernels[k];

        snprintf(plot->rows[at], PLOT_ROW, "%.24s: %.64s", stage_of(subject->record, row->stage),
                 row->name);
        s->y[at] = at;
        s->x[at] = row->total_ms;
        label_kernel(row, s->labels[at]);
    }
    return at;
}

bool plot_fill_kernels(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    PlotSeries *s;
    int         rows = 0, at = 0, all = 0;

    if (!known_of(subjects, count))
        return report_lacking("time of kernels", subjects, count, err);
    for (int i = 0; i < count; i++)
        all += (count > 1) + (gpu_of(&subjects[i]) ? gpu_of(&subjects[i])->kernel_count : 0);
    rows = all < ROWS_SHOWN ? all : ROWS_SHOWN;
    if (!plot_rows(plot, rows, err))
        return false;
    s = plot_add(plot, "time of kernels", CURVE_BARS, rows, false);
    if (!s || !plot_label(s))
        return plot_no_memory(err);
    for (int i = 0; i < count; i++)
        at = add_kernels(plot, &subjects[i], count > 1, at,
                         i + 1 == count ? rows : (i + 1) * rows / count);
    s->count = plot->row_count = at;
    snprintf(plot->x.name, sizeof(plot->x.name), "time (ms)");
    snprintf(plot->note, sizeof(plot->note), "[activity] records of one run, by stage: launches x "
             "their grid of blocks, threads of a block, shared memory of a block%s",
             all > rows ? "; those with the least time are not shown" : "");
    return true;
}
