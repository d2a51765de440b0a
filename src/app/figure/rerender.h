#ifndef ATTNSCOPE_APP_RERENDER_H
#define ATTNSCOPE_APP_RERENDER_H

#include <stdbool.h>

/* Whether rerender --measure may run the stored command of a figure: it only draws. */
bool rerender_measures(const char *line);

#endif
