/* app/step_frames.h -- the steps of a mechanism one after the other: an animation, or a file
 * for each. */
#ifndef APP_STEP_FRAMES_H
#define APP_STEP_FRAMES_H

#include "app/command.h"
#include "app/steps.h"
#include "draw/figure.h"

/* *moves: the file is an animation, its name has a number (steps-%02d.png), or one frame is
 * asked for (NULL: none is); otherwise the steps stand side by side in one figure. */
bool steps_are_frames(const char *path, const char *frame, const PngOptions *options, bool *moves,
                      Error *err);
/* figure: a panel for each step of `which`, to which what the step does is added. */
bool steps_save_frames(Figure *figure, Result *result, const int *which, const Call *call,
                       const PngOptions *options, Error *err);

#endif
