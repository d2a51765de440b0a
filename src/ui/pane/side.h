/* ui/pane/side.h -- the strips of a pane: bars beside and above its matrix, read on the worker.
 *
 * As with drawings a first answer comes from a sample and better ones follow.
 */
#ifndef UI_PANE_SIDE_H
#define UI_PANE_SIDE_H

#include "app/result/margins.h"
#include "ui/pane/drawing.h"

typedef struct SideWork SideWork;

typedef struct Side {
    Margin        margin;  /* kind MARGIN_NONE: nothing yet */
    const View  *shown;   /* the view it is of; to compare with, it may be gone */
    MarginRequest wanted;
    Result      *results[2]; /* retained: the views of `wanted` live in them */
    int          effort;
    bool         settled;
    SideWork    *work;    /* under way; NULL: none */
    char         problem[256]; /* why there is none */
} Side;

void side_want(Draughtsman *d, Side *side, const MarginRequest *request, Result *result,
               Result *minus);
/* There is none, and why. */
void side_refuse(Draughtsman *d, Side *side, const char *why);
/* Takes what is finished; true when something changed. */
bool side_poll(Draughtsman *d, Side *side);
void side_clear(Draughtsman *d, Side *side);

#endif
