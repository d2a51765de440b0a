/* draw/file/metadata.h -- how a figure was made, in each kind of file.
 *
 * Keys and values are the same in all: text chunks of a PNG, entries in the <metadata> of an SVG,
 * lines in the keywords of a PDF, lines at the end of a text. A line is "key: value"; a value that
 * lines or XML cannot hold (control characters, malformed UTF-8) is percent-encoded and its key
 * ends in *.
 */
#ifndef DRAW_FILE_METADATA_H
#define DRAW_FILE_METADATA_H

#include "core/error.h"
#include "core/text.h"

/* metadata: key, value, ..., NULL, or NULL. before: prefix of each line. */
void metadata_write_lines(const char *const *metadata, const char *before, Text *out);
void metadata_write_xml(const char *const *metadata, Text *out);
/* Adds text between tags or in quotes. */
void metadata_add_xml(Text *out, const char *text);

#define METADATA_TEXT_MARK "# " /* prefix of the lines in a text */

#endif
