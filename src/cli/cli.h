/* cli/cli.h -- the command-line front end. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "app/lesson.h"

/* argv[1] is a command, --help or --version; `lessons` reads their files.  Returns the exit
 * status. */
int cli_main(int argc, char **argv, const LessonReader *lessons);

#endif
