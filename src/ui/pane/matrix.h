/* ui/pane/matrix.h -- the cells of a matrix as characters. */
#ifndef UI_PANE_MATRIX_H
#define UI_PANE_MATRIX_H

#include "draw/figure/figure.h"
#include "ui/pane/lens.h"
#include "ui/term/term.h"
#include "ui/term/theme.h"

/* How pixels become characters. */
typedef enum Glyphs {
    GLYPHS_HALF,     /* two pixels over each other, two colours */
    GLYPHS_QUADRANT, /* 2 x 2, one colour and the background */
    GLYPHS_BRAILLE,  /* 2 x 4, likewise */
    GLYPHS_FULL,     /* one pixel is two columns */
    GLYPHS_ASCII,    /* a letter per pixel */
    GLYPHS_COUNT,
    GLYPHS_SHADE, /* shades of grey without colours; chosen, not asked for */
} Glyphs;

typedef struct GlyphSize {
    int across, down; /* pixels in a character */
    int columns;      /* of a character */
    int tall;         /* height of a pixel in widths */
} GlyphSize;

const char *glyphs_name(Glyphs glyphs);
/* The name or its beginning: "half", "ascii". */
bool        glyphs_parse(const char *name, Glyphs *out, Error *err);
/* What this terminal shows instead of the wish for this panel. */
Glyphs    glyphs_for(const Term *term, Glyphs wish, const Panel *panel);
GlyphSize glyphs_size(Glyphs glyphs);

typedef struct MatrixLook {
    Theme   theme;
    Glyphs  glyphs; /* after glyphs_for */
    int64_t q, k;   /* cursor; -1: none */
    bool    cross;  /* with lines through it */
} MatrixLook;

/* Draws grid (of any region: an old one is stretched) as seen through view. */
void matrix_draw(Term *term, Area canvas, const Panel *panel, const Grid *grid,
                 const LensView *view, const MatrixLook *look);
/* Pixels that fit into an area. */
void matrix_pixels(Area canvas, Glyphs glyphs, int *height, int *width);

#endif
