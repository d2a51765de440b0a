/* cli.c -- commands from a shell: result on stdout, messages on stderr. */
#include "cli/cli.h"

#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/call.h"
#include "app/program.h"
#include "app/session/session.h"
#include "core/shortage.h"
#include "core/utf8.h"

/* 0: not known. */
static int columns_of(int file)
{
    struct winsize size;

    return ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int terminal_columns(void)
{
    const char *columns = getenv("COLUMNS");

    return columns && atoi(columns) > 0 ? atoi(columns) : columns_of(STDOUT_FILENO);
}

/* What failed for want of memory says so, whatever it made of that. */
static int complain_of(Error *err)
{
    size_t length = strlen(err->text);

    if (err->code == ERR_CANCELLED || !shortage_noted())
        return program_fail(err);
    if (!strstr(err->text, "memory"))
        snprintf(err->text + length, sizeof(err->text) - length, " (memory was short)");
    err->code = ERR_NOMEM;
    return program_fail(err);
}

static int overview(void (*explorer)(Text *out))
{
    Text text = { 0 };
    int  status;

    command_overview(&text, explorer);
    status = program_print(&text);
    text_free(&text);
    return status;
}

static int version(void)
{
    Text text = { 0 };
    int  status;

    text_addf(&text, "attnscope %s\n", ATTNSCOPE_VERSION);
    status = program_print(&text);
    text_free(&text);
    return status;
}

static atomic_bool stop, heeded;

/* Ctrl-C ends the process as a shell expects; files are written under a
 * temporary name, so nothing half-made is left behind.  A command that handles
 * it ends by itself; a second Ctrl-C ends the process. */
static void interrupted(int number)
{
    if (!atomic_load(&heeded) || atomic_load(&stop))
        _exit(128 + number);
    atomic_store(&stop, true);
}

/* One line on a terminal, overwritten as work goes on: no wider than the terminal, where it would
 * begin another. */
static void print_progress(void *context, const char *text)
{
    char line[256];
    int  columns = columns_of(STDERR_FILENO), length = (int)strlen(text);

    (void)context;
    if (columns > 1 && length >= columns)
        length = columns - 1;
    if (length >= (int)sizeof(line))
        length = (int)sizeof(line) - 1;
    while (length && utf8_continues(text[length]))
        length--;
    snprintf(line, sizeof(line), "%.*s", length, text);
    program_progress(line);
}

/* A line in a log, or in a pipe. */
static void print_line(void *context, const char *text)
{
    (void)context;
    program_message(text);
}

/* The line that is overwritten goes before one that stays. */
static void print_notice(void *context, const char *text)
{
    const bool *shows = context;

    if (*shows)
        print_progress(NULL, "");
    program_message(text);
}

/* A point of a sweep is told of by the sweep, not by its own process. */
static bool is_point(void)
{
    return getenv(POINT_VARIABLE) != NULL;
}

static bool has_handlers(const Interpreter *scripts)
{
    return scripts && !is_point() && scripts->listens(scripts->host);
}

static void report_to_reader(Session *session, bool *shows)
{
    if (*shows)
        session_on_progress(session, print_progress, NULL);
    else
        session_on_line(session, print_line, NULL);
    if (is_point())
        return;
    session_on_notice(session, print_notice, shows);
    session_report_runs(session);
}

static int run_words(int argc, char **argv, const LessonReader *lessons,
                     const Interpreter *scripts)
{
    Error    err = ERROR_INIT;
    Session *session = session_new(&err);
    Text     out = { 0 };
    bool     ok, shows = isatty(STDERR_FILENO) && terminal_obeys();
    int      status;

    if (!session)
        return complain_of(&err);
    session_on_lessons(session, lessons);
    session_on_stop(session, &stop, &heeded);
    trials_allow();
    if (has_handlers(scripts))
        session_on_event(session, scripts->tell, scripts->host);
    report_to_reader(session, &shows);
    ok = command_run(session, (const char *const *)argv, argc,
                     isatty(STDOUT_FILENO) ? READER_TERMINAL : READER_FILE, terminal_columns(),
                     &out, &err);
    if (shows)
        print_progress(NULL, "");
    ok = ok && shortage_allows_output(&err);
    status = ok || !shortage_noted() ? program_print(&out) : 1;
    if (!ok)
        status = complain_of(&err);
    text_free(&out);
    session_free(session);
    return status;
}

/* "help run" is "run --help". */
static int help_of(char *command, const LessonReader *lessons)
{
    char  option[] = "--help";
    char *words[] = { command, option, NULL };

    return run_words(2, words, lessons, NULL);
}

int cli_main(int argc, char **argv, const LessonReader *lessons, void (*explorer)(Text *out),
             const Interpreter *scripts)
{
    setlocale(LC_CTYPE, "");
    signal(SIGINT, interrupted);
    signal(SIGTERM, interrupted);
    shortage_forbid_output();
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
        return version();
    if (!strcmp(argv[1], "help") && argc > 2)
        return help_of(argv[2], lessons);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return overview(explorer);
    return run_words(argc - 1, argv + 1, lessons, scripts);
}
