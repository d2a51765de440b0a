/* speed.c -- how fast the explorer is, from the key to the screen, through a pseudo-terminal.
 *
 *     speed PROGRAM [ROUNDS]
 *
 * What libvterm has made of the output counts, not what was written, so its work is in every
 * number.  Goals are printed beside; nothing is judged here: `make bench` is for a machine
 * with nothing else to do.
 */
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATTERN "pattern(window(513)+global(4))"
#define MOST    400
#define EVENTS  120.0 /* of the mouse, a second */

typedef struct Times {
    double ms[MOST];
    int    count;
} Times;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add(Times *t, double ms)
{
    if (t->count < MOST)
        t->ms[t->count++] = ms;
}

static void report(const char *what, Times *t, double goal)
{
    qsort(t->ms, (size_t)t->count, sizeof(*t->ms), compare);
    if (t->count)
        printf("  %-52s median %6.1f ms, worst %6.1f ms of %d   (goal %.0f)\n", what,
               t->ms[t->count / 2], t->ms[t->count - 1], t->count, goal);
    else
        printf("  %-52s not measured\n", what);
    fflush(stdout);
}

/* ---- the program ------------------------------------------------------------ */

static bool begin(Run *r, const char *program, const char *size, const char *arguments)
{
    char line[512];

    *r = (Run){ .fd = -1, .in = -1, .program = program };
    sscanf(size, "%dx%d", &r->cols, &r->rows);
    snprintf(line, sizeof(line), "%s", arguments);
    open_terminal(r);
    return start(r, line);
}

static void end(Run *r)
{
    if (r->message[0]) {
        char *screen = screen_text(r);

        fprintf(stderr, "speed: %s\n%s", r->message, screen);
        free(screen);
    }
    if (r->pid > 0) {
        kill(r->pid, SIGKILL);
        waitpid(r->pid, &r->status, 0);
    }
    if (r->fd >= 0)
        close(r->fd);
    vterm_free(r->vt);
}

static bool seen(Run *r, const char *text)
{
    return wait_for(r, text, true, 6 * PATIENCE);
}

/* The 65536 x 65536 pattern, its picture at rest. */
static bool open_pattern(Run *r)
{
    return seen(r, "Mechanisms (by class)") && send_raw(r, ":" PATTERN) && send_key(r, "Enter") &&
           seen(r, "nnz 34.1 M") && settle(r);
}

/* Presses the keys in turn, each until its text is there. */
static bool answer(Run *r, const char *const *keys, const char *const *texts, int count, int rounds,
                   Times *times)
{
    for (int i = 0; i < rounds * count; i++) {
        if (!send_key(r, keys[i % count]) || !wait_for(r, texts[i % count], true, PATIENCE))
            return false;
        add(times, now_ms() - r->asked);
    }
    return true;
}

/* ---- what is measured ------------------------------------------------------- */

static void first_screen(const char *program, const char *size, int rounds)
{
    Times times = { .count = 0 };
    char  what[64];
    Run   r;

    for (int i = 0; i < rounds; i++) {
        if (begin(&r, program, size, "") && wait_for(&r, "Mechanisms (by class)", true, PATIENCE))
            add(&times, now_ms() - r.asked);
        end(&r);
    }
    snprintf(what, sizeof(what), "start to first screen, %s", size);
    report(what, &times, 100);
}

/* The first query in sight, "| q 32512-36607" on the status line; -1: none. */
static long first_in_sight(Run *r)
{
    char       *screen = screen_text(r);
    const char *at = strstr(screen, "\xe2\x94\x82 q ");
    long        row = at ? strtol(at + 6, NULL, 10) : -1;

    free(screen);
    return row;
}

/* The picture dragged up and down by the mouse, faster than anybody's hand: frames are the
 * different parts of the pattern that came to the screen. */
static bool drag(Run *r, double seconds, double *frames, double *bytes)
{
    double begin = now_ms(), next = begin, until = begin + 1000 * seconds;
    long   last = first_in_sight(r), count = 0, at = 0;
    char   event[32];

    if (!send_raw(r, "\\e[<0;60;40M"))
        return false;
    r->wrote = 0;
    while (now_ms() < until) {
        if (now_ms() >= next) {
            at++;
            snprintf(event, sizeof(event), "\\e[<32;60;%ldM", 20 + labs(at % 40 - 20));
            if (!send_raw(r, event))
                return false;
            next += 1000 / EVENTS;
        }
        take_output(r, 1);
        if (first_in_sight(r) != last) {
            last = first_in_sight(r);
            count++;
        }
    }
    *frames = (double)count / seconds;
    *bytes = count ? (double)r->wrote / (double)count : 0;
    return true;
}

static void panning(const char *program, const char *colours)
{
    char   arguments[128];
    double frames, bytes;
    Run    r;
    bool   ok;

    snprintf(arguments, sizeof(arguments), "--color=%s synthetic:local(n=65536,d=64)",
             colours);
    ok = begin(&r, program, "200x60", arguments) && open_pattern(&r);
    for (int i = 0; ok && i < 5; i++) /* some thousand rows */
        ok = send_key(&r, "+");
    ok = ok && settle(&r) && drag(&r, 4, &frames, &bytes);
    if (ok)
        printf("  %-52s %6.1f frames/s, %.1f KiB a frame   (goal 30)\n",
               !strcmp(colours, "256") ? "panning 65536 x 65536 at 200x60, 256 colours"
                                       : "panning 65536 x 65536 at 200x60, true colour",
               frames, bytes / 1024);
    fflush(stdout);
    end(&r);
}

static void keys_on(const char *program, const char *size, bool weights, int rounds)
{
    static const char *const keys[] = { "G", "End", "g", "Home" };
    static const char *const texts[] = { "\n (q=65535, k=0)", "\n (q=65535, k=65535)",
                                         "\n (q=0, k=65535)", "\n (q=0, k=0)" };
    Times times = { .count = 0 };
    char  what[64];
    Run   r;
    bool  ok = begin(&r, program, size, "--no-mouse synthetic:local(n=65536,d=64)") &&
              open_pattern(&r);

    if (ok && weights)
        ok = send_key(&r, "v") && send_key(&r, "v") && seen(&r, "\xc2\xb7 weights") &&
             wait_for(&r, "weights \xe2\x80\xa6", false, 6 * PATIENCE);
    ok = ok && send_key(&r, "Home") && send_key(&r, "g") && settle(&r) &&
         answer(&r, keys, texts, 4, rounds, &times);
    snprintf(what, sizeof(what), "key to screen, %s of 65536 x 65536, %s",
             weights ? "weights" : "pattern", size);
    report(what, &times, 50);
    end(&r);
}

/* The worker computes full attention; the picture beside it answers. */
static void keys_with_job(const char *program, int rounds)
{
    static const char *const keys[] = { "G", "End", "g", "Home" };
    static const char *const texts[] = { "\xe2\x94\x80 (q=16383, k=0) ",
                                         "\xe2\x94\x80 (q=16383, k=16383) ",
                                         "\xe2\x94\x80 (q=0, k=16383) ",
                                         "\xe2\x94\x80 (q=0, k=0) " };
    Times times = { .count = 0 };
    Run   r;
    bool  ok = begin(&r, program, "200x60", "--no-mouse synthetic:normal(n=16384,d=64,heads=8)") &&
              seen(&r, "Mechanisms (by class)") && send_raw(&r, ":window(window=513)") &&
              send_key(&r, "Enter") && seen(&r, "nnz 8") && settle(&r) && send_raw(&r, ":full") &&
              send_key(&r, "Enter") && seen(&r, "running full") && send_key(&r, "S-Tab") &&
              send_key(&r, "Home") && send_key(&r, "g") && seen(&r, texts[3]);

    for (int i = 0; ok && i < rounds && shows(&r, "running full"); i++)
        ok = answer(&r, keys, texts, 4, 1, &times);
    report("key to screen while full n=16384 h=8 runs, 200x60", &times, 50);
    end(&r);
}

/* Weights in sight as asked for, keys pressed until they are exact where that is wanted. */
static bool refine(Run *r, bool pressed, Times *times, double *first, double *exact)
{
    static const char *const keys[] = { "G", "g" };
    static const char *const texts[] = { "\n (q=65535,", "\n (q=0," };
    bool   ok = send_key(r, "v");
    double asked = r->asked;

    ok = ok && seen(r, "\xc2\xb7 weights") && seen(r, "max, 0..");
    *first = now_ms() - asked;
    while (ok && pressed && shows(r, "weights \xe2\x80\xa6"))
        ok = answer(r, keys, texts, 2, 1, times);
    ok = ok && wait_for(r, "weights \xe2\x80\xa6", false, 6 * PATIENCE);
    *exact = now_ms() - asked;
    return ok;
}

static void refining(const char *program, bool pressed)
{
    Times  times = { .count = 0 };
    double first, exact;
    Run    r;
    bool   ok = begin(&r, program, "200x60", "--no-mouse synthetic:local(n=65536,d=64)") &&
              open_pattern(&r) && send_key(&r, "g") && settle(&r) && send_key(&r, "v") &&
              seen(&r, "\xc2\xb7 components") && settle(&r) &&
              refine(&r, pressed, &times, &first, &exact);

    if (ok)
        printf("  %-52s coarse after %.0f ms, exact after %.0f ms\n",
               pressed ? "the same, keys pressed all the time"
                       : "weights of 65536 x 65536 (34.1 M pairs), 200x60",
               first, exact);
    if (pressed)
        report("key to screen meanwhile", &times, 50);
    end(&r);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 10;

    if (argc < 2 || rounds < 1) {
        fprintf(stderr, "usage: speed PROGRAM [ROUNDS]\n");
        return 2;
    }
    first_screen(argv[1], "80x24", rounds);
    first_screen(argv[1], "200x60", rounds);
    panning(argv[1], "256");
    panning(argv[1], "truecolor");
    for (int weights = 0; weights < 2; weights++) {
        keys_on(argv[1], "80x24", weights, rounds);
        keys_on(argv[1], "200x60", weights, rounds);
    }
    keys_with_job(argv[1], rounds);
    refining(argv[1], false);
    refining(argv[1], true);
    return 0;
}
