/* app/command/heads.h -- the figure of the command heads. */
#ifndef APP_COMMAND_HEADS_H
#define APP_COMMAND_HEADS_H

#include "app/call.h"
#include "model/heads.h"

/* Options that do not fit a figure, before the pass. */
bool heads_figure_check(const Call *call, Error *err);
/* Writes the call's files; words: below the figure. */
bool heads_figure(const Call *call, const HeadsResult *result, const char *words, Error *err);

#endif
