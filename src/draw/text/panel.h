/* draw/text/panel.h -- one panel as characters; private to panel.c and surface.c. */
#ifndef DRAW_TEXT_PANEL_H
#define DRAW_TEXT_PANEL_H

#include <stdbool.h>

#include "core/text.h"
#include "draw/colour/colour.h"
#include "draw/figure/scene.h"
#include "draw/text/wrap.h"

/* Lines of text with their visible width.
 *
 * Escape sequences have no width. A failed allocation marks the block as failed; all calls accept
 * a line that is NULL.
 */

typedef struct Line {
    Text text;
    int  columns; /* visible */
} Line;

typedef struct Block {
    Line *lines; /* owned */
    int   count, capacity;
    bool  failed;
} Block;

Line *block_line(Block *block); /* a new empty line; NULL: out of memory */
/* Adds `text` broken into as many lines as it needs. */
void  block_wrap(Block *block, const char *text, int columns, bool ascii);

void line_add(Line *line, const char *text);
void line_pad(Line *line, int columns); /* pads with blanks to this column */

/* A pen writes colours as SGR sequences, only when they change. */
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

/* Forms of a cell in characters. */
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
    int       side;       /* bars of rows and the blank before them; 0: none */
    CellCount cells;
    int       across;     /* characters per cell */
    int       down;       /* characters, or halves of one, per cell */
    bool      tokens;     /* row labels are tokens */
} TextPlan;

/* lines: limit for the matrix alone, 0: as many as it takes. several_causes: the figure shows
 * several components. */
TextPlan text_plan(const Panel *panel, const TextOptions *options, int width, int lines,
                   bool several_causes);
/* Largest number of lines beside matrix and title. */
int  text_overhead(const Panel *panel);
/* title_lines: at least so many for the title, as in the panels beside it. */
void text_panel(const Panel *panel, const Grid *grid, const TextPlan *plan,
                const TextOptions *options, const Lines *title, int title_lines, Block *out);

#endif
