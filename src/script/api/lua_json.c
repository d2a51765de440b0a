/* lua_json.c -- JSON text to Lua values, and records as tables. */
#include "script/host/binding.h"

#include <jansson.h>

#define JSON_BOX "attnscope.json"

static int json_box_close(lua_State *L)
{
    json_t **box = luaL_checkudata(L, 1, JSON_BOX);

    json_decref(*box);
    *box = NULL;
    return 0;
}

/* [-0, +1, m] */
static json_t **push_json_box(lua_State *L)
{
    json_t **box = lua_newuserdatauv(L, sizeof(*box), 0);

    *box = NULL;
    if (luaL_newmetatable(L, JSON_BOX)) {
        lua_pushcfunction(L, json_box_close);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return box;
}

static void push_value(lua_State *L, json_t *value);

/* So that an empty object is told from an empty list when it is written again. */
static void mark_object(lua_State *L)
{
    lua_pushnil(L);
    if (lua_next(L, -2))
        lua_pop(L, 2);
    else
        luaL_setmetatable(L, JSON_OBJECT_MARK);
}

/* Absent and null are the same in an object. */
static void push_object(lua_State *L, json_t *object)
{
    const char *key;
    json_t     *value;

    lua_createtable(L, 0, (int)json_object_size(object));
    json_object_foreach(object, key, value) {
        if (json_is_null(value))
            continue;
        lua_pushstring(L, key);
        push_value(L, value);
        lua_rawset(L, -3);
    }
    mark_object(L);
}

static void push_list(lua_State *L, json_t *list)
{
    size_t  index;
    json_t *value;

    lua_createtable(L, (int)json_array_size(list), 0);
    json_array_foreach(list, index, value) {
        push_value(L, value);
        lua_rawseti(L, -2, (lua_Integer)index + 1);
    }
}

static void push_value(lua_State *L, json_t *value)
{
    luaL_checkstack(L, 4, "nested JSON");
    switch (json_typeof(value)) {
    case JSON_OBJECT: push_object(L, value); break;
    case JSON_ARRAY: push_list(L, value); break;
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER: lua_pushinteger(L, json_integer_value(value)); break;
    case JSON_REAL: lua_pushnumber(L, json_real_value(value)); break;
    case JSON_TRUE:
    case JSON_FALSE: lua_pushboolean(L, json_is_true(value)); break;
    case JSON_NULL: lua_pushlightuserdata(L, NULL); break;
    }
}

int json_push_text(lua_State *L, const char *text, size_t length)
{
    json_t     **box = push_json_box(L);
    json_error_t why;
    Error        err = ERROR_INIT;

    *box = json_loadb(text, length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (!*box) {
        error_set(&err, ERR_FORMAT, "JSON line %d, column %d: %s", why.line, why.column, why.text);
        return failure(L, &err);
    }
    push_value(L, *box);
    lua_remove(L, -2);
    return 1;
}

/* [-0, +1 or 3, v] */
int attn_from_json(lua_State *L)
{
    size_t      length;
    const char *text = luaL_checklstring(L, 1, &length);

    return json_push_text(L, text, length);
}

/* Own JSON reads back, or it is a bug. */
static void push_own(lua_State *L, const Text *text)
{
    if (!text_ok(text))
        luaL_error(L, "not enough memory");
    if (json_push_text(L, text_str(text), text->length) != 1)
        luaL_error(L, "a bug in attnscope: %s", lua_tostring(L, -2));
}

void record_push(lua_State *L, const Record *record)
{
    Text *text = text_box(L);
    Json  json = jsonw_to(text);

    record_json(record, &json);
    push_own(L, text);
    names_set_record(L);
    lua_remove(L, -2);
}

/* [-0, +1, v] */
int attn_environment(lua_State *L)
{
    Text *text = text_box(L);
    Json  json = jsonw_to(text);

    environment_json(&json);
    push_own(L, text);
    return 1;
}
