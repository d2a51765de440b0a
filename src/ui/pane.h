/* ui/pane.h -- one matrix on the compare screen: a request, its last good
 * result, and how it is looked at. */
#ifndef UI_PANE_H
#define UI_PANE_H

#include "app/picture.h"
#include "ui/drawing.h"
#include "ui/lens.h"
#include "ui/matrix.h"
#include "ui/row.h"

typedef struct Ui Ui;

typedef struct Pane {
    Request     request;      /* what is asked for; owned */
    Result     *result;       /* the last good one, retained; NULL: none yet */
    Job        *job;          /* its next one; NULL: none under way */
    char        problem[512]; /* why there is no result for `request`; "": there is or will be */
    bool        ask;          /* a parameter must be typed before the first run */
    Result     *measured;     /* retained; NULL: not measured */
    Job        *measuring;
    const View *telling;  /* of the result, found once; NULL: it has no matrix */
    char        view[48]; /* wanted; "": the most telling one */
    int64_t     head, round;
    int         pool, scale, map; /* -1: the kind's own */
    bool        sorted;
    Lens        lens;
    Drawing     drawing;
    Row         row; /* of the weights at the cursor */
    /* Sorted orders of the result, found once. */
    const int32_t *order;
    int64_t        order_head; /* -1: not looked for */
    /* As last laid out: */
    Area      area;   /* of the pane; h 0: not on the screen */
    Area      canvas; /* of the matrix in it */
    LensShape shape;
} Pane;

/* Starts the request; the result replaces the present one when it is good. */
void pane_run(Ui *ui, Pane *pane);
/* Takes finished jobs; true when something is to be drawn. */
bool pane_poll(Ui *ui, Pane *pane);
void pane_measure(Ui *ui, Pane *pane);
void pane_close(Ui *ui, Pane *pane);

/* The view looked at, or NULL. */
const View *pane_view(const Pane *pane);
/* "weights" if the mechanism has them, else the view looked at; NULL: none. */
const View *pane_weights(const Pane *pane);
int64_t     pane_heads(const Pane *pane); /* 1 at least */
int64_t     pane_rounds(const Pane *pane);
int64_t     pane_plane(const Pane *pane, const View *view);
/* Everything picture-like about it; false: nothing to show. */
bool pane_panel(Ui *ui, Pane *pane, Panel *panel);
bool pane_differs(Ui *ui, const Pane *pane); /* shown as a difference to the first */
/* Entry of the view under the cursor (displayed order undone). */
void pane_cursor(const Pane *pane, int64_t *q, int64_t *k);
/* Displayed position of an entry. */
void pane_point(Pane *pane, int64_t q, int64_t k);
void pane_step_view(Pane *pane, int direction);
void pane_title(Ui *ui, const Pane *pane, int number, char *text, size_t size);
bool pane_ready(const Pane *pane);

#endif
