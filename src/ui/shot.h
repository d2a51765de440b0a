/* ui/shot.h -- the panes on the screen as the figure that one command draws.
 *
 * A panel's word names its view, its head and what is subtracted; all else is an
 * option of the whole figure, so panes that differ in region, pooling or order
 * have no such command; the shot says why.
 */
#ifndef UI_SHOT_H
#define UI_SHOT_H

#include "app/picture.h"
#include "ui/explorer.h"

typedef struct Shot {
    Pane          *panes[PANES_MOST];
    Panel          panels[PANES_MOST];
    Result        *results[PANES_MOST]; /* borrowed from the panes */
    PanelChoice    choices[PANES_MOST]; /* of the command, when `obstacle` is NULL */
    int            count;
    PictureOptions options; /* of all */
    Result        *base;    /* what differences are to; NULL: none; borrowed */
    const char    *obstacle; /* why no command draws exactly this */
} Shot;

/* only: this pane alone; NULL: the panes on the screen.  Pane 1 is there also
 * when it is not shown, if another one is a difference to it. */
void shot_take(Ui *ui, Pane *only, Shot *shot);

#endif
