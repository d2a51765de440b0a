/* script_run.c -- the libraries, the module and the script itself; see script_parts.h. */
#include "script/host/script_parts.h"

#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/lesson/lesson.h"
#include "app/session/device.h"
#include "script/host/lua_coroutine.h"
#include "script/host/safe.h"
#include "script/script.h"

/* ---- in the state ----------------------------------------------------------- */

/* Some function of a script is running: else a traceback says nothing. */
static bool runs_lua(lua_State *L)
{
    lua_Debug at;

    for (int level = 1; lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "S", &at);
        if (strcmp(at.what, "C") != 0)
            return true;
    }
    return false;
}

/* The message with a traceback, if there is one to tell of.  [-1, +1, m] */
int script_add_traceback(lua_State *L)
{
    const char *message = lua_tostring(L, 1);

    if (!message)
        message = luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING
                      ? lua_tostring(L, -1)
                      : lua_pushfstring(L, "(the error is a %s value)", luaL_typename(L, 1));
    if (runs_lua(L))
        luaL_traceback(L, L, message, 1);
    else
        lua_pushstring(L, message);
    return 1;
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libraries[] = {
        { LUA_GNAME, luaopen_base }, { LUA_LOADLIBNAME, luaopen_package },
        { LUA_COLIBNAME, luaopen_coroutine }, { LUA_TABLIBNAME, luaopen_table },
        { LUA_IOLIBNAME, luaopen_io }, { LUA_OSLIBNAME, luaopen_os },
        { LUA_STRLIBNAME, luaopen_string }, { LUA_MATHLIBNAME, luaopen_math },
        { LUA_UTF8LIBNAME, luaopen_utf8 }, { LUA_DBLIBNAME, luaopen_debug }, { NULL, NULL },
    };

    for (const luaL_Reg *library = libraries; library->func; library++) {
        luaL_requiref(L, library->name, library->func, 1);
        lua_pop(L, 1);
    }
    coroutine_install(L);
}

/* The global `arg`, which is attn.args as well: [0] is the script's name. */
static void push_args(lua_State *L, const Start *start)
{
    lua_createtable(L, start->arg_count, 1);
    lua_pushstring(L, start->code ? "-e" : start->file);
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < start->arg_count; i++) {
        lua_pushstring(L, start->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static void open_module(lua_State *L, const Start *start)
{
    class_open_all(L);
    push_args(L, start);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "arg");
    lua_setfield(L, -2, "args");
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "attnscope");
    lua_pop(L, 1);
    lua_getfield(L, -1, "ui");
    lua_setglobal(L, "ui");
    lua_setglobal(L, "attn");
}

/* The chunk.  [-0, +1, v] */
static void load_script(lua_State *L, const Start *start)
{
    int status;

    if (start->code) {
        status = luaL_loadbufferx(L, start->code, strlen(start->code), "=-e", "t");
    } else if (!strcmp(start->file, "-")) {
        status = luaL_loadfilex(L, NULL, "t");
    } else {
        script_push_file(L, start->file);
        if (!*lua_tostring(L, -1))
            luaL_error(L, "%s: no such script, neither here nor among the user's and the shipped "
                       "ones", start->file);
        script_set_path(L, lua_tostring(L, -1));
        status = luaL_loadfilex(L, lua_tostring(L, -1), "t");
    }
    if (status != LUA_OK)
        lua_error(L);
}

static int keep_input(lua_State *L, int status, lua_KContext unused)
{
    (void)status;
    (void)unused;
    lua_setfield(L, LUA_REGISTRYINDEX, "attnscope.kept input");
    return 0;
}

static int load_kept(lua_State *L)
{
    return input_await(L, 1, keep_input);
}

/* What runs without an input of their own take is loaded while files can still be opened; from
 * here on the memory of Lua is a stranger's.  [-0, +0, v] */
static void prepare_safe(lua_State *L)
{
    Script *script = script_of(L);

    lua_pushcfunction(L, load_kept);
    lua_newtable(L);
    lua_call(L, 1, 0);
    script->limit = script->limit_most = SAFE_LUA_BYTES;
}

/* All that may raise, under the one protected call.  Argument 1: the Start. */
int script_run_all(lua_State *L)
{
    Start *start = lua_touserdata(L, 1);

    if (!start->opened) {
        luaL_checkversion(L);
        open_libraries(L);
        script_set_path(L, NULL);
        open_module(L, start);
    }
    if (start->prompt)
        return 0;
    load_script(L, start);
    if (start->safe) {
        Error err = ERROR_INIT;

        prepare_safe(L);
        start->output = safe_take_output(&err);
        if (start->output)
            safe_strip(L, start->output);
        if (!start->output || !safe_close_process(start->safe, &err))
            return luaL_error(L, "%s", err.text);
    }
    for (int i = 0; i < start->arg_count; i++) {
        luaL_checkstack(L, 1, "too many arguments");
        lua_pushstring(L, start->args[i]);
    }
    lua_call(L, start->arg_count, 0);
    return 0;
}

/* ---- its session ------------------------------------------------------------ */

/* One line on a terminal, overwritten as work goes on; the last one goes with the next line. */
static void show_progress(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "\r\033[K%s\r", text);
    fflush(stderr);
}

static void drop_session(void *session)
{
    session_free(session);
}

bool start_open_session(Start *start, Error *err)
{
    Session *session = session_new(err);

    if (!session)
        return false;
    session_on_lessons(session, &script_lessons);
    session_on_stop(session, script_interrupt_flag(), NULL);
    /* It tells of the script's own names, too. */
    if (isatty(STDERR_FILENO) && terminal_obeys() && !start->safe)
        session_on_progress(session, show_progress, NULL);
    if (!start->safe)
        trials_allow();
    start->script.session = keep_new(session, drop_session, NULL);
    return start->script.session || error_set(err, ERR_NOMEM, "not enough memory to start");
}
