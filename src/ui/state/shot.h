/* ui/state/shot.h -- the panes on the screen as the figure that one command draws.
 *
 * A panel's word names its view, its head and what is subtracted; what all panes share is an
 * option of the whole figure, in what they differ stands in the braces of each.
 */
#ifndef UI_STATE_SHOT_H
#define UI_STATE_SHOT_H

#include "app/figure/picture.h"
#include "ui/shell/explorer.h"

typedef struct Shot {
    Pane          *panes[PANES_MOST];
    Panel          panels[PANES_MOST];
    Result        *results[PANES_MOST]; /* borrowed from the panes */
    PanelChoice    choices[PANES_MOST]; /* of the command */
    PanelLooks     looks[PANES_MOST];   /* of the choices, which point here */
    int            count;
    PictureOptions options; /* of all */
    Result        *base;    /* what differences are to; NULL: none; borrowed */
} Shot;

/* only: this pane alone; NULL: the panes on the screen.  Pane 1 is there also
 * when it is not shown, if another one is a difference to it. */
void shot_take(Ui *ui, Pane *only, Shot *shot);

#endif
