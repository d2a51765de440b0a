/* ui/pane/tiles.h -- the same view of every layer and head as small matrices, made on the worker.
 *
 * A layer is loaded and run in a session of its own, its heads are reduced to cells, and the
 * run is let go before the next layer: memory is that of one layer and of the tiles.
 */
#ifndef UI_PANE_TILES_H
#define UI_PANE_TILES_H

#include "app/figure/picture.h"
#include "ui/pane/drawing.h"

typedef enum TileState { TILE_WAITS, TILE_READY, TILE_NONE } TileState;

typedef struct Tile {
    Grid       grid;
    View       view;  /* what is left of it when its run is gone: kind, shape, names */
    ViewFound  found;
    double     share; /* of found */
    atomic_int state; /* a TileState; the rest is written before it is READY or NONE */
    char       why[96]; /* of NONE */
} Tile;

typedef struct TilesRequest {
    const Request *request;
    Result        *result; /* of the layer that is open */
    const View    *shown;  /* of it */
    ReachOptions   reach;
    int64_t        round;
    const char    *spec;   /* of the input; NULL: only the open layer */
    InputChoice    choice;
    int64_t        layers, heads, layer; /* layer: which of them is open */
    int64_t        rows, cols; /* of a tile, in pixels */
} TilesRequest;

typedef struct Tiles Tiles;

/* NULL with an error.  The tiles fill in until tiles_done. */
Tiles *tiles_start(Draughtsman *d, const TilesRequest *request, Error *err);
const Tile *tiles_at(const Tiles *tiles, int64_t layer, int64_t head);
int64_t     tiles_ready(const Tiles *tiles); /* how many are READY or NONE */
bool        tiles_done(const Tiles *tiles);
/* Cancels what is under way and frees all when the worker let it go. */
void tiles_end(Draughtsman *d, Tiles *tiles);

#endif
