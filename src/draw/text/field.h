/* draw/text/field.h -- the field of a plot in characters; private to plot_cells.c and
 * plot_words.c. */
#ifndef DRAW_TEXT_FIELD_H
#define DRAW_TEXT_FIELD_H

#include "draw/plot/label.h"
#include "draw/text/plot_cells.h"

#define NAMES_MOST 32

typedef struct KeyName {
    int     series;
    int64_t point; /* -1: the name of a line */
} KeyName;

/* The key of names, numbered from 1, by series and point. */
typedef struct NameKey {
    KeyName items[NAMES_MOST], want[NAMES_MOST]; /* wanted: no room in this drawing */
    int     count, wanted;
    bool    full; /* no room for more lines */
} NameKey;

typedef struct Field { /* the area of the curves, in characters */
    const Plot *plot;
    PlotCells  *out;
    bool        utf8;
    PlotAxis    axis;   /* the x axis: the plot's, or extended for words */
    int         x, y, w, h;
    LabelPlaces places; /* of the words in the field */
    NameKey    *key;    /* NULL: names without room are left out */
} Field;

void      cells_put(PlotCells *c, int y, int x, uint32_t ch, int ink);
/* Writes ASCII, and the other signs of names if `utf8`. Returns the columns used. */
int       cells_text(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8);
/* Writes the text, cut with a sign of omission if it is wider than `room`. */
void      cells_cut(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8);

/* Guides, reference lines, and words beside points. */
void      cells_take_points(Field *f); /* takes their places and those of guides */
void      cells_guides(Field *f);
void      cells_guide_line(Field *f, const PlotSeries *s);
void      cells_labels(Field *f);
void      cells_name_guides(Field *f); /* over the curves */
/* Adds a dot to a character; in ASCII writes the letter of the series. */
void      cells_dot(Field *f, int dot_y, int dot_x, int ink);
/* False: the point has no place. */
bool      cells_dot_of(const Field *f, double x, double y, int *dot_x, int *dot_y);

/* Moves wanted names into the key; false: there are none. */
bool      cells_key_grow(NameKey *key);
/* Number of lines of the key; `draw` draws them from line `top` on. */
int       cells_key(const Field *f, int top, bool draw);

#endif
