/* cli/cli.h -- the command-line front end. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "app/lesson/lesson.h"
#include "app/scripting.h"
#include "core/text.h"

/* argv[1] is a command, --help or --version; `lessons` reads their files, `explorer` adds that
 * front end's options to the help, `scripts` (NULL: none) has handlers of events.  Returns the exit
 * status. */
int cli_main(int argc, char **argv, const LessonReader *lessons, void (*explorer)(Text *out),
             const Interpreter *scripts);

#endif
