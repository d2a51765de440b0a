/* ui/pane/drawing.h -- a matrix reduced to the cells of a pane, on the worker.
 *
 * What is wanted is said for every frame; a first answer comes from a sample,
 * better ones follow, and an old answer stays to be shown until then.  The
 * worker is the side session's, so that drawing goes on while a run takes long.
 */
#ifndef UI_PANE_DRAWING_H
#define UI_PANE_DRAWING_H

#include "app/session/session.h"
#include "draw/grid/grid.h"

typedef struct Reduction Reduction;

/* Work for the worker that nobody may wait for any more; the first member of such work. */
typedef struct Chore {
    struct Chore *next;
    Job          *job;
    void (*let_go)(struct Chore *chore); /* frees all of it once the job is over */
} Chore;

typedef struct Drawing {
    Grid        grid;   /* cells NULL: nothing yet */
    const void *shown;  /* the view it is of; to compare with, it may be gone */
    ViewKind    kind;   /* of that view */
    bool        causes; /* its cells carry components */
    GridRequest wanted;
    Result     *results[2]; /* retained: the views of `wanted` live in them */
    int         effort;     /* of the work under way or done: 0 coarse, 1, 2 exact */
    bool        settled;    /* the grid is the best answer to `wanted` there will be */
    Reduction  *work;       /* under way; NULL: none */
    char        problem[256];
} Drawing;

/* The worker and what it still holds. */
typedef struct Draughtsman {
    Session   *session;
    Threads   *threads;   /* used by the worker only */
    Chore     *abandoned; /* list: cancelled, not yet let go */
} Draughtsman;

bool draughtsman_open(Draughtsman *d, Error *err);
void draughtsman_close(Draughtsman *d);

void drawing_want(Draughtsman *d, Drawing *drawing, const GridRequest *request, Result *result,
                  Result *minus);
/* Takes what is finished; true when the grid changed. */
bool drawing_poll(Draughtsman *d, Drawing *drawing);
bool drawing_pending(const Drawing *drawing); /* the first answer is still to come */
void drawing_clear(Draughtsman *d, Drawing *drawing);
void draughtsman_sweep(Draughtsman *d); /* frees what the worker let go */
/* Cancels it; it is freed when the worker has let it go. */
void draughtsman_abandon(Draughtsman *d, Chore *chore);
bool chore_over(const Chore *chore);

#endif
