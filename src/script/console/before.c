/* before.c -- scripts that run before the explorer or a command; see script.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/program.h"
#include "script/console/console.h"
#include "script/host/state.h"
#include "script/script.h"

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
    Error       err = ERROR_INIT;

    if (config && *config == '/')
        text_addf(path, "%s/" INIT_FILE, config);
    else if (home && *home == '/')
        text_addf(path, "%s/.config/" INIT_FILE, home);
    if (path->length && access(text_str(path), R_OK) != 0)
        text_clear(path);
    if (path->length && !place_is_file(text_str(path), &err)) { /* a pipe would be waited for */
        program_message(err.text);
        text_clear(path);
    }
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

/* As a coroutine, which a sweep in it ends.  1: the Start.  [-1, +0, v] */
static int protected_load(lua_State *L)
{
    Start     *start = lua_touserdata(L, 1);
    Script    *script = &start->script;
    lua_State *co = lua_newthread(L);
    int        results, status;

    lua_pushcfunction(co, script_run_all);
    lua_pushlightuserdata(co, start);
    script->gives_way = true;
    script->turn_over = false;
    status = lua_resume(co, L, 1, &results);
    script->gives_way = false;
    if (status == LUA_OK || (status == LUA_YIELD && script->turn_over))
        return 0;
    if (status == LUA_YIELD)
        return luaL_error(L, "attempt to yield from outside a coroutine");
    luaL_tolstring(co, -1, NULL); /* one line: it is the reason in records, too */
    lua_xmove(co, L, 1);
    return lua_error(L);
}

static bool host_run(ScriptHost *host, const char *file, Error *err)
{
    Script    *script = &host->start.script;
    bool       loads = script->before_command;
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
    lua_pushcfunction(L, loads ? protected_load : script_run_all);
    lua_pushlightuserdata(L, &host->start);
    status = lua_pcall(L, 1, 0, loads ? 0 : 1);
    if (status != LUA_OK)
        error_set(err, ERR_SCRIPT, "%.500s", luaL_tolstring(L, -1, NULL));
    lua_settop(L, 0);
    script_leave(script);
    return status == LUA_OK;
}

/* A command's output is its own: what scripts print goes to standard error.  The result is for
 * output_back. */
static int output_aside(const Script *script)
{
    int kept = -1;

    if (script->before_command) {
        fflush(stdout);
        kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    }
    if (kept >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    return kept;
}

static void output_back(int kept)
{
    if (kept < 0)
        return;
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
}

#define FILES_MOST 64

/* Takes the files of the options out of argv; what is after `--` is left.  -1: too many. */
static int take_files(int *argc, char **argv, const char **files)
{
    int  kept = 1, words, count = 0;
    bool options = true;

    for (int i = 1; i < *argc; i += words) {
        const char *file = options ? lua_option(*argc, argv, i, &words) : NULL;

        if (file && count == FILES_MOST)
            return -1;
        if (file) {
            files[count++] = file;
            continue;
        }
        words = 1;
        options = options && strcmp(argv[i], "--") != 0;
        argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return count;
}

/* What stands in it may be broken: what it does, and a way round it, are part of the message. */
static bool run_init(ScriptHost *host, const char *init, Error *err)
{
    char why[sizeof(err->text)];
    bool ok;

    host->start.script.everywhere = true;
    ok = host_run(host, init, err);
    host->start.script.everywhere = false;
    if (ok)
        return true;
    snprintf(why, sizeof(why), "%s", err->text);
    return error_set(err, err->code, "%.390s; init.lua runs before every command: mend it, or "
                     "leave it out with XDG_CONFIG_HOME=/nowhere", why);
}

/* init.lua (empty: none), then the files. */
static bool run_files(ScriptHost *host, const char *init, const char *const *files, int count,
                      Error *err)
{
    int  kept = output_aside(&host->start.script);
    bool ok = true;

    if (*init)
        ok = run_init(host, init, err);
    for (int i = 0; ok && i < count; i++)
        ok = host_run(host, files[i], err);
    output_back(kept);
    return ok;
}

typedef struct Told {
    const char *event, *content;
} Told;

static int protected_tell(lua_State *L)
{
    const Told *told = lua_touserdata(L, 1);

    lua_getfield(L, LUA_REGISTRYINDEX, EVENT_TELL);
    lua_pushstring(L, told->event);
    if (json_push_text(L, told->content, strlen(told->content)) == 1)
        lua_call(L, 2, 0);
    return 0;
}

/* A handler's own error is reported by the prelude. */
void commands_tell(void *console, const char *event, const char *content)
{
    Script *script = &((Console *)console)->start->script;
    Told    told = { event, content };
    int     kept = output_aside(script);

    script_enter(script);
    script->before_command = false; /* a handler may sweep */
    lua_pushcfunction(script->state, protected_tell);
    lua_pushlightuserdata(script->state, &told);
    lua_pcall(script->state, 1, 0, 0);
    lua_settop(script->state, 0);
    script->before_command = true;
    script_leave(script);
    output_back(kept);
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
    console_interpreter(&host->console, &host->start, &host->interpreter);
    return host;
}

/* Version and help, which nothing that a script defines changes. */
static bool needs_no_init(int argc, char **argv)
{
    static const char *const words[] = { "--version", "-V", "--help", "-h", "help" };

    for (size_t i = 0; argc > 1 && i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(argv[1], words[i]))
            return true;
    return argc == 3 && !strcmp(argv[2], "--help");
}

ScriptHost *script_load(int *argc, char **argv, Error *err)
{
    ScriptHost *host = host_new();
    const char *files[FILES_MOST];
    int         count = take_files(argc, argv, files);
    Text        init = { 0 };
    bool        ok;

    if (!host) {
        error_set(err, ERR_NOMEM, "not enough memory for scripts");
        return NULL;
    }
    if (!needs_no_init(*argc, argv))
        find_init(&init);
    host->start.script.before_command = *argc > 1 && command_find(argv[1]);
    ok = count >= 0 ? run_files(host, text_str(&init), files, count, err)
                    : error_set(err, ERR_USAGE, "--lua: at most %d scripts", FILES_MOST);
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
    console_drop(&host->console);
    keep_release(host->start.script.session);
    script_forget(&host->start.script);
    pthread_mutex_destroy(&host->start.script.lock);
    free(host);
}
