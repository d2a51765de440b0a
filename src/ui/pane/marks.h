/* ui/pane/marks.h -- queries that were marked, to be seen together. */
#ifndef UI_PANE_MARKS_H
#define UI_PANE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "app/result/margins.h"

typedef struct Marks {
    int64_t at[MARGIN_QUERIES_MOST]; /* in increasing order */
    int     count;
    bool    summed;  /* shown as a sum instead of a mean */
    int     version; /* changes with every change */
} Marks;

bool marks_has(const Marks *marks, int64_t query);
/* In or out; false: there is no room for one more. */
bool marks_toggle(Marks *marks, int64_t query);
void marks_clear(Marks *marks);

#endif
