/* draw/grid/annotation.h -- bars beside a matrix: a number for each row, and for each column.
 *
 * Numbers are kept entry by entry, O(rows + columns), so any zoom shows the same margin.
 * Those that were not read are NaN.
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
    int       queries;   /* the columns' sums are of so many rows that were chosen; 0: of all */
    double    share;     /* of the rows that the columns' sums are estimated from; 1: all */
} Margin;

void        margin_free(Margin *margin);
const char *margin_name(MarginKind kind); /* "none", "sums", "entropy", "kept" */
bool        margin_parse(const char *name, MarginKind *out, Error *err);
/* "sum", "pairs", "nats", "kept": heads the numbers. */
const char *margin_unit(const Margin *margin);
/* "exact attention kept": what the bars are. */
void margin_title(const Margin *margin, char *text, size_t size);
bool margin_has_negative(const Margin *margin);
/* Mean of the known numbers of displayed entries [first, last); NaN: none is known. */
double margin_mean(const double *values, const int32_t *order, int64_t first, int64_t last);
/* The largest magnitude of displayed entries [first, last) in bars of `each`; share of a
 * whole: 1.  Never 0. */
double margin_most(const Margin *margin, bool rows, const int32_t *order, int64_t first,
                  int64_t last, int64_t each);

/* A cell, a row or a column of a matrix that is marked, with a few words.
 *
 * As text "5:3:near itself", several with bars between; a star instead of a number is the whole
 * row or column: "5:*:query 5|*:0:the sink".
 */

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
