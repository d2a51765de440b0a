/* app/figure/figure_run.h -- the figure that words describe: planned, run, put together.
 *
 * The figure command, rerender and Lua's attn.figure{command=..} draw by it.
 */
#ifndef APP_FIGURE_FIGURE_RUN_H
#define APP_FIGURE_FIGURE_RUN_H

#include "app/figure/picture.h"
#include "app/figure/plan.h"

typedef struct Drawing {
    Result     *known;                /* a run made before, of use here; borrowed; NULL: none */
    FigurePlan  plan;
    int         count;                /* of panels */
    PanelChoice panels[FIGURE_PLAN_MOST];
    Result     *results[FIGURE_PLAN_MOST];   /* retained; of each panel */
    Result     *bases[FIGURE_PLAN_MOST];     /* retained; what is subtracted; NULL: nothing */
    char        views[FIGURE_PLAN_MOST][48]; /* of the panels; "" the most telling one */
    char        titles[FIGURE_PLAN_MOST][128];
} Drawing;

/* Loads the call's input and runs what its words ask for.  Free with drawing_free
 * also on failure.  pictures_only: nobody looks at the results but the figure, so that a run
 * of which it shows allowed pairs leaves attention out (RunSpec.pairs_only). */
bool drawing_make(Session *s, const Call *call, bool pictures_only, Drawing *out, Error *err);
/* What the position of a result does, drawn beside it. */
bool drawing_effect(Session *s, Result *with, int64_t head, Drawing *out, Error *err);
/* With the call's options.  The drawing must outlive it. */
Figure *drawing_figure(Session *s, const Call *call, Drawing *drawing, Error *err);
void    drawing_free(Drawing *drawing);

#endif
