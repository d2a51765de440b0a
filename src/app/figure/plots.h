/* app/figure/plots.h -- measured numbers as plots: bars, memory over time, roofline, seeds, scaling.
 *
 * Every function makes a settled Plot from records alone; the command line, figures, the
 * explorer and Lua show the same.  What was not measured is a row or a name that says so,
 * never a 0.
 *
 * In words a plot is plot(NAME), which stands where a view does: full:plot(time).
 */
#ifndef APP_FIGURE_PLOTS_H
#define APP_FIGURE_PLOTS_H

#include "attn/ceilings.h"
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
 * date (machines.h). */
Plot *plot_of_scaling(const ScalingCurve *curves, int count, const char *cost,
                      const char *measured, Error *err);
/* The same over something else than n, or with round numbers instead of decades; x NULL: n. */
typedef struct CostAxes {
    const char *x, *cost;
    bool        even_x, even_y; /* not logarithmic */
} CostAxes;
Plot *plot_of_costs(const ScalingCurve *curves, int count, const CostAxes *axes,
                    const char *measured, Error *err);

#endif
