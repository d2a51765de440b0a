/* monkey.c -- random keys, bytes and resizes for the explorer, in a pseudo-terminal.
 *
 *     monkey PROGRAM KEYS SEED [ARGUMENTS]
 *
 * Fails where the program dies, ends with a status, or takes no key for a minute; and where its
 * heap grows.  That is measured with no pane open and nothing laid over the list, by heap.c, which
 * is linked into the program and writes the file that MONKEY_HEAP names (without that nothing is
 * measured).  After the first 10,000 keys, or half of them where that is less, the median of the
 * last quarter is compared with that of the first: it has grown by at most 5 % of what is resident.
 *
 * Keys that quit are left out; where the palette or a command quits all the same, the program is
 * started again.
 */
#include "terminal.h"

#include <fcntl.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LATEST      64   /* keys printed where it fails */
#define SAMPLE_EACH 250  /* keys between two measurements */
#define WARM_UP     10000
#define WINDOW      5    /* measurements, at least */
#define GROWTH      0.05 /* share of what is resident */
#define SAMPLES     16384

typedef struct Monkey {
    Run      run;
    uint64_t state; /* of the generator */
    char     latest[LATEST][24];
    long     keys, since; /* pressed; by the program that runs now */
    long     starts;
    double   heap[SAMPLES], resident[SAMPLES]; /* MiB, of the program that runs now */
    int      samples;
    double   patience; /* ms */
    const char *arguments;
} Monkey;

/* ---- chance ------------------------------------------------------------------- */

static uint32_t draw(Monkey *m, uint32_t below)
{
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z >> 32) * below >> 32);
}

/* ---- the program ---------------------------------------------------------------- */

static void drain(Monkey *m, int limit)
{
    while (take_output(&m->run, limit))
        limit = 0;
}

static bool begin(Monkey *m)
{
    char line[256];

    snprintf(line, sizeof(line), "%s", m->arguments);
    if (!start(&m->run, line))
        return false;
    fcntl(m->run.fd, F_SETFL, fcntl(m->run.fd, F_GETFL) | O_NONBLOCK);
    m->starts++;
    m->since = 0;
    m->samples = 0;
    return true;
}

/* It ended: with nothing to say, or as it should not. */
static bool look_after(Monkey *m)
{
    int status;

    if (waitpid(m->run.pid, &status, WNOHANG) != m->run.pid)
        return true;
    drain(m, 100);
    close(m->run.fd);
    m->run.pid = 0;
    if (WIFSIGNALED(status))
        return fail(&m->run, "the program was killed by", strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return fail(&m->run, "the program ended with a status", "");
    return begin(m);
}

/* All bytes, while it also takes what the program writes. */
static bool push(Monkey *m, const char *bytes, size_t length)
{
    double until = now_ms() + m->patience;

    while (length > 0) {
        ssize_t sent = write(m->run.fd, bytes, length);

        if (sent > 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (now_ms() > until) {
            return fail(&m->run, "no key is taken for a minute", "");
        } else {
            drain(m, 10);
        }
        if (sent < 0 && errno == EIO)
            return true; /* it ended; look_after says how */
    }
    drain(m, 1);
    return true;
}

/* ---- keys --------------------------------------------------------------------------- */

static const char *const sequences[] = {
    "\033OA", "\033OB", "\033OC", "\033OD", "\033[A", "\033[B", "\033[C", "\033[D",
    "\033OH", "\033OF",
    "\033[5~", "\033[6~", "\033[3~", "\033OP", "\033[15~", "\033[24~", "\033[Z", "\033[1;2C",
    "\033[1;2D", "\r", "\r", "\r", "\t", " ", "\177", "\033", "\033", "\033", "\033",
};

static void choose_mouse(Monkey *m, char *key, size_t size)
{
    snprintf(key, size, "\033[<%u;%u;%u%c", draw(m, 2) ? 0 : 64 + draw(m, 2), 1 + draw(m, 90),
             1 + draw(m, 30), draw(m, 4) ? 'M' : 'm');
}

static void choose_bytes(Monkey *m, char *key)
{
    int count = 1 + (int)draw(m, 4);

    for (int i = 0; i < count; i++)
        key[i] = (char)(128 + draw(m, 128));
    key[count] = '\0';
}

/* Not q, Q or a control character that leaves or suspends the program. */
static void choose_key(Monkey *m, char *key, size_t size)
{
    uint32_t kind = draw(m, 100);

    if (kind < 60) {
        do
            snprintf(key, size, "%c", (char)(33 + draw(m, 94)));
        while (strchr("qQ", key[0]));
    } else if (kind < 90) {
        snprintf(key, size, "%s",
                 sequences[draw(m, (uint32_t)(sizeof(sequences) / sizeof(*sequences)))]);
    } else if (kind < 96) {
        do
            snprintf(key, size, "%c", (char)(1 + draw(m, 26)));
        while (strchr("\032\021\023", key[0]));
    } else if (kind < 99) {
        choose_mouse(m, key, size);
    } else {
        choose_bytes(m, key);
    }
}

static bool press(Monkey *m)
{
    char *key = m->latest[m->keys % LATEST];

    if (draw(m, 100) == 0) {
        char size[16];

        snprintf(size, sizeof(size), "%ux%u", 2 + draw(m, 200), 1 + draw(m, 60));
        snprintf(key, sizeof(m->latest[0]), "[%s]", size);
        m->keys++;
        m->since++;
        return resize_empty(&m->run, size);
    }
    choose_key(m, key, sizeof(m->latest[0]));
    m->keys++;
    m->since++;
    return push(m, key, strlen(key));
}

/* ---- memory ----------------------------------------------------------------------------- */

static double in_use(void)
{
    const char *path = getenv("MONKEY_HEAP");
    FILE       *file = path ? fopen(path, "rb") : NULL;
    uint64_t    bytes = 0;

    if (file && fread(&bytes, sizeof(bytes), 1, file) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return (double)bytes / 1048576;
}

static double resident(pid_t pid)
{
    char  path[64];
    long  size = 0, pages = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = fopen(path, "r");
    if (file && fscanf(file, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static bool push_slowly(Monkey *m, const char *key, int times)
{
    for (int i = 0; i < times; i++) {
        if (!push(m, key, 1))
            return false;
        drain(m, 60);
    }
    return true;
}

/* Into the list, however much is laid over it, without panes. */
static bool go_home(Monkey *m)
{
    return push_slowly(m, "\033", 8) && push_slowly(m, "2", 1) && push_slowly(m, "x", 8) &&
           push_slowly(m, "\033", 2) && push_slowly(m, "1", 2);
}

static bool sample(Monkey *m)
{
    if (m->since % SAMPLE_EACH || m->samples == SAMPLES)
        return true;
    if (!resize_empty(&m->run, "80x24") || !go_home(m) || !look_after(m))
        return false;
    if (!m->since)
        return true;
    m->heap[m->samples] = in_use();
    m->resident[m->samples++] = resident(m->run.pid);
    if (getenv("MONKEY_SAMPLES"))
        fprintf(stderr, "%ld %.2f %.1f\n", m->since, m->heap[m->samples - 1],
                m->resident[m->samples - 1]);
    return true;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    double sorted[SAMPLES];

    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    return sorted[count / 2];
}

/* Of the program that ran last. */
static bool is_level(Monkey *m)
{
    int    warm = (int)((m->since / 2 < WARM_UP ? m->since / 2 : WARM_UP) / SAMPLE_EACH);
    int    window = (m->samples - warm) / 4;
    double before, after, whole;
    char   text[96];

    if (!getenv("MONKEY_HEAP"))
        return true;
    if (window < WINDOW) {
        printf("heap: %ld keys since the last start are too few to tell\n", m->since);
        return true;
    }
    before = median(m->heap + warm, window);
    after = median(m->heap + m->samples - window, window);
    whole = median(m->resident + warm, window);
    snprintf(text, sizeof(text), "%.2f MiB, later %.2f MiB; %.0f MiB are resident", before, after,
             whole);
    printf("heap: %s, over %ld keys\n", text, m->since);
    return (before > 0 && after - before <= GROWTH * whole) ||
           fail(&m->run, "the heap grows:", text);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void print_latest(const Monkey *m)
{
    printf("the latest keys:");
    for (long i = m->keys < LATEST ? 0 : m->keys - LATEST; i < m->keys; i++) {
        putchar(' ');
        for (const char *c = m->latest[i % LATEST]; *c; c++)
            if (*c > ' ' && *c < 127)
                putchar(*c);
            else
                printf("\\x%02x", (unsigned char)*c);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    static Monkey m = { .run = { .rows = 24, .cols = 80, .fd = -1, .in = -1 }, .patience = 60000 };
    long          keys;
    bool          ok;

    if (argc < 4) {
        fprintf(stderr, "usage: monkey PROGRAM KEYS SEED [ARGUMENTS]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    m.run.program = argv[1];
    keys = atol(argv[2]);
    m.state = strtoull(argv[3], NULL, 10);
    m.arguments = argc > 4 ? argv[4] : "";
    open_terminal(&m.run);
    ok = begin(&m);
    drain(&m, 5000);
    while (ok && m.keys < keys)
        ok = press(&m) && look_after(&m) && sample(&m);
    ok = ok && is_level(&m);
    if (!ok) {
        char *screen = screen_text(&m.run);

        printf("%s\n%s", m.run.message, screen);
        print_latest(&m);
        free(screen);
    }
    printf("%ld keys, %ld starts: %s\n", m.keys, m.starts, ok ? "no finding" : "FAILED");
    if (m.run.pid > 0)
        kill(m.run.pid, SIGKILL);
    return ok ? 0 : 1;
}
