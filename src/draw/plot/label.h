/* draw/plot/label.h -- places for words among curves, so that none covers another.
 *
 * The unit is the device's: pixels of a page, or characters; y down.
 */
#ifndef DRAW_PLOT_LABEL_H
#define DRAW_PLOT_LABEL_H

#include <stdbool.h>

#include "draw/plot/plot.h"

#define LABEL_PLACES_MOST 2048
#define LABEL_BANDS_MOST  256

typedef struct LabelBox {
    double x, y, w, h;
} LabelBox;

/* A part of the band of a series. */
typedef struct LabelBand {
    LabelBox box;
    int      series;
} LabelBand;

typedef struct LabelPlaces {
    LabelBox frame; /* words stay inside */
    LabelBox taken[LABEL_PLACES_MOST];
    int      count;
    int      lines; /* the first of them: words avoid these lines, but may cross them */
    int      guides; /* the first of the lines: words cross guides before other lines */
    LabelBand bands[LABEL_BANDS_MOST];
    int       band_count;
    bool      off_bands; /* words keep off the bands of all series but this one (-1: of all) */
    int       own;
} LabelPlaces;

/* A page or a field of characters, as the names of points and lines need it. */
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

/* Takes the places that words must not cover, or should not: guides, curves, points with words. */
void label_take_plot(const LabelDevice *device);
/* Names all guide lines: level ones from the top down, so that each has a place above or under it,
 * then the others, anywhere along their line. */
void label_name_lines(const LabelDevice *device);
/* No other level line is nearer to the height `middle` than the one at `own`. */
bool label_is_own(const LabelDevice *device, double middle, double own);

/* Words avoid the line where they can. Guides are taken first, then other lines, then boxes. */
void label_take_guide(LabelPlaces *places, double x0, double y0, double x1, double y1);
void label_take_line(LabelPlaces *places, double x0, double y0, double x1, double y1);
/* Nothing else may stand there. */
void label_take(LabelPlaces *places, LabelBox box);
/* Takes exactly this box for words; false: no room. clear: it may cross guides, but no other
 * line. */
bool label_fits(LabelPlaces *places, LabelBox box, bool clear);
/* No words and no points stand in the box, and it lies within the frame; lines may cross it. */
bool label_is_free(const LabelPlaces *places, const LabelBox *box);
/* As label_fits, but across nothing at all. */
bool label_fits_alone(LabelPlaces *places, LabelBox box);
/* Takes a place for words beside an upright guide: on its right at `right`, on its left at `left`,
 * or up to `steps` steps further along it; places clear of lines first. */
bool label_beside(LabelPlaces *places, LabelBox right, LabelBox left, double step, int steps,
                  LabelBox *out);
/* As label_place, but never across a line of a curve. */
bool label_place_clear(LabelPlaces *places, double x, double y, double gap_x, double gap_y,
                       double w, double h, LabelBox *out);
/* Takes a place for words of w x h near a point: right, left, above, below, then further out;
 * gap_x and gap_y are between. Places clear of all lines first, then across guides, then across
 * lines. False: no room. */
bool label_place(LabelPlaces *places, double x, double y, double gap_x, double gap_y, double w,
                 double h, LabelBox *out);

#endif
