/* draw/file/svg.h -- an SVG file; canvas.h draws on it.
 *
 * Letters are outlines, each written once, so the picture is the same everywhere; the text itself
 * is in aria-label. Or they are text, which readers search and edit, in a font that is named or
 * inside the file; each text keeps its width if the reader takes another font. Matrices are PNG
 * images, scaled without smoothing.
 * The same calls give the same bytes.
 */
#ifndef DRAW_FILE_SVG_H
#define DRAW_FILE_SVG_H

#include <ft2build.h>
#include FT_FREETYPE_H

#include "draw/page/canvas.h"

typedef struct Svg Svg;

/* A font of texts; index: below SVG_FONTS, the same for the same font. */
#define SVG_FONTS 3
typedef struct SvgFont {
    FT_Face face;
    int     index;
    const unsigned char *start, *end; /* its file */
} SvgFont;

/* width x height units, dpi per inch; NULL: out of memory. */
Svg *svg_new(int width, int height, int dpi, SvgLetters letters);
void svg_free(Svg *svg);

void svg_rect(Svg *svg, double x, double y, double width, double height, Rgb rgb);
void svg_line(Svg *svg, double x0, double y0, double x1, double y1, double width, Rgb rgb,
              double alpha);
/* The points, moved to the right and down. */
void svg_polygon(Svg *svg, const double (*points)[2], int count, double right, double down, Rgb rgb,
                 double alpha);
/* Text of this width in the font, starting at x, y; shown: its signs from left to right. */
void svg_text(Svg *svg, double x, double y, const char *text, const char *shown, double width,
              SvgFont font, CanvasText style);
/* rgba: across x down pixels of 4 bytes, in width x height. */
bool svg_image(Svg *svg, double x, double y, const uint8_t *rgba, int across, int down, int width,
               int height, Error *err);

/* The complete file. title may be empty; metadata: key, value, ..., NULL, or NULL. */
bool svg_finish(Svg *svg, const char *title, const char *const *metadata, Text *out, Error *err);

#endif
