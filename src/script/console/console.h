/* script/console/console.h -- the explorer's console, and the prompt of `attnscope lua`. */
#ifndef SCRIPT_CONSOLE_CONSOLE_H
#define SCRIPT_CONSOLE_CONSOLE_H

#include <lua.h>
#include <stdbool.h>

#include "script/host/state.h"
#include "script/host/turn.h"

/* The explorer's side of scripts, of a zeroed console; console_drop frees what it holds outside the
 * Lua state. */
void console_interpreter(Console *c, Start *start, Interpreter *interpreter);
void console_drop(Console *c);
/* Interpreter.tell of the Console. */
void commands_tell(void *console, const char *event, const char *content);
/* The state with the module, for a host of scripts, where it is not open yet. */
bool start_open(Start *start, Error *err);

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
