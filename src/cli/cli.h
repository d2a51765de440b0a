/* cli/cli.h -- the command-line front end. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/* argv[1] is a command, --help or --version.  Returns the exit status. */
int cli_main(int argc, char **argv);

#endif
