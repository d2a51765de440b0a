/* app/figure/plots_parts.h -- shared by the files that make plots; private to them. */
#ifndef APP_FIGURE_PLOTS_PARTS_H
#define APP_FIGURE_PLOTS_PARTS_H

#include "app/figure/plots.h"

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

#endif
