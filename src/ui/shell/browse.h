/* ui/shell/browse.h -- inside of the first screen; for its own files. */
#ifndef UI_SHELL_BROWSE_H
#define UI_SHELL_BROWSE_H

#include "ui/shell/explorer.h"

#define LINES_MOST 256
#define MARKS_MOST 128 /* mechanisms there may be */

enum { BROWSE_BY_CLASS, BROWSE_BY_YEAR, BROWSE_BY_COST, BROWSE_ORDERS };

/* A line of the list: a group or a mechanism. */
typedef struct BrowseLine {
    int  index; /* of the mechanism; -1: a heading */
    int  group; /* of the order: a bit of Browse.folded */
    char text[64];
} BrowseLine;

typedef struct BrowseList {
    BrowseLine lines[LINES_MOST];
    int        count, mechanisms;
} BrowseList;

/* Lines as filtered and folded; clamps the cursor to them. */
void browse_list(Browse *browse, BrowseList *list);
bool browse_is_folded(const Browse *browse, int group);
/* The cursor to the mechanism that shows finished weights. */
void browse_find_weights(Ui *ui);
/* Where a mechanism stands; 0: not in sight. */
int  browse_line_of(const BrowseList *list, int index);
void browse_list_draw(Ui *ui, Area area, const BrowseList *list);
/* The card of mechanism `index`, with its thumbnail. */
void browse_card_draw(Ui *ui, Area area, int index);

#endif
