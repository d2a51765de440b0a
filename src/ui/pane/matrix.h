/* ui/pane/matrix.h -- which part of a matrix is on the screen, and how large; pure geometry.
 *
 * Zoom is one number for both axes: 0 fits everything, m > 0 gives an entry m
 * pixels, m < 0 puts -m entries into a pixel.  Zoomed cells are whole blocks
 * of entries, so neighbouring cells never stand for different amounts.
 */
#ifndef UI_PANE_MATRIX_H
#define UI_PANE_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "draw/figure/figure.h"
#include "draw/grid/grid.h"
#include "ui/term/term.h"

typedef struct Lens {
    int     zoom;
    int64_t row0, col0; /* first entry in sight, when zoomed */
    int64_t q, k;       /* cursor, in displayed order */
} Lens;

/* One axis as shown. */
typedef struct LensAxis {
    int64_t first, last; /* in sight: [first, last) */
    int64_t cells;       /* of the grid */
    int     size;        /* pixels of the smallest cell; others have one more at most */
    int     span;        /* pixels of all cells */
    double  per;         /* entries per cell, about */
} LensAxis;

typedef struct LensShape {
    int64_t rows, cols;    /* entries */
    int     height, width; /* pixels there are */
    int     near_height, near_width; /* where a part is in sight: of linked panes, which then show
                              one region; 0: all there are */
    int     tall;          /* height of a pixel in widths: 1 or 2 */
    bool    even;          /* an entry is as high as wide (queries against keys) */
} LensShape;

typedef struct LensView {
    LensAxis row, col;
} LensView;

/* Clamps *lens to the shape and lays it out. */
LensView lens_view(Lens *lens, const LensShape *shape);
Region   lens_region(const LensView *view);
/* One step in (+1) or out (-1), the cursor staying where it is on the screen. */
void lens_zoom(Lens *lens, const LensShape *shape, int direction);
/* The same zoom for every shape: 1 is one pixel per entry. */
void lens_zoom_to(Lens *lens, const LensShape *shape, int zoom);
/* The region as large as it fits, the cursor in its middle. */
void lens_show(Lens *lens, const LensShape *shape, Region region);
/* Moves the cursor, and the sight with it if it would leave. */
void lens_move(Lens *lens, const LensShape *shape, int64_t dq, int64_t dk);
void lens_centre(Lens *lens, const LensShape *shape);
void lens_pan(Lens *lens, const LensShape *shape, int64_t rows, int64_t cols);
/* Pixels of an entry where so many share that many pixels: below 1.5 no entry is larger than
 * its neighbour. */
double  lens_fit(int64_t count, int pixels);
/* Entry under a pixel; first pixel of an entry's cell, the one in its middle, and the one after
 * its last.  -1: out of sight. */
int64_t lens_entry(const LensAxis *axis, int pixel);
int     lens_pixel(const LensAxis *axis, int64_t entry);
int     lens_middle(const LensAxis *axis, int64_t entry);
int     lens_end(const LensAxis *axis, int64_t entry);

/* The cells of a matrix as characters. */

/* How pixels become characters. */
typedef enum Glyphs {
    GLYPHS_HALF,     /* two pixels over each other, two colours */
    GLYPHS_QUADRANT, /* 2 x 2, one colour and the background */
    GLYPHS_BRAILLE,  /* 2 x 4, likewise */
    GLYPHS_FULL,     /* one pixel is two columns */
    GLYPHS_ASCII,    /* a letter per pixel */
    GLYPHS_COUNT,
    GLYPHS_SHADE, /* shades, where colours are few; chosen by glyphs_for only */
} Glyphs;

typedef struct GlyphSize {
    int across, down; /* pixels in a character */
    int columns;      /* of a character */
    int tall;         /* height of a pixel in widths */
} GlyphSize;

const char *glyphs_name(Glyphs glyphs);
/* The name or its beginning: "half", "ascii". */
bool        glyphs_parse(const char *name, Glyphs *out, Error *err);
/* What this terminal can show of the panel; wish: the user's choice. */
Glyphs    glyphs_for(const Term *term, Glyphs wish, const Panel *panel);
GlyphSize glyphs_size(Glyphs glyphs);
/* The letters of causes are drawn: in ASCII; of shades, where there is no colour and each cell is
 * one pair, whose shade would say nothing. */
bool      glyphs_name_causes(const Term *term, Glyphs glyphs, const Panel *panel,
                             const Grid *grid);

typedef struct MatrixLook {
    Theme   theme;
    Glyphs  glyphs; /* after glyphs_for */
    int64_t q, k;   /* cursor; -1: none */
    bool    cross;  /* with lines through it */
} MatrixLook;

/* Draws grid (of any region: an old one is stretched) as seen through view. True: some cell is
 * marked, by a dot or an underlined letter, because it also holds a rarer cause. */
bool matrix_draw(Term *term, Area canvas, const Panel *panel, const Grid *grid,
                 const LensView *view, const MatrixLook *look);
/* Pixels that fit into an area. */
void matrix_pixels(Area canvas, Glyphs glyphs, int *height, int *width);

#endif
