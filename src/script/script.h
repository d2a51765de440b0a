/* script/script.h -- the Lua front end: `attnscope lua FILE [ARG...]`.
 *
 * Scripts are the user's own programs: they are not fenced in.  They start the
 * same commands and runs on the same Session as the shell and the screen do.
 */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include <stdbool.h>

#include "app/lesson.h"
#include "core/text.h"

/* argv as main got it (argv[1] is "lua").  Returns the exit status. */
int script_main(int argc, char **argv);

/* Reads the files of lessons; see app/lesson.h. */
extern const LessonReader script_lessons;

/* Definitions of the whole Lua interface for the Lua language server, made
 * from the registration tables; false: out of memory. */
bool script_stubs(Text *out);

#endif
