/* shortage.c -- see shortage.h. */
#include "core/shortage.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL ((size_t)1 << 20)

static atomic_llong noted;
static atomic_bool  forbidden;
static _Thread_local volatile sig_atomic_t in_library;
static const char *first = "";

void shortage_note(size_t bytes)
{
    if (bytes < SMALL)
        atomic_fetch_add_explicit(&noted, 1, memory_order_relaxed);
}

bool shortage_noted(void)
{
    return shortage_count() > 0;
}

int64_t shortage_count(void)
{
    return atomic_load_explicit(&noted, memory_order_relaxed);
}

void shortage_forbid_output(void)
{
    atomic_store(&forbidden, true);
}

bool shortage_allows_output(Error *err)
{
    return !atomic_load(&forbidden) || !shortage_noted() ||
           error_set(err, ERR_NOMEM, "not enough memory: the output would be cut short");
}

/* ---- a library's crash -------------------------------------------------------- */

void shortage_in_library(bool inside)
{
    in_library = inside;
}

void shortage_say_first(const char *line)
{
    first = line;
}

void shortage_say_library(void)
{
    static const char words[] = "attnscope: not enough memory: a library ended the program\n";
    ssize_t           ignored = 0;

    if (!shortage_noted())
        return;
    ignored += write(STDERR_FILENO, first, strlen(first));
    ignored += write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)ignored;
}

void shortage_end_library(void)
{
    if (!in_library || !shortage_noted())
        return;
    shortage_say_library();
    _exit(EXIT_FAILURE);
}

#ifndef ATTNSCOPE_SANITIZED
static void on_crash(int number)
{
    shortage_end_library();
    signal(number, SIG_DFL);
    raise(number);
}
#endif

void shortage_catch_crashes(void)
{
#ifndef ATTNSCOPE_SANITIZED
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT };
    struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };

    sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < sizeof(crashes) / sizeof(*crashes); k++)
        sigaction(crashes[k], &action, NULL);
#endif
}
