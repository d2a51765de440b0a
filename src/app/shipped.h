/* app/shipped.h -- the samples and scripts that come with the program.
 *
 * They stand beside the program (the source tree, PREFIX/share/attnscope).  A program whose file
 * was copied alone has them in itself: they are written once to $XDG_CACHE_HOME/attnscope, or below
 * ~/.cache, or without a home to a folder of the user's own in the folder for temporary files.
 */
#ifndef APP_SHIPPED_H
#define APP_SHIPPED_H

#include <stdbool.h>

#include "core/text.h"

/* Path of NAME ("induction.npz", "advise.lua") of FOLDER ("samples", "scripts/lua").  False: no
 * such file is beside the program or in it, or it cannot be written. */
bool shipped_find(const char *folder, const char *name, Text *path);

#endif
