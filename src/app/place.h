/* app/place.h -- where the program is, and where it keeps files of its own, as the XDG base
 * directory specification says: state is what need not be backed up and is no cache. */
#ifndef APP_PLACE_H
#define APP_PLACE_H

#include "core/error.h"
#include "core/text.h"

/* The folder of the program's file; in stock Lua, of the module's.  False: nobody knows. */
bool place_home(Text *out);
/* What to execute to run the program once more; in stock Lua the program beside the module, in
 * the folder above it, or on PATH. */
bool place_program(Text *out, Error *err);
/* "$XDG_STATE_HOME/attnscope/NAME", or below ~/.local/state; false: there is no home. */
bool place_state(const char *name, Text *out, Error *err);
/* The same of $XDG_DATA_HOME, or ~/.local/share: what the user put there. */
bool place_data(const char *name, Text *out, Error *err);
/* The folders above a file, made where they are missing, readable by the user alone. */
bool place_make_folders(const char *path, Error *err);
/* An absolute form of a path, which need not be there; "." and ".." stay in it. */
void place_absolute(const char *path, Text *out);

#endif
