/* draw/page/canvas.h -- one drawing interface for pixels, SVG and PDF.
 *
 * Coordinates are pixels of the requested resolution, y down, in every format. Text stands on its
 * baseline. Fonts are those inside the program, so a drawing depends on the build and never on the
 * machine's fonts; only a font file that the user names replaces them. Errors are sticky: check
 * canvas_ok once at the end.
 */
#ifndef DRAW_PAGE_CANVAS_H
#define DRAW_PAGE_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"
#include "draw/colour/colour.h"

typedef struct Canvas Canvas;

typedef enum CanvasFont { FONT_SANS, FONT_MONO, FONT_COUNT } CanvasFont;
typedef enum CanvasAlign { ALIGN_LEFT, ALIGN_CENTRE, ALIGN_RIGHT } CanvasAlign;

typedef struct CanvasText {
    CanvasFont  font;
    CanvasAlign align;  /* of the text relative to the point */
    double      size;   /* em, pixels */
    bool        upward; /* turned by 90 degrees, read from bottom to top */
    double      turn;   /* else by so many degrees, counterclockwise */
    Rgb         rgb;
} CanvasText;

typedef enum CanvasKind { CANVAS_PIXELS, CANVAS_SVG, CANVAS_PDF } CanvasKind;

/* Letters of an SVG: outlines, text in a font by name, text with the font inside the file. */
typedef enum SvgLetters { LETTERS_OUTLINES, LETTERS_NAMED, LETTERS_EMBEDDED } SvgLetters;

/* Letters of a canvas. */
typedef struct CanvasLetters {
    const char *font; /* NULL or "sans", "mono", or a TrueType or OpenType file; borrowed */
    SvgLetters  svg;
} CanvasLetters;

/* The font's file can be read. */
bool canvas_font_check(const char *font, Error *err);

/* width x height pixels, dpi per inch; `letters` NULL: the built-in ones; `background` NULL:
 * transparent. A text with a sign that the font lacks is set in the built-in font. */
Canvas *canvas_new(CanvasKind kind, int width, int height, int dpi, const CanvasLetters *letters,
                   const Rgb *background, Error *err);
void    canvas_free(Canvas *canvas);
bool    canvas_ok(const Canvas *canvas, Error *err);

/* Moves everything drawn later to the right and down. */
void canvas_shift(Canvas *canvas, int right, int down);
/* An SVG or PDF: areas are filled as areas, not row by row. */
bool canvas_is_vector(const Canvas *canvas);

void canvas_rect(Canvas *canvas, double x, double y, double width, double height, Rgb rgb);
/* Makes the box paper again, unless that is transparent. */
void canvas_clear(Canvas *canvas, double x, double y, double width, double height);
/* The same along a line of this width. */
void canvas_clear_line(Canvas *canvas, double x0, double y0, double x1, double y1, double width);
void canvas_line(Canvas *canvas, double x0, double y0, double x1, double y1, double width,
                 Rgb rgb, double alpha);
/* A filled area; vector canvases only. */
void canvas_polygon(Canvas *canvas, const double (*points)[2], int count, Rgb rgb, double alpha);
/* utf8_escape spells out malformed UTF-8, control characters and signs missing in the font. */
void canvas_text(Canvas *canvas, double x, double y, const char *text, CanvasText style);
/* Advance width in pixels. */
double canvas_text_width(Canvas *canvas, const char *text, CanvasFont font, double size);
/* cols x rows colours, row-major, in width x height pixels, not smoothed; pixels with `skip` set
 * stay as they are. Cell c begins at pixel c width / cols. */
void canvas_image(Canvas *canvas, int x, int y, const Rgb *cells, const uint8_t *skip, int64_t cols,
                  int64_t rows, int width, int height);

/* The finished SVG or PDF, with its title and metadata: key, value, ..., NULL, or NULL. */
bool canvas_finish(Canvas *canvas, const char *title, const char *const *metadata, Text *out,
                   Error *err);
/* The finished pixels: red, green, blue, alpha, not premultiplied. Owned by the caller; NULL: out
 * of memory. */
uint8_t *canvas_pixels(Canvas *canvas, int *width, int *height);

#endif
