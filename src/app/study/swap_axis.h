/* app/study/swap_axis.h -- the values of one name in the text of a swap.
 *
 * A swap depends on a name in one of two ways.  The name stands as a value in its parenthesis, as
 * `w` in "pattern(window(w)+cols(4))"; or it is a parameter of its mechanism, as `window` of
 * "window" and of "window(window=9)".
 */
#ifndef APP_STUDY_SWAP_AXIS_H
#define APP_STUDY_SWAP_AXIS_H

#include <stdbool.h>

#include "core/text.h"

bool swap_varies(const char *swap, const char *name);
/* The swap at a value of the name: "window(window=17)".  value NULL: without the parameter, as the
 * name of a curve: "window".  A swap that does not depend on the name stays as it is. */
void swap_at(const char *swap, const char *name, const char *value, Text *out);

#endif
