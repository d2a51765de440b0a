/* lua_reload.c -- a script's file once more: what it defines takes the place of what was. */
#include <string.h>

#include "app/scripting.h"
#include "script/api/define.h"

/* The same id was defined again behind it. */
static bool is_replaced(const Defined *newest, const Defined *d)
{
    for (; newest != d; newest = newest->next)
        if (!strcmp(newest->m.id, d->m.id))
            return true;
    return false;
}

/* A list of the ids that were defined after `before`, oldest first.  In the explorer they are
 * drawn anew.  [-0, +1, v] */
static void push_defined_since(lua_State *L, const Defined *before)
{
    const Script *script = script_of(L);
    lua_Integer   at = 0;

    for (const Defined *d = script->defined; d != before; d = d->next)
        at += !is_replaced(script->defined, d);
    lua_createtable(L, (int)at, 0);
    for (const Defined *d = script->defined; d != before; d = d->next) {
        if (is_replaced(script->defined, d))
            continue;
        lua_pushstring(L, d->m.id);
        lua_rawseti(L, -2, at--);
        if (script->control)
            script->control->redefined(script->control->ui, d->m.id);
    }
}

/* The file has run, or raised.  [-0, +1 or 3, v] */
static int reloaded(lua_State *L, int status, lua_KContext before)
{
    Error err = ERROR_INIT;

    if (status == LUA_OK || status == LUA_YIELD) {
        push_defined_since(L, (const Defined *)before);
        return 1;
    }
    error_set(&err, ERR_SCRIPT, "%.400s",
              lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "the script failed");
    return failure(L, &err);
}

/* [-0, +1 or 3, v] */
int attn_reload(lua_State *L)
{
    const char  *name = check_text(L, 1);
    lua_KContext before = (lua_KContext)script_of(L)->defined;
    Error        err = ERROR_INIT;

    if (script_of(L)->run)
        return luaL_error(L, "a mechanism cannot reload scripts while it runs");
    lua_settop(L, 1);
    script_push_file(L, name);
    if (!*lua_tostring(L, -1)) {
        error_set(&err, ERR_FILE, "%s: no such script, neither here nor among the user's and the "
                  "shipped ones", name);
        return failure(L, &err);
    }
    if (luaL_loadfilex(L, lua_tostring(L, -1), "t") != LUA_OK) {
        error_set(&err, ERR_SCRIPT, "%.400s", lua_tostring(L, -1));
        return failure(L, &err);
    }
    return reloaded(L, lua_pcallk(L, 0, 0, 0, before, reloaded), before);
}
