/* test_core_shortage.c -- a library that crashes where memory is short. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/shortage.h"

#define MESSAGE "attnscope: not enough memory: a library ended the program\n"

typedef struct Crash {
    size_t refused; /* bytes of an allocation; 0: none was refused */
    bool   entered, left;
    int    number; /* the signal */
} Crash;

static void become(int err, Crash crash)
{
    struct rlimit none = { 0 };

    setrlimit(RLIMIT_CORE, &none);
    dup2(err, STDERR_FILENO);
    shortage_catch_crashes();
    if (crash.refused)
        shortage_note(crash.refused);
    if (crash.entered)
        shortage_in_library(true);
    if (crash.left)
        shortage_in_library(false);
    raise(crash.number);
    _exit(0);
}

/* The status, 256 + a signal; what was said. */
static int status_of(Crash crash, char said[128])
{
    FILE *err = tmpfile();
    pid_t child;
    int   status;

    assert_non_null(err);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        become(fileno(err), crash);
    assert_int_equal(waitpid(child, &status, 0), child);
    rewind(err);
    said[fread(said, 1, 127, err)] = '\0';
    fclose(err);
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Sanitizers report each crash themselves. */
static void need_handler(void)
{
#ifdef ATTNSCOPE_SANITIZED
    skip();
#endif
}

static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT };

TEST(a_library_without_memory_ends_the_program_with_a_message)
{
    char said[128];

    need_handler();
    for (size_t k = 0; k < sizeof(crashes) / sizeof(*crashes); k++) {
        Crash crash = { .refused = 8, .entered = true, .number = crashes[k] };

        assert_int_equal(status_of(crash, said), 1);
        assert_string_equal(said, MESSAGE);
    }
}

TEST(other_crashes_stay_crashes)
{
    static const Crash others[] = {
        { .refused = 0, .entered = true, .number = SIGSEGV },
        { .refused = (size_t)1 << 20, .entered = true, .number = SIGSEGV },
        { .refused = 8, .entered = false, .number = SIGSEGV },
        { .refused = 8, .entered = true, .left = true, .number = SIGABRT },
    };
    char said[128];

    need_handler();
    for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++) {
        assert_int_equal(status_of(others[k], said), 256 + others[k].number);
        assert_string_equal(said, "");
    }
}

SUITE(NULL, NULL)
