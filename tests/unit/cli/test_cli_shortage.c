/* test_cli_shortage.c -- what a command says that failed after an allocation did. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cli/cli.h"
#include "core/error.h"
#include "core/shortage.h"

#define NOTE " (memory was short)\n"

typedef struct Said {
    int  status;
    char err[2048];
} Said;

static void add_nothing(Text *out)
{
    (void)out;
}

static void become(int err, bool shortage, const char *option)
{
    static char program[] = "attnscope", run[] = "run", full[] = "full";
    char       *argv[] = { program, run, full, (char *)(uintptr_t)option, NULL };

    dup2(err, STDERR_FILENO);
    if (shortage)
        shortage_note(1);
    _exit(cli_main(4, argv, NULL, add_nothing, NULL));
}

/* "run full OPTION" in a process of its own, after an allocation of one byte has failed there. */
static Said say(bool shortage, const char *option)
{
    Said   said = { 0 };
    FILE  *err = tmpfile();
    pid_t  child;
    int    status;

    assert_non_null(err);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        become(fileno(err), shortage, option);
    assert_int_equal(waitpid(child, &status, 0), child);
    said.status = WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
    rewind(err);
    said.err[fread(said.err, 1, sizeof(said.err) - 1, err)] = '\0';
    fclose(err);
    return said;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length >= tail && !strcmp(text + length - tail, end);
}

TEST(a_failure_after_a_shortage_says_so)
{
    Said plain = say(false, "--no-such-option"), said = say(true, "--no-such-option");
    size_t length = strlen(plain.err) - 1;

    assert_int_equal(plain.status, error_exit_status(ERR_USAGE));
    assert_null(strstr(plain.err, "memory"));
    assert_int_equal(said.status, error_exit_status(ERR_NOMEM));
    CHECK(!strncmp(said.err, plain.err, length) && !strcmp(said.err + length, NOTE), "%s",
          said.err);
}

TEST(a_message_about_memory_has_no_note)
{
    Said said = say(true, "--no-such-memory");

    assert_int_equal(said.status, error_exit_status(ERR_NOMEM));
    assert_non_null(strstr(said.err, "--no-such-memory"));
    CHECK(!ends_with(said.err, NOTE), "%s", said.err);
}

/* An error's text has a length that it keeps. */
TEST(the_note_is_cut_where_a_message_is_long)
{
    char   option[700] = "--no-";
    size_t most = strlen("attnscope: ") + sizeof(((Error *)NULL)->text); /* with the newline */
    Said   said;

    memset(option + strlen(option), 'x', sizeof(option) - strlen(option) - 1);
    said = say(true, option);
    CHECK(said.status == error_exit_status(ERR_NOMEM), "status %d: %s", said.status, said.err);
    CHECK(strlen(said.err) == most, "%zu: %s", strlen(said.err), said.err);
}

SUITE(NULL, NULL)
