/* script_host.c -- scripts that come before the explorer or a command; see script.h. */
#include "script/script.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/console/lua_console.h"

#define INIT_FILE "attnscope/init.lua"

struct ScriptHost {
    Start       start;
    Console     console;
    Interpreter interpreter;
};

/* $XDG_CONFIG_HOME/attnscope/init.lua; empty: there is none. */
static void find_init(Text *path)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && *config == '/')
        text_addf(path, "%s/" INIT_FILE, config);
    else if (home && *home == '/')
        text_addf(path, "%s/.config/" INIT_FILE, home);
    if (path->length && access(text_str(path), R_OK) != 0)
        text_clear(path);
}

/* The value of `--lua FILE` or `--lua=FILE` at argv[i] and how many words it takes. */
static const char *lua_option(int argc, char **argv, int i, int *words)
{
    *words = 1;
    if (!strncmp(argv[i], "--lua=", 6))
        return argv[i] + 6;
    if (strcmp(argv[i], "--lua") != 0)
        return NULL;
    *words = 2;
    return i + 1 < argc ? argv[i + 1] : "";
}

bool start_open(Start *start, Error *err)
{
    Script    *script = &start->script;
    lua_State *L;
    bool       ok = true;

    if (!script->session && !start_open_session(start, err))
        return false;
    if (!script->state && !script_state_new(script))
        return error_set(err, ERR_NOMEM, "not enough memory for Lua");
    if (start->opened)
        return true;
    L = script->state;
    script_enter(script);
    start->prompt = true; /* the module only */
    lua_pushcfunction(L, script_run_all);
    lua_pushlightuserdata(L, start);
    ok = lua_pcall(L, 1, 0, 0) == LUA_OK ||
         error_set(err, ERR_SCRIPT, "%.500s", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    start->prompt = false;
    start->opened = ok;
    script_leave(script);
    return ok;
}

static bool host_run(ScriptHost *host, const char *file, Error *err)
{
    Script    *script = &host->start.script;
    lua_State *L;
    int        status;

    if (!*file)
        return error_set(err, ERR_USAGE, "--lua: which script? --lua FILE.lua");
    if (!start_open(&host->start, err))
        return false;
    L = script->state;
    host->start.file = file;
    script_enter(script);
    lua_pushcfunction(L, script_add_traceback);
    lua_pushcfunction(L, script_run_all);
    lua_pushlightuserdata(L, &host->start);
    status = lua_pcall(L, 1, 0, 1);
    if (status != LUA_OK)
        error_set(err, ERR_SCRIPT, "%.500s", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    script_leave(script);
    return status == LUA_OK;
}

/* Runs the files of the options and takes them out; what is after `--` is left. */
static bool run_options(ScriptHost *host, int *argc, char **argv, Error *err)
{
    int  kept = 1, words;
    bool ok = true, options = true;

    for (int i = 1; i < *argc; i += words) {
        const char *file = options ? lua_option(*argc, argv, i, &words) : NULL;

        if (file) {
            ok = ok && host_run(host, file, err);
            continue;
        }
        words = 1;
        options = options && strcmp(argv[i], "--") != 0;
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return ok;
}

static ScriptHost *host_new(void)
{
    ScriptHost *host = calloc(1, sizeof(*host));

    if (!host)
        return NULL;
    host->start.script.limit = LUA_MEMORY_LIMIT;
    host->start.script.line = "attnscope --lua";
    host->start.file = "attnscope";
    pthread_mutex_init(&host->start.script.lock, NULL);
    console_fill(&host->console, &host->start, &host->interpreter);
    return host;
}

ScriptHost *script_load(int *argc, char **argv, Error *err)
{
    ScriptHost *host = host_new();
    Text        init = { 0 };
    bool        ok;

    if (!host) {
        error_set(err, ERR_NOMEM, "not enough memory for scripts");
        return NULL;
    }
    find_init(&init);
    ok = (!init.length || host_run(host, text_str(&init), err)) &&
         run_options(host, argc, argv, err);
    text_free(&init);
    if (ok && host->start.script.state)
        return host;
    script_unload(host);
    return NULL;
}

Interpreter *script_interpreter(ScriptHost **host)
{
    if (!*host)
        *host = host_new();
    return *host ? &(*host)->interpreter : NULL;
}

void script_unload(ScriptHost *host)
{
    if (!host)
        return;
    script_end_callbacks(&host->start.script);
    host->start.script.caller = NULL;
    if (host->start.script.state)
        lua_close(host->start.script.state);
    console_free(&host->console);
    keep_release(host->start.script.session);
    script_forget(&host->start.script);
    pthread_mutex_destroy(&host->start.script.lock);
    free(host);
}
