/* script.c -- `attnscope lua`: options, the state, the script, the exit status.
 *
 * 0 done, 1 the script failed, 2 usage, 130 interrupted; os.exit(n) as the
 * script likes.  Everything the script writes is its own; messages go to
 * standard error.
 */
#include "script/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/console/lua_repl.h"
#include "script/host/safe.h"
#include "script/host/script_parts.h"

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

static bool whole_option(const Call *call, int id, long long most, long long *out, Error *err)
{
    const char *text = call->values[id];
    char       *end;

    *out = 0;
    if (!text)
        return true;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return (end != text && !*end && !errno && *out >= 0 && *out <= most) ||
           error_set(err, ERR_USAGE, "--%s: expected a whole number from 0 to %lld, got '%s'",
                     option_at(id)->flag, most, text);
}

static bool parse_options(Start *start, char **argv, int at, Error *err)
{
    const char *words[CALL_MAX_WORDS];
    Call       *call = &start->script.options;
    int         count = 0;
    long long   seed, threads;

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

static bool parse(Start *start, int argc, char **argv, Error *err)
{
    int at;

    at = find_script(argc, argv);
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
        if (start->safe)
            safe_push_clean(L, -1);
        fprintf(stderr, "attnscope: %s\n", luaL_tolstring(L, -1, NULL));
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
        fprintf(stderr, "attnscope: not enough memory for Lua\n");
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

    command_help(command_find("lua"), &text);
    text_add(&text,
             "\nWithout FILE, at a terminal: a prompt with completion (Tab) and history."
             "\n--safe: a script of somebody else; no files, programs or network, 4 GiB of memory,"
             "\n60 s (--safe=SECONDS)."
             "\nInstead of FILE: -e CODE runs Lua code, - reads it from standard input.  FILE "
             "may be\nthe name of a script in $XDG_DATA_HOME/attnscope/lua or of one that comes "
             "along:\nadvise, table1, survey, seeds, figure_grid, failures, export_views, "
             "sweep_csv,\nsharpening (.lua); each has --help.  Options of this command stand "
             "before the name;\nwhat follows is the script's.\n");
    fputs(text_str(&text), stdout);
    text_free(&text);
    return EXIT_SUCCESS;
}

int script_main(int argc, char **argv)
{
    Start start = { .script = { .limit = LUA_MEMORY_LIMIT, .lock = PTHREAD_MUTEX_INITIALIZER } };
    Error err = ERROR_INIT;
    int   status = USAGE_STATUS;

    if (!parse(&start, argc, argv, &err))
        fprintf(stderr, "attnscope: %s\n", err.text);
    else if (start.script.options.values[OPT_HELP])
        status = print_help();
    else if (start_open_session(&start, &err))
        status = run(&start);
    else
        fprintf(stderr, "attnscope: %s\n", err.text);
    keep_release(start.script.session);
    script_forget(&start.script);
    text_free(&start.line);
    return err.code ? error_exit_status(err.code) : status;
}
