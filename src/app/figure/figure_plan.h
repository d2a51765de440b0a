/* app/figure/figure_plan.h -- what the words and options of a figure ask for, before anything runs.
 *
 * The command line runs a plan and draws it; the explorer opens it in panes.
 */
#ifndef APP_FIGURE_FIGURE_PLAN_H
#define APP_FIGURE_FIGURE_PLAN_H

#include "app/call.h"
#include "app/figure/panel_looks.h"

#define FIGURE_PLAN_MOST 64

typedef struct PlannedPanel {
    Request request;        /* owned */
    char    view[48];       /* "": the most telling one; "name*": each that begins so and is
                               not in the figure yet */
    int64_t head;           /* -1: not said; HEADS_ALL: a panel of each */
    bool    sorted;         /* tokens in the mechanism's own order */
    bool    differs;        /* the two below are subtracted */
    Request minus;          /* owned */
    char    minus_view[48]; /* "": of the same name */
    bool    joins;          /* its curve goes into the plot of the panel before it */
    bool    plot;           /* its numbers are measured: app/figure/plots.h */
    bool    maybe;          /* left out where the run has no such view */
    char    title[128];     /* "": made of the request */
    PanelLooks looks;
} PlannedPanel;

typedef struct FigurePlan {
    PlannedPanel *panels; /* owned */
    int        count, capacity;
    bool       effect; /* rows of panels, one row a mechanism; weights on one scale */
} FigurePlan;

/* From the words of a call whose input is loaded, options included.  Free with
 * figure_plan_free also on failure. */
bool figure_plan_make(Session *s, const Call *call, FigurePlan *out, Error *err);
void figure_plan_free(FigurePlan *plan);

/* What the position of `with` does: the view (NULL: weights) without it and with
 * it, their difference, and what it adds to the scores. */
bool figure_plan_effect(FigurePlan *plan, const Request *with, const char *view, int64_t head,
                        const char *prefix, Error *err);

#endif
