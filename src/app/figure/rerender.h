/* app/figure/rerender.h -- what rerender may measure again. */
#ifndef APP_FIGURE_RERENDER_H
#define APP_FIGURE_RERENDER_H

#include <stdbool.h>

/* Whether rerender --measure may run the stored command of a figure: it only draws. */
bool rerender_measures(const char *line);

#endif
