/* draw/text/wrap.h -- line breaks of titles and captions; private to draw.
 *
 * The sheet measures in pixels, the text surface in columns; both break by the same rules. Only
 * what fits nowhere is cut, with a sign of omission.
 */
#ifndef DRAW_TEXT_WRAP_H
#define DRAW_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#define WRAP_LINES 32 /* a caption of FIGURE_CAPTION bytes in two narrow columns */
#define WRAP_LAST_LEAST 0.28 /* of the room: a shorter last line looks lost */
#define WRAP_BYTES 320

typedef struct Lines {
    char text[WRAP_LINES][WRAP_BYTES];
    int  count;
} Lines;

typedef struct WrapRule {
    double (*width)(void *context, const char *text);
    void  *context;
    double room;  /* width of a line, in the unit of `width` */
    bool   ascii; /* the device has only ASCII */
} WrapRule;

/* The rule of a terminal with so many columns. */
WrapRule wrap_columns(int columns, bool ascii);

/* Bytes of the first line: up to a blank (preferably after a comma), else after "," or "+", else
 * as much as fits; at least one character. */
size_t wrap_break(const char *text, const WrapRule *rule);
/* Breaks into at most `most` lines (and WRAP_LINES); cuts the last if there is more. */
void wrap_text(const char *text, const WrapRule *rule, int most, Lines *out);
/* A panel's title on one or two lines: broken at " <middle dot> " if possible, else after a comma,
 * "+" or at a blank. False: it does not fit. */
bool wrap_title(const char *title, const WrapRule *rule, Lines *out);
/* A longer title on up to TITLE_LINES lines, whole; the view after its last middle dot begins a
 * line. False: a word is wider than the room, or there are more lines. */
#define TITLE_LINES 8
bool wrap_title_whole(const char *title, const WrapRule *rule, Lines *out);
/* A title that does not fit: the part before its last middle dot is cut, so the name of the view
 * stays. */
void wrap_title_cut(const char *title, const WrapRule *rule, Lines *out);
/* Cuts the text to `room`. */
void wrap_cut(const char *text, const WrapRule *rule, char *out, size_t size);

#endif
