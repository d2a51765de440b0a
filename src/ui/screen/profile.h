/* ui/screen/profile.h -- the profile screen's own: bars and time over n (profile.c), plots and
 * a GPU's page (profile_plots.c). */
#ifndef UI_SCREEN_PROFILE_H
#define UI_SCREEN_PROFILE_H

#include "app/figure/picture.h"
#include "app/figure/plots.h"
#include "ui/state/panes.h"

/* What the profile screen shows; v steps through them. */
enum {
    PROFILE_COSTS,    /* bars and stages: profile.c */
    PROFILE_TIMELINE, /* of the focused pane, with its stages */
    PROFILE_MEMORIES, /* of all panes */
    PROFILE_QUALITY,
    PROFILE_SEEDS,
    PROFILE_ROOFLINE,
    PROFILE_DEVICE,   /* kernels over time, of the focused pane */
    PROFILE_KERNELS,  /* by kernel */
    PROFILE_SCALING,  /* time over n */
    PROFILE_VIEWS
};

void profile_plot_draw(Ui *ui, Area area);
/* The GPU's measurements of the pane, with its kernels as a table. */
void profile_gpu_draw(Ui *ui, Area area, const Pane *pane);
bool profile_has_gpu(const Pane *pane);
/* Below the bars, where they leave room: memory over time, and time over n or the roofline. */
void profile_more_draw(Ui *ui, Area area);
/* As a figure, with an error where nothing is measured. */
bool profile_figure(Ui *ui, ScreenFigure *out, Error *err);
/* A pane that was opened for a plot: it is measured, and the screen shows the plot;
 * false: it was not. */
bool profile_take(Ui *ui, Pane *pane);
bool profile_poll(Ui *ui); /* true: something is to be drawn */
void profile_end(Ui *ui);
/* Another plot. */
void profile_turn(Ui *ui, int by);

/* Time over n of the open panes, filling in while it is measured.
 *
 * As `compare --plot scaling`: N(0,1) inputs of doubling lengths.  One point at a time is a
 * job of the session, and only while nothing else waits, so panes stay live.
 */

bool  scaling_poll(Ui *ui);         /* true: something is to be drawn */
void  scaling_close(Ui *ui);
/* The plot so far; NULL: nothing is measured yet.  The caller frees it. */
Plot *scaling_plot(const Ui *ui, Error *err);
/* As a figure, and the command that measures it anew. */
Figure *scaling_figure(const Ui *ui, Text *command, Error *err);
/* "time over n, 5 of 14 points"; "" before it begins. */
void  scaling_title(const Ui *ui, char *text, size_t size);
bool  scaling_runs(const Ui *ui);

#endif
