/* script/host/turn.h -- turns of scripts while the explorer runs.
 *
 * The explorer's thread owns the state, and every script is a coroutine, a task.  A turn ends when
 * the script waits or, by a hook, after some milliseconds, so that not even an endless loop holds
 * up the screen.  A comparison of table.sort or a metamethod cannot be left in the middle; such a
 * turn may take some seconds.
 */
#ifndef SCRIPT_HOST_TURN_H
#define SCRIPT_HOST_TURN_H

#include <lua.h>
#include <stdbool.h>

#include "app/scripting.h"
#include "script/host/binding.h"

#define TASKS_MOST 16

/* Lines of name and value as a table.  [-0, +1, m] */
void push_lines(lua_State *L, const char *lines);

/* Why a task does not go on. */
typedef enum TaskWait { TASK_READY, TASK_SLEEPS, TASK_SETTLES, TASK_ASKS } TaskWait;

typedef struct Task {
    lua_State *thread; /* NULL: free */
    int        anchor; /* in the registry */
    TaskWait   wait;
    double     due;    /* of TASK_SLEEPS: seconds, monotonic */
    char       doing[96]; /* what it waits for, "": nothing */
    int        given;  /* values on the thread's stack to go on with */
} Task;

typedef struct Console {
    struct Start *start;
    const Control *control; /* NULL: no explorer */
    Text        output;
    Task        tasks[TASKS_MOST];
    Task       *now;   /* whose turn it is; NULL: none */
    double      began; /* its turn */
} Console;

#define TURN_HOOK_EVERY 10000 /* instructions between looks at the clock */
/* Ends a turn that takes too long. */
void turn_hook(lua_State *L, lua_Debug *unused);
/* The present task waits; to be returned from a C function, which goes on in `then` (NULL: what
 * is given to the task is the function's result).  Raises where it cannot.  [-0, +0, v] */
int  turn_wait(lua_State *L, TaskWait wait, double due, lua_KContext context, lua_KFunction then);
bool turn_can_wait(lua_State *L);
/* What the present task waits for until its next turn, once that takes long; elsewhere nothing.
 * [-0, +0, -] */
void turn_report(lua_State *L, double began, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Before a sweep, which runs the script in each of its points: where the script is loaded for the
 * command that follows (Script.before_command), it ends here, and its definitions stay.  To be
 * returned.  [-0, +0, v] */
int  turn_end_script(lua_State *L);
/* In a loop of C that takes long: raises where the script is stopped; true: the explorer's turn is
 * over, and the caller gives way (coroutine_give_way).  [-0, +0, v] */
bool turn_is_over(lua_State *L);

#endif
