/* script/host/lua_command.h -- commands that the worker runs while a script of the explorer waits. */
#ifndef SCRIPT_HOST_LUA_COMMAND_H
#define SCRIPT_HOST_LUA_COMMAND_H

#include "script/host/binding.h"

/* Words of a command -> the work, which is to be closed.  [-0, +1 or 3, v] */
int command_begin(lua_State *L);
int command_done(lua_State *L); /* [-0, +1, v] */
/* Waits for what is not done; what attn.command gives.  [-0, +1 or 3, v] */
int command_finish(lua_State *L);

/* A sweep on the worker that leaves questions, as a table of functions: begin(words...), turn(s,
 * seconds) -> "row", line | "progress", line, done, total, left? | "nothing" | "end",
 * answer(s, line?), stop(s), finish(s) as command_finish.  [-0, +1, m] */
void sweep_push_functions(lua_State *L);

#endif
