/* app/figure/view_names.h -- names of views before anything has run.
 *
 * Which views a run has is known when it is done.  What its mechanism promises is known before,
 * and so is a slip of the hand: a name that is none of them, but nearly one.
 */
#ifndef APP_FIGURE_VIEW_NAMES_H
#define APP_FIGURE_VIEW_NAMES_H

#include "attn/mechanism.h"

/* False, with the name that is meant: surely a slip.  Names that are near none are left to the
 * run: traces, terms of a position and views of a mechanism inside are its own. */
bool view_name_check(const Mechanism *m, const char *name, Error *err);

#endif
