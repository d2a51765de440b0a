/* explore.c -- the explorer in a pseudo-terminal, again and again, each time with another
 * allocation that fails.
 *
 *   explore [-s SEED] [-c COUNT] [-k K] [-l BLOCKS] SHIM NAME BINARY ARGUMENTS KEY...
 *
 * ARGUMENTS are words in one argument.  KEY is a name as in tests/screen (Enter, C-p) or text,
 * where '_' is a space.  After the keys, Q ends the program.  COUNT allocations are chosen by the
 * seed (0: all); each fails alone, and then with all that follow it.  -k tries one.
 *
 * What must hold:
 *   - the program ends: by Q with status 0, or by itself with a message that memory is short;
 *   - the terminal is as it was;
 *   - where one allocation failed and Q ended the program: no more blocks are held at the end than
 *     by the undisturbed program.  Otherwise, and where ncurses itself lacked the block, BLOCKS
 *     more may be: it keeps what it had of a screen or a key that it could not begin, and cannot
 *     free one without memory.
 */
#include "../screen/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define QUIET   60.0    /* ms without output and work: the next key */
#define SLOWEST 20000.0 /* ms until a key is sent all the same */
#define LIMIT   60000.0 /* ms after Q */
#define REPORT  3       /* the shim's file numbers */
#define TRACE   4

typedef struct Trial {
    const char *shim, *name, *binary, *arguments;
    char      **keys;
    int         count;
    long long   slack, plain_taken, plain_held;
    int         passed, failed;
} Trial;

typedef struct Ended {
    int       status; /* of wait */
    bool      late, by_key;
    char      fault[128]; /* of the terminal */
    char     *screen;
    long long taken, held; /* -1: no report */
} Ended;

static void fresh_file(int number)
{
    int made = memfd_create("explore", 0);

    dup2(made, number);
    if (made != number)
        close(made);
}

static bool has_ended(Run *r)
{
    return r->ended || (r->ended = waitpid(r->pid, &r->status, WNOHANG) == r->pid);
}

/* Until the program neither writes nor computes. */
static void rest(Run *r)
{
    double since = now_ms(), until = since + SLOWEST, computed = computed_ms(r);

    while (!has_ended(r) && now_ms() < until && now_ms() - since < QUIET) {
        bool   wrote = take_output(r, 10);
        double now = computed_ms(r);

        if (wrote || now > computed)
            since = now_ms();
        computed = now;
    }
}

static void press(Run *r, const char *key)
{
    char text[256];

    snprintf(text, sizeof(text), "%s", key);
    for (char *at = text; *at; at++)
        if (*at == '_')
            *at = ' ';
    send_key(r, text);
}

static bool wait_end(Run *r, double limit)
{
    double until = now_ms() + limit;

    while (!has_ended(r) && now_ms() < until)
        take_output(r, 20);
    if (!r->ended) {
        kill(r->pid, SIGKILL);
        waitpid(r->pid, &r->status, 0);
        return false;
    }
    while (take_output(r, 50))
        continue;
    return true;
}

static void inspect_terminal(Run *r, char *fault, size_t size)
{
    struct termios modes;
    bool           lines = tcgetattr(r->fd, &modes) != 0 ||
                 (modes.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);

    snprintf(fault, size, "%s%s%s%s", r->alternate ? "the alternate screen stays; " : "",
             r->mouse ? "the mouse stays; " : "", r->cursor ? "" : "no cursor; ",
             lines ? "" : "no lines");
}

static void read_report(Ended *e)
{
    char    text[64] = "";
    ssize_t got = pread(REPORT, text, sizeof(text) - 1, 0);

    if (got <= 0 || sscanf(text, "%lld %lld", &e->taken, &e->held) != 2)
        e->taken = e->held = -1;
}

static Ended run(const Trial *t, long long k, bool after)
{
    Run   r = { .program = t->binary, .test = t->name, .rows = 24, .cols = 80, .fd = -1, .in = -1 };
    Ended e = { 0 };
    char  text[64], line[512];

    fresh_file(REPORT);
    fresh_file(TRACE);
    snprintf(text, sizeof(text), "%lld%s", k, after ? "+" : "");
    setenv("ALLOC_FAIL", text, 1);
    setenv("LD_PRELOAD", t->shim, 1);
    open_terminal(&r);
    snprintf(line, sizeof(line), "%s", t->arguments);
    if (!start(&r, line))
        exit(2);
    unsetenv("LD_PRELOAD");
    rest(&r);
    for (int i = 0; i < t->count && !has_ended(&r); i++) {
        press(&r, t->keys[i]);
        rest(&r);
    }
    for (int i = 0; i < 4 && !has_ended(&r); i++) {
        press(&r, "Esc");
        rest(&r);
    }
    e.by_key = !has_ended(&r);
    if (e.by_key)
        press(&r, "Q");
    e.late = !wait_end(&r, LIMIT);
    e.status = r.status;
    inspect_terminal(&r, e.fault, sizeof(e.fault));
    e.screen = screen_text(&r);
    read_report(&e);
    close(r.fd);
    vterm_free(r.vt);
    return e;
}

/* Did ncurses ask for the allocation that failed?  The trace's first four lines are malloc's own;
 * libc's tree may stand between. */
static bool lacked_by_ncurses(void)
{
    char    text[1024];
    ssize_t got = pread(TRACE, text, sizeof(text) - 1, 0);
    char   *end = text;

    text[got > 0 ? got : 0] = '\0';
    for (int line = 0; line < 6 && end; line++)
        end = strchr(end + (line > 0), '\n');
    if (end)
        *end = '\0';
    return strstr(text, "libtinfo") || strstr(text, "libncurses");
}

/* NULL, or what does not hold. */
static const char *fault(const Trial *t, const Ended *e, bool after)
{
    long long slack = after || !e->by_key || lacked_by_ncurses() ? t->slack : 0;
    bool memory = strstr(e->screen, "memory") || strstr(e->screen, "Cannot allocate");

    if (e->late)
        return "does not end";
    if (WIFSIGNALED(e->status))
        return strsignal(WTERMSIG(e->status));
    if (*e->fault)
        return e->fault;
    if (WEXITSTATUS(e->status) != 0 && !memory)
        return "nothing says that memory is short";
    if (!e->by_key && WEXITSTATUS(e->status) == 0)
        return "ended by itself, with the status of success";
    if (e->taken < 0) /* none is written where ncurses itself crashed while it opened the screen */
        return strstr(e->screen, "a library ended the program") ? NULL : "left without a report";
    return e->held > t->plain_held + slack ? "leaks" : NULL;
}

static void print_file(int number)
{
    char    bytes[4096];
    off_t   at = 0;
    ssize_t got;

    while ((got = pread(number, bytes, sizeof(bytes), at)) > 0) {
        fwrite(bytes, 1, (size_t)got, stdout);
        at += got;
    }
}

static void try_one(Trial *t, long long k, bool after, bool show)
{
    Ended       e = run(t, k, after);
    const char *what = fault(t, &e, after);

    if (!what) {
        t->passed++;
    } else {
        t->failed++;
        printf("FAIL %s, allocation %lld%s of %lld: %s (status %d, holds %lld of %lld)\n",
               t->name, k, after ? " and on" : "", t->plain_taken, what,
               WIFEXITED(e.status) ? WEXITSTATUS(e.status) : -1, e.held, t->plain_held);
    }
    if (show) {
        printf("%s", e.screen);
        print_file(TRACE);
    }
    fflush(stdout);
    free(e.screen);
}

static unsigned long long state;

static unsigned long long next_random(void)
{
    unsigned long long x = state += 0x9e3779b97f4a7c15ull;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* One of each of `count` stretches of equal length. */
static void try_some(Trial *t, long long count)
{
    long long all = t->plain_taken;

    if (count <= 0 || count > all)
        count = all;
    for (long long i = 0; i < count; i++) {
        long long first = i * all / count, end = (i + 1) * all / count;
        long long k = first + 1 + (long long)(next_random() % (unsigned long long)(end - first));

        try_one(t, k, false, false);
        try_one(t, k, true, false);
    }
}

int main(int argc, char **argv)
{
    Trial     t = { 0 };
    Ended     plain;
    long long count = 0, k = 0;
    int       letter;

    while ((letter = getopt(argc, argv, "+s:c:k:l:")) != -1)
        switch (letter) {
        case 's': state = strtoull(optarg, NULL, 10); break;
        case 'c': count = atoll(optarg); break;
        case 'k': k = atoll(optarg); break;
        case 'l': t.slack = atoll(optarg); break;
        default: return 2;
        }
    if (argc - optind < 4)
        return 2;
    t.shim = argv[optind];
    t.name = argv[optind + 1];
    t.binary = argv[optind + 2];
    t.arguments = argv[optind + 3];
    t.keys = argv + optind + 4;
    t.count = argc - optind - 4;
    signal(SIGPIPE, SIG_IGN);
    setenv("ALLOC_REPORT", "3", 1);
    setenv("ALLOC_TRACE", "4", 1);
    plain = run(&t, 0, false);
    t.plain_taken = plain.taken;
    t.plain_held = plain.held;
    if (plain.late || !plain.by_key || plain.status != 0 || plain.taken < 0) {
        printf("FAIL %s: the undisturbed program:\n%s", t.name, plain.screen);
        return 1;
    }
    free(plain.screen);
    if (k) {
        try_one(&t, k, false, true);
        try_one(&t, k, true, true);
    } else {
        try_some(&t, count);
    }
    printf("%s: %d passed, %d failed\n", t.name, t.passed, t.failed);
    return t.failed > 0;
}
