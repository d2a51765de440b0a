/* plots.c -- the table of plots, bars and draws over seeds; see plots.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/figure/picture.h"
#include "app/figure/plots.h"
#include "attn/cuda/host/library.h"

static const struct {
    const char *name, *title, *help;
    unsigned    needs;
} kinds[] = {
#define PLOT_KIND(id, name, title, needs, help) { name, title, help, needs },
#include "app/figure/plots.def"
#undef PLOT_KIND
};

const char *plot_name(PlotKind kind)
{
    return kinds[kind].name;
}

const char *plot_title(PlotKind kind)
{
    return kinds[kind].title;
}

const char *plot_help(PlotKind kind)
{
    return kinds[kind].help;
}

unsigned plot_needs(PlotKind kind)
{
    return kinds[kind].needs;
}

bool plot_is_of_parts(PlotKind kind)
{
    return kind == PLOT_DEVICE || kind == PLOT_KERNELS;
}

bool plot_parse(const char *name, PlotKind *out, Error *err)
{
    Text names = { 0 };

    for (int k = 0; k < PLOT_KINDS; k++)
        if (!strcmp(name, kinds[k].name)) {
            *out = (PlotKind)k;
            return true;
        }
    for (int k = 0; k < PLOT_KINDS; k++)
        text_addf(&names, "%s%s", k ? ", " : "", kinds[k].name);
    error_set(err, ERR_USAGE, "no plot is called '%s' (there are: %s)", name, text_str(&names));
    text_free(&names);
    return false;
}

bool plot_word(const char *view, PlotKind *out, Error *err)
{
    size_t length = view ? strlen(view) : 0;
    char   name[48];

    *out = PLOT_KINDS;
    if (length < 6 || strncmp(view, "plot(", 5) != 0 || view[length - 1] != ')')
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)(length - 6), view + 5);
    plot_parse(name, out, err);
    return true;
}

bool subject_ok(const PlotSubject *subject)
{
    return subject->record && subject->record->status == RECORD_OK;
}

const char *subject_lacks(const PlotSubject *subject)
{
    if (!subject->record)
        return "not measured";
    return subject_ok(subject) ? "n/a" : record_status_name(subject->record->status);
}

bool plot_no_memory(Error *err)
{
    return error_set(err, ERR_NOMEM, "a plot: out of memory");
}

/* Sets machines and date where times or memory are shown; of a roofline, those of its ceilings. */
static void set_measured(Plot *plot, const PlotSubject *subjects, int count,
                         const Ceilings *ceilings)
{
    Machines machines = { .when = 0 };

    for (int i = 0; i < count; i++)
        if (subjects[i].record && (!ceilings || roof_is_of(ceilings, subjects[i].record)))
            machines_add_record(&machines, subjects[i].record);
    if (machines.when)
        machines_text(&machines, plot->measured, sizeof(plot->measured));
}

static bool plot_fill_bars(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                           Error *err);
static bool plot_fill_seeds(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                            Error *err);

static bool fill(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                 const Ceilings *ceilings, Error *err)
{
    switch (kind) {
    case PLOT_CACHE: return plot_fill_cache(plot, subjects, count, err);
    case PLOT_TIMELINE: return plot_fill_timeline(plot, subjects, count, err);
    case PLOT_DEVICE: return plot_fill_device(plot, subjects, count, err);
    case PLOT_KERNELS: return plot_fill_kernels(plot, subjects, count, err);
    case PLOT_ROOFLINE: return plot_fill_roofline(plot, subjects, count, ceilings, err);
    case PLOT_MASS_SEEDS:
    case PLOT_ERROR_SEEDS: return plot_fill_seeds(plot, kind, subjects, count, err);
    default: return plot_fill_bars(plot, kind, subjects, count, err);
    }
}

Plot *plot_of(PlotKind kind, const PlotSubject *subjects, int count, const Ceilings *ceilings,
              Error *err)
{
    Plot *plot = plot_new(err);

    if (!plot)
        return NULL;
    if (!fill(plot, kind, subjects, count, ceilings, err)) {
        plot_free(plot);
        return NULL;
    }
    if (plot_needs(kind) & NEEDS_TIME)
        set_measured(plot, subjects, count, kind == PLOT_ROOFLINE ? ceilings : NULL);
    plot_settle(plot);
    return plot;
}

/* ---- panels of plots; see picture.h -------------------------------------- */

#define USUAL_SEEDS   8
#define USUAL_REPEATS 7 /* from six on the median has an interval */

bool request_for_plot(Request *request, const char *view, Error *err)
{
    PlotKind kind;
    unsigned needs;

    if (!plot_word(view, &kind, err))
        return false;
    if (kind == PLOT_KINDS)
        return true; /* *err says why */
    needs = plot_needs(kind);
    request->measure = request->measure || needs & NEEDS_TIME;
    request->quality = request->quality || needs & NEEDS_QUALITY;
    request->decode = request->decode || needs & NEEDS_DECODE;
    if (request->measure && !request->repeat)
        request->repeat = USUAL_REPEATS;
    if (needs & NEEDS_SEEDS && request->seeds < 2)
        request->seeds = USUAL_SEEDS;
    return true;
}

bool request_covers(const Request *have, const Request *want)
{
    return request_same(have, want) && have->pairs_only <= want->pairs_only &&
           have->views_only <= want->views_only &&
           have->measure >= want->measure && have->decode >= want->decode &&
           have->quality >= want->quality && have->repeat >= want->repeat &&
           (!want->quality || have->quality_rows == want->quality_rows) &&
           (!want->quality || have->seeds == want->seeds ||
            (have->seeds < 2 && want->seeds < 2));
}

/* A run that was not measured has no times, but its counted numbers. */
static const Record *record_for(PlotKind kind, const Result *result)
{
    const Request *r = &result->request;
    unsigned       needs = plot_needs(kind);

    if ((needs & NEEDS_DECODE && !r->decode) || (needs & NEEDS_TIME && !r->measure) ||
        (needs & NEEDS_QUALITY && !r->quality))
        return result->record.status == RECORD_OK ? NULL : &result->record;
    return &result->record;
}

bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err)
{
    PlotSubject *subjects = calloc((size_t)count, sizeof(*subjects));
    Text        *texts = calloc((size_t)count, sizeof(*texts));
    Plot        *plot = NULL;

    if (!subjects || !texts)
        error_set(err, ERR_NOMEM, "a plot: out of memory");
    for (int i = 0; subjects && texts && i < count; i++) {
        request_text(&results[i]->request, &texts[i]);
        subjects[i].name = names ? names[i] : text_str(&texts[i]);
        subjects[i].record = record_for(kind, results[i]);
    }
    if (subjects && texts)
        plot = plot_of(kind, subjects, count, ceilings, err);
    if (plot)
        panel_init_plot(out, plot, plot_title(kind));
    for (int i = 0; texts && i < count; i++)
        text_free(&texts[i]);
    free(subjects);
    free(texts);
    return plot != NULL;
}

#define AND " and "

/* Adds the machines of "A and B" that are not there yet. */
static void add_machine_names(const char *text, size_t length, Text *out)
{
    while (length) {
        const char *and = strstr(text, AND);
        size_t      one = and && and < text + length ? (size_t)(and - text) : length;
        char        name[160];

        snprintf(name, sizeof(name), "%.*s", (int)one, text);
        if (!strstr(text_str(out), name))
            text_addf(out, "%s%s", out->length ? AND : "", name);
        one += one < length ? strlen(AND) : 0;
        text += one;
        length -= one;
    }
}

void picture_add_measured(Figure *figure)
{
    size_t      used = strlen(figure->caption);
    Text        names = { 0 };
    const char *last = "";

    for (int k = 0; k < figure->count; k++) {
        const char *measured = figure->panels[k].made ? figure->panels[k].made->measured : "";
        const char *date = strrchr(measured, ',');

        if (!date)
            continue;
        add_machine_names(measured, (size_t)(date - measured), &names);
        last = strcmp(date, last) > 0 ? date : last;
    }
    if (names.length)
        snprintf(figure->caption + used, sizeof(figure->caption) - used, "%smeasured on %s%s",
                 used ? "; " : "", text_str(&names), last);
    text_free(&names);
}

bool picture_stored(PlotKind kind, const StoredFigure *stored, int number, Panel *out, Error *err)
{
    const Panel *panel = stored_figure_panel(stored, number);
    Plot        *plot = panel ? plot_copy(panel->made, err) : NULL;

    if (!panel)
        return error_set(err, ERR_FORMAT, "the file holds no numbers for panel %d: rerender "
                         "--measure measures them", number + 1);
    if (plot) /* its words are set as for a measured plot */
        panel_init_plot(out, plot, plot_title(kind));
    return plot != NULL;
}

/* ---- bars of costs and quality, draws over seeds ------------------------- */

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
    case PLOT_MASS_SEEDS: return "mass kept";
    default: return "output error";
    }
}

/* Says it in the words beside the bar. */
static bool mark_busy(PlotSeries *s, int at, const Record *r)
{
    size_t used = strlen(s->labels[at]);

    if (!record_is_oversubscribed(r))
        return true;
    snprintf(s->labels[at] + used, sizeof(s->labels[at]) - used, ", busy");
    return plot_busy(s, at);
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
        if (kind == PLOT_TIME && bar.value.valid && !mark_busy(s, i, subjects[i].record))
            return false;
        if (bar.value.valid)
            continue;
        if (kind == PLOT_MEMORY && series == 2 && subject_ok(&subjects[i]))
            snprintf(s->labels[i], sizeof(s->labels[i]), "run on the CPU");
        else
            snprintf(s->labels[i], sizeof(s->labels[i]), "%s", subject_lacks(&subjects[i]));
    }
    return true;
}

/* Some run used the memory of a device. */
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

static bool plot_fill_bars(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                           Error *err)
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

/* All with the digits after the point that give the mean three in all: "1.17 [1.16, 1.20]". */
static void spread_text(const SeedBand *band, char *text, size_t size)
{
    double mean = fabs(band->mean.value);
    int    digits = mean >= 1e-3 && mean < 1e3 ? 2 - (int)floor(log10(mean)) : -1;

    if (digits >= 0)
        snprintf(text, size, "%.*f [%.*f, %.*f]", digits, band->mean.value, digits,
                 band->min.value, digits, band->max.value);
    else
        snprintf(text, size, "%.3g [%.3g, %.3g]", band->mean.value, band->min.value,
                 band->max.value);
}

/* The mean with its band; one value where nothing is random. */
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

static bool plot_fill_seeds(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
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

/* ---- machines of measurements -------------------------------------------- */

static void add_machine(Machines *m, const char *gpu, int threads, int64_t when)
{
    m->when = when > m->when ? when : m->when;
    if (gpu)
        snprintf(m->gpu, sizeof(m->gpu), "%s", gpu);
    else
        m->cpu = true, m->threads = threads;
}

void machines_add(Machines *m, const Ops *ops, int threads, int64_t when)
{
    const Device *device = device_of(ops);

    add_machine(m, device ? device_info(device)->name : NULL, threads, when);
}

void machines_add_record(Machines *m, const Record *r)
{
    if (r && r->when)
        add_machine(m, r->gpu ? r->gpu->name : NULL, r->threads, r->when);
}

void machines_names(const Machines *m, char *text, size_t size)
{
    char cpu[80], with[112] = "";

    environment_cpu(cpu, sizeof(cpu));
    if (m->cpu)
        snprintf(with, sizeof(with), "%s, %d thread%s", cpu, m->threads,
                 m->threads == 1 ? "" : "s");
    snprintf(text, size, "%s%s%s", m->gpu, *m->gpu && *with ? " and " : "", with);
}

void machines_text(const Machines *m, char *text, size_t size)
{
    char      date[40], names[224];
    time_t    seconds = (time_t)m->when;
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &utc);
    machines_names(m, names, sizeof(names));
    snprintf(text, size, "%.210s, %s", names, date);
}
