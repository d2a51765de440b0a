/* draw/plot/label.h -- where words among curves can stand, so that none covers another.
 *
 * Unit and device are the caller's: pixels or characters, y down.
 */
#ifndef DRAW_PLOT_LABEL_H
#define DRAW_PLOT_LABEL_H

#include <stdbool.h>

#include "draw/plot/plot.h"

#define LABEL_PLACES_MOST 2048

typedef struct LabelBox {
    double x, y, w, h;
} LabelBox;

typedef struct LabelPlaces {
    LabelBox frame; /* words stay inside */
    LabelBox taken[LABEL_PLACES_MOST];
    int      count;
    int      lines; /* of them, the first: words rather stand elsewhere, but may cross them */
    int      guides; /* of the lines, the first: words cross these before they cross others */
} LabelPlaces;

/* Words avoid the line where they can.  All lines before all else, guides before all lines. */
void label_take_guide(LabelPlaces *places, double x0, double y0, double x1, double y1);
void label_take_line(LabelPlaces *places, double x0, double y0, double x1, double y1);
/* The lines of a series, its points given by their places. */
void label_take_series(LabelPlaces *places, const PlotSeries *series,
                       bool (*at)(const void *context, int64_t point, double *x, double *y),
                       const void *context);
/* Nothing else may stand there. */
void label_take(LabelPlaces *places, LabelBox box);
/* Words of w x h at just this place; false: there is no room.  clear: nor across lines but
 * guides. */
bool label_fits(LabelPlaces *places, LabelBox box, bool clear);
/* Words of w x h near a point: to the right, left, above, below, then further out;
 * gap_x and gap_y lie between; clear of all lines, else further out across guides, else across
 * lines.  False: nowhere. */
bool label_place(LabelPlaces *places, double x, double y, double gap_x, double gap_y, double w,
                 double h, LabelBox *out);

#endif
