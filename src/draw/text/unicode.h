/* draw/text/unicode.h -- text in columns of a terminal, tokens as labels, and scripts written from
 * the right; independent of the locale. */
#ifndef DRAW_TEXT_UNICODE_H
#define DRAW_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/utf8.h"

/* Columns in a terminal: wide East Asian signs have 2, combining marks 0. */
int utf8_columns(const char *text);

/* Copies at most `columns` columns into out (NUL-terminated, `size` bytes), with "..." if cut.
 * Malformed bytes and control characters become U+FFFD. ascii: everything beyond ASCII becomes
 * '?', a middle dot a hyphen, the sign of omission a dot. */
void utf8_fit(const char *text, int columns, bool ascii, char *out, size_t size);

/* Copies text and spells out what has no picture: \n, \t, \e, \xNN for other control characters
 * and malformed bytes, \uXXXX for invisible signs and those that `has` (NULL: none) rejects. */
void utf8_escape(const char *text, bool (*has)(const void *context, uint32_t code),
                 const void *context, char *out, size_t size);
/* A token as a label: escaped; a token of blanks only becomes open boxes (U+2423), and so do the
 * marks of vocabularies for a blank at its beginning; their mark for a line end becomes an arrow
 * (U+21B5). ascii: nothing beyond ASCII, an open box is '_'. */
void utf8_token(const char *token, bool ascii, char *out, size_t size);
/* Bytes of a vocabulary's mark for a blank or a line end that the text begins with; 0: none. */
size_t utf8_token_blank(const char *text);
/* Bytes of the blank's mark that a label begins with, where more follows. */
size_t utf8_mark(const char *label);

/* Signs of footnotes in their usual order: a dagger, a double dagger, a section, a paragraph. */
#define FOOTNOTE_SIGNS 4
extern const char *const footnote_signs[FOOTNOTE_SIGNS];

/* Right-to-left scripts and joined letters.
 *
 * The built-in fonts have a glyph for each form of an Arabic letter (Unicode's presentation
 * forms), so a small table and one pass replace a shaping library.
 */

#define SHAPE_MOST 1024 /* longer texts are copied as they are */

/* The text with its signs from left to right: Arabic joined, in forms that `has` accepts; runs of
 * Hebrew, Arabic and N'Ko reversed, except their numbers and marks. A text without such letters is
 * copied. */
void shape_text(const char *text, bool (*has)(const void *context, uint32_t code),
                const void *context, char *out, size_t size);

#endif
