/* lesson_reader.c -- lessons are Lua files, read and called in a fenced state.
 *
 * A lesson may come from a stranger: its state has no files, no program, no loading of
 * code, little memory, and a function that does not end is stopped.
 */
#include "script/script.h"

#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/lesson/lesson.h"

#define MEMORY_LIMIT (64ll << 20)
#define INSTRUCTIONS 20000000 /* of one call; a fifth of a second */

typedef struct Fenced {
    Script     script; /* its memory is counted by */
    lua_State *L;
} Fenced;

static void close_state(void *state)
{
    Fenced *fenced = state;

    if (fenced->L)
        lua_close(fenced->L);
    free(fenced);
}

static void stop(lua_State *L, lua_Debug *unused)
{
    (void)unused;
    luaL_error(L, "it takes too long: is there an endless loop?");
}

/* ---- what a lesson may use -------------------------------------------------------------- */

/* percent(0.123): "12.3 %"; three digits, or as many as nearly all needs to be less than all.
 * [-0, +1, v] */
static int fence_percent(lua_State *L)
{
    double value = 100 * luaL_checknumber(L, 1);
    bool   whole = value == 0 || !(fabs(value) < 999.5) || fabs(value - 100) < 5e-4;
    char   text[400]; /* of the largest double there is */
    size_t length;
    int    digits = 3;

    do
        length = (size_t)snprintf(text, sizeof(text), whole ? "%.*f" : "%#.*g",
                                  whole ? 0 : digits, value);
    while (value < 100 && !strncmp(text, "100", 3) && digits++ < 6);
    if (text[length - 1] == '.')
        text[length - 1] = '\0';
    lua_pushfstring(L, "%s %%", text);
    return 1;
}

/* count(12345678): "12.3 M"  [-0, +1, v] */
static int fence_count(lua_State *L)
{
    char text[48];

    lua_pushstring(L, format_count(luaL_checknumber(L, 1), text, sizeof(text)));
    return 1;
}

/* bytes(65536): "64 KiB"  [-0, +1, v] */
static int fence_bytes(lua_State *L)
{
    char text[48];

    lua_pushstring(L, format_bytes((int64_t)luaL_checknumber(L, 1), text, sizeof(text)));
    return 1;
}

/* The environment of the file.  [-0, +1, m] */
static void push_fence(lua_State *L)
{
    static const char *const allowed[] = { "assert", "error", "ipairs", "pairs", "next", "select",
                                           "tonumber", "tostring", "type", "math", "string",
                                           "table", "utf8", NULL };
    static const luaL_Reg    own[] = { { "percent", fence_percent }, { "count", fence_count },
                                       { "bytes", fence_bytes }, { NULL, NULL } };

    lua_newtable(L);
    for (int i = 0; allowed[i]; i++) {
        lua_getglobal(L, allowed[i]);
        lua_setfield(L, -2, allowed[i]);
    }
    luaL_setfuncs(L, own, 0);
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        { LUA_GNAME, luaopen_base },       { LUA_TABLIBNAME, luaopen_table },
        { LUA_STRLIBNAME, luaopen_string }, { LUA_MATHLIBNAME, luaopen_math },
        { LUA_UTF8LIBNAME, luaopen_utf8 }, { NULL, NULL },
    };

    for (const luaL_Reg *library = libraries; library->func; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        lua_pop(L, 1);
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct Source {
    Lesson     *lesson;
    const char *name, *text;
    size_t      length;
} Source;

/* Argument 1: the Source. */
static int read_all(lua_State *L)
{
    Source *source = lua_touserdata(L, 1);
    int     status;

    luaL_checkversion(L);
    open_libraries(L);
    lua_pushfstring(L, "=%s", source->name);
    status = luaL_loadbufferx(L, source->text, source->length, lua_tostring(L, -1), "t");
    if (status != LUA_OK)
        return lua_error(L);
    push_fence(L);
    lua_setupvalue(L, -2, 1);
    lua_sethook(L, stop, LUA_MASKCOUNT, INSTRUCTIONS);
    lua_call(L, 0, 1);
    lua_sethook(L, NULL, 0, 0);
    lesson_table_read(L, source->lesson);
    return 0;
}

/* The message on top, with the file's name before it unless Lua put it there. */
static bool fail(lua_State *L, const char *name, Error *err)
{
    const char *message = lua_tostring(L, -1);

    if (!message)
        message = "an error without words";
    error_set(err, ERR_FORMAT, "%.400s", message);
    lua_settop(L, 0);
    if (name && strncmp(err->text, name, strlen(name)) != 0)
        error_prefix(err, "%s", name);
    return false;
}

static bool read_lesson(Lesson *lesson, const char *name, const char *text, size_t length,
                        Error *err)
{
    Fenced *fenced = calloc(1, sizeof(*fenced));
    Source  source = { lesson, name, text, length };

    if (!fenced)
        return error_set(err, ERR_NOMEM, "%s: not enough memory", name);
    fenced->script.limit = MEMORY_LIMIT;
    lesson->state = fenced;
    fenced->L = script_state_new(&fenced->script);
    if (!fenced->L)
        return error_set(err, ERR_NOMEM, "%s: not enough memory for Lua", name);
    lua_pushcfunction(fenced->L, read_all);
    lua_pushlightuserdata(fenced->L, &source);
    return lua_pcall(fenced->L, 1, 0, 0) == LUA_OK || fail(fenced->L, name, err);
}

/* ---- calling ------------------------------------------------------------------------------ */

/* Arguments: the function's number, the facts. */
static int call_function(lua_State *L)
{
    const LessonFacts *facts = lua_touserdata(L, 2);

    lua_rawgeti(L, LUA_REGISTRYINDEX, lua_tointeger(L, 1));
    lesson_facts_push(L, facts);
    lua_sethook(L, stop, LUA_MASKCOUNT, INSTRUCTIONS);
    lua_call(L, 1, 1);
    lua_sethook(L, NULL, 0, 0);
    return 1;
}

static bool take_value(lua_State *L, LessonValue *out, Error *err)
{
    switch (lua_type(L, -1)) {
    case LUA_TNIL: out->kind = LESSON_NIL; return true;
    case LUA_TBOOLEAN:
        out->kind = LESSON_TRUTH;
        out->truth = lua_toboolean(L, -1);
        return true;
    case LUA_TNUMBER:
        out->kind = LESSON_NUMBER;
        out->number = lua_tonumber(L, -1);
        return true;
    case LUA_TSTRING:
        out->kind = LESSON_STRING;
        text_add(&out->text, lua_tostring(L, -1));
        return text_ok(&out->text) || error_set(err, ERR_NOMEM, "not enough memory");
    default:
        return error_set(err, ERR_DATA, "the function returned a %s", luaL_typename(L, -1));
    }
}

static bool call_lesson(const Lesson *lesson, int function, const LessonFacts *facts,
                        LessonValue *out, Error *err)
{
    lua_State *L = ((Fenced *)lesson->state)->L;
    bool       ok;

    lua_settop(L, 0);
    lua_pushcfunction(L, call_function);
    lua_pushinteger(L, function);
    lua_pushlightuserdata(L, (void *)(uintptr_t)facts);
    ok = lua_pcall(L, 2, 1, 0) == LUA_OK ? take_value(L, out, err) : fail(L, NULL, err);
    lua_sethook(L, NULL, 0, 0);
    lua_settop(L, 0);
    lesson_facts_forget(L);
    return ok;
}

const LessonReader script_lessons = { .read = read_lesson, .call = call_lesson,
                                      .close = close_state };
