/* script/host/script_parts.h -- how a state is opened and a script is run in it; shared by the files
 * that do so for `attnscope lua`, for the other front ends and for stock Lua. */
#ifndef SCRIPT_HOST_SCRIPT_PARTS_H
#define SCRIPT_HOST_SCRIPT_PARTS_H

#include <stdio.h>

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

/* The state with the module, for a host of scripts, where it is not open yet. */
bool start_open(Start *start, Error *err);
/* The session of the script: stopped by SIGINT, its progress on a terminal. */
bool start_open_session(Start *start, Error *err);
/* Message handler: the message with a traceback.  [-1, +1, m] */
int script_add_traceback(lua_State *L);
/* Opens the state where it is not open and runs the script: all that may raise, to be called
 * protected.  Argument 1: the Start as light userdata.  [-1, +0, v] */
int script_run_all(lua_State *L);

#endif
