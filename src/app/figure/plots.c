/* plots.c -- the table of plots, and what they have in common; see plots.h. */
#include "app/figure/machines.h"
#include "app/figure/plots_parts.h"
#include "app/figure/roof_point.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* What a clock or the process was asked for belongs to its machines and one day; in a roofline
 * that of its ceilings. */
static void say_measured(Plot *plot, const PlotSubject *subjects, int count,
                         const Ceilings *ceilings)
{
    Machines machines = { .when = 0 };

    for (int i = 0; i < count; i++)
        if (subjects[i].record && (!ceilings || roof_is_of(ceilings, subjects[i].record)))
            machines_add_record(&machines, subjects[i].record);
    if (machines.when)
        machines_text(&machines, plot->measured, sizeof(plot->measured));
}

static bool fill(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                 const Ceilings *ceilings, Error *err)
{
    switch (kind) {
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
        say_measured(plot, subjects, count, kind == PLOT_ROOFLINE ? ceilings : NULL);
    plot_settle(plot);
    return plot;
}
