/* lua_util.c -- failures, owners and option tables; see binding.h. */
#include "script/host/binding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures --------------------------------------------------------------- */

int failure(lua_State *L, const Error *err)
{
    if (err->code == ERR_USAGE || err->code == ERR_PARAM)
        return luaL_error(L, "%s", err->text);
    lua_pushnil(L);
    lua_pushstring(L, err->text);
    lua_pushstring(L, error_name(err->code));
    return 3;
}

/* ---- owners ----------------------------------------------------------------- */

#define TEXT_BOX "attnscope.text"

static int text_box_close(lua_State *L)
{
    text_free(luaL_checkudata(L, 1, TEXT_BOX));
    return 0;
}

Text *text_box(lua_State *L)
{
    Text *text = lua_newuserdatauv(L, sizeof(*text), 0);

    *text = (Text){ 0 };
    if (luaL_newmetatable(L, TEXT_BOX)) {
        lua_pushcfunction(L, text_box_close);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return text;
}

void text_box_push(lua_State *L, const Text *text)
{
    if (!text_ok(text))
        luaL_error(L, "not enough memory for a text");
    lua_pushlstring(L, text_str(text), text->length);
}

Keep *keep_new(void *thing, void (*drop)(void *), Keep *below)
{
    Keep *keep = malloc(sizeof(*keep));

    if (!keep) {
        drop(thing);
        return NULL;
    }
    *keep = (Keep){ .references = 1, .drop = drop, .thing = thing,
                    .below = below ? keep_retain(below) : NULL };
    return keep;
}

Keep *keep_retain(Keep *keep)
{
    keep->references++;
    return keep;
}

void keep_release(Keep *keep)
{
    Keep *below;

    for (; keep && --keep->references == 0; keep = below) {
        below = keep->below;
        keep->drop(keep->thing);
        free(keep);
    }
}

void account(lua_State *L, int64_t bytes)
{
    int64_t kib = bytes / 1024;

    if (kib > 0)
        lua_gc(L, LUA_GCSTEP, kib < INT_MAX ? (int)kib : INT_MAX);
}

/* ---- option tables ---------------------------------------------------------- */

void options_check(lua_State *L, int arg, const Class *class)
{
    if (lua_isnoneornil(L, arg)) {
        lua_settop(L, arg > lua_gettop(L) ? arg : lua_gettop(L));
        lua_newtable(L);
        lua_replace(L, arg);
        return;
    }
    luaL_checktype(L, arg, LUA_TTABLE);
    if (class->open)
        return;
    for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

        if (!key)
            luaL_error(L, "options are named, like %s=..., but a key is a %s",
                       class->members[0].name, luaL_typename(L, -2));
        else if (!class_has(class, key))
            luaL_error(L, "unknown option '%s'; did you mean '%s'?", key,
                       class_nearest(class, key));
    }
}

static int wrong_type(lua_State *L, const char *key, const char *expected)
{
    return luaL_error(L, "%s: expected %s, got %s", key, expected, luaL_typename(L, -1));
}

int64_t option_integer(lua_State *L, int t, const char *key, int64_t fallback, int64_t lo,
                       int64_t hi)
{
    int         whole;
    lua_Integer value = fallback;

    if (lua_getfield(L, t, key) != LUA_TNIL) {
        value = lua_tointegerx(L, -1, &whole);
        if (!whole || lua_type(L, -1) != LUA_TNUMBER)
            wrong_type(L, key, "a whole number");
        if (value < lo || value > hi)
            luaL_error(L, "%s: expected a whole number from %I to %I, got %I", key,
                       (lua_Integer)lo, (lua_Integer)hi, value);
    }
    lua_pop(L, 1);
    return value;
}

double option_number(lua_State *L, int t, const char *key, double fallback)
{
    double value = fallback;

    if (lua_getfield(L, t, key) != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TNUMBER)
            wrong_type(L, key, "a number");
        value = lua_tonumber(L, -1);
        if (!isfinite(value))
            luaL_error(L, "%s: expected a finite number, got %f", key, value);
    }
    lua_pop(L, 1);
    return value;
}

int option_tristate(lua_State *L, int t, const char *key)
{
    int value = -1;

    if (lua_getfield(L, t, key) != LUA_TNIL) {
        if (!lua_isboolean(L, -1))
            wrong_type(L, key, "true or false");
        value = lua_toboolean(L, -1);
    }
    lua_pop(L, 1);
    return value;
}

bool option_bool(lua_State *L, int t, const char *key, bool fallback)
{
    int value = option_tristate(L, t, key);

    return value < 0 ? fallback : value;
}

/* The table keeps the string alive. */
const char *option_string(lua_State *L, int t, const char *key, const char *fallback)
{
    const char *value = fallback;

    if (lua_getfield(L, t, key) != LUA_TNIL) {
        if (lua_type(L, -1) != LUA_TSTRING)
            wrong_type(L, key, "a string");
        value = lua_tostring(L, -1);
        if (strlen(value) != lua_rawlen(L, -1))
            luaL_error(L, "%s: there is a zero byte in it", key);
    }
    lua_pop(L, 1);
    return value;
}

const char *check_text(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TSTRING) { /* a number is no name of a file */
        lua_settop(L, lua_gettop(L) < arg ? arg : lua_gettop(L));
        luaL_typeerror(L, arg, "string");
    }
    return check_word(L, arg);
}

const char *check_word(lua_State *L, int arg)
{
    size_t      length;
    const char *text = luaL_checklstring(L, arg, &length);

    luaL_argcheck(L, strlen(text) == length, arg, "there is a zero byte in it");
    return text;
}

int64_t check_index(lua_State *L, int arg, int64_t count, const char *what)
{
    lua_Integer value = luaL_checkinteger(L, arg);

    if (value < 0 || value >= count)
        luaL_argerror(L, arg, lua_pushfstring(L, "%s %I is outside 0..%I", what, value,
                                              (lua_Integer)count - 1));
    return value;
}

void push_strings(lua_State *L, char *const *texts, int64_t count)
{
    lua_createtable(L, (int)(count < INT_MAX ? count : INT_MAX), 0);
    for (int64_t i = 0; i < count; i++) {
        lua_pushstring(L, texts[i]);
        lua_rawseti(L, -2, i + 1);
    }
}
