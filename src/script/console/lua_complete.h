/* script/console/lua_complete.h -- what the two prompts share: names that may follow, typed statements. */
#ifndef SCRIPT_CONSOLE_LUA_COMPLETE_H
#define SCRIPT_CONSOLE_LUA_COMPLETE_H

#include <lua.h>
#include <stdbool.h>

typedef void (*CompleteName)(void *context, const char *name);

/* Every whole word that `word` ("attn.ru") may become; nothing is called.  [-0, +0, -] */
void complete_names(lua_State *L, const char *word, CompleteName add, void *context);
/* The text as an expression whose value is wanted, else as a statement: Lua's status.
 * [-0, +1, m] */
int statement_load(lua_State *L, const char *code);
/* A statement that only lacks its end; the message is at the top. */
bool statement_unfinished(lua_State *L, int status);

#endif
