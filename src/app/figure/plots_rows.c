/* plots_rows.c -- bars of costs and quality, and draws over seeds; see plots.h. */
#include <math.h>
#include <stdio.h>

#include "app/figure/plots_parts.h"

typedef struct Bar {
    Number value, low, high;
} Bar;

static bool name_rows(Plot *plot, const PlotSubject *subjects, int count, Error *err)
{
    if (!plot_rows(plot, count, err))
        return false;
    for (int i = 0; i < count; i++)
        snprintf(plot->rows[i], sizeof(plot->rows[i]), "%s", subjects[i].name);
    return true;
}

/* ---- bars ------------------------------------------------------------------- */

static Bar quality_bar(const Record *r, const SeedBand *band, Number alone)
{
    return r->seeds.count > 1 && band->mean.valid ? (Bar){ band->mean, band->min, band->max }
                                                  : (Bar){ .value = alone };
}

static Bar bar_of(const Record *r, PlotKind kind, int series)
{
    switch (kind) {
    case PLOT_TIME: return (Bar){ r->time.median, r->time.low, r->time.high };
    case PLOT_FLOPS: return (Bar){ .value = number_of(flops_total(r->counted)) };
    case PLOT_MEMORY:
        return (Bar){ .value = series == 2 ? r->device_peak : series ? r->heap_peak
                                                                     : r->arena_peak };
    case PLOT_MASS: return quality_bar(r, &r->seeds.mass, r->quality.mass_mean);
    default: return quality_bar(r, &r->seeds.output_error, r->quality.output_error);
    }
}

static void value_text(PlotKind kind, double value, char *text, size_t size)
{
    char count[32];

    switch (kind) {
    case PLOT_TIME: snprintf(text, size, "%.3g ms", value); break;
    case PLOT_FLOPS: snprintf(text, size, "%s", format_count(value, count, sizeof(count))); break;
    case PLOT_MEMORY:
        snprintf(text, size, "%s", format_bytes((int64_t)value, count, sizeof(count)));
        break;
    default: snprintf(text, size, "%.3g", value);
    }
}

static const char *axis_of(PlotKind kind)
{
    switch (kind) {
    case PLOT_TIME: return "time (ms)";
    case PLOT_FLOPS: return "FLOPs";
    case PLOT_MEMORY: return "peak memory (bytes)";
    case PLOT_MASS:
    case PLOT_MASS_SEEDS: return "softmax mass kept";
    default: return "output error";
    }
}

static bool add_bars(Plot *plot, PlotKind kind, int series, const char *name,
                     const PlotSubject *subjects, int count)
{
    PlotSeries *s = plot_add(plot, name, CURVE_BARS, count, true);

    if (!s || !plot_label(s))
        return false;
    s->whiskers = true;
    for (int i = 0; i < count; i++) {
        Bar bar = subject_ok(&subjects[i]) ? bar_of(subjects[i].record, kind, series)
                                           : (Bar){ .value = NUMBER_NONE };

        s->y[i] = i;
        s->x[i] = bar.value.valid ? bar.value.value : (double)NAN;
        s->low[i] = bar.low.valid ? bar.low.value : (double)NAN;
        s->high[i] = bar.high.valid ? bar.high.value : (double)NAN;
        if (bar.value.valid)
            value_text(kind, bar.value.value, s->labels[i], sizeof(s->labels[i]));
        else if (kind == PLOT_MEMORY && series == 2 && subject_ok(&subjects[i]))
            snprintf(s->labels[i], sizeof(s->labels[i]), "run on the CPU");
        else
            snprintf(s->labels[i], sizeof(s->labels[i]), "%s", subject_lacks(&subjects[i]));
    }
    return true;
}

/* Some of them ran where memory is a device's. */
static bool has_device_peak(const PlotSubject *subjects, int count)
{
    for (int i = 0; i < count; i++)
        if (subject_ok(&subjects[i]) && subjects[i].record->device_peak.valid)
            return true;
    return false;
}

static int most_seeds(const PlotSubject *subjects, int count)
{
    int most = 0;

    for (int i = 0; i < count; i++)
        if (subjects[i].record && subjects[i].record->seeds.count > most)
            most = subjects[i].record->seeds.count;
    return most;
}

static void note_bars(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count)
{
    int  seeds = most_seeds(subjects, count), least = 0, most = 0;

    for (int i = 0; i < count; i++) {
        int runs = subjects[i].record ? subjects[i].record->time.count : 0;

        least = runs && (!least || runs < least) ? runs : least;
        most = runs > most ? runs : most;
    }
    if (kind == PLOT_TIME && most > least)
        snprintf(plot->note, sizeof(plot->note), "median of %d to %d runs; whiskers: its 95 %% "
                 "confidence interval", least, most);
    else if (kind == PLOT_TIME && most >= 6)
        snprintf(plot->note, sizeof(plot->note), "median of %d runs; whiskers: its 95 %% "
                 "confidence interval", most);
    else if (kind == PLOT_TIME && most)
        snprintf(plot->note, sizeof(plot->note), "median of %d run%s, too few for an interval",
                 most, most == 1 ? "" : "s");
    else if (kind == PLOT_MEMORY)
        snprintf(plot->note, sizeof(plot->note), "own: live at once in the run's arena, output "
                 "included; heap: of the process, above its level before the run%s",
                 has_device_peak(subjects, count) ? "; GPU: taken from it at once, in pieces"
                                                  : "");
    else if ((kind == PLOT_MASS || kind == PLOT_ERROR) && seeds > 1)
        snprintf(plot->note, sizeof(plot->note), "where something is drawn: mean over %d seeds, "
                 "whiskers: least and most", seeds);
    else if (kind == PLOT_MASS || kind == PLOT_ERROR)
        snprintf(plot->note, sizeof(plot->note), "against full attention on the same input; n/a: "
                 "without meaning here");
    else
        snprintf(plot->note, sizeof(plot->note), "counted by the operations that were done");
}

bool plot_fill_bars(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count, Error *err)
{
    bool memory = kind == PLOT_MEMORY, device = memory && has_device_peak(subjects, count);

    if (!name_rows(plot, subjects, count, err))
        return false;
    snprintf(plot->x.name, sizeof(plot->x.name), "%s", axis_of(kind));
    if (!add_bars(plot, kind, 0, memory ? "own memory" : plot_title(kind), subjects, count) ||
        (memory && !add_bars(plot, kind, 1, "heap", subjects, count)) ||
        (device && !add_bars(plot, kind, 2, "GPU memory", subjects, count)))
        return plot_no_memory(err);
    if (kind == PLOT_MASS)
        plot_guide(plot, "", true, 1);
    note_bars(plot, kind, subjects, count);
    return true;
}

/* ---- seeds ------------------------------------------------------------------ */

static void spread_text(const SeedBand *band, char *text, size_t size)
{
    snprintf(text, size, "%.3g [%.3g, %.3g]", band->mean.value, band->min.value, band->max.value);
}

/* The mean with its band; one value where nothing is drawn. */
static void fill_mean(PlotSeries *s, int i, const PlotSubject *subject, bool mass)
{
    const Record   *r = subject->record;
    bool            ok = subject_ok(subject), drawn = ok && r->seeds.count > 1;
    const SeedBand *band = !ok ? NULL : mass ? &r->seeds.mass : &r->seeds.output_error;
    Number alone = !ok ? NUMBER_NONE : mass ? r->quality.mass_mean : r->quality.output_error;

    s->y[i] = i;
    s->x[i] = s->low[i] = s->high[i] = (double)NAN;
    if (drawn && band->mean.valid) {
        s->x[i] = band->mean.value;
        s->low[i] = band->min.value;
        s->high[i] = band->max.value;
        spread_text(band, s->labels[i], sizeof(s->labels[i]));
    } else if (alone.valid) {
        s->x[i] = alone.value;
        snprintf(s->labels[i], sizeof(s->labels[i]), "%.3g%s", alone.value,
                 drawn ? "" : ", nothing drawn");
    } else {
        snprintf(s->labels[i], sizeof(s->labels[i]), "%s", subject_lacks(subject));
    }
}

static bool add_draws(Plot *plot, const PlotSubject *subjects, int count, bool mass)
{
    int         total = 0, at = 0;
    PlotSeries *s;

    for (int i = 0; i < count; i++)
        total += subject_ok(&subjects[i]) ? subjects[i].record->seeds.kept : 0;
    s = plot_add(plot, "one draw", CURVE_POINTS, total, false);
    if (!s)
        return false;
    for (int i = 0; i < count; i++)
        for (int k = 0; subject_ok(&subjects[i]) && k < subjects[i].record->seeds.kept; k++) {
            const SeedSpread *seeds = &subjects[i].record->seeds;

            s->x[at] = mass ? seeds->mass_draws[k] : seeds->output_error_draws[k];
            s->y[at++] = i;
        }
    return true;
}

bool plot_fill_seeds(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                     Error *err)
{
    bool        mass = kind == PLOT_MASS_SEEDS;
    int         seeds = most_seeds(subjects, count);
    PlotSeries *s;

    if (!name_rows(plot, subjects, count, err))
        return false;
    s = plot_add(plot, "mean, least to most", CURVE_POINTS, count, true);
    if (!s || !plot_label(s))
        return plot_no_memory(err);
    for (int i = 0; i < count; i++)
        fill_mean(s, i, &subjects[i], mass);
    if (seeds > 1 && !add_draws(plot, subjects, count, mass))
        return plot_no_memory(err);
    snprintf(plot->x.name, sizeof(plot->x.name), "%s", axis_of(kind));
    if (seeds > 1)
        snprintf(plot->note, sizeof(plot->note), "%d seeds%s", seeds,
                 seeds > SEED_DRAWS_MOST ? ", the first 128 drawn" : "");
    else
        snprintf(plot->note, sizeof(plot->note), "one seed; --seeds K measures the spread");
    return true;
}
