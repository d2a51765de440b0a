/* draw/file/svg.h -- an SVG file; canvas.h draws on it.
 *
 * Letters are outlines of the built-in fonts, each written once, so the picture is the same
 * everywhere; the text itself is in aria-label. Matrices are PNG images, scaled without smoothing.
 * The same calls give the same bytes.
 */
#ifndef DRAW_FILE_SVG_H
#define DRAW_FILE_SVG_H

#include <ft2build.h>
#include FT_FREETYPE_H

#include "draw/page/canvas.h"

typedef struct Svg Svg;

/* width x height units, dpi per inch; NULL: out of memory. */
Svg *svg_new(int width, int height, int dpi);
void svg_free(Svg *svg);

void svg_rect(Svg *svg, double x, double y, double width, double height, Rgb rgb);
void svg_line(Svg *svg, double x0, double y0, double x1, double y1, double width, Rgb rgb,
              double alpha);
void svg_polygon(Svg *svg, const double (*points)[2], int count, Rgb rgb, double alpha);
/* Text in glyphs of the face, starting at x, y; shown: its signs from left to right. */
void svg_text(Svg *svg, double x, double y, const char *text, const char *shown, FT_Face face,
              CanvasText style);
/* rgba: cols x rows cells of 4 bytes, each cell_w x cell_h large. A cell is several pixels,
 * because many readers smooth enlarged images even when asked not to. */
bool svg_image(Svg *svg, double x, double y, const uint8_t *rgba, int cols, int rows, int cell_w,
               int cell_h, Error *err);

/* The complete file. title may be empty; metadata: key, value, ..., NULL, or NULL. */
bool svg_finish(Svg *svg, const char *title, const char *const *metadata, Text *out, Error *err);

#endif
