/* draw/text/field.h -- what the files that draw plots as characters share; private
 * to them. */
#ifndef DRAW_TEXT_FIELD_H
#define DRAW_TEXT_FIELD_H

#include "draw/plot/label.h"
#include "draw/text/plot_cells.h"

#define NAMES_MOST 32

typedef struct KeyName {
    int     series;
    int64_t point; /* -1: the name of a line */
} KeyName;

/* Names in the key, numbered from 1, by series and point. */
typedef struct NameKey {
    KeyName items[NAMES_MOST], want[NAMES_MOST]; /* wanted: found no place in this drawing */
    int     count, wanted;
    bool    full; /* there is no room for more lines of it */
} NameKey;

typedef struct Field { /* where the curves are, in characters */
    const Plot *plot;
    PlotCells  *out;
    bool        utf8;
    PlotAxis    axis;   /* the lower one: the plot's, or longer for words */
    int         x, y, w, h;
    LabelPlaces places; /* of the words among the curves */
    NameKey    *key;    /* NULL: what has no place is left out */
} Field;

void      cells_put(PlotCells *c, int y, int x, uint32_t ch, int ink);
/* ASCII, and the signs of units that names hold.  Returns the columns used. */
int       cells_text(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8);
int       cells_width(const char *text);
/* All of it in the room, or its beginning and a sign that there is more. */
void      cells_cut(PlotCells *c, int y, int x, int room, const char *text, int ink, bool utf8);

/* What the curves are held against, and words beside points; plot_words.c. */
void      cells_take_points(Field *f); /* nor guide lines: words stand elsewhere */
void      cells_guides(Field *f);
void      cells_guide_line(Field *f, const PlotSeries *s);
void      cells_labels(Field *f);
void      cells_name_guides(Field *f); /* the upright ones */
/* A dot among those of a character; the letter of the series in ASCII. */
void      cells_dot(Field *f, int dot_y, int dot_x, int ink);
/* False: the point has no place. */
bool      cells_dot_of(const Field *f, double x, double y, int *dot_x, int *dot_y);

/* Takes the names that are wanted into the key; false: none is. */
bool      cells_key_grow(NameKey *key);
/* Lines of the key; drawn from line `top` on. */
int       cells_key(const Field *f, int top, bool draw);

#endif
