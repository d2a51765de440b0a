/* figure_png.c -- a figure as the bytes of a PNG file; see figure.h. */
#include <math.h>
#include <stdlib.h>

#include "draw/png.h"
#include "draw/sheet.h"

#define COLUMN_INCH 3.25 /* one column of a two-column paper */
#define PAGE_INCH 6.75   /* its text width */

static int sheet_width(const Figure *figure, const PngOptions *options, int dpi)
{
    int    rows, cols;
    double inch = options->width_inch;

    figure_arrange(figure, &rows, &cols);
    if (!(inch > 0))
        inch = cols > 1 ? PAGE_INCH : COLUMN_INCH;
    return (int)lround(fmin(inch, 200) * dpi);
}

static bool draw_and_encode(Sheet *sheet, const PngOptions *options, Text *bytes, Error *err)
{
    int      width, height;
    uint8_t *pixels;
    bool     ok;

    canvas_free(sheet->canvas);
    sheet->canvas = canvas_new_image(sheet->layout.width, sheet->layout.height,
                                     options->transparent ? NULL : &sheet->style.paper, err);
    if (!sheet->canvas)
        return false;
    sheet_draw(sheet);
    if (!canvas_ok(sheet->canvas, err))
        return false;
    pixels = canvas_pixels(sheet->canvas, &width, &height);
    ok = pixels ? png_encode(pixels, width, height, sheet->style.dpi, options->metadata, bytes, err)
                : error_set(err, ERR_NOMEM, "a figure of %d x %d pixels: out of memory", width,
                            height);
    free(pixels);
    return ok;
}

bool figure_png(const Figure *figure, const PngOptions *options, Text *bytes, Error *err)
{
    static const PngOptions defaults = { .dpi = 300 };
    Sheet                   sheet = { .figure = figure };
    bool                    ok;

    options = options ? options : &defaults;
    if (figure->count < 1)
        return error_set(err, ERR_USAGE, "the figure has no panel");
    sheet.style = sheet_style(options);
    sheet.free_width = !(options->width_inch > 0);
    sheet.width = sheet_width(figure, options, sheet.style.dpi);
    ok = sheet_plan(&sheet, err) && draw_and_encode(&sheet, options, bytes, err);
    sheet_free(&sheet);
    return ok;
}
