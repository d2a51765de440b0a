/* class.c -- metatables made from the registration tables; options, failures, owners. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "script/host/binding.h"

bool class_has(const Class *class, const char *name)
{
    for (const Member *m = class->members; m->name; m++)
        if (!strcmp(m->name, name))
            return true;
    return false;
}

const char *class_nearest(const Class *class, const char *name)
{
    Meant nearest = { name, "?", ANY_SLIPS };

    for (const Member *m = class->members; m->name; m++)
        meant_offer(&nearest, m->name);
    return nearest.name;
}

/* ---- objects ---------------------------------------------------------------- */

static void push_name(lua_State *L, const Class *class)
{
    lua_pushfstring(L, "attnscope.%s", class->name);
}

void *class_push(lua_State *L, const Class *class, size_t size, int values)
{
    void *object = lua_newuserdatauv(L, size, values);

    memset(object, 0, size);
    lua_rawgetp(L, LUA_REGISTRYINDEX, class);
    lua_setmetatable(L, -2);
    return object;
}

static const char class_key; /* of the class in a metatable */

const Class *class_of(lua_State *L, int arg)
{
    const Class *class;

    if (!lua_isuserdata(L, arg) || !lua_getmetatable(L, arg))
        return NULL;
    lua_rawgetp(L, -1, &class_key);
    class = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return class;
}

void *class_test(lua_State *L, int arg, const Class *class)
{
    return class_of(L, arg) == class ? lua_touserdata(L, arg) : NULL;
}

void *class_check(lua_State *L, int arg, const Class *class)
{
    void *object = class_test(L, arg, class);

    if (!object) {
        lua_settop(L, lua_gettop(L) < arg ? arg : lua_gettop(L)); /* what is missing is nil */
        push_name(L, class);
        luaL_typeerror(L, arg, lua_tostring(L, -1));
    }
    return object;
}

/* Upvalues: methods, getters of fields, the class.  [-0, +1, v] */
static int object_index(lua_State *L)
{
    const Class *class = lua_touserdata(L, lua_upvalueindex(3));

    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
        return 1;
    }
    if (lua_type(L, 2) != LUA_TSTRING)
        return luaL_error(L, "%s has no member %s", class->name, luaL_tolstring(L, 2, NULL));
    return luaL_error(L, "%s has no member '%s'; did you mean '%s'?", class->name,
                      lua_tostring(L, 2), class_nearest(class, lua_tostring(L, 2)));
}

/* Upvalue: the class.  object.field = value says what to call instead.  [-0, +0, v] */
static int object_newindex(lua_State *L)
{
    const Class *class = lua_touserdata(L, lua_upvalueindex(1));
    const char  *name = luaL_tolstring(L, 2, NULL);

    for (const Member *m = class->members; m->name; m++)
        if (m->args && !strcmp(m->name, name))
            return luaL_error(L, "%s: '%s' cannot be assigned, it is a method; call it with a "
                              "colon: object:%s(...)", class->name, name, name);
    return luaL_error(L, "%s: '%s' cannot be assigned; %s", class->name, name,
                      luaL_gsub(L, class->instead, "NAME", name));
}

void class_set_members(lua_State *L, const Class *class)
{
    for (const Member *m = class->members; m->name; m++) {
        if (!m->call)
            continue;
        lua_pushcfunction(L, m->call);
        lua_setfield(L, m->args ? -2 : -3, m->name);
    }
}

void class_open(lua_State *L, const Class *class)
{
    push_name(L, class);
    luaL_newmetatable(L, lua_tostring(L, -1));
    luaL_setfuncs(L, class->meta, 0);
    push_name(L, class); /* what getmetatable gives: the name, not the table */
    lua_setfield(L, -2, "__metatable");
    lua_newtable(L);
    lua_newtable(L);
    class_set_members(L, class);
    lua_pushvalue(L, -1);
    lua_setfield(L, -6, class->name);
    lua_insert(L, -2); /* methods, fields */
    lua_pushlightuserdata(L, (void *)(uintptr_t)class);
    lua_pushcclosure(L, object_index, 3);
    lua_setfield(L, -2, "__index");
    if (class->instead) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)class);
        lua_pushcclosure(L, object_newindex, 1);
        lua_setfield(L, -2, "__newindex");
    }
    lua_pushlightuserdata(L, (void *)(uintptr_t)class);
    lua_rawsetp(L, -2, &class_key);
    lua_rawsetp(L, LUA_REGISTRYINDEX, class);
    lua_pop(L, 1);
}

/* Errors of the prelude name the line of the script that called it.
 *
 * A message from the prelude starts with a line of the prelude, which means nothing to the user.  A
 * C function therefore calls each public function written in Lua, catches the message and replaces
 * that line by the caller's.  Lines of the user's own code and errors that are no text stay.
 */

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

/* Failures, owners and option tables; see binding.h. */

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

void check_ok(lua_State *L, bool ok, const Error *err)
{
    if (!ok)
        luaL_error(L, "%s", err->text);
}

/* ---- owners ----------------------------------------------------------------- */

void *box_push(lua_State *L, size_t size, int values, const char *type, lua_CFunction gc,
               lua_CFunction close)
{
    void *box = lua_newuserdatauv(L, size, values);

    memset(box, 0, size);
    if (luaL_newmetatable(L, type)) {
        lua_pushcfunction(L, gc);
        lua_setfield(L, -2, "__gc");
        if (close) {
            lua_pushcfunction(L, close);
            lua_setfield(L, -2, "__close");
        }
    }
    lua_setmetatable(L, -2);
    return box;
}

#define TEXT_BOX "attnscope.text"

static int text_box_close(lua_State *L)
{
    text_free(luaL_checkudata(L, 1, TEXT_BOX));
    return 0;
}

Text *text_box(lua_State *L)
{
    return box_push(L, sizeof(Text), 0, TEXT_BOX, text_box_close, NULL);
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

/* ---- fields of a table ------------------------------------------------------ */

void field_string(lua_State *L, const char *key, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

void field_bool(lua_State *L, const char *key, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

void field_integer(lua_State *L, const char *key, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

void field_number(lua_State *L, const char *key, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void field_known(lua_State *L, const char *key, Number value)
{
    if (value.valid)
        field_number(L, key, value.value);
}
