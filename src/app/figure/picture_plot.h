/* app/figure/picture_plot.h -- panels of figures that are plots of measured numbers.
 *
 * plot(NAME) stands where a view does; results that share a plot are joined by " + ".
 */
#ifndef APP_FIGURE_PICTURE_PLOT_H
#define APP_FIGURE_PICTURE_PLOT_H

#include "app/figure/picture.h"
#include "app/figure/plots.h"

/* What the request must measure, added to it; true: the view is a plot. */
bool request_for_plot(Request *request, const char *view, Error *err);
/* The first result has all that the second request asks for. */
bool request_covers(const Request *have, const Request *want);
/* A panel of the results' numbers; names NULL: made of the requests. */
bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err);
/* Adds to the caption on which machines its plots were measured, and the last date. */
void picture_say_measured(Figure *figure);
/* A figure of a plot of times over n, measured on N(0,1) inputs of so many heads of d; it
 * owns the plot, which is freed on failure. */
Figure *picture_scaling(Plot *plot, int64_t heads, int64_t d, Error *err);
/* The command that measures them: "compare full linear --plot scaling -n 4096 ...". */
void picture_scaling_command(const Request *const *requests, int count, int64_t last,
                             int64_t heads, int64_t d, Text *out);
/* The plot of the panel of this number in the figure, as a file held it. */
bool picture_stored(PlotKind kind, const StoredFigure *stored, int number, Panel *out, Error *err);

#endif
