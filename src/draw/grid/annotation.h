/* draw/grid/annotation.h -- what stands beside and in a matrix: bars of its rows and columns, and
 * notes on marked cells.
 *
 * Margins are kept entry by entry, O(rows + columns), so any zoom shows the same margin. Unread
 * entries are NaN.
 */
#ifndef DRAW_GRID_ANNOTATION_H
#define DRAW_GRID_ANNOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "draw/grid/grid.h"

typedef enum MarginKind {
    MARGIN_NONE,
    MARGIN_SUMS,    /* of each row and of each column; of cells: how many are allowed */
    MARGIN_ENTROPY, /* of each row as a distribution, in nats */
    MARGIN_KEPT,    /* of each row: share of its exact attention on the pairs that are allowed */
    MARGIN_KINDS,
} MarginKind;

typedef struct Margin {
    MarginKind kind;
    int64_t   rows, cols;
    double   *row, *col; /* owned; of entries in the view's own order; col NULL: none */
    bool      counts;    /* sums are numbers of pairs */
    int       queries;   /* columns are sums of so many chosen rows; 0: of all */
    double    share;     /* share of rows that the columns' sums are estimated from */
} Margin;

void        margin_free(Margin *margin);
const char *margin_name(MarginKind kind); /* "none", "sums", "entropy", "kept" */
bool        margin_parse(const char *name, MarginKind *out, Error *err);
/* Heading of the numbers: "sum", "pairs", "nats", "kept". */
const char *margin_unit(const Margin *margin);
/* What the bars are: "exact attention kept". */
void margin_title(const Margin *margin, char *text, size_t size);
bool margin_has_negative(const Margin *margin);
/* Mean of the known numbers of displayed entries [first, last); NaN: none. */
double margin_mean(const double *values, const int32_t *order, int64_t first, int64_t last);
/* The largest magnitude of displayed entries [first, last) in bars of `each`; 1 for shares of a
 * whole. Never 0. */
double margin_most(const Margin *margin, bool rows, const int32_t *order, int64_t first,
                  int64_t last, int64_t each);

/* A marked cell, row or column of a matrix with a few words.
 *
 * As text "5:3:near itself", several with | between; * instead of a number is the whole row or
 * column: "5:*:query 5|*:0:the sink".
 */

#define PANEL_NOTES 8
#define NOTES_BYTES 400 /* of all notes of a panel, as text */

typedef struct PanelNote {
    int64_t row, col; /* entries of the view; -1: all of the axis */
    char    text[48]; /* "": only marked */
} PanelNote;

bool notes_parse(const char *text, PanelNote *out, int *count, Error *err);
/* The marked region in displayed order, cut to `sight`; false: nothing of it is in sight. The
 * orders may be NULL. */
bool note_region(const PanelNote *note, const int32_t *row_order, const int32_t *col_order,
                 Region sight, Region *out);
/* "q=5 k=3: near itself", with the names of the axes. */
void note_words(const PanelNote *note, const char *rows, const char *cols, char *text,
                size_t size);

#endif
