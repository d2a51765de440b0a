/* draw/file/png.h -- pixels as a PNG or an animated PNG. */
#ifndef DRAW_FILE_PNG_H
#define DRAW_FILE_PNG_H

#include <stdint.h>

#include "core/error.h"
#include "core/text.h"

/* Appends the file to `out`.  rgba: 4 bytes a pixel, not premultiplied.  The
 * smallest colour type that holds the image exactly is chosen: a palette up to
 * 256 colours, else RGB or RGBA.  metadata: key, value, ..., NULL, or NULL.
 * No time is written: the same call gives the same bytes. */
bool png_encode(const uint8_t *rgba, int width, int height, int dpi, const char *const *metadata,
                Text *out, Error *err);

/* Frames of one size as a repeating animation, `delay` seconds each: an APNG. Readers that do not
 * know the format show the first frame. */
bool apng_encode(uint8_t *const *frames, int count, int width, int height, int dpi, double delay,
                 const char *const *metadata, Text *out, Error *err);

#endif
