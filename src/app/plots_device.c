/* plots_device.c -- what a GPU did: its kernels over time by stage, and by kernel; see plots.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/plots_parts.h"

#define KERNELS_NAMED 5 /* with a colour of their own, by their time; the rest shares one */
#define ROWS_SHOWN    24

static const DeviceProfile *gpu_of(const PlotSubject *subject)
{
    const DeviceProfile *gpu = subject_ok(subject) ? subject->record->gpu : NULL;

    return gpu && gpu->kernel_count > 0 ? gpu : NULL;
}

/* Why there is no record of a kernel. */
static bool say_lacking(const char *what, const PlotSubject *subjects, int count, Error *err)
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

/* ---- kernels over time ---------------------------------------------------------- */

/* Rows are the stages in which something was launched, one for all iterations of a name.
 * Their number; -1: there are more than rows. */
static int row_of(const Plot *plot, int rows, const char *subject, const char *stage)
{
    char name[PLOT_ROW];

    snprintf(name, sizeof(name), "%s%s%s", subject, *subject ? ": " : "", stage);
    for (int r = 0; r < rows; r++)
        if (!strcmp(plot->rows[r], name))
            return r;
    return -1;
}

static void name_rows(Plot *plot, const PlotSubject *subjects, int count, int *rows)
{
    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);
        const char          *subject = count > 1 ? subjects[i].name : "";

        for (int k = 0; gpu && k < gpu->span_count && *rows < PLOT_ROWS_MOST; k++) {
            const char *stage = stage_of(subjects[i].record, gpu->spans[k].stage);

            if (row_of(plot, *rows, subject, stage) < 0)
                snprintf(plot->rows[(*rows)++], PLOT_ROW, "%s%s%s", subject,
                         *subject ? ": " : "", stage);
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

/* Launches of a kernel, or, name NULL, of those that have no name in the plot. */
static bool is_of(const DeviceProfile *gpu, const DeviceSpan *span, const char *name,
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
            spans += is_of(gpu, &gpu->spans[k], name, names, named);
    }
    return spans;
}

static bool add_spans(Plot *plot, int rows, const PlotSubject *subjects, int count,
                      const char *name, const char *const *names, int named)
{
    int64_t     spans = count_spans(subjects, count, name, names, named), at = 0;
    PlotSeries *s = spans ? plot_add(plot, name ? name : "other kernels", CURVE_SPANS, spans, true)
                          : NULL;

    for (int i = 0; s && i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);

        for (int k = 0; gpu && k < gpu->span_count; k++) {
            const DeviceSpan *span = &gpu->spans[k];
            double            first = gpu->spans[0].start_ms;
            int               row;

            if (!is_of(gpu, span, name, names, named))
                continue;
            row = row_of(plot, rows, count > 1 ? subjects[i].name : "",
                         stage_of(subjects[i].record, span->stage));
            s->y[at] = row < 0 ? rows - 1 : row; /* beyond the rows there can be */
            s->low[at] = span->start_ms - first;
            s->high[at] = span->end_ms - first;
            s->x[at++] = (span->start_ms + span->end_ms) / 2 - first;
        }
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
    snprintf(plot->note, sizeof(plot->note), "activity records of one run: every launch where it "
             "ran%s%.60s", plot->count == 1 ? ", of " : "",
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

    if (!known_of(subjects, count))
        return say_lacking("kernels over time", subjects, count, err);
    if (!plot_rows(plot, PLOT_ROWS_MOST, err))
        return false;
    name_rows(plot, subjects, count, &rows);
    plot->row_count = rows;
    named = name_kernels(subjects, count, names);
    for (int k = 0; k <= named; k++)
        if (!add_spans(plot, rows, subjects, count, k < named ? names[k] : NULL, names, named))
            return plot_no_memory(err);
    snprintf(plot->x.name, sizeof(plot->x.name), "time since the first launch (ms)");
    note_device(plot, subjects, count);
    return true;
}

/* ---- time by kernel ----------------------------------------------------------------- */

static void label_kernel(const DeviceKernelRow *row, char *text)
{
    char shared[32];

    snprintf(text, PLOT_LABEL, "%.3g ms, %lldx %dx%dx%d of %d, %s", row->total_ms,
             (long long)row->launches, row->grid[0], row->grid[1], row->grid[2],
             row->block[0] * row->block[1] * row->block[2],
             format_bytes(row->shared, shared, sizeof(shared)));
}

bool plot_fill_kernels(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    PlotSeries *s;
    int         rows = 0, at = 0, all = 0;

    if (!known_of(subjects, count))
        return say_lacking("time of kernels", subjects, count, err);
    for (int i = 0; i < count; i++)
        all += gpu_of(&subjects[i]) ? gpu_of(&subjects[i])->kernel_count : 0;
    rows = all < ROWS_SHOWN ? all : ROWS_SHOWN;
    if (!plot_rows(plot, rows, err))
        return false;
    s = plot_add(plot, "time of kernels", CURVE_BARS, rows, false);
    if (!s || !plot_label(s))
        return plot_no_memory(err);
    for (int i = 0; i < count; i++) {
        const DeviceProfile *gpu = gpu_of(&subjects[i]);
        int share = i + 1 == count ? rows : (i + 1) * rows / count;

        for (int k = 0; gpu && k < gpu->kernel_count && at < share; k++, at++) {
            const DeviceKernelRow *row = &gpu->kernels[k];

            snprintf(plot->rows[at], PLOT_ROW, "%.40s, %.30s", row->name,
                     stage_of(subjects[i].record, row->stage));
            s->y[at] = at;
            s->x[at] = row->total_ms;
            label_kernel(row, s->labels[at]);
        }
    }
    s->count = plot->row_count = at;
    snprintf(plot->x.name, sizeof(plot->x.name), "time (ms)");
    snprintf(plot->note, sizeof(plot->note), "activity records of one run: launches, their grid of "
             "blocks of so many threads, shared memory%s",
             all > rows ? "; those with the least time are not shown" : "");
    return true;
}
