/* script/host/lua_coroutine.h -- coroutines that Ctrl-C and the explorer's turns reach into. */
#ifndef SCRIPT_HOST_LUA_COROUTINE_H
#define SCRIPT_HOST_LUA_COROUTINE_H

#include <lua.h>
#include <stdbool.h>

/* Puts our own resume and wrap into the library of this state.  [-0, +0, m] */
void coroutine_install(lua_State *L);
/* Whether the explorer's turn can end here: all that resumed L can be left. */
bool coroutine_gives_way(lua_State *L);
/* Ends the turn; `then` (NULL: the caller's results) goes on in the next one.  To be returned
 * from a C function or the last call of a hook.  [-0, +0, e] */
int coroutine_give_way(lua_State *L, lua_KContext context, lua_KFunction then);

/* In a loop of C: raises where an interrupt waits for the next instruction.  [-0, +0, v] */
void coroutine_stop_here(lua_State *L);

#endif
