/* start.c -- `attnscope lua`: options, the state, the script, the exit status.
 *
 * 0 done, 1 the script failed, 2 usage, 130 interrupted; os.exit(n) as the
 * script likes.  Everything the script writes is its own; messages go to
 * standard error.
 */
#include <errno.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/lesson/lesson.h"
#include "app/program.h"
#include "app/session/session.h"
#include "core/text.h"
#include "script/console/console.h"
#include "script/host/state.h"
#include "script/script.h"

#define SAFE_SECONDS 60
#define USAGE_STATUS 2
#define INTERRUPTED_STATUS 130

/* ---- the command line ------------------------------------------------------- */

/* Does the option word take its value from the next word? */
static bool takes_next(const char *word)
{
    const Option *option;
    bool          is_long = word[1] == '-';

    for (int id = 0; (option = option_at(id)); id++) {
        if (!option->value)
            continue;
        if (is_long ? !strcmp(option->flag, word + 2)
                    : option->letter && option->letter == word[1] && !word[2])
            return true;
    }
    return false;
}

/* Index of FILE or -e: the first word that is no option and no option's value. */
static int find_script(int argc, char **argv)
{
    int i = 2;

    for (; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1] || !strcmp(argv[i], "-e"))
            return i;
        if (!strcmp(argv[i], "--"))
            return i + 1;
        if (takes_next(argv[i]))
            i++;
    }
    return i;
}

static bool whole_option(const Call *call, int id, int64_t most, int64_t *out, Error *err)
{
    const char *text = call->values[id];

    *out = 0;
    return !text || (text_whole(text, out) && *out >= 0 && *out <= most) ||
           error_set(err, ERR_USAGE, "--%s: expected a whole number from 0 to %lld, got '%s'",
                     option_at(id)->flag, (long long)most, text);
}

static bool parse_options(Start *start, char **argv, int at, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Call       *call = &start->script.options;
    int         count = 0;
    int64_t     seed, threads;

    for (int i = 1; i < at && count < CALL_MAX_WORDS; i++)
        words[count++] = argv[i];
    if (!call_parse(call, words, count, err) ||
        !whole_option(call, OPT_SEED, INT64_MAX, &seed, err) ||
        !whole_option(call, OPT_THREADS, 4096, &threads, err))
        return false;
    start->script.seed = (uint64_t)seed;
    start->script.threads = (int)threads;
    return true;
}

/* --safe or --safe=SECONDS before `end` is taken out; *seconds 0: it is not there. */
static bool take_safe(char **argv, int end, int *seconds, Error *err)
{
    char *rest;
    long  value = SAFE_SECONDS;
    int   i = 2;

    *seconds = 0;
    while (i < end && strncmp(argv[i], "--safe", 6) != 0)
        i++;
    if (i >= end || (argv[i][6] && argv[i][6] != '='))
        return true;
    if (argv[i][6]) {
        value = strtol(argv[i] + 7, &rest, 10);
        if (rest == argv[i] + 7 || *rest || value < 1 || value > 86400)
            return error_set(err, ERR_USAGE, "%s: expected seconds from 1 to 86400, like --safe=10",
                             argv[i]);
    }
    *seconds = (int)value;
    for (; argv[i]; i++)
        argv[i] = argv[i + 1];
    return true;
}

/* --safe behind the script is the script's own word, which nobody means. */
static bool refuse_late_safe(int argc, char **argv, int at, Error *err)
{
    for (int i = at + 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--safe") || !strncmp(argv[i], "--safe=", 7))
            return error_set(err, ERR_USAGE, "%s stands behind the script, where it would not "
                             "protect: attnscope lua %s FILE (a script's own word follows --)",
                             argv[i], argv[i]);
    return true;
}

static bool parse(Start *start, int argc, char **argv, Error *err)
{
    int at;

    at = find_script(argc, argv);
    if (!refuse_late_safe(argc, argv, at, err))
        return false;
    if (!take_safe(argv, at < argc ? at : argc, &start->safe, err))
        return false;
    if (start->safe) { /* the state's own option, not a command's */
        argc--;
        at--;
    }

    if (!parse_options(start, argv, at < argc ? at : argc, err))
        return false;
    if (start->script.options.values[OPT_HELP])
        return true;
    if (at < argc && !strcmp(argv[at], "-e") && strcmp(argv[at - 1], "--") != 0) {
        if (++at == argc)
            return error_set(err, ERR_USAGE, "-e needs Lua code: attnscope lua -e 'CODE'");
        start->code = argv[at];
    } else if (at < argc) {
        start->file = argv[at];
    } else if (isatty(STDIN_FILENO) && !start->safe) {
        start->prompt = true;
        start->file = "prompt";
        at = argc - 1;
    } else {
        return error_set(err, ERR_USAGE, "which script? attnscope lua FILE.lua [ARG...], or "
                         "attnscope lua -e 'CODE'");
    }
    start->args = argv + at + 1;
    start->arg_count = argc - at - 1;
    text_add(&start->line, "attnscope");
    for (int i = 1; i < argc; i++)
        text_addf(&start->line, " %s", argv[i]);
    start->script.line = text_str(&start->line);
    return true;
}

static int run_state(lua_State *L, Start *start)
{
    int status;

    lua_gc(L, LUA_GCGEN, 0, 0);
    script_catch_interrupt(L);
    script_enter(&start->script);
    lua_pushcfunction(L, script_add_traceback);
    lua_pushcfunction(L, script_run_all);
    lua_pushlightuserdata(L, start);
    status = lua_pcall(L, 1, 0, 1);
    script_catch_interrupt(NULL);
    if (status == LUA_OK && start->prompt) {
        repl_run(L);
        return EXIT_SUCCESS;
    }
    if (status != LUA_OK) {
        program_message(luaL_tolstring(L, -1, NULL));
    }
    if (script_interrupted())
        return INTERRUPTED_STATUS;
    return status == LUA_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(Start *start)
{
    lua_State *L = script_state_new(&start->script);
    FILE      *output;
    bool       written;
    int        status;

    if (!L) {
        program_message("not enough memory for Lua");
        return EXIT_FAILURE;
    }
    status = run_state(L, start);
    script_end_callbacks(&start->script);
    start->script.caller = NULL;
    lua_close(L);
    script_leave(&start->script);
    output = start->output ? start->output : stdout;
    written = fflush(output) == 0 && !ferror(output);
    if (start->output)
        fclose(start->output);
    if (!written && status == EXIT_SUCCESS) {
        fprintf(stderr, "attnscope: standard output: %s\n", strerror(errno));
        status = EXIT_FAILURE;
    }
    return status;
}

static int print_help(void)
{
    Text text = { 0 };
    int  status;

    command_help(command_find("lua"), &text);
    text_add(&text,
             "\nWithout FILE, at a terminal: a prompt with completion (Tab) and history."
             "\n--safe: a script of somebody else; no files, programs or network, 4 GiB of memory,"
             "\n60 s (--safe=SECONDS)."
             "\nInstead of FILE: -e CODE runs Lua code, - reads it from standard input.  FILE "
             "may be\nthe name of a script in $XDG_DATA_HOME/attnscope/lua or of one that comes "
             "along:\nadvise, advise_model, table1, survey, seeds, figure_grid, failures, "
             "export_views,\nsweep_csv, sharpening (.lua); each has --help.  Options of this "
             "command stand\nbefore the name; what follows is the script's.\n");
    status = program_print(&text);
    text_free(&text);
    return status;
}

int script_main(int argc, char **argv)
{
    Start start = { .script = { .limit = LUA_MEMORY_LIMIT, .lock = PTHREAD_MUTEX_INITIALIZER } };
    Error err = ERROR_INIT;
    int   status = USAGE_STATUS;

    if (!parse(&start, argc, argv, &err))
        program_message(err.text);
    else if (start.script.options.values[OPT_HELP])
        status = print_help();
    else if (start_open_session(&start, &err))
        status = run(&start);
    else
        program_message(err.text);
    keep_release(start.script.session);
    script_forget(&start.script);
    text_free(&start.line);
    return err.code ? error_exit_status(err.code) : status;
}

/* The libraries, the module and the script itself; see state.h. */

/* ---- in the state ----------------------------------------------------------- */

/* A Lua function is running; without one a traceback is of no use. */
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

/* The message, with a traceback where one says anything.  [-1, +1, m] */
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
    module_open(L);
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
        script_take_code(L, "-e");
        status = luaL_loadbufferx(L, start->code, strlen(start->code), "=-e", "t");
    } else if (!strcmp(start->file, "-")) {
        script_take_code(L, "standard input");
        status = luaL_loadfilex(L, NULL, "t");
    } else {
        script_push_file(L, start->file);
        if (!*lua_tostring(L, -1))
            luaL_error(L, "%s: no such script, neither here nor among the user's and the shipped "
                       "ones", start->file);
        script_set_path(L, lua_tostring(L, -1));
        script_take_file(L, lua_tostring(L, -1));
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

/* Loads the default input while files can still be opened, then limits Lua's memory.
 * [-0, +0, v] */
static void prepare_safe(lua_State *L)
{
    Script *script = script_of(L);

    lua_pushcfunction(L, load_kept);
    lua_newtable(L);
    lua_call(L, 1, 0);
    script->limit = script->limit_most = SAFE_LUA_BYTES;
}

static int ran(lua_State *L, int status, lua_KContext context)
{
    (void)L;
    (void)status;
    (void)context;
    return 0;
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
    if (start->prompt) {
        script_take_code(L, "a prompt");
        return 0;
    }
    load_script(L, start);
    if (start->safe) {
        Error err = ERROR_INIT;

        prepare_safe(L);
        start->output = safe_take_output(&err);
        if (start->output)
            safe_strip(L, start->output);
        check_ok(L, start->output && safe_close_process(start->safe, &err), &err);
    }
    for (int i = 0; i < start->arg_count; i++) {
        luaL_checkstack(L, 1, "too many arguments");
        lua_pushstring(L, start->args[i]);
    }
    lua_callk(L, start->arg_count, 0, 0, ran);
    return 0;
}

/* ---- its session ------------------------------------------------------------ */

/* One line on a terminal, overwritten as work goes on; the last one goes with the next line. */
static void show_progress(void *context, const char *text)
{
    (void)context;
    program_progress(text);
    fputc('\r', stderr);
}

static void free_session(void *session)
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
    /* Progress lines name the script's own mechanisms too. */
    if (isatty(STDERR_FILENO) && terminal_obeys() && !start->safe)
        session_on_progress(session, show_progress, NULL);
    if (!start->safe)
        trials_allow();
    start->script.session = keep_new(session, free_session, NULL);
    return start->script.session || error_set(err, ERR_NOMEM, "not enough memory to start");
}

/* The module in an interpreter that is not ours: require "attnscope" in lua5.4.
 *
 * Everything is as in `attnscope lua`, but for what the program brings: no global is set, Ctrl-C
 * is the interpreter's, and its allocator keeps the memory.
 */

#define BOX "attnscope.stock"

int luaopen_attnscope(lua_State *L);

/* Runs last of all finalizers, because it was created first. */
static int close_stock(lua_State *L)
{
    Start **box = luaL_checkudata(L, 1, BOX);
    Start  *start = *box;

    *box = NULL;
    if (!start)
        return 0;
    script_end_callbacks(&start->script);
    start->script.caller = NULL;
    script_leave(&start->script);
    keep_release(start->script.session);
    script_forget(&start->script);
    pthread_mutex_destroy(&start->script.lock);
    free(start);
    return 0;
}

/* [-0, +1, v] */
static Start *push_start(lua_State *L)
{
    Start **box = box_push(L, sizeof(*box), 0, BOX, close_stock, NULL);

    *box = calloc(1, sizeof(**box));
    if (!*box)
        luaL_error(L, "not enough memory for attnscope");
    (*box)->file = "lua";
    (*box)->script.line = "lua";
    (*box)->script.limit = LUA_MEMORY_LIMIT;
    pthread_mutex_init(&(*box)->script.lock, NULL);
    script_enter(&(*box)->script);
    return *box;
}

/* The interpreter's script is arg[0]; the table, or nil, is at the top.  [-0, +0, v] */
static void take_stock_file(lua_State *L)
{
    bool listed = lua_istable(L, -1);

    if (listed)
        lua_rawgeti(L, -1, 0);
    if (listed && lua_type(L, -1) == LUA_TSTRING && access(lua_tostring(L, -1), R_OK) == 0)
        script_take_file(L, lua_tostring(L, -1));
    else
        script_take_code(L, "a prompt");
    if (listed)
        lua_pop(L, 1);
}

/* [-0, +1, v] */
int luaopen_attnscope(lua_State *L)
{
    Start *start;
    Error  err = ERROR_INIT;

    luaL_checkversion(L);
    start = push_start(L);
    luaL_ref(L, LUA_REGISTRYINDEX);
    check_ok(L, start_open_session(start, &err), &err);
    script_set_state(L, &start->script);
    module_open(L);
    lua_getglobal(L, "arg");
    take_stock_file(L);
    lua_setfield(L, -2, "args");
    return 1;
}
