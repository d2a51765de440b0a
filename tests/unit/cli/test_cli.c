/* test_cli.c -- the program as a process: which front end answers, what goes to which stream, how
 * it ends, and its line of progress on a terminal. */
#include <jansson.h>
#include <libgen.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

typedef struct Said {
    int  status; /* 256 + signal: it was ended by one */
    char out[1 << 19], err[1 << 12];
} Said;

static char program[4200];

/* $BUILD/attnscope, or what lies above the folder of this program. */
static int find_program(void **state)
{
    char        own[4096], named[4096];
    const char *build = getenv("BUILD");
    ssize_t     length = readlink("/proc/self/exe", own, sizeof(own) - 1);

    (void)state;
    assert_true(length > 0);
    own[length] = '\0';
    snprintf(program, sizeof(program), "%s/attnscope",
             build && realpath(build, named) ? named : dirname(dirname(own)));
    unsetenv("COLUMNS");
    setenv("XDG_STATE_HOME", "/dev/null/none", 1); /* nothing is read or left there */
    setenv("XDG_DATA_HOME", "/dev/null/none", 1);
    setenv("XDG_DATA_DIRS", "/dev/null/none", 1);
    return access(program, X_OK);
}

static void read_back(FILE *file, char *text, size_t size)
{
    size_t length;

    rewind(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
}

static void become(const char *const *words)
{
    char *argv[12] = { program };

    for (int i = 0; words[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    execv(program, argv);
    _exit(99);
}

static int status_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs it with these words and no terminal. */
static Said *say(const char *const *words)
{
    static Said said;
    FILE       *out = tmpfile(), *err = tmpfile();
    pid_t       child;

    assert_true(out && err);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        assert_non_null(freopen("/dev/null", "r", stdin));
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        become(words);
    }
    said.status = status_of(child);
    read_back(out, said.out, sizeof(said.out));
    read_back(err, said.err, sizeof(said.err));
    return &said;
}

#define SAY(...) say((const char *const[]){ __VA_ARGS__, NULL })

/* It succeeds, says something, and nothing on stderr; the caller frees what it said. */
static char *said_well(const Said *said)
{
    char *copy = strdup(said->out);

    CHECK(said->status == 0 && !*said->err && *said->out, "status %d: %s", said->status, said->err);
    assert_non_null(copy);
    return copy;
}

static void check_same(char *a, char *b)
{
    assert_string_equal(a, b);
    free(a);
    free(b);
}

TEST(versions_and_help_have_several_names)
{
    const char *version = "attnscope " ATTNSCOPE_VERSION "\n";
    char       *help = said_well(SAY("help"));

    assert_string_equal(SAY("--version")->out, version);
    check_same(said_well(SAY("-V")), strdup(version));
    assert_non_null(strstr(help, "reformer"));
    check_same(said_well(SAY("--help")), strdup(help));
    check_same(said_well(SAY("-h")), help);
    check_same(said_well(SAY("help", "run")), said_well(SAY("run", "--help")));
}

TEST(a_command_answers_on_stdout_and_complains_on_stderr)
{
    char *out = said_well(SAY("run", "full", "-n", "8", "-d", "4", "--json"));
    Said *said;

    assert_true(out[0] == '{' && !strcmp(out + strlen(out) - 2, "}\n"));
    free(out);
    said = SAY("run", "full", "-n", "8", "--no-such-option");
    assert_int_equal(said->status, 2);
    assert_string_equal(said->out, "");
    assert_non_null(strstr(said->err, "attnscope: run has no option '--no-such-option'"));
    said = SAY("run", "full", "-i", "/dev/null/x.npz");
    assert_int_equal(said->status, 1);
    assert_non_null(strstr(said->err, "cannot be opened: Not a directory"));
}

/* A file of the tests, above the program; a build may lie deeper than build/. */
static const char *tests_file(const char *name, char path[4400])
{
    char above[4200];

    snprintf(above, sizeof(above), "%s", program);
    for (int up = 0; up < 6; up++) {
        snprintf(path, 4400, "%s/tests/%s", dirname(above), name);
        if (access(path, R_OK) == 0)
            return path;
    }
    fail_msg("tests/%s is not above %s", name, program);
    return NULL;
}

/* All that is said with --json is one value. */
TEST(json_is_json)
{
    char              paths[2][4400];
    const char       *model = tests_file("model/tiny.gguf", paths[0]);
    const char       *text = tests_file("model/tiny.txt", paths[1]);
    const char *const all[][10] = {
        { "run", "bigbird", "-n", "16", "-d", "4", "--quality", "--json" },
        { "run", "reformer", "-n", "16", "-d", "4", "--causal", "--decode", "--json" },
        { "list", "--json" },
        { "compare", "full", "window", "-n", "8", "-d", "4", "--json" },
        { "reach", "window", "-n", "16", "-d", "4", "--json" },
        { "step", "full", "-n", "8", "-d", "4", "--json" },
        { "preset", "--json" },
        { "doctor", "--json" },
        { "cache", "--layers", "window(8)x3,full", "--json" },
        { "model", model, "--json" },
        { "model", model, "--text", text, "--swap", "window", "--json" },
        { "heads", model, "--text", text, "--json" },
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        const Said  *said = say(all[i]);
        json_error_t at;
        json_t      *value = json_loads(said->out, JSON_REJECT_DUPLICATES, &at);

        CHECK(said->status == 0, "%s %s: %s", all[i][0], all[i][1], said->err);
        CHECK(value, "%s %s: %s", all[i][0], all[i][1], at.text);
        json_decref(value);
    }
}

/* The whole file as text; the caller frees it. */
static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);

    assert_true(file && text);
    assert_in_range(fread(text, 1, (1 << 16) - 1, file), 1, (1 << 16) - 2);
    fclose(file);
    return text;
}

/* A merged file merged is the same; a file against itself differs in nothing, point for point. */
TEST(records_are_merged_and_compared)
{
    char         folder[] = "/tmp/attnscope-cli-XXXXXX", back[4096];
    const Said  *said;
    json_t      *value, *points;
    json_error_t at;

    assert_non_null(getcwd(back, sizeof(back)));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    said = SAY("sweep", "-m", "full,window", "--n", "4,8", "-d", "4", "-o", "a.jsonl");
    CHECK(said->status == 0, "%s", said->err);
    said = SAY("merge", "a.jsonl", "-o", "b.jsonl");
    CHECK(said->status == 0 && !*said->err, "%s", said->err);
    said = SAY("merge", "b.jsonl", "-o", "c.jsonl"); /* now in order */
    CHECK(said->status == 0 && !*said->err, "%s", said->err);
    check_same(text_of("b.jsonl"), text_of("c.jsonl"));
    said = SAY("diff", "a.jsonl", "b.jsonl", "--json");
    value = json_loads(said->out, JSON_REJECT_DUPLICATES, &at);
    CHECK(said->status == 0 && value, "%s%s", said->err, at.text);
    points = json_object_get(value, "points");
    assert_int_equal(json_array_size(points), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(json_number_value(json_object_get(json_array_get(points, i), "flops")) == 1);
    json_decref(value);
    unlink("a.jsonl");
    unlink("b.jsonl");
    unlink("c.jsonl");
    assert_int_equal(chdir(back), 0);
    rmdir(folder);
}

/* The text of doctor names each fact; that of a model has n/a for what is not known alone. */
TEST(reports_name_what_they_know)
{
    static const char *const facts[] = {
        "\n  cpu        ", "\n  cores      ", "\n  memory     ", "\n  compiler   ",
        "\n  kernel     Linux ", "\n  version    " ATTNSCOPE_VERSION "\n", "\n  vectors    ",
        "\n  counters   ", "\n  OpenBLAS   ",
    };
    char        paths[2][4400];
    const char *row;
    const Said *said = SAY("doctor");

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        CHECK(strstr(said->out, facts[i]), "no '%s' in %s", facts[i], said->out);
    said = SAY("model", tests_file("model/tiny.gguf", paths[0]), "--text",
               tests_file("model/tiny.txt", paths[1]), "--swap", "window");
    CHECK(said->status == 0 && !strstr(said->out, "nan"), "%s%s", said->out, said->err);
    assert_non_null(strstr(said->out, "\nexact "));
    row = strstr(said->out, "\nwindow ");
    assert_non_null(row);
    CHECK(!strstr(row, "n/a"), "%s", said->out);
}

/* A curve stands under its last step; two panels of one mechanism say in what they differ. */
TEST(pictures_of_text_are_complete)
{
    char       *steps = said_well(SAY("step", "full", "-n", "16", "-d", "4"));
    const Said *said = SAY("figure", "window(window=3)", "window(window=5)", "-n", "8", "-d", "4");

    assert_non_null(strstr(steps, "\u2524")); /* an axis */
    free(steps);
    CHECK(strstr(said->out, "window 3") && strstr(said->out, "window 5"), "%s", said->out);
}

/* A slip is told, a name of a mechanism opens it, and a file goes to the explorer, which says that
 * there is no terminal. */
TEST(a_first_word_chooses_the_front_end)
{
    Said *said = SAY("frobnicate");

    assert_int_equal(said->status, 2);
    assert_non_null(strstr(said->err, "neither a command nor a file"));
    check_same(said_well(SAY("full")), said_well(SAY("info", "full")));
    check_same(said_well(SAY("full", "-n", "8", "-d", "4")),
               said_well(SAY("step", "full", "-n", "8", "-d", "4")));
    check_same(said_well(SAY("lua", "-e", "print(6 * 7)")), strdup("42\n"));
    for (int i = 0; i < 4; i++) {
        static const char *const inputs[] = { "synthetic:normal(n=8,d=4)", "no-such-folder/x",
                                              "no-such.npz", "-" };

        said = SAY(inputs[i]);
        CHECK(said->status == 2 && strstr(said->err, "the explorer needs a terminal"), "%s: %s",
              inputs[i], said->err);
    }
}

/* A word without a point or a slash is an input where such a file is there. */
TEST(a_file_is_an_input_whatever_its_name)
{
    char folder[] = "/tmp/attnscope-cli-XXXXXX", back[4096];
    Said *said;

    assert_non_null(getcwd(back, sizeof(back)));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    fclose(fopen("plain", "w"));
    fclose(fopen("full", "w"));
    said = SAY("plain");
    CHECK(said->status == 2 && strstr(said->err, "the explorer needs a terminal"), "%s", said->err);
    said = SAY("full"); /* here no mechanism */
    CHECK(said->status == 2 && strstr(said->err, "the explorer needs a terminal"), "%s", said->err);
    unlink("plain");
    unlink("full");
    assert_int_equal(chdir(back), 0);
    rmdir(folder);
}

TEST(documents_are_made_from_the_tables)
{
    char *keys = said_well(SAY("docs", "keys")), *stubs = said_well(SAY("docs", "luals"));
    char *lua = said_well(SAY("docs", "lua")), *man = said_well(SAY("docs", "man"));

    assert_non_null(strstr(keys, "| keys |"));
    assert_non_null(strstr(stubs, "---@"));
    assert_null(strstr(keys, "---@"));
    assert_null(strstr(lua, "---@meta"));
    assert_non_null(strstr(man, ".TH"));
    assert_non_null(strstr(man, "KEYS"));
    for (int i = 0; i < 5; i++) {
        static const char *const kinds[] = { "commands", "views", "systems", "conventions",
                                             "glossary" };
        char *text = said_well(SAY("docs", kinds[i])), made[64];

        snprintf(made, sizeof(made), "Made by `attnscope docs %s`; do not edit.", kinds[i]);
        CHECK(!strncmp(text, "# ", 2) && strstr(text, made), "%s: %.200s", kinds[i], text);
        free(text);
    }
    assert_int_equal(SAY("docs", "keys", "lua")->status, 2);
    assert_int_equal(SAY("docs", "no-such-document")->status, 2);
    free(keys);
    free(stubs);
    free(lua);
    free(man);
}

/* What it writes on a terminal of so many columns, as `stream`; the others are closed or empty. */
static char *on_terminal(int columns, int stream, const char *const *words, int *status)
{
    static char    text[1 << 17];
    struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    int            master, slave;
    size_t         length = 0;
    ssize_t        got;
    pid_t          child;

    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("TERM", "xterm-256color", 1);
        assert_non_null(freopen("/dev/null", "r", stdin));
        assert_non_null(freopen("/dev/null", "w", stream == STDERR_FILENO ? stdout : stderr));
        dup2(slave, stream);
        close(master);
        become(words);
    }
    close(slave);
    while ((got = read(master, text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(master);
    *status = status_of(child);
    return text;
}

/* The longest of the lines that overwrite each other; counts those of which it is all. */
static int longest_line(const char *text, int *lines)
{
    int most = 0;

    *lines = 0;
    for (const char *at = strstr(text, "\r\033[K"); at; at = strstr(at, "\r\033[K")) {
        int length = (int)strcspn(at += 4, "\r\n");

        most = length > most ? length : most;
        *lines += length > 0;
    }
    return most;
}

/* A line of progress fills all but the last column, and none is left behind. */
TEST(progress_is_one_line_of_a_terminal)
{
    static const char *const words[] = { "sweep", "-m", "full,window", "--n", "4,8", "-d", "4",
                                         NULL };
    int   status, lines, wide;
    char *text = on_terminal(30, STDERR_FILENO, words, &status);

    CHECK(status == 0, "status %d: %s", status, text);
    assert_int_equal(longest_line(text, &lines), 29);
    assert_true(lines >= 4);
    assert_non_null(strstr(text, "\r\033[Ksweep "));
    text = on_terminal(0, STDERR_FILENO, words, &status); /* not known: as long as it is */
    wide = longest_line(text, &lines);
    assert_true(wide > 30);
    text = on_terminal(wide / 2, STDERR_FILENO, words, &status);
    assert_int_equal(longest_line(text, &lines), wide / 2 - 1);
    for (int columns = wide; columns <= wide + 1; columns++) { /* one just fits, or just does not */
        text = on_terminal(columns, STDERR_FILENO, words, &status);
        assert_true(longest_line(text, &lines) < columns);
    }
    text = on_terminal(1, STDERR_FILENO, words, &status); /* nothing could be told */
    assert_true(longest_line(text, &lines) > 30);
}

/* What is no terminal gets whole lines, whatever TERM says. */
TEST(progress_in_a_log_is_lines)
{
    Said *said;

    setenv("TERM", "xterm-256color", 1);
    said = SAY("sweep", "-m", "full", "--n", "4,8", "-d", "4");
    assert_int_equal(said->status, 0);
    assert_null(strchr(said->err, '\033'));
    assert_null(strchr(said->err, '\r'));
    assert_int_equal(strncmp(said->err, "attnscope: sweep: 1 of 2: ", 26), 0);
    assert_non_null(strstr(said->err, "\nattnscope: sweep: 2 of 2: "));
}

/* A table is as wide as the terminal, or as COLUMNS says; 0 and words say nothing. */
TEST(tables_fit_the_terminal)
{
    static const char *const words[] = { "compare", "full", "window", "-n", "8", "-d", "4", NULL };
    static const char *const variable[] = { NULL, "0", "wide", "60" };
    char *free_width = said_well(SAY("compare", "full", "window", "-n", "8", "-d", "4"));
    int   status;

    assert_true(strcspn(free_width, "\n") > 60);
    for (int i = 0; i < 4; i++) {
        const char *text;

        if (variable[i])
            setenv("COLUMNS", variable[i], 1);
        text = on_terminal(i == 3 ? 500 : 60, STDOUT_FILENO, words, &status);
        unsetenv("COLUMNS");
        assert_int_equal(status, 0);
        CHECK(strcspn(text, "\r\n") <= 60, "COLUMNS=%s: %s", variable[i], text);
        assert_true(strcspn(text, "\r\n") > 10);
    }
    free(free_width);
}

/* Waits until a process has handlers of both signals. */
static void await_handlers(pid_t child)
{
    unsigned long long both = 1ull << (SIGINT - 1) | 1ull << (SIGTERM - 1), caught = 0;
    char               path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
    while ((caught & both) != both) {
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
            (void)sscanf(line, "SigCgt: %llx", &caught);
            if (!strncmp(line, "State:\tZ", 8))
                fail_msg("it ended before it had handlers");
        }
        fclose(file);
        usleep(2000);
    }
}

/* As a shell expects: 128 and the number of the signal. */
TEST(signals_end_it)
{
    static const char *const words[] = { "run", "full", "-n", "60000", "-d", "64", NULL };
    static const int         numbers[] = { SIGINT, SIGTERM };

    for (int i = 0; i < 2; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            assert_non_null(freopen("/dev/null", "w", stdout));
            become(words);
        }
        await_handlers(child);
        kill(child, numbers[i]);
        assert_int_equal(status_of(child), 128 + numbers[i]);
    }
}

/* A sweep that is asked to stop says how far it came, instead of ending at once. */
TEST(a_sweep_stops_when_asked)
{
    static const char *const words[] = { "sweep", "-m", "full", "--n", "4,200000", "-d", "64",
                                         NULL };
    char                     text[4096];
    size_t                   length = 0;
    ssize_t                  got;
    int                      ends[2];
    pid_t                    child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        assert_non_null(freopen("/dev/null", "w", stdout));
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(60);
        become(words);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0) {
        if (length == 0) /* the first point is told of, the second takes long */
            kill(child, SIGINT);
        length += (size_t)got;
    }
    text[length] = '\0';
    close(ends[0]);
    assert_int_equal(status_of(child), 130);
    CHECK(strstr(text, "attnscope: stopped after 1 of 2 points\n"), "%s", text);
}

SUITE(find_program, NULL)
