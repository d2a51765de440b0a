/* ui/pane/reduction.h -- a matrix reduced to the cells of a pane, on the worker.
 *
 * Each frame says what it wants.  A first answer comes from a sample, better
 * ones follow; until then the old answer is shown.  The worker belongs to the
 * side session, so that drawing goes on during a long run.
 */
#ifndef UI_PANE_REDUCTION_H
#define UI_PANE_REDUCTION_H

#include "app/figure/overview.h"
#include "app/figure/picture.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "draw/grid/grid.h"

typedef struct Reduction Reduction;

/* Base of background work that may be abandoned; its first member. */
typedef struct Chore {
    struct Chore *next;
    Job          *job;
    void (*let_go)(struct Chore *chore); /* frees the work after the job has ended */
} Chore;

typedef struct Drawing {
    Grid        grid;   /* cells NULL: nothing yet */
    const void *shown;  /* its view; to compare with only, it may be freed */
    ViewKind    kind;   /* of that view */
    bool        causes; /* its cells carry components */
    GridRequest wanted;
    Result     *results[2]; /* retained: the views of `wanted` live in them */
    int         effort;     /* of the work under way or done: 0 coarse, 1, 2 exact */
    bool        settled;    /* the grid is the best answer to `wanted` there will be */
    Reduction  *work;       /* under way; NULL: none */
    char        problem[256];
} Drawing;

/* The worker and its abandoned work. */
typedef struct Draughtsman {
    Session   *session;
    Threads   *threads;   /* used by the worker only */
    Chore     *abandoned; /* list: cancelled, not yet freed */
} Draughtsman;

bool draughtsman_open(Draughtsman *d, Error *err);
void draughtsman_close(Draughtsman *d);

void drawing_want(Draughtsman *d, Drawing *drawing, const GridRequest *request, Result *result,
                  Result *minus);
/* Takes what is finished; true when the grid changed. */
bool drawing_poll(Draughtsman *d, Drawing *drawing);
/* Ends a better answer under way: the sampled one stays.  False: none was. */
bool drawing_stop(Draughtsman *d, Drawing *drawing);
bool drawing_pending(const Drawing *drawing); /* the first answer is still to come */
void drawing_clear(Draughtsman *d, Drawing *drawing);
void draughtsman_sweep(Draughtsman *d); /* frees abandoned work that has ended */

/* The strips of a pane: bars beside and above its matrix, read on the worker.
 *
 * As with drawings a first answer comes from a sample and better ones follow.
 */

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
/* Clears the strip and stores the reason. */
void side_refuse(Draughtsman *d, Side *side, const char *why);
/* Takes what is finished; true when something changed. */
bool side_poll(Draughtsman *d, Side *side);
void side_clear(Draughtsman *d, Side *side);

/* The same view of every layer and head as small matrices, made on the worker
 * (app/figure/overview.h). */
typedef struct Tiles Tiles;

/* NULL with an error.  The tiles fill in until tiles_done. */
Tiles *tiles_start(Draughtsman *d, const TilesRequest *request, Error *err);
const Tile *tiles_at(const Tiles *tiles, int64_t layer, int64_t head);
int64_t     tiles_ready(const Tiles *tiles); /* how many are READY or NONE */
int64_t     tiles_scored(const Tiles *tiles); /* how many have what scores there are */
bool        tiles_done(const Tiles *tiles);
/* Cancels what is under way; all is freed once the worker has ended. */
void tiles_end(Draughtsman *d, Tiles *tiles);

#endif
