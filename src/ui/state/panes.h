/* ui/state/panes.h -- the panes that are open: they come and go, move together, and stand in
 * tiles. */
#ifndef UI_STATE_PANES_H
#define UI_STATE_PANES_H

#include "ui/state/explorer.h"

/* The focused pane if a matrix stands in it, else NULL. */
Pane *seen_pane(Ui *ui);

/* ---- opening and closing ----------------------------------------------------- */

/* A pane for "bigbird(window=5):weights@1"; NULL with a message. */
Pane *panes_open(Ui *ui, const char *text);
/* A pane for a mechanism picked from a list: with its sketch on a short input. */
Pane *panes_pick(Ui *ui, const Mechanism *m);
/* A pane for a request, which it takes over; NULL with a message (then it is freed). */
Pane *panes_open_request(Ui *ui, Request *request);
/* The panels of a plan, as many as there is room for, in the place of all panes. */
void  panes_open_plan(Ui *ui, FigurePlan *plan);
/* A preset in panes, on its own input; with a message. */
void  panes_open_preset(Ui *ui, const char *name);
/* Opens the parameter editor if the focused pane lacks a required parameter. */
void  panes_ask(Ui *ui);
void  panes_close_one(Ui *ui, int at);
void  panes_clear(Ui *ui); /* closes all */

/* ---- running ----------------------------------------------------------------- */

/* Runs a pane after its request changed, and the panes that depend on it. */
void panes_run(Ui *ui, Pane *pane);
bool panes_poll(Ui *ui);

/* ---- cursor and tiles -------------------------------------------------------- */

void panes_link(Ui *ui); /* the others follow the focused pane */
/* Laid out: linked panes that are not seen whole show as much as the smallest of them. */
void panes_see_one_region(Ui *ui);
/* Cursor to an entry (token order), in sight, the others following. */
void go_to_cell(Ui *ui, Pane *pane, int64_t q, int64_t k);

/* Where the inspector stands. */
typedef enum DockSide { DOCK_RIGHT, DOCK_UNDER, DOCK_NONE, DOCK_SIDES } DockSide;

/* The parts of the compare screen (tiles.c). */
typedef struct PaneRooms {
    Area     panes, dock; /* h 0: not there */
    DockSide side;
    int      below;             /* least lines of an inspector below the panes */
    int      least, wanted;     /* columns that the inspector's text needs, and takes */
    int      legend_y;          /* two lines */
    int      rows, cols, shown; /* tiles */
} PaneRooms;

PaneRooms panes_rooms(Ui *ui, Area area);
/* The action's words stand in the last line: some keys work only with what is in the pane. */
bool      pane_hint(Ui *ui, const Action *action);
Area      tile_of(const PaneRooms *rooms, int index);
/* What the parameter editor covers. */
Area      params_area(Ui *ui);

#endif
