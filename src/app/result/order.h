/* app/result/order.h -- the tokens of a result in the order its mechanism sorted them in.
 *
 * A mechanism of several rounds (reformer) sorts anew in each: what one round made is shown
 * in that round's order, what all rounds made together in the first's.
 */
#ifndef APP_RESULT_ORDER_H
#define APP_RESULT_ORDER_H

#include "app/session/session.h"
#include "draw/figure/figure.h"

/* The view that orders are read from: an order, else categories; NULL: none. */
const View *result_order_source(const Result *result);
/* How many orders a head has; 1 at least. */
int64_t result_order_rounds(const Result *result);
/* Of which round a view is: 0 where it is of all. */
int64_t result_order_round(const Result *result, const View *view);
/* Rows and columns in the order the mechanism sorted them (buckets, clusters), when it has
 * one (slot -> token); owned by the run's arena; NULL: token order is all there is. */
const int32_t *result_sorted_order(Result *result, int64_t head, int64_t round);

/* Whether rows or columns of a view are the `n` tokens of such an order. */
bool view_sorts_rows(const View *view, int64_t n);
bool view_sorts_cols(const View *view, int64_t n);
/* Each row of the view is a round over the tokens, and has its own order. */
bool result_sorts_by_row(const Result *result, const View *view);

/* Rows and columns of the panel in that order, as far as they are the n tokens; where each row
 * has its own, the panel's view is replaced by one that is sorted. */
void picture_order_panel(Result *result, int64_t head, int64_t round, Panel *panel);
/* The same with the borders of the chunks, else of the clusters. */
void picture_sort_panel(Result *result, int64_t head, int64_t round, Panel *panel);

/* Line of a view over the tokens that belongs to a round of a head: categories, chunks. */
const int32_t *round_line(const Run *run, const View *view, int64_t head, int64_t round);

#endif
