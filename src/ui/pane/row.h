/* ui/pane/row.h -- one query's row of a view: its keys, their values, what they add up to. */
#ifndef UI_PANE_ROW_H
#define UI_PANE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "app/result/views.h"
#include "attn/run/view.h"

typedef struct RowCell {
    int64_t key;
    float   value;
    uint8_t bits; /* COMPONENT_*; 0: the view has none */
} RowCell;

/* Cached between frames; read again only when its source changes. */
typedef struct Row {
    const void *owner; /* the result it was read from */
    const View *view;
    const View *minus; /* cells are view - minus, where either has one; NULL: off */
    int64_t     plane, query;
    RowCell    *cells;     /* owned; by key */
    RowCell    *by_weight; /* owned; largest first; NULL until asked for */
    int64_t     count, capacity;
    int64_t     all;          /* keys there are, allowed or not */
    double      sum, entropy; /* of positive values; natural logarithm */
    double      magnitude;    /* sum without signs */
    bool        sampled;      /* too long: not read */
    bool        every;        /* no key was chosen for the query: see pane_row */
} Row;

/* minus: NULL, or what is subtracted.  components: where bits come from; may be NULL. */
bool           row_read(Row *row, const void *owner, const View *view, const View *minus,
                        const Pattern *components, int64_t plane, int64_t query);
/* The sum of several queries' rows, or their mean; version: changes with the queries. */
bool           row_read_many(Row *row, const void *owner, const View *view, const View *minus,
                             const Pattern *components, int64_t plane, const int64_t *queries,
                             int count, bool mean, int version);
void           row_free(Row *row);
const RowCell *row_find(const Row *row, int64_t key); /* NULL: masked */
/* 1 is the largest; 0: masked. */
int64_t        row_rank(const Row *row, int64_t key);
/* The view is that of the weights of the output; others of its kind (what was evicted) have their
 * own sums, and a 0 in them is no key that a query has. */
bool           row_attends(const View *view);
/* Cells that have a rank: all of them, or those above 0 where 0 is no key. */
int64_t        row_weighed(const Row *row);
const RowCell *row_by_weight(Row *row);
/* Next place after (or before) key where allowed and masked meet; -1: none. */
int64_t row_edge(const Row *row, int64_t key, int direction);

/* Queries that were marked, to be seen together. */

typedef struct Marks {
    int64_t at[MARGIN_QUERIES_MOST]; /* in increasing order */
    int     count;
    bool    summed;  /* shown as a sum instead of a mean */
    int     version; /* changes with every change */
} Marks;

bool marks_has(const Marks *marks, int64_t query);
/* Adds or removes the query; false: the list is full. */
bool marks_toggle(Marks *marks, int64_t query);
void marks_clear(Marks *marks);

#endif
