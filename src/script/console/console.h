/* script/console/console.h -- scripts that run while the explorer does: their turns and waits. */
#ifndef SCRIPT_CONSOLE_CONSOLE_H
#define SCRIPT_CONSOLE_CONSOLE_H

#include <lua.h>
#include <stdbool.h>

#include "app/scripting.h"
#include "script/host/state.h"

#define TASKS_MOST 16

/* Why a task does not go on. */
typedef enum TaskWait { TASK_READY, TASK_SLEEPS, TASK_SETTLES, TASK_ASKS } TaskWait;

typedef struct Task {
    lua_State *thread; /* NULL: free */
    int        anchor; /* in the registry */
    TaskWait   wait;
    double     due;    /* of TASK_SLEEPS: seconds, monotonic */
    char       doing[96]; /* what it waits for, "": nothing to tell of */
    int        given;  /* values on the thread's stack to go on with */
} Task;

typedef struct Console {
    Start      *start;
    const Control *control; /* NULL: no explorer */
    Text        output;
    Task        tasks[TASKS_MOST];
    Task       *now;   /* whose turn it is; NULL: none */
    double      began; /* its turn */
} Console;

double console_seconds(void);
/* The present task waits; to be returned from a C function, which goes on in `then` (NULL: what
 * is given to the task is the function's result).  Raises where it cannot.  [-0, +0, v] */
int  console_wait(lua_State *L, TaskWait wait, double due, lua_KContext context,
                  lua_KFunction then);
bool console_can_wait(lua_State *L);
/* What the present task waits for until its next turn, once that takes long; elsewhere nothing.
 * [-0, +0, -] */
void console_tell(lua_State *L, double began, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts what there is for scripts into the state: print, waiting runs.  [-0, +0, v] */
void console_install(lua_State *L);
/* The end of what the console shows, and print as scripts find it: values.  [-n, +0, v] */
void console_add(Console *console, const char *text);
int  console_print(lua_State *L);
/* In a loop of C that takes long: raises where the script is stopped; true: the explorer's turn is
 * over, and the caller gives way (coroutine_give_way).  [-0, +0, v] */
bool console_look(lua_State *L);

void console_fill(Console *console, Start *start, Interpreter *interpreter);
/* What it holds outside the state, which is still open. */
void console_free(Console *console);

/* What the two prompts share: names that may follow, typed statements. */

typedef void (*CompleteName)(void *context, const char *name);

/* Every whole word that `word` ("attn.ru") may become; nothing is called.  [-0, +0, -] */
void complete_names(lua_State *L, const char *word, CompleteName add, void *context);
/* The text as an expression whose value is wanted, else as a statement: Lua's status.
 * [-0, +1, m] */
int statement_load(lua_State *L, const char *code);
/* A statement that only lacks its end; the message is at the top. */
bool statement_unfinished(lua_State *L, int status);

/* `attnscope lua` without a file: lines typed at a prompt. */

/* Until the end of the input; errors are printed and it goes on.  The message handler is at
 * stack index 1.  Call it unprotected. */
void repl_run(lua_State *L);

#endif
