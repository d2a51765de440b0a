/* draw/utf8.h -- just enough of UTF-8 for labels; independent of the locale. */
#ifndef DRAW_UTF8_H
#define DRAW_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Columns a terminal gives the text: wide East Asian signs count 2, combining
 * marks 0. */
int utf8_columns(const char *text);

/* Copies at most `columns` columns into out (NUL-terminated, `size` bytes),
 * ending in a dot or "..." sign if cut.  Malformed bytes and control
 * characters become U+FFFD, and everything beyond ASCII '?' when ascii. */
void utf8_fit(const char *text, int columns, bool ascii, char *out, size_t size);

#endif
