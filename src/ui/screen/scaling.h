/* ui/screen/scaling.h -- time over n of the open panes, filling in while it is measured.
 *
 * As `compare --plot scaling`: N(0,1) inputs of doubling lengths.  One point at a time is a
 * job of the session, and only while nothing else waits, so panes stay live.
 */
#ifndef UI_SCREEN_SCALING_H
#define UI_SCREEN_SCALING_H

#include "draw/figure/figure.h"
#include "ui/screen/compare.h"

/* Begins anew with the panes there are. */
void  scaling_start(Ui *ui);
bool  scaling_poll(Ui *ui);         /* true: something is to be drawn */
bool  scaling_cancel(Ui *ui);       /* what is measured stays; false: nothing ran */
void  scaling_close(Ui *ui);
/* The first length of all panes is measured. */
bool  scaling_known(const Ui *ui);
/* The plot so far; NULL: nothing is measured yet.  The caller frees it. */
Plot *scaling_plot(const Ui *ui, Error *err);
/* As a figure, and the command that measures it anew. */
Figure *scaling_figure(const Ui *ui, Text *command, Error *err);
/* "time over n, 5 of 14 points"; "" before it begins. */
void  scaling_title(const Ui *ui, char *text, size_t size);
bool  scaling_runs(const Ui *ui);

#endif
