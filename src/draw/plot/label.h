/* draw/plot/label.h -- where words among curves can stand, so that none covers another.
 *
 * The unit is the device's: pixels of a page or characters, y down.
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

/* A page or a field of characters, as far as names of points and lines depend on it. */
typedef struct LabelDevice {
    const Plot  *plot;
    LabelPlaces *places;
    void        *context; /* of the functions */
    double       mark;    /* side of the square that a point takes; 0: the character it is in */
    /* The place of a point; false: it has none. */
    bool (*point)(const void *context, double x, double y, double *at_x, double *at_y);
    /* Column or line of a guide; false: out of sight. */
    bool (*guide)(const void *context, const PlotGuide *guide, double *at);
    /* Height of a guide line that is level; false: it is not. */
    bool (*level)(const void *context, const PlotSeries *line, double *at);
    /* Writes the name of a guide line somewhere along it. */
    void (*name)(void *context, const PlotSeries *line);
} LabelDevice;

/* Takes what words must not cover, or cover rather not: guides, curves, points with words. */
void label_take_plot(const LabelDevice *device);
/* Names all guide lines: level ones from the top down, which leaves a place above or under each,
 * then the others, which find one anywhere along their line. */
void label_name_lines(const LabelDevice *device);
/* No other level line is nearer to the height `middle` than the one at `own`. */
bool label_is_own(const LabelDevice *device, double middle, double own);

/* Words avoid the line where they can.  All lines before all else, guides before all lines. */
void label_take_guide(LabelPlaces *places, double x0, double y0, double x1, double y1);
void label_take_line(LabelPlaces *places, double x0, double y0, double x1, double y1);
/* Nothing else may stand there. */
void label_take(LabelPlaces *places, LabelBox box);
/* Words of w x h at just this place; false: there is no room.  clear: nor across lines but
 * guides. */
bool label_fits(LabelPlaces *places, LabelBox box, bool clear);
/* Words beside an upright guide: on its right at `right`, at its left at `left`, or so many steps
 * further along it, clear of all lines first. */
bool label_beside(LabelPlaces *places, LabelBox right, LabelBox left, double step, int steps,
                  LabelBox *out);
/* Words of w x h near a point: to the right, left, above, below, then further out;
 * gap_x and gap_y lie between; clear of all lines, else further out across guides, else across
 * lines.  False: nowhere. */
bool label_place(LabelPlaces *places, double x, double y, double gap_x, double gap_y, double w,
                 double h, LabelBox *out);

#endif
