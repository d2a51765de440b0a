/* signals.c -- see term.h.
 *
 * The flags and the wake-up pipe are the only mutable globals of the program's
 * front end: a handler has no other way to speak.  A crash handler may use
 * nothing but write, tcsetattr and raise; it runs on a stack of its own so that
 * it also works after a stack overflow.
 */
#include "core/shortage.h"
#include "ui/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define CRASH_STACK 65536
#define END_SECONDS 8 /* for what was asked to end */

/* A handler may run on any thread, OpenBLAS's too: taking one is an exchange, so none is lost. */
static atomic_int            ending, stop_asked, resized;
static int                   wake_pipe[2] = { -1, -1 };
static const char           *reset;
static size_t                reset_length;
static struct termios        modes;
static bool                  modes_known;
static void                 *crash_stack;

static const int notes[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,   SIGWINCH, SIGPIPE,
                             SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGVTALRM, SIGPROF,  SIGIO,
                             SIGPWR,  SIGSTKFLT };
static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };
#define NOTE_COUNT  (sizeof(notes) / sizeof(*notes))
#define CRASH_COUNT (sizeof(crashes) / sizeof(*crashes))
static struct sigaction before_notes[NOTE_COUNT], before_crashes[CRASH_COUNT];
static struct sigaction before_timed[_NSIG]; /* of SIGRTMIN to SIGRTMAX, whose numbers vary */

static void give_back(void)
{
    ssize_t ignored;

    if (wake_pipe[0] < 0)
        return;
    ignored = write(STDOUT_FILENO, reset, reset_length);
    (void)ignored;
    if (modes_known)
        tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

/* The explorer was asked to end and has not: some computation does not come back. */
static void on_late(int number)
{
    int signal_asked = atomic_load(&ending);

    (void)number;
    give_back();
    if (!signal_asked)
        _exit(0);
    signal(signal_asked, SIG_DFL);
    raise(signal_asked); /* SIGALRM itself waits for the end of this handler */
}

static void on_note(int number)
{
    int     kept = errno;
    ssize_t ignored;

    if (number == SIGALRM && atomic_load(&ending)) {
        on_late(number);
        return;
    }
    if (number != SIGTSTP && number != SIGWINCH && number != SIGPIPE && !atomic_load(&ending))
        alarm(END_SECONDS); /* of the first; others do not put the end off */
    if (number == SIGTSTP)
        atomic_store(&stop_asked, 1);
    else if (number == SIGWINCH)
        atomic_store(&resized, 1);
    else if (number != SIGPIPE)
        atomic_store(&ending, number);
    ignored = write(wake_pipe[1], "s", 1);
    (void)ignored;
    errno = kept;
}

static void on_crash(int number)
{
    give_back();
    shortage_end_library();
    signal(number, SIG_DFL);
    raise(number);
}

/* A library may leave the program from within: ncurses does where memory is short. */
static void on_exit_inside(void)
{
    if (wake_pipe[0] < 0)
        return;
    give_back();
    shortage_say_library();
}

static void catch_all(const int *list, size_t count, void (*handler)(int), int flags,
                      struct sigaction *before)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < count; i++)
        sigaction(list[i], &action, &before[i]);
}

bool signals_install(const char *reset_bytes)
{
    static bool registered;
    stack_t     stack = { .ss_size = CRASH_STACK };

    if (!registered)
        registered = atexit(on_exit_inside) == 0;
    reset = reset_bytes;
    reset_length = strlen(reset_bytes);
    modes_known = tcgetattr(STDIN_FILENO, &modes) == 0;
    if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    stack.ss_sp = crash_stack = malloc(CRASH_STACK);
    if (crash_stack)
        sigaltstack(&stack, NULL);
    catch_all(notes, NOTE_COUNT, on_note, 0, before_notes);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        catch_all(&number, 1, on_note, 0, &before_timed[number]);
    catch_all(crashes, CRASH_COUNT, on_crash, SA_ONSTACK | (int)SA_RESETHAND, before_crashes);
    return true;
}

void signals_restore(void)
{
    stack_t off = { .ss_flags = SS_DISABLE };

    for (size_t i = 0; i < NOTE_COUNT; i++)
        sigaction(notes[i], &before_notes[i], NULL);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaction(number, &before_timed[number], NULL);
    for (size_t i = 0; i < CRASH_COUNT; i++)
        sigaction(crashes[i], &before_crashes[i], NULL);
    sigaltstack(&off, NULL);
    free(crash_stack);
    crash_stack = NULL;
    close(wake_pipe[0]);
    close(wake_pipe[1]);
    wake_pipe[0] = wake_pipe[1] = -1;
}

int signals_wake_fd(void)
{
    return wake_pipe[0];
}

void signals_drain(void)
{
    char bytes[64];

    while (read(wake_pipe[0], bytes, sizeof(bytes)) > 0)
        ;
}

int signals_ending(void)
{
    return atomic_load(&ending);
}

bool signals_take_stop(void)
{
    return atomic_exchange(&stop_asked, 0);
}

bool signals_take_resize(void)
{
    return atomic_exchange(&resized, 0);
}

void signals_end_soon(int number)
{
    atomic_store(&ending, number);
    signal(SIGALRM, on_late);
    alarm(END_SECONDS);
}

void signals_raise(int number)
{
    alarm(0);
    signal(number, SIG_DFL);
    raise(number);
}
