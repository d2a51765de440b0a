/* app/figure/stored_figure.h -- the measured plots of a figure, as its file holds them.
 *
 * A clock tells other numbers each time, so a file carries those it shows beside the command
 * that measured them (NUMBERS_KEY): all of each plot, and with what it was drawn.  A figure
 * of nothing but plots is drawn again from the file alone, without its input; where matrices
 * stand beside them, the command makes those and takes the plots from here.
 */
#ifndef APP_FIGURE_STORED_FIGURE_H
#define APP_FIGURE_STORED_FIGURE_H

#include "draw/figure/figure.h"
#include "draw/plot/exponents.h"

#define NUMBERS_KEY "attnscope:numbers"

typedef struct StoredFigure StoredFigure;

/* {"environment":..,"figure":..,"panels":[..]}: all plots of the figure and with what it is
 * drawn; nothing where it has none. */
void stored_figure_text(const Figure *figure, const PngOptions *options, Text *out);

/* {"figure":..,"exponents":..}: the same of a chart of exponents, which needs its records no
 * longer. */
void stored_chart_text(const ExponentChart *chart, const PngOptions *options, Text *out);

/* What the file holds; NULL: nothing that was measured, or an error (err->code). */
StoredFigure *stored_figure_read(const char *path, Error *err);
void          stored_figure_free(StoredFigure *stored);
/* On what, and when: "AMD EPYC, 2 threads, 2026-11-21 17:07 UTC". */
const char   *stored_figure_measured(const StoredFigure *stored);
/* The panel of this number in the whole figure; NULL: it is none of the plots. */
const Panel  *stored_figure_panel(const StoredFigure *stored, int panel);
/* It has a plot for each panel. */
bool          stored_figure_whole(const StoredFigure *stored);
/* The text it was read from, freed by the caller; NULL: no memory. */
char         *stored_figure_copy(const StoredFigure *stored);
/* A whole figure drawn again as `to`, with the metadata of the file `from`; format: as in
 * PngOptions. */
bool stored_figure_write(const StoredFigure *stored, const char *from, const char *format,
                         const char *to, Error *err);

#endif
