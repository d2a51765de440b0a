/* app/program.h -- where the program is, where it keeps its files, what it prints, and itself as a
 * child process.
 *
 * Folders are those of the XDG base directory specification: state needs no backup and is no cache.
 */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

#include <sys/types.h>

#include "core/error.h"
#include "core/text.h"

/* Folder of the program's file; in stock Lua, of the module's.  False: not known. */
bool place_home(Text *out);
/* "$XDG_STATE_HOME/attnscope/NAME", or below ~/.local/state; false: there is no home folder. */
bool place_state(const char *name, Text *out, Error *err);
/* The same for $XDG_DATA_HOME, or ~/.local/share: the user's files. */
bool place_data(const char *name, Text *out, Error *err);
/* The same in a folder of $XDG_DATA_DIRS, which all users of the machine share; from 0.  False: the
 * folder counts for nothing. */
bool place_data_shared(const char *name, int index, Text *out, Error *err);
int  place_data_shared_count(void);
/* The same for $XDG_CACHE_HOME, or ~/.cache: what can be made again. */
bool place_cache(const char *name, Text *out, Error *err);
/* Makes the missing folders above a file, readable by the user alone. */
bool place_make_folders(const char *path, Error *err);
/* As file_read and file_write, for a file that the program finds by itself: a device, a pipe or a
 * folder in its place is an error, and nobody waits for it. */
bool place_read(const char *path, size_t most, Text *out, Error *err);
bool place_write(const char *path, const void *bytes, size_t length, Error *err);
/* Opens such a file, which may be missing, to add to its end; -1 with an error. */
int  place_append(const char *path, Error *err);
/* False, with an error: there is something of that name that is no regular file. */
bool place_is_file(const char *path, Error *err);
/* The absolute form of a path; the file may be missing, and "." and ".." stay. */
void place_absolute(const char *path, Text *out);

/* At the very start of main.  Streams that are closed become ones that nothing comes from and
 * nothing can be written to, so that no file gets their number; a library's crash where memory is
 * short ends with a message (core/shortage.h); a file that may not grow is an error; a stack that
 * is too small is made larger, by starting again.  False, with a message: it cannot be. */
bool program_begin(char **argv);

/* Standard output and standard error of every front end.  Words of files stand in results and
 * messages: a terminal shows them and never obeys them (text_add_shown). */

/* "attnscope: WORDS" on standard error. */
void program_message(const char *words);
/* The message of an error that ends the program; returns the exit status.  In a child of this
 * program (POINT_VARIABLE) its code stands on a line before: "attnscope: error NOMEM". */
int  program_fail(const Error *err);
/* The same line again and again, while work goes on. */
void program_progress(const char *words);
/* A result; the exit status is 1 where standard output cannot be written, with a message. */
int program_print(const Text *text);

/* This program as a child process, which may crash, hang or be stopped without harm.  The child has
 * a process group of its own, so Ctrl-C reaches the parent alone; it dies with its parent.  Between
 * fork and exec only async-signal-safe calls are made: the explorer and Lua have threads. */

#define POINT_VARIABLE "ATTNSCOPE_POINT" /* set in the environment of such a child */

typedef struct Child {
    pid_t  pid;
    int    out, err; /* read ends: a pipe, a memory file */
    int    status;   /* of waitpid */
    double seconds, cpu;
    bool   stopped, late, endless; /* ended for that; endless: it wrote too much */
} Child;

typedef struct ChildWatch {
    double deadline;                /* clock_wall; 0: none */
    bool (*stopped)(void *context); /* polled; NULL: never stopped */
    void  *context;
    const char *program;            /* another program's file; NULL: this program */
} ChildWatch;

/* Runs the program with these words (the first is its name, NULL ends them) until it ends; its
 * output goes to *output.  False: it could not start.  Then child_end. */
bool child_run(Child *child, char *const *words, const ChildWatch *watch, Text *output, Error *err);
/* The code that the child's last error gave itself (program_fail); ERR_NONE: it gave none. */
ErrorCode child_error(const Child *child);
/* Why there is no result: the signal that ended it, the last line on stderr without the program's
 * name, or the exit status. */
void child_reason(const Child *child, char *text, size_t size);
void child_end(Child *child);

#endif
