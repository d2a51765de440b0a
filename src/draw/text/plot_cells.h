/* draw/text/plot_cells.h -- a plot as characters, for text and for the terminal alike.
 *
 * Lines are dots of Braille (2 x 4 a character), or letters where only ASCII can be
 * shown.  Ticks, names and the legend are among the cells.
 */
#ifndef DRAW_TEXT_PLOT_CELLS_H
#define DRAW_TEXT_PLOT_CELLS_H

#include "draw/plot/plot.h"

enum { PLOT_INK_NONE = -1, PLOT_INK_AXIS = -2, PLOT_INK_TEXT = -3, PLOT_INK_GUIDE = -4 };

typedef struct PlotCell {
    uint32_t ch;  /* Unicode; ' ' where nothing is */
    int      ink; /* a series, or PLOT_INK_* */
} PlotCell;

typedef struct PlotCells {
    int       width, height;
    PlotCell *cells; /* owned; height * width */
} PlotCells;

/* Lines that a plot takes with whole names of its curves: in fewer, names are cut or, of a plot
 * with rows, the last rows are missing. */
int plot_cells_lines(const Plot *plot, int width);
/* The settled plot in width x height characters (at least 12 x 4).  Free with
 * plot_cells_free. */
bool plot_cells(const Plot *plot, int width, int height, bool utf8, PlotCells *out, Error *err);
void plot_cells_free(PlotCells *cells);

#endif
