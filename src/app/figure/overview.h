/* app/figure/overview.h -- one view of every layer and head as small matrices.
 *
 * A layer is loaded and run in a session of its own, its heads are reduced to cells, and the run is
 * freed before the next layer: memory is that of one layer and of the tiles.  The layers of a model
 * come out of one forward pass.
 */
#ifndef APP_FIGURE_OVERVIEW_H
#define APP_FIGURE_OVERVIEW_H

#include "app/call.h"
#include "app/figure/picture.h"
#include "app/result/views.h"
#include "app/session/session.h"
#include "attn/study/heads.h"
#include "draw/grid/grid.h"

typedef enum TileState { TILE_WAITS, TILE_READY, TILE_NONE } TileState;

typedef struct Tile {
    Grid       grid;
    View       view;   /* what is left of it when its run is gone: kind, shape, names */
    ViewFound  found;
    double     share;  /* of found */
    atomic_int state;  /* a TileState; the rest is written before it is READY or NONE */
    char       why[96]; /* of NONE */
    HeadScores scores; /* of the head's weights; label NULL: there are none */
    atomic_bool scored; /* scores are written */
} Tile;

typedef struct TilesRequest {
    const Request *request;
    Result        *result; /* of the layer that is open; NULL: none has run */
    const View    *view;   /* of that result; NULL: found by name */
    const char    *shown;  /* name of the view; "": the most informative one */
    ReachOptions   reach;
    int64_t        round;
    const char    *spec;   /* of the input; NULL: only the open layer */
    InputChoice    choice;
    int64_t        layers, heads, layer; /* layer: which of them is open */
    int64_t        rows, cols; /* of a tile, in cells */
    Threads       *threads;
    void (*on_layer)(void *context, int64_t layer); /* it begins; NULL */
    void          *context;
} TilesRequest;

/* Fills tiles [layers, heads], those of the open layer first; false: cancelled.  A layer that
 * cannot be run has tiles of state NONE with the reason. */
bool tiles_make(const TilesRequest *request, Tile *tiles, const atomic_bool *cancel, Error *err);
void tile_free(Tile *tile);

/* figure --overview: the tiles on a page or as text. */
bool overview_figure(Session *s, const Call *call, Text *out, Error *err);

/* The same for other front ends.  The tiles are made whenever the figure is drawn, so the session,
 * the call and this must outlive the figure. */
typedef struct Overview Overview;
/* Of the call's words; or of a result, if it is not NULL, and its view ("": the most informative
 * one), with the call's options. */
Overview *overview_open(Session *s, const Call *call, Result *shown, const char *view, Error *err);
Figure   *overview_wall(Overview *o, Error *err); /* the caller's */
/* The run of the open layer. */
const FigureRun *overview_run(const Overview *o);
void      overview_free(Overview *o); /* NULL does nothing */

#endif
