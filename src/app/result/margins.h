/* app/result/margins.h -- the numbers of the bars beside a matrix: sums, entropies, what is kept.
 *
 * Rows are read one at a time and nothing n x n is held.  With a budget a long matrix is
 * sampled: rows evenly over all of it, for the columns, and those in sight.
 */
#ifndef APP_RESULT_MARGINS_H
#define APP_RESULT_MARGINS_H

#include "app/session/session.h"
#include "draw/figure/figure.h"
#include "draw/grid/annotation.h"

#define MARGIN_QUERIES_MOST 64

typedef struct MarginRequest {
    MarginKind      kind;
    const Run     *run;
    const View    *view;   /* of the run: see margin_view */
    const View    *minus;  /* numbers are those of view - minus; NULL: off */
    int64_t        plane, minus_plane;
    int64_t        head;   /* of exact attention */
    int64_t        excluded; /* column that does not count; -1: none */
    /* Rows that the sums of columns are of, in increasing order; none: all. */
    int64_t        queries[MARGIN_QUERIES_MOST];
    int            query_count;
    int64_t        row0, row1; /* displayed rows in sight; both 0: all */
    const int32_t *row_order;
    double         budget_entries; /* 0: exact */
    Threads       *threads;
    const atomic_bool *cancel;
} MarginRequest;

/* The view whose rows are read where `shown` is on the screen; NULL with the reason. */
const View *margin_view(const Run *run, const View *shown, MarginKind kind, Error *err);
/* False: no memory, cancelled, or exact attention cannot be found. */
bool margin_make(const MarginRequest *request, Margin *out, Error *err);

/* What a figure asks for. */
typedef struct MarginChoice {
    MarginKind kind;
    int64_t    queries[MARGIN_QUERIES_MOST]; /* as above */
    int        query_count;
} MarginChoice;

/* "3,17,20" */
bool margin_parse_queries(const char *text, MarginChoice *out, Error *err);
/* The bars of one panel of the result, for a figure; its numbers are exact up to a budget.
 * minus: the result whose view the panel subtracts; NULL: none. */
bool margin_of_panel(const Result *result, const Result *minus, const MarginChoice *choice,
                     int64_t head, Threads *threads, const atomic_bool *cancel, Panel *panel,
                     Error *err);

#endif
