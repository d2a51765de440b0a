/* app/child.h -- this program once more, as a process of its own that may crash, hang or be
 * stopped without harm. */
#ifndef APP_CHILD_H
#define APP_CHILD_H

#include <sys/types.h>

#include "core/error.h"
#include "core/text.h"

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
