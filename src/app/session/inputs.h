/* app/session/inputs.h -- the inputs that need no file of one's own: the samples and the generators. */
#ifndef APP_SESSION_INPUTS_H
#define APP_SESSION_INPUTS_H

#include "app/session/session.h"

/* Adds the path of the shipped sample to a spec "sample:NAME"; any other spec as it is.  False:
 * there is no such sample. */
bool session_input_path(Session *s, const char *spec, Text *out, Error *err);

/* input_load, where a sample keeps its name: "sample:NAME" is the same on every machine, so that
 * what is made from it can be made again anywhere. */
Input *session_read_input(Session *s, const char *spec, const InputChoice *choice, Error *err);

/* What generators and samples there are, and how one writes them. */
void inputs_describe(Text *out);

#endif
