/* draw/text/unicode.h -- just enough of UTF-8 for labels; independent of the locale. */
#ifndef DRAW_TEXT_UNICODE_H
#define DRAW_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/utf8.h"

/* Columns a terminal gives the text: wide East Asian signs count 2, combining
 * marks 0. */
int utf8_columns(const char *text);

/* Copies at most `columns` columns into out (NUL-terminated, `size` bytes),
 * ending in a dot or "..." sign if cut.  Malformed bytes and control
 * characters become U+FFFD, and everything beyond ASCII '?' when ascii (a
 * middle dot a hyphen, signs of omission a dot). */
void utf8_fit(const char *text, int columns, bool ascii, char *out, size_t size);

/* Copies text with everything that has no picture spelled out: \n, \t, \e, \xNN
 * for other control characters and malformed bytes, \uXXXX for signs that are
 * invisible or that `has` (NULL: all others) denies. */
void utf8_escape(const char *text, bool (*has)(const void *context, uint32_t code),
                 const void *context, char *out, size_t size);
/* A token as a label: escaped, and one of blanks only as open boxes (U+2423).
 * ascii: nothing beyond ASCII, an open box is '_'. */
void utf8_token(const char *token, bool ascii, char *out, size_t size);

/* Scripts that are written from the right, and letters that join.
 *
 * The built-in fonts have a sign for each form of an Arabic letter (Unicode's presentation
 * forms), so a small table and one pass take the place of a shaping library.
 */

#define SHAPE_MOST 1024 /* characters that are looked at */

/* The text as its signs stand from left to right: Arabic joined, in forms that `has` knows;
 * runs of Hebrew, Arabic and N'Ko turned round, their numbers and marks not.  A text without
 * such letters is copied. */
void shape_text(const char *text, bool (*has)(const void *context, uint32_t code),
                const void *context, char *out, size_t size);

#endif
