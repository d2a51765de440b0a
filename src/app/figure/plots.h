/* app/figure/plots.h -- measured numbers as plots: bars, memory over time, roofline,
 * seeds, scaling.
 *
 * Every function makes a settled Plot from records alone; the command line, figures, the
 * explorer and Lua show the same.  What was not measured is a row or a name that says so,
 * never a 0.
 *
 * In words a plot is plot(NAME), which stands where a view does: full:plot(time).
 */
#ifndef APP_FIGURE_PLOTS_H
#define APP_FIGURE_PLOTS_H

#include "attn/ops/ops.h"
#include "draw/plot/plot.h"
#include "profile/record.h"

typedef enum PlotKind {
#define PLOT_KIND(id, name, title, needs, help) PLOT_##id,
#include "app/figure/plots.def"
#undef PLOT_KIND
    PLOT_KINDS
} PlotKind;

/* What has to be measured for a plot: bits. */
enum { NEEDS_TIME = 1, NEEDS_QUALITY = 2, NEEDS_SEEDS = 4, NEEDS_CEILINGS = 8 };

/* One mechanism of a plot. */
typedef struct PlotSubject {
    const char   *name;   /* "bigbird(window=5)" */
    const Record *record; /* NULL: not measured */
} PlotSubject;

const char *plot_name(PlotKind kind);  /* "time" */
const char *plot_title(PlotKind kind); /* "time of one run" */
const char *plot_help(PlotKind kind);
unsigned    plot_needs(PlotKind kind);
/* Of one subject its rows are parts of that, which they do not name. */
bool        plot_is_of_parts(PlotKind kind);
bool        plot_parse(const char *name, PlotKind *out, Error *err);
/* "plot(time)": true when the text has this form; then *err tells of an unknown name. */
bool plot_word(const char *view, PlotKind *out, Error *err);

/* ceilings: of a roofline, else NULL. */
Plot *plot_of(PlotKind kind, const PlotSubject *subjects, int count, const Ceilings *ceilings,
              Error *err);

/* ---- scaling ------------------------------------------------------------------ */

/* A cost at several n. */
typedef struct ScalingCurve {
    const char   *name;
    const double *n, *cost; /* count each; a cost that is NaN was not measured */
    const double *low, *high; /* interval of each cost, drawn as whiskers; NULL: none */
    int           count;
    double        claim;    /* exponent of n that is claimed; NaN: none */
    const char   *claimed;  /* in words, "O(n log n)"; NULL: "n^1.5" of the exponent */
} ScalingCurve;

/* Log-log; each claim is a dashed line in its curve's colour through its last point.
 * cost: name of the axis with its unit, as "time (ms)".  measured: "" or machine and
 * date (plots.h). */
Plot *plot_of_scaling(const ScalingCurve *curves, int count, const char *cost,
                      const char *measured, Error *err);
/* The same over something else than n, or with round numbers instead of decades; x NULL: n. */
typedef struct CostAxes {
    const char *x, *cost;
    bool        even_x, even_y; /* not logarithmic */
} CostAxes;
Plot *plot_of_costs(const ScalingCurve *curves, int count, const CostAxes *axes,
                    const char *measured, Error *err);

/* Shared by the files that make plots; private to them. */

/* Each fills an empty plot, not yet settled; false: no memory, or nothing to show. */
bool plot_fill_bars(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_seeds(Plot *plot, PlotKind kind, const PlotSubject *subjects, int count,
                     Error *err);
bool plot_fill_timeline(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_device(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_kernels(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_roofline(Plot *plot, const PlotSubject *subjects, int count,
                        const Ceilings *ceilings, Error *err);

/* The run was good, so that its numbers mean something. */
bool subject_ok(const PlotSubject *subject);
/* Why there is no number: "not measured", "UNSUPPORTED", "no meaning here". */
const char *subject_lacks(const PlotSubject *subject);
bool        plot_no_memory(Error *err);

/* A stage's place in a roofline. */

typedef struct RoofPoint {
    Number flops, bytes, time_ms;
    Number intensity; /* FLOPs to a byte */
    Number rate;      /* FLOPs a second */
    Number roof;      /* the most there can be at that intensity */
} RoofPoint;

/* The record is of the device whose ceilings they are. */
bool roof_is_of(const Ceilings *ceilings, const Record *record);
/* On a GPU by the best tier there is: the time of its kernels, or of the stage on its clock;
 * FLOPs and bytes of DRAM by its counters, else as they were counted.  No roof where
 * ceilings are NULL or another device's. */
RoofPoint roof_point(const Record *record, int stage, const Ceilings *ceilings);
/* FLOPs and bytes of its points are the hardware's: its counters know all that was done, those of
 * the tensor cores too where these took part. */
bool roof_by_counters(const Record *record);
/* Where the numbers of a record's points are from, in words, static. */
const char *roof_point_source(const Record *record);

/* On which machines numbers were measured, and when, for captions. */

typedef struct Machines {
    char    gpu[160]; /* its name, or who else measured; "": none */
    bool    cpu;      /* it measured some, with so many threads */
    int     threads;
    int64_t when;     /* the last, seconds since 1970; 0: nothing was measured */
} Machines;

/* A measurement by these operations; by the CPU it had so many threads. */
void machines_add(Machines *machines, const Ops *ops, int threads, int64_t when);
void machines_add_record(Machines *machines, const Record *record); /* nothing if not measured */
/* "NVIDIA H200 and AMD EPYC 9B14, 2 threads"; with its date ", 2026-11-21 08:10 UTC" behind. */
void machines_names(const Machines *machines, char *text, size_t size);
void machines_text(const Machines *machines, char *text, size_t size);

#endif
