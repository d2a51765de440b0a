/* app/program.h -- where the program is, and where it keeps files of its own, as the XDG base
 * directory specification says: state is what need not be backed up and is no cache. */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

#include <sys/types.h>

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

/* This program once more, as a process of its own that may crash, hang or be
 * stopped without harm. */

typedef struct Child {
    pid_t  pid;
    int    out, err; /* read ends: a pipe, a memory file */
    int    status;   /* of waitpid */
    double seconds, cpu;
    bool   stopped, late; /* and killed therefore */
} Child;

typedef struct ChildWatch {
    double deadline;                /* clock_wall; 0: none */
    bool (*stopped)(void *context); /* asked now and then; NULL: nobody stops it */
    void  *context;
} ChildWatch;

/* Runs it with these words (the first is the program's name, NULL ends them) until it has ended;
 * what it printed goes to *said.  False: it could not be started.  Then child_end. */
bool child_run(Child *child, char *const *words, const ChildWatch *watch, Text *said, Error *err);
/* Why it has no result: the signal that ended it, or the last line that it said on stderr
 * without the program's name, or its exit status. */
void child_reason(const Child *child, char *text, size_t size);
void child_end(Child *child);

#endif
