/* app/study/budget.h -- sizes of mechanisms that make them comparable on one input.
 *
 * A mechanism's size is the parameter that its descriptor names (Mechanism.size): the width of a
 * window, the tokens of a block, the number of features.  It is chosen for a budget, a share of
 * what exact attention takes, or it follows the input's length where a default was made for a few
 * tokens.  A size that the request gives is never changed.
 */
#ifndef APP_STUDY_BUDGET_H
#define APP_STUDY_BUDGET_H

#include "app/session/session.h"
#include "core/text.h"

typedef enum BudgetKind { BUDGET_PAIRS, BUDGET_FLOPS } BudgetKind;

typedef struct Budget {
    BudgetKind kind;
    double     share; /* of exact attention's, above 0, at most 1; 0: there is no budget */
} Budget;

/* "pairs=5%" or "flops=0.05" */
bool budget_parse(const char *text, Budget *out, Error *err);

/* Sets the request's size to the one whose run comes nearest to the share.  Runs it with several
 * sizes, from cheap to dear, and stops above the budget.  *note: a line that says what was chosen
 * and reached, or why nothing was.  False: no memory or cancelled. */
bool budget_choose(Session *s, const Budget *budget, const Result *exact, Request *request,
                   Text *note, Error *err);

/* The size that size_follow would set on a longer input, and what it is on a short one; NULL: none,
 * or the request gives it. */
const Param *size_left_out(const Request *request, int64_t *usual);
/* On a longer input than defaults are made for, sets a size that was left out to a share of n;
 * *note says so, and how the default is asked for.  Otherwise changes nothing. */
bool size_follow(Session *s, Request *request, Text *note, Error *err);

#endif
