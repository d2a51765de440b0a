/* script/host/state.h -- how a state is opened and a script is run in it; shared by the files
 * that do so for `attnscope lua`, for the other front ends and for stock Lua. */
#ifndef SCRIPT_HOST_STATE_H
#define SCRIPT_HOST_STATE_H

#include <lua.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "script/host/binding.h"

#define LUA_MEMORY_LIMIT (8ll << 30)

typedef struct Start {
    Script      script;
    const char *code;  /* of -e; NULL: a file */
    const char *file;  /* "-": standard input */
    char      **args;  /* after it */
    int         arg_count;
    int         safe;   /* --safe: seconds of somebody else's script; 0: one's own */
    FILE       *output; /* of it; owned */
    bool        prompt; /* lines typed at a terminal */
    bool        opened; /* the module is there already */
    Text        line;
} Start;

/* The session of the script: stopped by SIGINT, its progress on a terminal. */
bool start_open_session(Start *start, Error *err);
/* Message handler: the message with a traceback.  [-1, +1, m] */
int script_add_traceback(lua_State *L);
/* Opens the state where it is not open and runs the script: all that may raise, to be called
 * protected.  Argument 1: the Start as light userdata.  [-1, +0, v] */
int script_run_all(lua_State *L);

/* Coroutines that Ctrl-C and the end of a turn can interrupt. */

/* Puts our own resume and wrap into the library of this state.  [-0, +0, m] */
void coroutine_install(lua_State *L);
/* Whether the explorer's turn can end here: all that resumed L can be left. */
bool coroutine_gives_way(lua_State *L);
/* Ends the turn; `then` (NULL: the caller's results) goes on in the next one.  To be returned
 * from a C function or the last call of a hook.  [-0, +0, e] */
int coroutine_give_way(lua_State *L, lua_KContext context, lua_KFunction then);

/* In a loop of C: raises where an interrupt waits for the next instruction.  [-0, +0, v] */
void coroutine_stop_here(lua_State *L);

/* Limits of a script that somebody else wrote (--safe). */

#define SAFE_LUA_BYTES (1ll << 30) /* of Lua's own objects */

/* Standard input and output are taken from the process; the stream is the only way to the latter.
 * The caller closes it.  NULL with an error. */
FILE *safe_take_output(Error *err);
/* Takes from the state what reaches outside: io, require, most of os and debug; print goes to
 * `output`.  [-0, +0, m] */
void safe_strip(lua_State *L, FILE *output);
/* Lua: a text in which nothing moves a terminal's cursor or does worse.  [-0, +1, v] */
int safe_clean(lua_State *L);
/* From here on the process opens no file, starts no program and no connection, and has so much
 * memory and time.  For good. */
bool safe_close_process(int seconds, Error *err);

#endif
