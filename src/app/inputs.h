/* app/inputs.h -- the inputs that need no file of one's own: the samples and the generators. */
#ifndef APP_INPUTS_H
#define APP_INPUTS_H

#include "app/session.h"

/* "sample:NAME" as the path of that shipped sample, which is the session's; any other spec as
 * it is.  NULL: there is no such sample. */
const char *session_input_path(Session *s, const char *spec, Error *err);

/* What generators and samples there are, and how one writes them. */
void inputs_describe(Text *out);

#endif
