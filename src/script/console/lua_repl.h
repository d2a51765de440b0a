/* script/console/lua_repl.h -- `attnscope lua` without a file: lines typed at a prompt. */
#ifndef SCRIPT_CONSOLE_LUA_REPL_H
#define SCRIPT_CONSOLE_LUA_REPL_H

#include <lua.h>

/* Until the end of the input; errors are printed and it goes on.  The message handler is at
 * stack index 1.  Call it unprotected. */
void repl_run(lua_State *L);

#endif
