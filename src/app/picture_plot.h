/* app/picture_plot.h -- panels of figures that are plots of measured numbers.
 *
 * plot(NAME) stands where a view does; results that share a plot are joined by " + ".
 */
#ifndef APP_PICTURE_PLOT_H
#define APP_PICTURE_PLOT_H

#include "app/picture.h"
#include "app/plots.h"

/* What the request must measure, added to it; true: the view is a plot. */
bool request_for_plot(Request *request, const char *view, Error *err);
/* The first result has all that the second request asks for. */
bool request_covers(const Request *have, const Request *want);
/* A panel of the results' numbers; names NULL: made of the requests. */
bool picture_plot(PlotKind kind, Result *const *results, const char *const *names, int count,
                  const Ceilings *ceilings, Panel *out, Error *err);
/* Machine and date of the first plot of the figure that was measured; "": none was. */
const char *figure_measured(const Figure *figure);
/* {"environment":..,"panels":[..]}: the numbers of all its plots; nothing where it has none. */
void        figure_numbers(const Figure *figure, Text *out);

#endif
