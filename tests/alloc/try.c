/* try.c -- runs a command again and again, each time with another allocation that fails.
 *
 *   try [-s SEED] [-c COUNT] [-k K] [-f FILE] [-j FILE] [-l BLOCKS] [-m|-g] SHIM NAME BINARY ...
 *
 * COUNT allocations are chosen by the seed (0: all of them); each fails alone, and then with all
 * that follow it.  -k tries one and prints the calls that led to it.  FILE is what the command
 * writes; it is removed before each run.  -j: a journal, which stays after an error.  -m: of the
 * allocations only those of arenas; -g: only those by which a long block grows.
 *
 * What must hold:
 *   - the program ends by itself, within a minute;
 *   - with status 0: its output is whole, apart from numbers, and so is FILE;
 *   - otherwise: stderr says that memory is short, and FILE is whole or not there;
 *   - no more blocks are held at the end than by the undisturbed command, or BLOCKS more.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 60
#define AGAIN   3

typedef struct Bytes {
    char  *data;
    size_t size;
} Bytes;

typedef struct Result {
    int       status; /* of wait */
    bool      late;
    Bytes     out, err, trace, file;
    bool      has_file;
    long long taken, held;
} Result;

typedef struct Trial {
    const char *shim, *name;
    const char *file, *journal; /* that the command writes at the end; as it goes on */
    char      **words;
    Result      plain;
    long long   slack;
    int         passed, failed;
} Trial;

static void *no_memory(void)
{
    perror("try");
    exit(2);
}

static Bytes read_all(int fd)
{
    struct stat about;
    Bytes       bytes = { 0 };

    if (fd < 0 || fstat(fd, &about) != 0)
        return bytes;
    bytes.data = malloc((size_t)about.st_size + 1);
    if (!bytes.data)
        no_memory();
    bytes.size = (size_t)pread(fd, bytes.data, (size_t)about.st_size, 0);
    bytes.data[bytes.size] = '\0';
    return bytes;
}

static void result_free(Result *r)
{
    free(r->out.data);
    free(r->err.data);
    free(r->trace.data);
    free(r->file.data);
}

/* Without lines that a busy machine adds: warnings, and how many records are oversubscribed. */
static void drop_warnings(Bytes *text)
{
    char *kept = text->data, *at = text->data, *end;

    for (; at && *at; at = end) {
        char *word = strstr(at, " oversubscribed (");

        end = strchr(at, '\n');
        end = end ? end + 1 : at + strlen(at);
        if (!strncmp(at, "warning ", 8) || (isdigit((unsigned char)*at) && word && word < end))
            continue;
        memmove(kept, at, (size_t)(end - at));
        kept += end - at;
    }
    if (at) {
        text->size = (size_t)(kept - text->data);
        *kept = '\0';
    }
}

/* ---- a run --------------------------------------------------------------------- */

static void become(const Trial *t, long long k, bool after, const int *fds)
{
    char text[64];
    int  null = open("/dev/null", O_RDONLY);

    dup2(null, 0);
    for (int i = 0; i < 4; i++)
        dup2(fds[i], i + 1); /* 1: output, 2: errors, 3: report, 4: trace */
    snprintf(text, sizeof(text), "%lld%s", k, after ? "+" : "");
    setenv("ALLOC_FAIL", text, 1);
    setenv("ALLOC_REPORT", "3", 1);
    setenv("ALLOC_TRACE", "4", 1);
    setenv("LD_PRELOAD", t->shim, 1);
    execv(t->words[0], t->words);
    _exit(126);
}

static void wait_for(pid_t child, Result *r)
{
    for (int tries = 0; waitpid(child, &r->status, WNOHANG) == 0; tries++) {
        poll(NULL, 0, tries < 100 ? 2 : 20);
        if (tries == 100 + SECONDS * 50) {
            r->late = true;
            kill(child, SIGKILL);
        }
    }
}

static Result run(const Trial *t, long long k, bool after)
{
    Result r = { 0 };
    Bytes  report;
    int    fds[4], file;
    pid_t  child;

    /* Above the numbers that the child gives them. */
    for (int i = 0; i < 4; i++) {
        int made = memfd_create("try", 0);

        fds[i] = fcntl(made, F_DUPFD_CLOEXEC, 10);
        close(made);
    }
    if (t->file)
        unlink(t->file);
    if (t->journal)
        unlink(t->journal);
    child = fork();
    if (child < 0)
        no_memory();
    if (child == 0)
        become(t, k, after, fds);
    wait_for(child, &r);
    r.out = read_all(fds[0]);
    drop_warnings(&r.out);
    r.err = read_all(fds[1]);
    report = read_all(fds[2]);
    r.trace = read_all(fds[3]);
    if (sscanf(report.data, "%lld %lld", &r.taken, &r.held) != 2)
        r.taken = -1; /* it was ended, or left by _exit */
    free(report.data);
    file = t->file ? open(t->file, O_RDONLY) : -1;
    r.has_file = file >= 0;
    r.file = read_all(file);
    if (file >= 0)
        close(file);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    return r;
}

/* ---- what must hold -------------------------------------------------------------- */

static bool in_number(const char *at)
{
    return isdigit((unsigned char)*at) || (*at && strchr(".eE+-", *at)) ||
           !strncmp(at, "null", 4) || !strncmp(at, "ull", 3) || !strncmp(at, "ll", 2);
}

/* Numbers, and null where there is none, are not compared: times differ from run to run.  Nor is
 * the width of blanks before them: a column is as wide as its numbers. */
static const char *behind_number(const char *at)
{
    while (in_number(at) || (*at == ' ' && (at[1] == ' ' || in_number(at + 1))))
        at++;
    return at;
}

static bool same_but_numbers(Bytes a, Bytes b)
{
    const char *x = a.data, *y = b.data;

    for (;;) {
        x = behind_number(x);
        y = behind_number(y);
        if (*x != *y)
            return false;
        if (!*x)
            return (size_t)(x - a.data) == a.size && (size_t)(y - b.data) == b.size;
        x++;
        y++;
    }
}

/* The next '"name":' or NULL. */
static const char *next_key(const char *at, size_t *length)
{
    const char *end = strstr(at, "\":");

    if (!end)
        return NULL;
    *length = 0;
    while (end > at && end[-1] != '"') {
        end--;
        ++*length;
    }
    return end;
}

/* Of JSON the keys: a busy machine adds warnings. */
static bool same_keys(Bytes a, Bytes b)
{
    const char *x = a.data, *y = b.data;
    size_t      of_x = 0, of_y = 0;

    if (!a.size || !b.size || a.data[a.size - 1] != b.data[b.size - 1])
        return false;
    for (;;) {
        x = next_key(x + of_x + (of_x ? 2 : 0), &of_x);
        y = next_key(y + of_y + (of_y ? 2 : 0), &of_y);
        if (!x || !y)
            return x == y;
        if (of_x != of_y || memcmp(x, y, of_x) != 0)
            return false;
    }
}

static bool same(Bytes a, Bytes b)
{
    return b.size && strchr("{[", *b.data) ? same_keys(a, b) : same_but_numbers(a, b);
}

static const char *last_line(Bytes text)
{
    char *line;

    while (text.size && text.data[text.size - 1] == '\n')
        text.data[--text.size] = '\0';
    line = text.size ? strrchr(text.data, '\n') : NULL;
    return line ? line + 1 : text.data;
}

static bool says_memory(Bytes text)
{
    return strstr(text.data, "memory") || strstr(text.data, "Cannot allocate");
}

/* NULL, or what does not hold. */
static const char *fault(const Trial *t, const Result *r)
{
    if (r->late)
        return "does not end";
    if (WIFSIGNALED(r->status))
        return strsignal(WTERMSIG(r->status));
    if (WEXITSTATUS(r->status) == 0) {
        if (!same(r->out, t->plain.out))
            return "output is cut short or different, with the status of success";
        if (t->file && (r->has_file != t->plain.has_file ||
                        (r->has_file && !same(r->file, t->plain.file))))
            return "the file is cut short or different, with the status of success";
    } else {
        if (r->has_file && !same(r->file, t->plain.file))
            return "a part of the file under its final name";
        if (!says_memory(r->err) &&
            (WEXITSTATUS(t->plain.status) == 0 || !same_but_numbers(r->err, t->plain.err)))
            return "nothing says that memory is short";
    }
    if (r->taken < 0) /* none is written where a library itself crashed */
        return strstr(r->err.data, "a library ended the program") ? NULL : "left without a report";
    return r->held > t->plain.held + t->slack ? "leaks" : NULL;
}

/* Output that differs is a fault where it differs again: the words of a time do on a busy machine
 * ("0.9 us", "1 ms"; "a busy machine"), and the same allocation fails in the same place. */
static Result run_until_same(Trial *t, long long k, bool after, const char **what)
{
    Result r = run(t, k, after);

    *what = fault(t, &r);
    for (int again = 0; *what && again < AGAIN && WIFEXITED(r.status) && !WEXITSTATUS(r.status);
         again++) {
        result_free(&r);
        r = run(t, k, after);
        *what = fault(t, &r);
    }
    return r;
}

static void try_one(Trial *t, long long k, bool after, bool show)
{
    const char *what;
    Result      r = run_until_same(t, k, after, &what);

    if (!what) {
        t->passed++;
    } else {
        t->failed++;
        printf("FAIL %s, allocation %lld%s of %lld: %s (status %d, holds %lld of %lld): %.200s\n",
               t->name, k, after ? " and on" : "", t->plain.taken, what,
               WIFEXITED(r.status) ? WEXITSTATUS(r.status) : -1, r.held, t->plain.held,
               last_line(r.err));
        if (show)
            printf("%s", r.trace.data);
        fflush(stdout);
    }
    result_free(&r);
}

/* ---- which ones ------------------------------------------------------------------ */

static unsigned long long state;

static unsigned long long next_random(void)
{
    state += 0x9e3779b97f4a7c15ull;
    unsigned long long x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* One of each of `count` stretches of equal length. */
static void try_some(Trial *t, long long count, bool show)
{
    long long all = t->plain.taken;

    if (count <= 0 || count > all)
        count = all;
    for (long long i = 0; i < count; i++) {
        long long first = i * all / count, end = (i + 1) * all / count;
        long long k = first + 1 + (long long)(next_random() % (unsigned long long)(end - first));

        try_one(t, k, false, show);
        try_one(t, k, true, show);
    }
}

int main(int argc, char **argv)
{
    Trial     t = { 0 };
    long long count = 0, k = 0;
    bool      show = false;
    int       letter;

    while ((letter = getopt(argc, argv, "+s:c:k:f:j:l:mgv")) != -1)
        switch (letter) {
        case 's': state = strtoull(optarg, NULL, 10); break;
        case 'c': count = atoll(optarg); break;
        case 'k': k = atoll(optarg); break;
        case 'f': t.file = optarg; break;
        case 'j': t.journal = optarg; break;
        case 'l': t.slack = atoll(optarg); break;
        case 'm': setenv("ALLOC_ONLY", "mmap", 1); break;
        case 'g': setenv("ALLOC_ONLY", "grow", 1); break;
        case 'v': show = true; break;
        default: return 2;
        }
    if (argc - optind < 3)
        return 2;
    t.shim = argv[optind];
    t.name = argv[optind + 1];
    t.words = argv + optind + 2;
    t.plain = run(&t, 0, false);
    if (t.plain.taken < 0 || t.plain.late || !WIFEXITED(t.plain.status) ||
        WEXITSTATUS(t.plain.status) != 0) {
        printf("FAIL %s: the undisturbed command: %s\n", t.name, t.plain.err.data);
        return 1;
    }
    if (k) {
        try_one(&t, k, false, true);
        try_one(&t, k, true, true);
    } else {
        try_some(&t, count, show);
    }
    printf("%s: %d passed, %d failed\n", t.name, t.passed, t.failed);
    result_free(&t.plain);
    return t.failed > 0;
}
