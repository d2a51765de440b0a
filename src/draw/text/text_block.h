/* draw/text/text_block.h -- lines of text that know how wide they look; private to draw.
 *
 * Escape sequences count no columns.  An allocation that fails marks the block
 * as failed, and a line that is NULL takes every call.
 */
#ifndef DRAW_TEXT_TEXT_BLOCK_H
#define DRAW_TEXT_TEXT_BLOCK_H

#include <stdbool.h>

#include "core/text.h"
#include "draw/colour/colour.h"

typedef struct Line {
    Text text;
    int  columns; /* as seen */
} Line;

typedef struct Block {
    Line *lines; /* owned */
    int   count, capacity;
    bool  failed;
} Block;

void  block_free(Block *block);
Line *block_line(Block *block); /* a new empty line; NULL: out of memory */
/* Words of `text` over as many lines as they need. */
void  block_wrap(Block *block, const char *text, int columns, bool ascii);

void line_add(Line *line, const char *text);
void line_pad(Line *line, int columns); /* blanks up to this column */

/* Colours as SGR sequences, written only when they change. */
typedef struct Pen {
    Line *line;
    int   colours; /* 256 or 24; 0: none */
    bool  ink_set, paper_set;
    Rgb   ink, paper;
} Pen;
typedef struct PenColour {
    bool    set; /* else the terminal's own */
    Rgb     rgb;
    uint8_t index256;
} PenColour;

void pen_put(Pen *pen, const char *glyph, PenColour ink, PenColour paper);
void pen_end(Pen *pen);

#endif
