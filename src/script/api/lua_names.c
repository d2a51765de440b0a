/* lua_names.c -- further names of what a table holds, and numbers that follow from it.
 *
 * They are read like fields, by a metatable, and are no keys: a record, an entry of a row stays
 * as it is when it is walked through, written as JSON or as CSV.
 */
#include <string.h>

#include "script/host/binding.h"

/* The metatable whose __index is `index` with the upvalue at the top, made once for each `key`.
 * [-1, +0, m] */
static void make_meta(lua_State *L, const void *key, lua_CFunction index)
{
    lua_createtable(L, 0, 1);
    lua_insert(L, -2);
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* Upvalue: name -> the key that is meant.  [-0, +1, v] */
static int other_name(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_isnil(L, 2) || lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL) {
        lua_pushnil(L);
        return 1;
    }
    lua_rawget(L, 1);
    return 1;
}

void names_set(lua_State *L, const Alias *aliases)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, aliases) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        for (const Alias *a = aliases; a->name; a++) {
            lua_pushstring(L, a->of);
            lua_setfield(L, -2, a->name);
        }
        make_meta(L, aliases, other_name);
    }
    lua_setmetatable(L, -2);
}

/* ---- records ------------------------------------------------------------------ */

/* Number `key` of the table at t; false: there is none. */
static bool number_at(lua_State *L, int t, const char *key, double *out)
{
    int there;

    lua_pushstring(L, key);
    lua_rawget(L, t);
    *out = lua_tonumberx(L, -1, &there);
    lua_pop(L, 1);
    return there;
}

/* [-0, +1, v] */
static int time_index(lua_State *L)
{
    const char *key;
    double      low, high;

    luaL_checktype(L, 1, LUA_TTABLE);
    key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (!strcmp(key, "iqr") && number_at(L, 1, "q1", &low) && number_at(L, 1, "q3", &high)) {
        lua_pushnumber(L, high - low);
    } else if (!strcmp(key, "reps")) {
        lua_pushliteral(L, "samples");
        if (lua_rawget(L, 1) == LUA_TTABLE)
            lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
        else
            lua_pushnil(L);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

/* [-0, +1, v] */
static int flops_index(lua_State *L)
{
    static const Alias parts[] = { { "score", "score" }, { "mix", "mixing" },
                                   { "overhead", "overhead" }, { "position", "position" },
                                   { NULL, NULL } };
    const char *key;

    luaL_checktype(L, 1, LUA_TTABLE);
    key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    lua_settop(L, 2);
    if (!strcmp(key, "total")) {
        lua_pushliteral(L, "counted");
        lua_rawget(L, 1);
        return 1;
    }
    for (const Alias *part = parts; part->name; part++)
        if (!strcmp(key, part->name)) {
            lua_pushliteral(L, "counted_parts");
            if (lua_rawget(L, 1) != LUA_TTABLE)
                return 0;
            lua_pushstring(L, part->of);
            lua_rawget(L, -2);
            return 1;
        }
    lua_pushnil(L);
    return 1;
}

/* A whole number where it is one: the record may be a script's own. */
static void push_bytes(lua_State *L, double bytes)
{
    lua_Integer whole;

    if (lua_numbertointeger(bytes, &whole))
        lua_pushinteger(L, whole);
    else
        lua_pushnumber(L, bytes);
}

/* { peak, workspace } of the record at 1: all that a run held, and that without its output. */
static void push_memory(lua_State *L)
{
    double peak, heads, n, e;

    lua_pushliteral(L, "memory");
    if (lua_rawget(L, 1) != LUA_TTABLE || !number_at(L, lua_gettop(L), "arena_peak", &peak)) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, 0, 2);
    push_bytes(L, peak);
    lua_setfield(L, -2, "peak");
    if (number_at(L, 1, "heads", &heads) && number_at(L, 1, "n", &n) && number_at(L, 1, "e", &e) &&
        peak >= 4 * heads * n * e) {
        push_bytes(L, peak - 4 * heads * n * e);
        lua_setfield(L, -2, "workspace");
    }
}

/* [-0, +1, v] */
static int record_index(lua_State *L)
{
    const char *key;

    luaL_checktype(L, 1, LUA_TTABLE);
    key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    lua_settop(L, 2);
    if (!strcmp(key, "mem")) {
        push_memory(L);
        return 1;
    }
    if (strcmp(key, "cpu") != 0)
        return 0;
    lua_pushliteral(L, "environment");
    if (lua_rawget(L, 1) != LUA_TTABLE)
        return 0;
    lua_pushliteral(L, "cpu");
    lua_rawget(L, -2);
    return 1;
}

/* The table at the top reads by `index`.  [-0, +0, m] */
static void read_by(lua_State *L, const void *key, lua_CFunction index)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushnil(L);
        make_meta(L, key, index);
    }
    lua_setmetatable(L, -2);
}

void names_set_record(lua_State *L)
{
    static const struct {
        const char   *key;
        lua_CFunction index;
    } parts[] = { { "time_ms", time_index }, { "flops", flops_index } };
    static const char record;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        lua_pushstring(L, parts[i].key);
        if (lua_rawget(L, -2) == LUA_TTABLE)
            read_by(L, &parts[i], parts[i].index);
        lua_pop(L, 1);
    }
    read_by(L, &record, record_index);
}

int names_of_record(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    names_set_record(L);
    return 1;
}
