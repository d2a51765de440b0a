/* test_console.c -- scripts that run before the explorer or a command, events told to them, and the
 * console's output, without a terminal. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "script/script.h"

static char folder[] = "/tmp/attnscope-console-XXXXXX", out_path[64], err_path[64];

static void write_script(const char *name, const char *text)
{
    char  path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Where the user has no script of the first start, whatever the tests before made. */
static int setup(void **state)
{
    static bool made; /* not by the name, which may end in X by chance */
    char        path[64];

    (void)state;
    if (!made && !mkdtemp(folder))
        return 1;
    made = true;
    snprintf(out_path, sizeof(out_path), "%s/out", folder);
    snprintf(err_path, sizeof(err_path), "%s/err", folder);
    snprintf(path, sizeof(path), "%s/attnscope", folder);
    mkdir(path, 0700);
    unlink(strcat(path, "/init.lua"));
    setenv("XDG_CONFIG_HOME", folder, 1);
    return chdir(folder);
}

static int remove_folder(void **state)
{
    char line[128];

    (void)state;
    snprintf(line, sizeof(line), "rm -rf %s", folder);
    return system(line);
}

/* ---- what is printed ---------------------------------------------------------------------- */

typedef struct Streams {
    int out, err;
} Streams;

static int redirect(int stream, const char *path)
{
    int kept = dup(stream), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(kept >= 0 && file >= 0);
    dup2(file, stream);
    close(file);
    return kept;
}

static Streams streams_aside(void)
{
    fflush(NULL);
    return (Streams){ redirect(STDOUT_FILENO, out_path), redirect(STDERR_FILENO, err_path) };
}

static void streams_back(Streams kept)
{
    fflush(NULL);
    dup2(kept.out, STDOUT_FILENO);
    dup2(kept.err, STDERR_FILENO);
    close(kept.out);
    close(kept.err);
}

static void expect_file(const char *path, const char *expected)
{
    char   text[1024] = "";
    FILE  *file = fopen(path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

/* ---- scripts before a command ------------------------------------------------------------- */

/* argv as main has it, and what script_load left of it. */
typedef struct Line {
    int         argc;
    char       *argv[80];
    Error       err;
    ScriptHost *host;
} Line;

static void load(Line *line, const char *const *words)
{
    Streams kept = streams_aside();

    *line = (Line){ .err = ERROR_INIT };
    for (; words[line->argc]; line->argc++)
        line->argv[line->argc] = (char *)(uintptr_t)words[line->argc];
    line->host = script_load(&line->argc, line->argv, &line->err);
    streams_back(kept);
}

static void expect_words(const Line *line, const char *const *words)
{
    int count = 0;

    for (; words[count]; count++)
        assert_string_equal(line->argv[count], words[count]);
    assert_int_equal(line->argc, count);
    assert_null(line->argv[count]);
}

TEST_AFTER(files_are_taken_out_of_the_line_in_order, setup)
{
    static const char *const words[] = { "attnscope", "--lua", "a.lua", "list",  "--lua=b.lua",
                                         "--",        "--lua", "c.lua", NULL };
    Line line;

    write_script("attnscope/init.lua", "order = 'init'");
    write_script("a.lua", "order = (order or 'nothing') .. ' a'");
    write_script("b.lua", "print(order .. ' b')");
    load(&line, words);
    assert_non_null(line.host);
    expect_words(&line, (const char *const[]){ "attnscope", "list", "--", "--lua", "c.lua", NULL });
    expect_file(out_path, ""); /* of a command it is the command's own */
    expect_file(err_path, "init a b\n");
    script_unload(line.host);
}

TEST_AFTER(without_a_command_scripts_print_to_standard_output, setup)
{
    Line line;

    write_script("a.lua", "print 'before the explorer'");
    load(&line, (const char *const[]){ "attnscope", "--lua", "a.lua", NULL });
    expect_words(&line, (const char *const[]){ "attnscope", NULL });
    expect_file(out_path, "before the explorer\n");
    expect_file(err_path, "");
    script_unload(line.host);
}

TEST_AFTER(no_script_needs_no_host, setup)
{
    Line line;

    load(&line, (const char *const[]){ "attnscope", "list", NULL });
    assert_null(line.host);
    assert_int_equal(line.err.code, ERR_NONE);
    setenv("XDG_CONFIG_HOME", "no/whole/path", 1); /* then that of HOME */
    setenv("HOME", folder, 1);
    mkdir(".config", 0700);
    mkdir(".config/attnscope", 0700);
    write_script(".config/attnscope/init.lua", "print 'of HOME'");
    load(&line, (const char *const[]){ "attnscope", "list", NULL });
    assert_non_null(line.host);
    expect_file(err_path, "of HOME\n");
    script_unload(line.host);
}

static void expect_refusal(const char *const *words, ErrorCode code, const char *reason)
{
    Line line;

    load(&line, words);
    assert_null(line.host);
    assert_int_equal(line.err.code, code);
    CHECK(strstr(line.err.text, reason), "no '%s' in: %s", reason, line.err.text);
}

TEST_AFTER(refusals_say_why, setup)
{
    const char *many[80] = { "attnscope" };
    Line        line;

    expect_refusal((const char *const[]){ "attnscope", "list", "--lua", NULL }, ERR_USAGE,
                   "which script?");
    write_script("a.lua", "");
    for (int i = 1; i <= 64; i++)
        many[i] = "--lua=a.lua";
    load(&line, many);
    assert_non_null(line.host); /* so many may be */
    script_unload(line.host);
    many[65] = "--lua=a.lua";
    expect_refusal(many, ERR_USAGE, "at most 64 scripts");
    write_script("a.lua", "error 'on purpose'");
    expect_refusal((const char *const[]){ "attnscope", "list", "--lua=a.lua", NULL }, ERR_SCRIPT,
                   "a.lua:1: on purpose");
    expect_refusal((const char *const[]){ "attnscope", "--lua=a.lua", NULL }, ERR_SCRIPT,
                   "a.lua:1: on purpose");
    write_script("a.lua", "coroutine.yield()");
    expect_refusal((const char *const[]){ "attnscope", "list", "--lua=a.lua", NULL }, ERR_SCRIPT,
                   "attempt to yield");
}

TEST_AFTER(a_broken_first_script_keeps_neither_help_nor_version, setup)
{
    static const char *const asked[][4] = { { "attnscope", "--version" }, { "attnscope", "--help" },
                                            { "attnscope", "help", "run" },
                                            { "attnscope", "run", "--help" } };
    Line line;

    write_script("attnscope/init.lua", "error 'on purpose'");
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        load(&line, asked[i]);
        assert_null(line.host);
        CHECK(line.err.code == ERR_NONE, "%s: %s", asked[i][1], line.err.text);
    }
    expect_refusal((const char *const[]){ "attnscope", "list", NULL }, ERR_SCRIPT,
                   "init.lua:1: on purpose; init.lua runs before every command");
    expect_refusal((const char *const[]){ "attnscope", "list", NULL }, ERR_SCRIPT,
                   "leave it out with XDG_CONFIG_HOME=/nowhere");
    write_script("a.lua", "error 'of an option'");
    expect_refusal((const char *const[]){ "attnscope", "--version", "--lua", "a.lua", NULL },
                   ERR_SCRIPT, "of an option");
}

TEST_AFTER(a_first_script_that_is_a_pipe_is_left_alone, setup)
{
    Line  line;
    char  path[256], said[512] = "";
    FILE *file;

    assert_int_equal(mkfifo("attnscope/init.lua", 0600), 0);
    load(&line, (const char *const[]){ "attnscope", "list", NULL });
    assert_null(line.host);
    assert_int_equal(line.err.code, ERR_NONE);
    snprintf(path, sizeof(path), "%s/attnscope/init.lua", folder);
    file = fopen(err_path, "r");
    assert_non_null(file);
    assert_non_null(fgets(said, sizeof(said), file));
    fclose(file);
    CHECK(strstr(said, path) && strstr(said, "named pipe"), "%s", said);
}

/* ---- events -------------------------------------------------------------------------------- */

TEST_AFTER(events_of_commands_reach_handlers, setup)
{
    Line         line;
    Interpreter *scripts;
    Streams      kept;

    write_script("a.lua", "attn.on('run', function(e) print(e.mechanism, e.n) end)\n"
                          "attn.on('run', function(e) if e.n == 9 then error 'no' end end)");
    load(&line, (const char *const[]){ "attnscope", "list", "--lua=a.lua", NULL });
    assert_non_null(line.host);
    scripts = script_interpreter(&line.host);
    assert_true(scripts->listens(scripts->host));
    kept = streams_aside();
    scripts->tell(scripts->host, "run", "{\"mechanism\":\"full\",\"n\":8}");
    scripts->tell(scripts->host, "point", "{}"); /* nobody waits for it */
    scripts->tell(scripts->host, "run", "no JSON");
    streams_back(kept);
    expect_file(out_path, "");
    expect_file(err_path, "full\t8\n");
    kept = streams_aside(); /* a handler's error hurts nobody */
    scripts->tell(scripts->host, "run", "{\"mechanism\":\"full\",\"n\":9}");
    streams_back(kept);
    expect_file(out_path, "");
    script_unload(line.host);
}

/* ---- the console's output ------------------------------------------------------------------ */

static Interpreter *console_of(ScriptHost **host, Control *control)
{
    Interpreter *console = script_interpreter(host);
    Error        err = ERROR_INIT;

    assert_non_null(console);
    CHECK(console->open(console->host, control, &err), "%s", err.text);
    return console;
}

static const Text *run_typed(Interpreter *console, const char *code)
{
    assert_int_equal(console->type(console->host, code), TYPED_DONE);
    for (int i = 0; i < 2000 && console->deadline(console->host) >= 0; i++)
        console->tick(console->host);
    return console->output(console->host);
}

TEST_AFTER(long_output_keeps_its_later_half, setup)
{
    ScriptHost  *host = NULL;
    Control      control = { 0 };
    Interpreter *console = console_of(&host, &control);
    const Text  *output = run_typed(console, "for i = 1, 40000 do print('line ' .. i) end");
    int          first, count = 0;

    assert_int_equal(sscanf(output->data, "line %d\n", &first), 1);
    for (const char *at = output->data; at && *at; at = strchr(at, '\n') + 1, count++) {
        int number;

        assert_int_equal(sscanf(at, "line %d\n", &number), 1);
        assert_int_equal(number, first + count);
    }
    assert_int_equal(first + count - 1, 40000);
    assert_int_equal(strlen(output->data), output->length);
    assert_true(output->length < 200000 && output->length > 50000);
    console->close(console->host);
    script_unload(host);
}

TEST_AFTER(output_moves_no_cursor, setup)
{
    ScriptHost  *host = NULL;
    Control      control = { 0 };
    Interpreter *console = console_of(&host, &control);
    const Text  *output = run_typed(console, "print('a b\\27[2J\\127\\31', '\xC3\xA9')");

    assert_non_null(strstr(output->data, "a b?[2J??\t\xC3\xA9\n"));
    console->close(console->host);
    script_unload(host);
}

static int64_t marked[4] = { -1, -1, -1, -1 };

static bool take_marks(void *ui, const int64_t *queries, int count, Error *err)
{
    (void)ui;
    (void)err;
    assert_int_equal(count, 2);
    memcpy(marked, queries, (size_t)count * sizeof(*queries));
    return true;
}

static char said[256];

static void take_words(void *ui, const char *text)
{
    (void)ui;
    snprintf(said, sizeof(said), "%s", text);
}

TEST_AFTER(marks_are_queries_from_0, setup)
{
    ScriptHost  *host = NULL;
    Control      control = { .mark = take_marks, .say = take_words };
    Interpreter *console = console_of(&host, &control);
    const Text  *output = run_typed(console, "ui.mark { 7, 0 }");

    CHECK(marked[0] == 7 && marked[1] == 0, "%s", text_str(output));
    run_typed(console, "ui.mark { 7, -1 }");
    CHECK(strstr(said, "queries count from 0") && marked[1] == 0, "%s", said);
    console->close(console->host);
    script_unload(host);
}

TEST_AFTER(what_is_unfinished_or_wrong_is_told, setup)
{
    ScriptHost  *host = NULL;
    Control      control = { 0 };
    Interpreter *console = console_of(&host, &control);

    assert_int_equal(console->type(console->host, "for i = 1, 2 do"), TYPED_UNFINISHED);
    assert_int_equal(console->type(console->host, "x ="), TYPED_UNFINISHED);
    assert_int_equal(console->type(console->host, "x = = 1"), TYPED_REFUSED);
    console->close(console->host);
    script_unload(host);
}

SUITE(NULL, remove_folder)
