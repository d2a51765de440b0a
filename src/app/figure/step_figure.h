/* app/figure/step_figure.h -- a mechanism's steps as a figure, an animation, or files. */
#ifndef APP_FIGURE_STEP_FIGURE_H
#define APP_FIGURE_STEP_FIGURE_H

#include "app/figure/picture.h"
#include "app/result/steps.h"

/* What stands under the pictures of steps: numbers over the run, and over a replay. */
typedef struct StepCurves {
    const View *trace;    /* NULL: none */
    int         last[4];  /* steps whose plot (step_plot) is shown: the last of each stage */
    int         count;
} StepCurves;

/* One panel for each step of `which` (indices) that made something to see, and the curves
 * (NULL: none) under them. */
Figure *steps_figure(Result *result, const int *which, int count, const StepCurves *curves,
                     const PictureOptions *options, Error *err);
/* A plot of the numbers a stage of a replay is watched by; NULL: this is not its last step, or
 * there are none. */
Plot *step_last_plot(const Step *step);
/* The trace of the whole run, where the steps [from, to) are watched; NULL: they are not. */
const View *steps_watched(Result *result, int from, int to);
/* What steps [from, to) make, side by side in one figure; .apng: one after the other; with a
 * number in the name (steps-%02d.png): a file each, all of one size.  frame: the number
 * of the one that is written, from 1; NULL: all.  line: the command for the metadata. */
bool steps_save(Result *result, int from, int to, const PictureOptions *options,
                const char *frame, const char *line, const PngOptions *png, const char *path,
                Error *err);

/* False: "NAME-%02d.png" where there are no frames; "50%.png" is a name like any other. */
bool steps_name_once(const char *path, Error *err);

#endif
