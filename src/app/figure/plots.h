/* app/figure/plots.h -- measured numbers as plots: bars, memory over time, roofline, seeds,
 * scaling.
 *
 * Every function makes a settled Plot from records alone, so the command line, figures, the
 * explorer and Lua show the same.  What was not measured is a row or a name that says so, never a
 * 0.
 *
 * The word of a plot is plot(NAME), where a view may stand: full:plot(time).
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
enum { NEEDS_TIME = 1, NEEDS_QUALITY = 2, NEEDS_SEEDS = 4, NEEDS_CEILINGS = 8, NEEDS_DECODE = 16 };

/* One mechanism of a plot. */
typedef struct PlotSubject {
    const char   *name;   /* "bigbird(window=5)" */
    const Record *record; /* NULL: not measured */
} PlotSubject;

const char *plot_name(PlotKind kind);  /* "time" */
const char *plot_title(PlotKind kind); /* "time of one run" */
const char *plot_help(PlotKind kind);
unsigned    plot_needs(PlotKind kind);
/* With one subject, rows are parts of it and do not repeat its name. */
bool        plot_is_of_parts(PlotKind kind);
bool        plot_parse(const char *name, PlotKind *out, Error *err);
/* "plot(time)": true where the text has this form; *err reports an unknown name. */
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
    const bool   *busy; /* of each: more threads than processors were free; NULL: none */
    int           count;
    double        claim;    /* exponent of n that is claimed; NaN: none */
    const char   *claimed;  /* in words, "O(n log n)"; NULL: "n^1.5" of the exponent */
} ScalingCurve;

/* Log-log; each claim is a dashed line in its curve's colour through its last point.
 * cost: name of the axis with its unit, as "time (ms)".  measured: "" or machine and
 * date (plots.h). */
Plot *plot_of_scaling(const ScalingCurve *curves, int count, const char *cost,
                      const char *measured, Error *err);
/* The same over another axis than n, or with linear axes; x NULL: n. */
typedef struct CostAxes {
    const char *x, *cost;
    bool        even_x, even_y; /* not logarithmic */
} CostAxes;
Plot *plot_of_costs(const ScalingCurve *curves, int count, const CostAxes *axes,
                    const char *measured, Error *err);

/* ---- shared by the files that make plots --------------------------------- */

/* Fills an empty plot, not yet settled; false: no memory, or nothing to show. */
bool plot_fill_cache(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_timeline(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_device(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_kernels(Plot *plot, const PlotSubject *subjects, int count, Error *err);
bool plot_fill_roofline(Plot *plot, const PlotSubject *subjects, int count,
                        const Ceilings *ceilings, Error *err);

/* The run succeeded, so its numbers are valid. */
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
    Number bound_ms;  /* the least time: the larger of FLOPs / peak and bytes / bandwidth */
    Number of_bound;  /* bound_ms / time_ms: 1 is the limit */
} RoofPoint;

/* The ceilings were measured on the record's device. */
bool roof_is_of(const Ceilings *ceilings, const Record *record);
/* Place of a stage.  On a GPU the best tier gives the time (kernels, or the stage on its clock) and
 * the counters give FLOPs and bytes of DRAM, else the counted ones.  No roof where ceilings are
 * NULL or another device's. */
RoofPoint roof_point(const Record *record, int stage, const Ceilings *ceilings);
/* The same of all stages together; a number that no stage has is absent. */
RoofPoint roof_whole(const Record *record, const Ceilings *ceilings);
/* Above its roof by more than ROOF_SLACK, the noise of the two timings. */
#define ROOF_SLACK 0.1
bool roof_is_exceeded(const RoofPoint *point);
/* FLOPs and bytes are the hardware counters': they include all work, that of the tensor cores,
 * too. */
bool roof_by_counters(const Record *record);
/* Source of the numbers of a record's points, static. */
const char *roof_point_source(const Record *record);
/* A stage on the CPU is faster than its measured peak by more than ROOF_SLACK. */
bool roof_any_exceeded(const Record *record, const Ceilings *ceilings);

/* Machines and time of measurements, for captions. */

typedef struct Machines {
    char    gpu[160]; /* name of the GPU, or a script's own text; "": none */
    bool    cpu;      /* the CPU measured some, with so many threads */
    int     threads;
    int64_t when;     /* the last, seconds since 1970; 0: nothing was measured */
} Machines;

/* Adds a measurement by these operations; threads count for the CPU only. */
void machines_add(Machines *machines, const Ops *ops, int threads, int64_t when);
void machines_add_record(Machines *machines, const Record *record); /* nothing if not measured */
/* "NVIDIA H200 and AMD EPYC 9B14, 2 threads"; machines_text adds ", 2026-11-21 08:10 UTC". */
void machines_names(const Machines *machines, char *text, size_t size);
void machines_text(const Machines *machines, char *text, size_t size);

#endif
