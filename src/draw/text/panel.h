/* draw/text/panel.h -- one panel as characters; private to the text surface. */
#ifndef DRAW_TEXT_PANEL_H
#define DRAW_TEXT_PANEL_H

#include <stdbool.h>

#include "core/text.h"
#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/text/wrap.h"

/* Lines of text that know how wide they look; private to draw.
 *
 * Escape sequences count no columns.  An allocation that fails marks the block
 * as failed, and a line that is NULL takes every call.
 */

typedef struct Line {
    Text text;
    int  columns; /* as seen */
} Line;

typedef struct Block {
    Line *lines; /* owned */
    int   count, capacity;
    bool  failed;
} Block;

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

/* How cells become characters. */
typedef enum TextMode {
    TEXT_LETTERS, /* a letter of the component, a sign of the ramp */
    TEXT_SHADES,  /* four block shades */
    TEXT_HALVES,  /* two cells above each other in one character */
    TEXT_FIELDS,  /* a coloured blank */
} TextMode;

typedef struct TextPlan { /* one panel's place and size */
    TextMode  mode;
    int       width;      /* columns of the whole panel */
    int       gutter;     /* of the row labels */
    int       side;       /* of the bars of rows, with the blank before them; 0: none */
    CellCount cells;
    int       across;     /* characters per cell */
    int       down;       /* characters, or halves of one, per cell */
    bool      tokens;     /* row labels are tokens */
} TextPlan;

/* lines: most lines for the matrix itself, 0 for as many as it takes.
 * several_causes: the figure has more than one component. */
TextPlan text_plan(const Panel *panel, const TextOptions *options, int width, int lines,
                   bool several_causes);
/* Lines a panel has besides its matrix and its title, at most. */
int  text_overhead(const Panel *panel);
/* title_lines: how many the title has at least, as those beside it. */
void text_panel(const Panel *panel, const Grid *grid, const TextPlan *plan,
                const TextOptions *options, const Lines *title, int title_lines, Block *out);

#endif
