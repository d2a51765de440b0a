/* draw/page/layout.h -- the places of all parts of a figure; pure geometry.
 *
 * Input are sizes of texts, output are boxes in whole pixels. Frames that should be of one size
 * are, to the pixel. A matrix gets whole pixels per cell, unless its frame must be as large as one
 * with another number of cells, or fill the room: then its cells differ by a pixel. One with more
 * entries than pixels gets cells of equally many entries. Boxes lie inside the sheet, do not
 * overlap, and have an area whenever one was requested.
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
    int64_t row_cells, col_cells; /* cells, if already decided; 0: choose */
    bool    plot;          /* no cells: as wide as the room, as high as its neighbours */
    int     plot_h;        /* height without neighbours; 0: the default */
    int     title_h;       /* 0: none; the same for those below */
    int     row_axis_w;    /* axis name beside the matrix */
    int     col_axis_h;    /* axis name above it */
    int     row_labels_w, col_labels_h;
    int     load_h, load_w; /* bars of the columns below the matrix, of the rows beside it */
    bool    title_clear;   /* its title keeps clear of the colour bar's name */
    int     bar_w;         /* colour bar with its numbers and the gap before it */
    int     caption_h;
} PanelNeed;

/* Where a panel stands: in a cell of the arrangement, or below the panel before it in the same cell
 * (level 1, 2, ...). */
typedef struct PanelPlace {
    int row, col, level;
} PanelPlace;

typedef struct LayoutNeed {
    int              width;  /* of the sheet */
    int              margin, gap; /* around the sheet, between panels */
    int              fine;   /* minimum pixels of a cell of several entries */
    double           flat;   /* height of plots, of the default; 0: 1 */
    bool             fill;   /* cells may differ by a pixel where equal ones leave much room */
    int              strip;  /* default height of one row of a strip (few rows, many columns) */
    int              rows, cols, count;
    const PanelNeed *panels; /* count */
    const PanelPlace *places; /* count; NULL: row by row */
    int              title_h, footer_h, caption_h;
} LayoutNeed;

typedef struct PanelBoxes {
    Box     title, col_axis, col_labels, row_axis, row_labels, matrix, load, row_load, bar, caption;
    int64_t rows, cols;      /* cells of the matrix */
    int     cell_w, cell_h;  /* pixels; of the smallest cells */
    int     column_w;        /* total width of the panel */
} PanelBoxes;

typedef struct Layout {
    int         width, height;
    int         room; /* width available to each matrix */
    bool        narrow; /* all matrices are columns, narrower and higher than the room */
    Box         title, footer, caption;
    PanelBoxes *panels; /* owned */
    int         count;
} Layout;

/* Pixels from the start of `extent` to cell `at` of `cells`. */
int layout_cell(int64_t at, int64_t cells, int extent);
/* The box of a cell of the matrix, counted row by row. */
Box layout_box(const PanelBoxes *boxes, int64_t at);

/* False: out of memory, or the sheet is too narrow for its panels. */
bool layout_make(const LayoutNeed *need, Layout *out, Error *err);
void layout_free(Layout *layout);

/* A matrix of few rows and many columns; beside a higher panel it keeps its height. */
bool layout_is_strip(int64_t rows, int64_t cols);
/* Places of the panels in `cols` columns; returns the number of rows.  Strips are `strip`.
 * stack 0: row by row.  1: a row has strips or other panels, never both.  Else up to `stack` strips
 * that follow one another stand in one cell. */
int layout_places(const bool *strip, int count, int cols, int stack, PanelPlace *out);

/* The next smaller number of columns to try: an even number is halved, so that rows stay full. */
int layout_fewer_columns(int cols);

#define LAYOUT_HALVED 16
/* Step of axis labels: at most `most` positions 0, step, ... below n; powers of two where n is a
 * multiple of LAYOUT_HALVED or `halving` asks for them, else 1, 2, 5 x 10^k. */
int64_t layout_tick_step(int64_t n, int most, bool halving);

#endif
