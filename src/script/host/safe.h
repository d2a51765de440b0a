/* script/host/safe.h -- limits of a script that somebody else wrote (--safe). */
#ifndef SCRIPT_HOST_SAFE_H
#define SCRIPT_HOST_SAFE_H

#include <lua.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"

#define SAFE_LUA_BYTES (1ll << 30) /* of Lua's own objects */

/* Standard input and output are taken from the process; the stream is the only way to the latter.
 * The caller closes it.  NULL with an error. */
FILE *safe_take_output(Error *err);
/* Takes from the state what reaches outside: io, require, most of os and debug; print goes to
 * `output`.  [-0, +0, m] */
void safe_strip(lua_State *L, FILE *output);
/* Lua: a text as safe_push_clean makes it.  [-0, +1, v] */
int safe_clean(lua_State *L);
/* The value as text in which nothing moves a terminal's cursor or does worse.  [-0, +1, v] */
void safe_push_clean(lua_State *L, int at);
/* From here on the process opens no file, starts no program and no connection, and has so much
 * memory and time.  For good. */
bool safe_close_process(int seconds, Error *err);

#endif
