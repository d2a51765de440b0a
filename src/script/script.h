/* script/script.h -- the Lua front end: `attnscope lua FILE [ARG...]`.
 *
 * Scripts are the user's own programs: they are not fenced in.  They start the
 * same commands and runs on the same Session as the shell and the screen do.
 */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include <stdbool.h>

#include "app/lesson/lesson.h"
#include "app/scripting.h"
#include "core/error.h"
#include "core/text.h"

/* argv as main got it (argv[1] is "lua").  Returns the exit status. */
int script_main(int argc, char **argv);

/* Scripts that come before the explorer or a command, so that what they define is in the
 * catalogue: $XDG_CONFIG_HOME/attnscope/init.lua where there is one, then the files of each
 * --lua FILE, which are taken out of argv.  NULL with *err still ERR_NONE: there are none. */
typedef struct ScriptHost ScriptHost;
ScriptHost *script_load(int *argc, char **argv, Error *err);
/* Of the explorer; makes *host where it is NULL.  NULL: no memory. */
Interpreter *script_interpreter(ScriptHost **host);
/* When no session is left; NULL is fine. */
void script_unload(ScriptHost *host);
/* Reads the files of lessons; see app/lesson/lesson.h. */
extern const LessonReader script_lessons;

/* Definitions of the whole Lua interface for the Lua language server, made
 * from the registration tables; false: out of memory. */
bool script_stubs(Text *out);
/* The same as a manual in Markdown, and as a section of the man page. */
bool script_reference(Text *out);
bool script_man(Text *out);

#endif
