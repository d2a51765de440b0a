/* draw/grid/note.h -- a cell, a row or a column of a matrix that is marked, with a few words.
 *
 * As text "5:3:near itself", several with bars between; a star instead of a number is the whole
 * row or column: "5:*:query 5|*:0:the sink".
 */
#ifndef DRAW_GRID_NOTE_H
#define DRAW_GRID_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "draw/grid/grid.h"

#define PANEL_NOTES 8
#define NOTES_BYTES 400 /* of all of a panel, as text */

typedef struct PanelNote {
    int64_t row, col; /* entries of the view; -1: all of the axis */
    char    text[48]; /* "": only marked */
} PanelNote;

bool notes_parse(const char *text, PanelNote *out, int *count, Error *err);
/* What is marked, in the order of display, cut to what is in sight; false: nothing of it is.  The
 * orders may be NULL. */
bool note_region(const PanelNote *note, const int32_t *row_order, const int32_t *col_order,
                 Region sight, Region *out);
/* "q=5 k=3: near itself" by the names of the axes. */
void note_words(const PanelNote *note, const char *rows, const char *cols, char *text,
                size_t size);

#endif
