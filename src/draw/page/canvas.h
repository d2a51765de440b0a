/* draw/page/canvas.h -- one vector drawing interface for all figure files.
 *
 * Pixels, an SVG or a PDF page.  Coordinates are pixels of the asked resolution, y
 * down, whatever the file.  Text stands on its baseline.  The fonts are those inside
 * the program: what is drawn depends on the build, never on the fonts of the machine.
 * Errors are sticky: look at canvas_ok once at the end.
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
    CanvasAlign align;  /* of the text at the point */
    double      size;   /* em, pixels */
    bool        upward; /* turned by 90 degrees, reading from bottom to top */
    Rgb         rgb;
} CanvasText;

typedef enum CanvasKind { CANVAS_PIXELS, CANVAS_SVG, CANVAS_PDF } CanvasKind;

/* width x height, dpi of them an inch; `background` NULL: transparent. */
Canvas *canvas_new(CanvasKind kind, int width, int height, int dpi, const Rgb *background,
                   Error *err);
/* Pixels. */
Canvas *canvas_new_image(int width, int height, const Rgb *background, Error *err);
void    canvas_free(Canvas *canvas);
bool    canvas_ok(const Canvas *canvas, Error *err);

/* What is drawn from now on stands this much further right and down. */
void canvas_shift(Canvas *canvas, int right, int down);
/* Lines and areas stay sharp at any size: areas are filled as such, not row by row. */
bool canvas_is_vector(const Canvas *canvas);

void canvas_rect(Canvas *canvas, double x, double y, double width, double height, Rgb rgb);
void canvas_line(Canvas *canvas, double x0, double y0, double x1, double y1, double width,
                 Rgb rgb, double alpha);
/* Of a vector canvas: a filled area. */
void canvas_polygon(Canvas *canvas, const double (*points)[2], int count, Rgb rgb, double alpha);
/* Malformed UTF-8, control characters and signs that the font lacks are spelled
 * out as utf8_escape does. */
void canvas_text(Canvas *canvas, double x, double y, const char *text, CanvasText style);
/* Advance width in pixels. */
double canvas_text_width(Canvas *canvas, const char *text, CanvasFont font, double size);
/* cols x rows colours, row-major, each cell_w x cell_h whole pixels, no
 * smoothing; the pixels whose `skip` is set are left as they are. */
void canvas_image(Canvas *canvas, int x, int y, const Rgb *cells, const uint8_t *skip, int64_t cols,
                  int64_t rows, int cell_w, int cell_h);

/* The finished SVG or PDF, with its title and metadata: key, value, ..., NULL, or NULL. */
bool canvas_finish(Canvas *canvas, const char *title, const char *const *metadata, Text *out,
                   Error *err);
/* The finished pixels: 4 bytes red, green, blue, alpha, not premultiplied.
 * Owned by the caller; NULL when memory is out. */
uint8_t *canvas_pixels(Canvas *canvas, int *width, int *height);

#endif
