/* draw/page/layout.h -- where everything of a figure stands; pure geometry.
 *
 * Sizes of texts come in, boxes in whole pixels come out.  Every matrix gets
 * whole pixels per cell; a matrix with more entries than pixels gets cells of
 * equally many entries.  Boxes lie inside the sheet, do not overlap, and are
 * non-empty whenever something was asked for.
 */
#ifndef DRAW_PAGE_LAYOUT_H
#define DRAW_PAGE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct Box {
    int x, y, w, h; /* w or h 0: not there */
} Box;

typedef struct PanelNeed {
    int64_t rows, cols;    /* entries to show */
    int64_t row_cells, col_cells; /* cells already decided on; 0: choose */
    bool    plot;          /* no cells: as wide as there is room, as high as what is beside it */
    int     plot_h;        /* its height where it stands alone; 0: the usual one */
    int     title_h;       /* 0: none; likewise below */
    int     row_axis_w;    /* axis name beside the matrix */
    int     col_axis_h;    /* axis name above it */
    int     row_labels_w, col_labels_h;
    int     load_h, load_w; /* bars of the columns below the matrix, of the rows beside it */
    int     bar_w;         /* colour bar with its numbers and the gap before it */
    int     caption_h;
} PanelNeed;

typedef struct LayoutNeed {
    int              width;  /* of the sheet */
    int              margin, gap; /* around the sheet, between panels */
    int              fine;   /* least pixels of a cell that stands for several entries */
    int              strip;  /* usual height of one row of a strip (few rows, many columns) */
    int              rows, cols, count;
    const PanelNeed *panels; /* count */
    int              title_h, footer_h, caption_h;
} LayoutNeed;

typedef struct PanelBoxes {
    Box     title, col_axis, col_labels, row_axis, row_labels, matrix, load, row_load, bar, caption;
    int64_t rows, cols;      /* cells of the matrix */
    int     cell_w, cell_h;  /* pixels */
    int     column_w;        /* whole width that belongs to the panel */
} PanelBoxes;

typedef struct Layout {
    int         width, height;
    int         room; /* width each matrix may take */
    bool        narrow; /* all matrices are columns that take less, and are higher than that */
    Box         title, footer, caption;
    PanelBoxes *panels; /* owned */
    int         count;
} Layout;

/* False: out of memory, or the sheet is too narrow for its panels. */
bool layout_make(const LayoutNeed *need, Layout *out, Error *err);
void layout_free(Layout *layout);

/* The next smaller number of columns to try where that many get too narrow: even rows of panels
 * are halved, so that they stay full. */
int layout_fewer_columns(int cols);

/* At most `most` positions first, first + step, ... below n for axis labels:
 * steps of powers of two where n is a multiple of 16, else 1, 2, 5 x 10^k. */
int64_t layout_tick_step(int64_t n, int most);

#endif
