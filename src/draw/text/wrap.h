/* draw/text/wrap.h -- breaking titles and captions into lines; private to draw.
 *
 * The sheet measures in pixels, the text surface in columns; both break at the
 * same places.  Only what fits nowhere is cut, with the sign of an omission.
 */
#ifndef DRAW_TEXT_WRAP_H
#define DRAW_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#define WRAP_LINES 32 /* a caption of FIGURE_CAPTION bytes in two narrow columns */
#define WRAP_BYTES 320

typedef struct Lines {
    char text[WRAP_LINES][WRAP_BYTES];
    int  count;
} Lines;

typedef struct WrapRule {
    double (*width)(void *context, const char *text);
    void  *context;
    double room;  /* of a line, in the unit of `width` */
    bool   ascii; /* the device has no more than ASCII */
} WrapRule;

/* Columns of a terminal, as a rule of that many. */
WrapRule wrap_columns(int columns, bool ascii);

/* Bytes of the text that belong on its first line: up to a blank (best one after
 * a comma), else after a sign that joins ("," or "+"), else as much as fits; at
 * least one character. */
size_t wrap_break(const char *text, const WrapRule *rule);
/* At most `most` lines (and WRAP_LINES); the last is cut if there is more. */
void wrap_text(const char *text, const WrapRule *rule, int most, Lines *out);
/* A panel's title on one or two lines: broken at " <middle dot> " if possible,
 * else after a comma, "+" or at a blank.  False: it does not fit. */
bool wrap_title(const char *title, const WrapRule *rule, Lines *out);
/* The same for a title that does not fit: what stands before its last middle
 * dot is shortened, so the name of the view stays. */
void wrap_title_cut(const char *title, const WrapRule *rule, Lines *out);
/* Cuts the text so that it is at most `room` wide. */
void wrap_cut(const char *text, const WrapRule *rule, char *out, size_t size);

#endif
