/* plots_roofline.c -- rooflines: where stages stand, and the plot of them; see plots.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/figure/picture.h"
#include "app/figure/plots.h"

/* ---- roofline --------------------------------------------------------------- */

static bool point_of(const Record *r, int stage, double *intensity, double *rate)
{
    RoofPoint p = roof_point(r, stage, NULL);

    *intensity = p.intensity.value;
    *rate = p.rate.value;
    return p.intensity.valid && p.rate.valid;
}

/* Number of points from stage `from` to before `to` that have the name of stage `at`. */
static int count_named(const Record *r, int at, int from, int to)
{
    double ignored;
    int    count = 0;

    for (int k = from; k < to; k++)
        count += !strcmp(r->stages[k].name, r->stages[at].name) &&
                 point_of(r, k, &ignored, &ignored);
    return count;
}

/* The first of a stage's points is named for all: "combine, 4 times". */
static void name_point(const Record *r, int at, char *text, size_t size)
{
    int  later = count_named(r, at, at + 1, r->stage_count);
    Text name = { 0 };

    if (!count_named(r, at, 0, at))
        text_add(&name, r->stages[at].name);
    if (name.length && later)
        text_addf(&name, ", %d times", later + 1);
    snprintf(text, size, "%s", text_str(&name));
    text_free(&name);
}

/* Returns how many stages had no place; -1: no memory. */
static int add_points(Plot *plot, const PlotSubject *subject)
{
    const Record *r = subject->record;
    int           stages = subject_ok(subject) ? r->stage_count : 0, count = 0, at = 0;
    double        intensity, rate;
    PlotSeries   *s;

    for (int i = 0; i < stages; i++)
        count += point_of(r, i, &intensity, &rate);
    s = plot_add(plot, subject->name, CURVE_POINTS, count, false);
    if (!s || !plot_label(s))
        return -1;
    for (int i = 0; i < stages; i++) {
        if (!point_of(r, i, &intensity, &rate))
            continue;
        s->x[at] = intensity;
        s->y[at] = rate;
        if (record_is_oversubscribed(r) && !plot_busy(s, at))
            return -1;
        name_point(r, i, s->labels[at++], sizeof(s->labels[0]));
    }
    return stages - count;
}

static void range_of(const Plot *plot, double *lo, double *hi)
{
    for (int k = 0; k < plot->count; k++)
        for (int64_t i = 0; i < plot->series[k].count; i++) {
            *lo = fmin(*lo, plot->series[k].x[i]);
            *hi = fmax(*hi, plot->series[k].x[i]);
        }
}

/* "61.3 TFLOP/s" */
static void rate_text(const char *what, double rate, const char *unit, char *text, size_t size)
{
    bool tera = rate >= 0.9995e12;

    snprintf(text, size, "%s %.3g %s%s", what, rate * (tera ? 1e-12 : 1e-9), tera ? "T" : "G",
             unit);
}

static bool add_roof(Plot *plot, const char *name, const double *x, const double *y)
{
    PlotSeries *s = plot_line(plot, name, -1, x, y, 2);

    if (s)
        s->roof = true;
    return s != NULL;
}

/* Draws a level roof from the slanted one on; nothing where its rate is not known. */
static bool add_level_roof(Plot *plot, const char *what, double rate, const Ceilings *c, double hi)
{
    char name[64];

    if (!(rate > 0))
        return true;
    rate_text(what, rate, "FLOP/s", name, sizeof(name));
    return add_roof(plot, name, (double[]){ rate / c->stream, hi }, (double[]){ rate, rate });
}

static double lower(double x, double rate, double stream)
{
    return rate > 0 ? fmin(x, rate / stream) : x;
}

#define SLOPE_LEAST 0.38 /* of the width: room for the slanted roof's name */

/* Draws the slanted roof up to the top one, and the level ones from it on. */
static bool add_roofs(Plot *plot, const Ceilings *c, bool gpu)
{
    double peak = isnan(c->peak) ? c->gemm : c->peak;
    bool   tensors = c->tensor > 0, only = tensors && !(c->tensor < c->peak || c->tensor > c->peak);
    double top = tensors ? fmax(peak, c->tensor) : peak, ridge = top / c->stream;
    double lo = ridge, hi = ridge, slope_x[2], slope_y[2];
    char   name[64];

    range_of(plot, &lo, &hi);
    lo = lower(lower(lower(lo, c->peak, c->stream), c->tensor, c->stream), c->gemm, c->stream);
    hi *= 4;
    lo = fmin(lo / 2.5, ridge * pow(ridge / hi, SLOPE_LEAST / (1 - SLOPE_LEAST)));
    slope_x[0] = lo, slope_y[0] = lo * c->stream;
    slope_x[1] = ridge, slope_y[1] = top;
    rate_text("memory", c->stream, "B/s", name, sizeof(name));
    if (!add_roof(plot, name, slope_x, slope_y))
        return false;
    return (only || add_level_roof(plot, "multiply-add", c->peak, c, hi)) &&
           add_level_roof(plot, "tensor cores", c->tensor, c, hi) &&
           add_level_roof(plot, gpu ? "matrix products" : "sgemm", c->gemm, c, hi);
}

/* Writes whose roofs these are, what the points are, and what is not shown. */
static void note_roofline(Plot *plot, const Record *shown, bool above, int without,
                          const Text *others)
{
    if (shown && shown->gpu)
        snprintf(plot->note, sizeof(plot->note), "ceilings of %.60s, measured; %s",
                 shown->gpu->name, roof_point_source(shown));
    else
        snprintf(plot->note, sizeof(plot->note), "ceilings of this machine, measured; above the "
                 "slanted one the data was in a cache%s", above ? "; above the "
                 "level one: the ceilings were measured on a busy machine" : "");
    if (without)
        snprintf(plot->note + strlen(plot->note), sizeof(plot->note) - strlen(plot->note),
                 "; %d stage%s without FLOPs or traffic not shown", without,
                 without == 1 ? "" : "s");
    snprintf(plot->note + strlen(plot->note), sizeof(plot->note) - strlen(plot->note), "%s",
             text_str(others));
}

/* Adds the subjects that ran on the device of the ceilings. */
static bool add_subjects(Plot *plot, const PlotSubject *subjects, int count, const Ceilings *c,
                         Error *err)
{
    const Record *shown = NULL;
    Text          others = { 0 };
    int           without = 0, left_out = 0;
    bool          above = false;

    for (int i = 0; i < count && left_out >= 0; i++) {
        const Record *r = subjects[i].record;

        if (subject_ok(&subjects[i]) && !roof_is_of(c, r)) {
            text_addf(&others, "%s%.40s", others.length ? ", " : "; of another device, not shown: ",
                      subjects[i].name);
            continue;
        }
        left_out = add_points(plot, &subjects[i]);
        above |= subject_ok(&subjects[i]) && roof_any_exceeded(r, c);
        without += left_out;
        shown = subject_ok(&subjects[i]) ? r : shown;
    }
    if (left_out >= 0 && !plot->count)
        error_set(err, ERR_DATA, "a roofline of %s: these ceilings are of another device (%s)",
                  subjects[0].name, c->device);
    else if (left_out < 0 || !add_roofs(plot, c, shown && shown->gpu))
        plot_no_memory(err);
    else
        note_roofline(plot, shown, above, without, &others);
    text_free(&others);
    return *plot->note != '\0';
}

bool plot_fill_roofline(Plot *plot, const PlotSubject *subjects, int count,
                        const Ceilings *ceilings, Error *err)
{
    if (!ceilings)
        return error_set(err, ERR_DATA, "a roofline needs this machine's ceilings, and they are "
                                        "not measured");
    plot->x.log = plot->y.log = true;
    snprintf(plot->x.name, sizeof(plot->x.name), "FLOPs per byte");
    snprintf(plot->y.name, sizeof(plot->y.name), "FLOP/s");
    return add_subjects(plot, subjects, count, ceilings, err);
}

/* ---- points of a roofline ------------------------------------------------ */

static Number positive(double value)
{
    return value > 0 ? number_of(value) : NUMBER_NONE;
}

static bool on_tensor_cores(const Record *r)
{
    return strstr(r->computed, "f16") || strstr(r->computed, "tf32");
}

bool roof_by_counters(const Record *r)
{
    const DeviceCounted *c = r->gpu ? &r->gpu->counted : NULL;

    return c && c->flops.valid && c->dram_read.valid && (c->tensor.valid || !on_tensor_cores(r));
}

/* FLOPs and bytes are both from counters, or neither: their ratio needs one source. */
static void take_work(const Record *r, const StageRecord *s, const DeviceStage *gpu, RoofPoint *p)
{
    p->bytes = positive(s->bytes.read + s->bytes.written);
    p->flops = positive(flops_total(s->flops));
    if (!gpu || !roof_by_counters(r) || !gpu->counted.flops.valid ||
        !gpu->counted.dram_read.valid)
        return;
    p->flops = positive(gpu->counted.flops.value);
    p->bytes = positive(gpu->counted.dram_read.value + gpu->counted.dram_written.value);
}

static Number time_of(const StageRecord *s, const DeviceStage *gpu)
{
    if (gpu && gpu->busy_ms.valid && gpu->busy_ms.value > 0)
        return gpu->busy_ms;
    if (gpu && gpu->span_ms.valid)
        return gpu->span_ms;
    return s->time_ms;
}

bool roof_is_of(const Ceilings *c, const Record *r)
{
    return !*c->device || !strcmp(c->device, r->device);
}

/* A stage that counts only FLOPs, or only traffic, has a least time but no intensity. */
static Number least_ms(const RoofPoint *p, const Ceilings *c)
{
    double arithmetic = p->flops.valid ? p->flops.value / c->peak : 0;
    double traffic = p->bytes.valid ? p->bytes.value / c->stream : 0;

    return positive(1e3 * fmax(arithmetic, traffic));
}

static void place(const Record *r, const Ceilings *c, RoofPoint *p)
{
    bool timed = p->time_ms.valid && p->time_ms.value > 0;

    if (p->bytes.valid && p->flops.valid)
        p->intensity = number_of(p->flops.value / p->bytes.value);
    if (p->flops.valid && timed)
        p->rate = number_of(1e3 * p->flops.value / p->time_ms.value);
    if (!c || isnan(c->peak) || !roof_is_of(c, r))
        return;
    if (p->intensity.valid)
        p->roof = number_of(ceilings_roof(c, p->intensity.value));
    p->bound_ms = least_ms(p, c);
    if (p->bound_ms.valid && timed)
        p->of_bound = number_of(p->bound_ms.value / p->time_ms.value);
}

static RoofPoint unplaced(const Record *r, int stage)
{
    const StageRecord *s = &r->stages[stage];
    const DeviceStage *gpu = r->gpu && stage < r->gpu->stage_count ? &r->gpu->stages[stage] : NULL;
    RoofPoint          p = { .time_ms = time_of(s, gpu) };

    take_work(r, s, gpu, &p);
    return p;
}

RoofPoint roof_point(const Record *r, int stage, const Ceilings *ceilings)
{
    RoofPoint p = unplaced(r, stage);

    place(r, ceilings, &p);
    return p;
}

bool roof_any_exceeded(const Record *r, const Ceilings *c)
{
    for (int stage = 0; !r->gpu && stage < r->stage_count; stage++) {
        RoofPoint p = roof_point(r, stage, NULL);

        if (p.rate.valid && p.rate.value > (1 + ROOF_SLACK) * c->peak)
            return true;
    }
    return false;
}

static void add_to(Number *sum, Number part)
{
    if (part.valid)
        *sum = number_of((sum->valid ? sum->value : 0) + part.value);
}

bool roof_is_exceeded(const RoofPoint *point)
{
    return point->roof.valid && point->rate.valid &&
           point->rate.value > (1 + ROOF_SLACK) * point->roof.value;
}

RoofPoint roof_whole(const Record *r, const Ceilings *ceilings)
{
    RoofPoint whole = { 0 };

    for (int stage = 0; stage < r->stage_count; stage++) {
        RoofPoint p = unplaced(r, stage);

        add_to(&whole.flops, p.flops);
        add_to(&whole.bytes, p.bytes);
        add_to(&whole.time_ms, p.time_ms);
    }
    place(r, ceilings, &whole);
    return whole;
}

const char *roof_point_source(const Record *r)
{
    if (!r->gpu)
        return "counted FLOPs and traffic, wall time";
    if (roof_by_counters(r))
        return "FLOPs and DRAM bytes [counters], time of kernels [activity]";
    if (r->gpu->busy_ms.valid)
        return "counted FLOPs and traffic, time of kernels [activity]";
    return "counted FLOPs and traffic, time on the GPU's clock [events]";
}
