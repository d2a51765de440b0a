/* draw/file/format.h -- PNG, animated PNG, and metadata in figure files of all kinds.
 *
 * Keys and values of metadata are the same in all: text chunks of a PNG, entries in the
 * <metadata> of an SVG, lines in the keywords of a PDF, lines at the end of a text. A line is
 * "key: value"; a value that lines or XML cannot hold (control characters, malformed UTF-8) is
 * percent-encoded and its key ends in *.
 */
#ifndef DRAW_FILE_FORMAT_H
#define DRAW_FILE_FORMAT_H

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

/* metadata: key, value, ..., NULL, or NULL. before: prefix of each line. */
void metadata_write_lines(const char *const *metadata, const char *before, Text *out);
void metadata_write_xml(const char *const *metadata, Text *out);
/* Adds text between tags or in quotes. */
void metadata_add_xml(Text *out, const char *text);

#define METADATA_TEXT_MARK "# " /* prefix of the lines in a text */

#endif
