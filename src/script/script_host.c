/* script_host.c -- scripts that come before the explorer or a command; see script.h. */
#include "script/script.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/script_parts.h"

#define INIT_FILE "attnscope/init.lua"

struct ScriptHost {
    Start      start;
    lua_State *state;
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

static bool host_open(ScriptHost *host, Error *err)
{
    Script *script = &host->start.script;

    if (!start_open_session(&host->start, err))
        return false;
    host->state = script_state_new(script);
    if (!host->state)
        return error_set(err, ERR_NOMEM, "not enough memory for Lua");
    return true;
}

static bool host_run(ScriptHost *host, const char *file, Error *err)
{
    Script    *script = &host->start.script;
    lua_State *L;
    int        status;

    if (!*file)
        return error_set(err, ERR_USAGE, "--lua: which script? --lua FILE.lua");
    if (!host->state && !host_open(host, err))
        return false;
    L = host->state;
    host->start.file = file;
    script_enter(script, NULL);
    lua_pushcfunction(L, script_add_traceback);
    lua_pushcfunction(L, script_run_all);
    lua_pushlightuserdata(L, &host->start);
    status = lua_pcall(L, 1, 0, 1);
    if (status != LUA_OK)
        error_set(err, ERR_SCRIPT, "%.500s", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    script_leave(script);
    host->start.opened = true;
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

ScriptHost *script_load(int *argc, char **argv, Error *err)
{
    ScriptHost *host = calloc(1, sizeof(*host));
    Text        init = { 0 };
    bool        ok;

    if (!host) {
        error_set(err, ERR_NOMEM, "not enough memory for scripts");
        return NULL;
    }
    host->start.script.limit = LUA_MEMORY_LIMIT;
    host->start.script.line = "attnscope --lua";
    pthread_mutex_init(&host->start.script.lock, NULL);
    find_init(&init);
    ok = (!init.length || host_run(host, text_str(&init), err)) &&
         run_options(host, argc, argv, err);
    text_free(&init);
    if (ok && host->state)
        return host;
    script_unload(host);
    return NULL;
}

void script_unload(ScriptHost *host)
{
    if (!host)
        return;
    host->start.script.caller = NULL;
    if (host->state)
        lua_close(host->state);
    keep_release(host->start.script.session);
    script_forget(&host->start.script);
    pthread_mutex_destroy(&host->start.script.lock);
    free(host);
}
