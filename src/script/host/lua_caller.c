/* lua_caller.c -- what the program's own Lua raises has its place in the script that called.
 *
 * A message made in the prelude says where in the prelude; of that the user knows nothing.  Each
 * public function written in Lua is called by one of C, which catches such a message and puts the
 * line of its caller in the place's stead.  A place in the user's own code (a function that the
 * script gave) stays, and so do errors that are no text.
 */
#include <string.h>

#include "script/host/binding.h"

/* The message at the top, raised by our own Lua, is the caller's from here on.  [-1, +1, m] */
static void move_place(lua_State *L)
{
    const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    size_t      prefix = strlen(OWN_CHUNK), digits;

    if (strncmp(message, OWN_CHUNK, prefix) != 0 || message[prefix] != ':')
        return;
    digits = strspn(message + prefix + 1, "0123456789?");
    if (!digits || strncmp(message + prefix + 1 + digits, ": ", 2) != 0)
        return;
    luaL_where(L, 1);
    lua_pushstring(L, message + prefix + 1 + digits + 2);
    lua_concat(L, 2);
    lua_remove(L, -2);
}

static int give_results(lua_State *L, int status, lua_KContext unused)
{
    (void)unused;
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L);
    move_place(L);
    return lua_error(L);
}

/* Upvalue: the function.  [-n, +?, e] */
static int call_own(lua_State *L)
{
    int count = lua_gettop(L);

    luaL_checkstack(L, 4, "too many arguments");
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return give_results(L, lua_pcallk(L, count, LUA_MULTRET, 0, 0, give_results), 0);
}

void caller_names(lua_State *L, int table, const Class *class)
{
    for (const Member *m = class->members; m->name; m++) {
        if (!m->args)
            continue;
        if (lua_getfield(L, table, m->name) == LUA_TFUNCTION && !lua_iscfunction(L, -1)) {
            lua_pushcclosure(L, call_own, 1);
            lua_setfield(L, table, m->name);
        } else {
            lua_pop(L, 1);
        }
    }
}
