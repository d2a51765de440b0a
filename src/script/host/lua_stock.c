/* lua_stock.c -- the module in an interpreter that is not ours: require "attnscope" in lua5.4.
 *
 * Everything is as in `attnscope lua`, but for what the program brings: no global is set, Ctrl-C
 * is the interpreter's, and its allocator keeps the memory.
 */
#include <stdlib.h>

#include "script/host/script_parts.h"

#define BOX "attnscope.stock"

int luaopen_attnscope(lua_State *L);

/* The last finalizer of the state, for it was the first to be made. */
static int close_stock(lua_State *L)
{
    Start **box = luaL_checkudata(L, 1, BOX);
    Start  *start = *box;

    *box = NULL;
    if (!start)
        return 0;
    script_end_callbacks(&start->script);
    start->script.caller = NULL;
    script_leave(&start->script);
    keep_release(start->script.session);
    script_forget(&start->script);
    pthread_mutex_destroy(&start->script.lock);
    free(start);
    return 0;
}

/* [-0, +1, v] */
static Start *push_start(lua_State *L)
{
    Start **box = lua_newuserdatauv(L, sizeof(*box), 0);

    *box = NULL;
    luaL_newmetatable(L, BOX);
    lua_pushcfunction(L, close_stock);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *box = calloc(1, sizeof(**box));
    if (!*box)
        luaL_error(L, "not enough memory for attnscope");
    (*box)->file = "lua";
    (*box)->script.line = "lua";
    (*box)->script.limit = LUA_MEMORY_LIMIT;
    pthread_mutex_init(&(*box)->script.lock, NULL);
    script_enter(&(*box)->script);
    return *box;
}

/* [-0, +1, v] */
int luaopen_attnscope(lua_State *L)
{
    Start *start;
    Error  err = ERROR_INIT;

    luaL_checkversion(L);
    start = push_start(L);
    luaL_ref(L, LUA_REGISTRYINDEX);
    if (!start_open_session(start, &err))
        return luaL_error(L, "%s", err.text);
    script_set_state(L, &start->script);
    class_open_all(L);
    lua_getglobal(L, "arg");
    lua_setfield(L, -2, "args");
    return 1;
}
