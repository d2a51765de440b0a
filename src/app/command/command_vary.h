/* app/command/command_vary.h -- the plots and the answer of compare --vary; private to app/. */
#ifndef APP_COMMAND_COMMAND_VARY_H
#define APP_COMMAND_COMMAND_VARY_H

#include "app/call.h"
#include "app/study/sweep.h"

/* --plot and --keep beside --vary must be readable. */
bool vary_check_options(const Call *call, Error *err);
/* The call asks for a file or an answer instead of the table. */
bool vary_draws(const Call *call);
bool vary_draw(Session *s, const Call *call, Text *out, Error *err);
/* The plots of results that the table has shown: exact attention, then the words' rows. */
bool vary_show(Session *s, const Call *call, Result *const *results, int count, Text *out,
               Error *err);

#endif
