/* child.c -- see child.h.
 *
 * The child is in a process group of its own, so that Ctrl-C reaches its parent
 * alone, and dies with it, so that a parent killed outright leaves nothing
 * running.  Between fork and exec only async-signal-safe calls are made: the
 * explorer and Lua start it from a process with threads.
 */
#include "app/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/place.h"
#include "profile/measure.h"

static void become(const char *program, char *const *words, int out, int errors, pid_t parent)
{
    sigset_t none;
    int      null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    execv(program, words);
    _exit(127);
}

static bool start(const char *program, char *const *words, Child *child, Error *err)
{
    pid_t parent = getpid();
    int   ends[2] = { -1, -1 };

    child->err = memfd_create("attnscope-messages", MFD_CLOEXEC);
    if (child->err < 0 || pipe2(ends, O_CLOEXEC) != 0 || (child->pid = fork()) < 0) {
        int why = errno;

        child_end(child);
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return error_set(err, ERR_NOMEM, "a process of its own cannot be started: %s",
                         strerror(why));
    }
    if (child->pid == 0)
        become(program, words, ends[1], child->err, parent);
    close(ends[1]);
    child->out = ends[0];
    return true;
}

static void look(Child *child, const ChildWatch *watch)
{
    child->stopped = watch->stopped && watch->stopped(watch->context);
    child->late = watch->deadline > 0 && clock_wall() > watch->deadline;
    if (child->stopped || child->late)
        kill(child->pid, SIGKILL);
}

/* Until its output ends; what it said goes to *text. */
static void follow(Child *child, const ChildWatch *watch, Text *text)
{
    struct rusage usage;
    char          bytes[8192];
    double        began = clock_wall();
    bool          open = true;

    while (open) {
        struct pollfd ready = { .fd = child->out, .events = POLLIN };

        if (!child->stopped && !child->late)
            look(child, watch);
        if (poll(&ready, 1, 50) > 0) {
            ssize_t got = read(child->out, bytes, sizeof(bytes));

            open = got > 0 || (got < 0 && errno == EINTR);
            if (got > 0)
                text_add_bytes(text, bytes, (size_t)got);
        }
    }
    close(child->out);
    while (wait4(child->pid, &child->status, 0, &usage) < 0 && errno == EINTR)
        continue;
    child->seconds = clock_wall() - began;
    child->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The last line of what it said on stderr, without the program's name. */
static void last_message(int file, char *text, size_t size)
{
    char        bytes[4096];
    off_t       end = lseek(file, 0, SEEK_END), most = sizeof(bytes) - 1;
    ssize_t     got = pread(file, bytes, (size_t)most, end > most ? end - most : 0);
    const char *line;

    *text = '\0';
    while (got > 0 && bytes[got - 1] == '\n')
        got--;
    if (got <= 0)
        return;
    bytes[got] = '\0';
    line = strrchr(bytes, '\n');
    line = line ? line + 1 : bytes;
    if (!strncmp(line, "attnscope: ", 11))
        line += 11;
    snprintf(text, size, "%.*s", (int)size - 1, line);
}

void child_reason(const Child *child, char *text, size_t size)
{
    int number = WTERMSIG(child->status);

    if (WIFSIGNALED(child->status)) {
        snprintf(text, size, "its process was ended by signal %d (%s)%s", number, strsignal(number),
                 number == SIGKILL ? "; when nobody sent it, the system was out of memory" : "");
        return;
    }
    last_message(child->err, text, size);
    if (!*text)
        snprintf(text, size, "its process said nothing and left with status %d",
                 WEXITSTATUS(child->status));
}

bool child_run(Child *child, char *const *words, const ChildWatch *watch, Text *said, Error *err)
{
    Text program = { 0 };
    bool ok;

    *child = (Child){ .out = -1, .err = -1 };
    ok = place_program(&program, err) && start(text_str(&program), words, child, err);
    text_free(&program);
    if (ok)
        follow(child, watch, said);
    return ok;
}

void child_end(Child *child)
{
    if (child->err >= 0)
        close(child->err);
    child->err = -1;
}
