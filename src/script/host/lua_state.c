/* lua_state.c -- one Lua state per script: memory, search path.
 *
 * The state's allocator counts bytes and refuses beyond a limit, so a runaway
 * table is an error of the script instead of the machine's trouble.
 */
#include "script/host/binding.h"

#include <limits.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ----------------------------------------------------------------- */

static void *allocate(void *opaque, void *old, size_t old_size, size_t size)
{
    Script *script = opaque;
    int64_t change = (int64_t)size - (old ? (int64_t)old_size : 0);
    void   *new;

    if (size == 0) {
        free(old);
        script->bytes += change;
        return NULL;
    }
    if (change > 0 && script->bytes + change > script->limit)
        return NULL;
    new = realloc(old, size);
    if (!new)
        return NULL;
    script->bytes += change;
    if (script->bytes > script->peak)
        script->peak = script->bytes;
    return new;
}

/* In the registry, by the address of this: a state of another program has coroutines that were
 * made before. */
static const char script_key;

Script *script_of(lua_State *L)
{
    Script *script;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &script_key);
    script = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return script;
}

void script_set_state(lua_State *L, Script *script)
{
    lua_pushlightuserdata(L, script);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script_key);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    script->state = lua_tothread(L, -1);
    lua_pop(L, 1);
}

static int protected_set(lua_State *L)
{
    script_set_state(L, lua_touserdata(L, 1));
    return 0;
}

lua_State *script_state_new(Script *script)
{
    lua_State *L = lua_newstate(allocate, script);

    if (!L)
        return NULL;
    lua_pushcfunction(L, protected_set);
    lua_pushlightuserdata(L, script);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK)
        return L;
    lua_close(L);
    return NULL;
}

/* ---- files ------------------------------------------------------------------ */

/* The shipped scripts stand in scripts/lua of the source tree, in lua of an
 * installation.  NULL: not there. */
static const char *shipped(lua_State *L, const char *name)
{
    Session    *s = script_of(L)->session->thing;
    const char *path = session_find_shipped(s, "scripts/lua", name);

    return path ? path : session_find_shipped(s, "lua", name);
}

/* $XDG_DATA_HOME/attnscope/lua/NAME, or "" without a home.  [-0, +1, m] */
static void push_user_file(lua_State *L, const char *name)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (data && *data == '/')
        lua_pushfstring(L, "%s/attnscope/lua/%s", data, name);
    else if (home && *home == '/')
        lua_pushfstring(L, "%s/.local/share/attnscope/lua/%s", home, name);
    else
        lua_pushliteral(L, "");
}

/* The folder of a file as an absolute pattern; a folder whose name would be
 * read as a pattern is left out.  [-0, +1, m] */
static void push_folder_pattern(lua_State *L, const char *file)
{
    char  path[PATH_MAX];
    char *slash = realpath(file, path) ? strrchr(path, '/') : NULL;

    if (slash)
        *slash = '\0';
    if (!slash || strpbrk(path, "?;"))
        lua_pushliteral(L, "");
    else
        lua_pushfstring(L, "%s/?.lua", path);
}

static void add_pattern(lua_State *L, luaL_Buffer *path)
{
    if (*lua_tostring(L, -1)) {
        luaL_addvalue(path);
        luaL_addchar(path, ';');
    } else {
        lua_pop(L, 1);
    }
}

void script_set_path(lua_State *L, const char *file)
{
    luaL_Buffer path;
    const char *prelude = shipped(L, "prelude.lua");

    lua_getglobal(L, "package");
    luaL_buffinit(L, &path);
    if (file) {
        push_folder_pattern(L, file);
        add_pattern(L, &path);
    }
    push_user_file(L, "?.lua");
    add_pattern(L, &path);
    if (prelude) {
        push_folder_pattern(L, prelude);
        add_pattern(L, &path);
    }
    luaL_pushresult(&path);
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "cpath");
    lua_pop(L, 1);
}

/* [-0, +1, m] */
static void push_if_there(lua_State *L, const char *path)
{
    lua_pushstring(L, path && *path && access(path, R_OK) == 0 ? path : "");
}

void script_push_file(lua_State *L, const char *name)
{
    int base = lua_gettop(L);

    push_if_there(L, name);
    if (!*lua_tostring(L, -1) && !strchr(name, '/')) {
        push_user_file(L, name);
        push_if_there(L, lua_tostring(L, -1));
        if (!*lua_tostring(L, -1))
            push_if_there(L, shipped(L, name));
    }
    lua_copy(L, -1, base + 1);
    lua_settop(L, base + 1);
}
