/* test_signals.c -- what the explorer does with signals, and that it undoes it. */
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "ui/term/term.h"

static int open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int  count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void (*handler_of(int number))(int)
{
    struct sigaction now;

    assert_int_equal(sigaction(number, NULL, &now), 0);
    return now.sa_handler;
}

#define NUMBERS 8

/* What runs after the explorer finds the process as it was. */
TEST(nothing_is_left_behind)
{
    const int numbers[NUMBERS] = { SIGINT,  SIGTERM,  SIGTSTP, SIGWINCH,
                                   SIGALRM, SIGRTMIN, SIGSEGV, SIGABRT };
    void    (*before[NUMBERS])(int);
    stack_t   stack;
    int       open = open_files();

    for (int i = 0; i < NUMBERS; i++)
        before[i] = handler_of(numbers[i]);
    for (int round = 0; round < 3; round++) {
        assert_true(signals_install(""));
        assert_int_equal(open_files(), open + 2);
        assert_true(signals_wake_fd() >= 0);
        for (int i = 0; i < NUMBERS; i++)
            CHECK(handler_of(numbers[i]) != before[i], "signal %d is not caught", numbers[i]);
        signals_restore();
        assert_int_equal(open_files(), open);
        assert_int_equal(signals_wake_fd(), -1);
        for (int i = 0; i < NUMBERS; i++)
            CHECK(handler_of(numbers[i]) == before[i], "signal %d is still caught", numbers[i]);
        assert_int_equal(sigaltstack(NULL, &stack), 0);
        assert_true(stack.ss_flags & SS_DISABLE);
    }
}

/* A signal wakes who waits, and says once that it came. */
TEST(a_signal_wakes_and_is_told_once)
{
    char byte;

    assert_true(signals_install(""));
    assert_int_equal(read(signals_wake_fd(), &byte, 1), -1);
    assert_int_equal(raise(SIGTSTP), 0);
    assert_int_equal(read(signals_wake_fd(), &byte, 1), 1);
    assert_true(signals_take_stop());
    assert_false(signals_take_stop());
    assert_int_equal(raise(SIGTSTP), 0);
    signals_drain();
    assert_int_equal(read(signals_wake_fd(), &byte, 1), -1);
    assert_true(signals_take_stop());
    assert_int_equal(signals_ending(), 0);
    signals_restore();
}

SUITE(NULL, NULL)
