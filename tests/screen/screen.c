/* screen.c -- drives the real program in a pseudo-terminal and reads its screen.
 *
 *     screen [-u] PROGRAM TEST.steps COLUMNSxLINES
 *
 * The screen is what libvterm makes of the program's output, so escapes, modes
 * and colours go the whole way.  A steps file has one step per line:
 *
 *     env NAME=VALUE | unset NAME    before start
 *     start [ARGUMENT...]            run PROGRAM
 *     key NAME...                    j C-p Up Enter Esc F1 ...
 *     type TEXT | raw BYTES          as typed; with \e and \xHH escapes
 *     wait TEXT | gone TEXT          until it is (not) on the screen, a minute at most
 *     within MS TEXT                 as wait, for which the program computes no longer than MS
 *     settle                         until the program neither writes nor works
 *     resize COLUMNSxLINES
 *     screen NAME                    compare with "== NAME COLUMNSxLINES" in TEST.screen
 *     palette NAME                   the same of the colours on the screen, each once
 *     plain                          ASCII without colours
 *     has TEXT | lacks TEXT          now, or as soon as the frame being drawn is whole
 *     inked LEAST                    so many cells with a background or a coloured shade, as has
 *     signal NAME | hangup           to the program; hangup closes the terminal
 *     stopped | continue             by job control
 *     exit STATUS | killed SIGNAL    how it ends
 *     restored                       no alternate screen, no mouse, cursor shown
 *     times COUNT KEY                a key so often, nothing read in between
 *     storm COUNT                    so many sizes one after the other, with keys between
 *     slow BYTES                     take so many in 10 ms from now on; 0: as they come
 *     deaf MS                        take nothing for so long
 *     count | wrote MOST             KiB the program wrote since `count`, at most
 *     apart | unplug                 before start: keys come from a second terminal; it goes
 *     ignore NAME                    before start: a signal the program finds ignored
 *
 * -u writes the .screen file instead of comparing.  Exit status 0: passed.
 */
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define FRAME 10000 /* ms: a whole one on a busy machine */

/* ---- steps ------------------------------------------------------------------ */

static int signal_of(const char *name)
{
    const struct {
        const char *name;
        int         number;
    } list[] = { { "TERM", SIGTERM }, { "HUP", SIGHUP },   { "INT", SIGINT },  { "QUIT", SIGQUIT },
                 { "SEGV", SIGSEGV }, { "ABRT", SIGABRT }, { "TSTP", SIGTSTP },
                 { "BUS", SIGBUS },   { "FPE", SIGFPE },   { "ILL", SIGILL },
                 { "PIPE", SIGPIPE },  { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
                 { "ALRM", SIGALRM },  { "XCPU", SIGXCPU },
                 { "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "IO", SIGIO },
                 { "PWR", SIGPWR },   { "STKFLT", SIGSTKFLT }, { "SYS", SIGSYS },
                 { "TRAP", SIGTRAP }, { "RTMIN", SIGRTMIN },   { "RTMAX", SIGRTMAX } };

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        if (!strcmp(list[i].name, name))
            return list[i].number;
    return 0;
}

/* A frame comes in pieces: what `wait` saw may stand in the first of them. */
static bool frame_shows(Run *r, const char *text, bool there)
{
    double until = now_ms() + FRAME;

    while (shows(r, text) != there && now_ms() < until)
        take_output(r, 10);
    return shows(r, text) == there ||
           fail(r, there ? "not on the screen:" : "on the screen:", text);
}

/* A picture comes after the numbers of its pane. */
static bool frame_inked(Run *r, const char *least)
{
    double until = now_ms() + FRAME;

    while (count_inked(r) < atoi(least) && now_ms() < until)
        take_output(r, 10);
    return count_inked(r) >= atoi(least) || fail(r, "fewer than", least);
}

/* Waits for a change of the program's state. */
static bool wait_state(Run *r, int flags)
{
    double until = now_ms() + PATIENCE;

    while (now_ms() < until) {
        take_output(r, 10);
        if (waitpid(r->pid, &r->status, WNOHANG | flags) == r->pid) {
            while (take_output(r, 20))
                ;
            return true;
        }
    }
    return fail(r, "still runs", r->program);
}

static bool expect_end(Run *r, bool killed, const char *value)
{
    char got[64];

    if (!wait_state(r, 0))
        return false;
    r->ended = true;
    snprintf(got, sizeof(got), WIFSIGNALED(r->status) ? "killed by %d" : "exit status %d",
             WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status));
    if (killed ? WIFSIGNALED(r->status) && WTERMSIG(r->status) == signal_of(value)
               : WIFEXITED(r->status) && WEXITSTATUS(r->status) == atoi(value))
        return true;
    return fail(r, "ended otherwise:", got);
}

static bool expect_restored(Run *r)
{
    struct termios modes;

    if (r->alternate || r->mouse || !r->cursor)
        return fail(r, "not restored:",
                    r->alternate ? "alternate screen"
                    : r->mouse   ? "mouse"
                                 : "cursor");
    if (tcgetattr(r->fd, &modes) == 0 && (modes.c_lflag & (ICANON | ECHO)) != (ICANON | ECHO))
        return fail(r, "not restored:", "line mode");
    return true;
}

/* The section "== heading" of TEST.screen; the caller frees it; NULL: none. */
static char *expected(const Run *r, const char *heading)
{
    char   path[512], line[2048];
    size_t length = 0;
    char  *text = NULL;
    FILE  *file;

    snprintf(path, sizeof(path), "%.*s.screen", (int)(strlen(r->test) - 6), r->test);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        bool is_heading = !strncmp(line, "== ", 3);

        if (is_heading && text)
            break;
        if (is_heading) {
            line[strcspn(line, "\n")] = '\0';
            text = strcmp(line + 3, heading) ? NULL : calloc(1, 1);
        } else if (text) {
            text = realloc(text, length + strlen(line) + 1);
            strcpy(text + length, line);
            length += strlen(line);
        }
    }
    if (file)
        fclose(file);
    return text;
}

/* Text against the section `heading`, or written there; frees it. */
static bool compare_text(Run *r, const char *heading, char *text)
{
    char *wanted;
    bool  same;

    if (r->update) {
        fprintf(r->out, "== %s\n%s", heading, text);
        free(text);
        return true;
    }
    wanted = expected(r, heading);
    same = wanted && !strcmp(text, wanted);
    if (!same) {
        fprintf(stderr, "---- %s, wanted:\n%s---- got:\n%s", heading, wanted ? wanted : "(none)\n",
                text);
        fail(r, "another screen than", heading);
    }
    free(wanted);
    free(text);
    return same;
}

/* What `now` makes of the screen, once the program rests, or as soon as it is what is wanted. */
static bool compare_settled(Run *r, const char *heading, char *(*now)(Run *r))
{
    char  *wanted, *text;
    double until;

    if (!settle(r))
        return false;
    wanted = r->update ? NULL : expected(r, heading);
    text = now(r);
    for (until = now_ms() + FRAME; wanted && strcmp(text, wanted) && now_ms() < until;) {
        take_output(r, 50);
        free(text);
        text = now(r);
    }
    free(wanted);
    return compare_text(r, heading, text);
}

static bool compare_screen(Run *r, const char *name)
{
    char heading[128];

    snprintf(heading, sizeof(heading), "%s %dx%d", name, r->cols, r->rows);
    return compare_settled(r, heading, screen_text);
}

/* ---- colours ---------------------------------------------------------------- */

#define COLOURS_MOST 1024

static bool is_default(const VTermColor *c)
{
    return VTERM_COLOR_IS_DEFAULT_FG(c) || VTERM_COLOR_IS_DEFAULT_BG(c);
}

/* A unique number for every colour: the palette's index, else 256 and the components. */
static unsigned number_of(const VTermColor *c)
{
    return VTERM_COLOR_IS_INDEXED(c) ? c->indexed.idx
                                     : 256 + (((unsigned)c->rgb.red << 16) |
                                              ((unsigned)c->rgb.green << 8) | c->rgb.blue);
}

static int by_number(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

/* "back 17 53 #440154": in order, the default left out. */
static void write_colours(Run *r, const char *name, bool back, FILE *out)
{
    unsigned list[COLOURS_MOST];
    int      count = 0;

    for (int at = 0; at < r->rows * r->cols; at++) {
        VTermScreenCell cell;
        VTermColor     *c = back ? &cell.bg : &cell.fg;
        unsigned        number;
        int             k = 0;

        vterm_screen_get_cell(r->screen, (VTermPos){ at / r->cols, at % r->cols }, &cell);
        number = number_of(c);
        while (k < count && list[k] != number)
            k++;
        if (!is_default(c) && k == count && count < COLOURS_MOST)
            list[count++] = number;
    }
    qsort(list, (size_t)count, sizeof(*list), by_number);
    fputs(name, out);
    for (int k = 0; k < count; k++)
        fprintf(out, list[k] < 256 ? " %u" : " #%06x", list[k] < 256 ? list[k] : list[k] - 256);
    fputs("\n", out);
}

static char *screen_colours(Run *r)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);

    write_colours(r, "fore", false, out);
    write_colours(r, "back", true, out);
    fclose(out);
    return text;
}

static bool compare_palette(Run *r, const char *name)
{
    char heading[128];

    snprintf(heading, sizeof(heading), "palette %s %dx%d", name, r->cols, r->rows);
    return compare_settled(r, heading, screen_colours);
}

static bool expect_plain(Run *r)
{
    for (int at = 0; at < r->rows * r->cols; at++) {
        VTermScreenCell cell;
        char            place[48];

        vterm_screen_get_cell(r->screen, (VTermPos){ at / r->cols, at % r->cols }, &cell);
        snprintf(place, sizeof(place), "row %d, column %d", at / r->cols, at % r->cols);
        if (!is_default(&cell.fg) || !is_default(&cell.bg))
            return fail(r, "coloured:", place);
        if (cell.chars[0] > 126)
            return fail(r, "not ASCII:", place);
    }
    return true;
}

/* The next program gets a new one. */
static bool end_of_terminal(Run *r)
{
    close(r->fd);
    r->fd = -1;
    vterm_free(r->vt);
    r->alternate = false;
    r->mouse = 0;
    open_terminal(r);
    return true;
}

static bool unplug(Run *r)
{
    close(r->in);
    r->in = -1;
    r->apart = false;
    return true;
}

static bool press_often(Run *r, char *rest)
{
    char *name = strchr(rest, ' ');
    bool  ok = name != NULL;

    for (int i = atoi(rest); ok && i > 0; i--)
        ok = send_key(r, name + 1);
    return ok;
}

/* Sizes as a mouse makes them, too small ones among them, faster than a frame. */
static bool storm(Run *r, int count)
{
    static const char *const keys[] = { "Down", "+", "Right", "-", "v", "Tab", "C-l" };
    unsigned random = 1;
    bool     ok = true;

    for (int i = 0; ok && i < count; i++) {
        char size[32];

        random = random * 1103515245u + 12345u;
        snprintf(size, sizeof(size), "%ux%u", 1 + (random >> 16) % 240, 1 + (random >> 8) % 80);
        ok = resize(r, size) && (i % 3 || send_key(r, keys[i / 3 % 7]));
        take_output(r, i % 5 ? 0 : 3);
    }
    return ok;
}

static bool stay_deaf(double limit)
{
    usleep((useconds_t)(limit * 1000));
    return true;
}

static bool expect_wrote(Run *r, long most)
{
    char got[64];

    snprintf(got, sizeof(got), "%ld KiB", r->wrote / 1024);
    return r->wrote <= most * 1024 || fail(r, "wrote more:", got);
}

/* Steps that make it hard for the program. */
static bool hard_step(Run *r, const char *verb, char *rest)
{
    if (!strcmp(verb, "times"))
        return press_often(r, rest);
    if (!strcmp(verb, "storm"))
        return storm(r, atoi(rest));
    if (!strcmp(verb, "deaf"))
        return stay_deaf(atof(rest));
    if (!strcmp(verb, "wrote"))
        return expect_wrote(r, atol(rest));
    if (!strcmp(verb, "unplug"))
        return unplug(r);
    if (!strcmp(verb, "slow"))
        r->slow = atol(rest);
    else if (!strcmp(verb, "count"))
        r->wrote = 0;
    else if (!strcmp(verb, "apart"))
        r->apart = true;
    else if (!strcmp(verb, "ignore"))
        r->ignored = signal_of(rest);
    else
        return fail(r, "unknown step", verb);
    return true;
}

static bool step(Run *r, char *line)
{
    char *verb = strtok(line, " "), *rest = strtok(NULL, "");
    bool  ok = true;

    rest = rest ? rest : line + strlen(line);
    if (!strcmp(verb, "env"))
        return putenv(strdup(rest)) == 0;
    if (!strcmp(verb, "unset"))
        return unsetenv(rest) == 0;
    if (!strcmp(verb, "start"))
        return start(r, rest);
    if (!strcmp(verb, "type") || !strcmp(verb, "raw"))
        return send_raw(r, rest);
    if (!strcmp(verb, "wait"))
        return wait_for(r, rest, true, PATIENCE);
    if (!strcmp(verb, "gone"))
        return wait_for(r, rest, false, PATIENCE);
    if (!strcmp(verb, "settle"))
        return settle(r);
    if (!strcmp(verb, "resize"))
        return resize(r, rest);
    if (!strcmp(verb, "screen"))
        return compare_screen(r, rest);
    if (!strcmp(verb, "palette"))
        return compare_palette(r, rest);
    if (!strcmp(verb, "plain"))
        return settle(r) && expect_plain(r);
    if (!strcmp(verb, "has"))
        return frame_shows(r, rest, true);
    if (!strcmp(verb, "lacks"))
        return frame_shows(r, rest, false);
    if (!strcmp(verb, "inked"))
        return frame_inked(r, rest);
    if (!strcmp(verb, "signal"))
        return kill(r->pid, signal_of(rest)) == 0;
    if (!strcmp(verb, "hangup"))
        return end_of_terminal(r);
    if (!strcmp(verb, "stopped"))
        return wait_state(r, WUNTRACED) && WIFSTOPPED(r->status);
    if (!strcmp(verb, "continue"))
        return kill(r->pid, SIGCONT) == 0;
    if (!strcmp(verb, "exit"))
        return expect_end(r, false, rest);
    if (!strcmp(verb, "killed"))
        return expect_end(r, true, rest);
    if (!strcmp(verb, "restored"))
        return expect_restored(r);
    if (!strcmp(verb, "within")) {
        char *text = strchr(rest, ' ');

        return text && wait_for(r, text + 1, true, PATIENCE) &&
               (computed_ms(r) - r->computed <= atof(rest) || fail(r, "computed longer:", rest));
    }
    if (strcmp(verb, "key"))
        return hard_step(r, verb, rest);
    for (char *name = strtok(rest, " "); ok && name; name = strtok(NULL, " "))
        ok = send_key(r, name);
    return ok;
}

static bool play(Run *r, FILE *steps)
{
    char line[1024];
    int  number = 0;

    while (fgets(line, sizeof(line), steps)) {
        char copy[1024];

        number++;
        line[strcspn(line, "\n")] = '\0';
        if (!line[0] || line[0] == '#')
            continue;
        strcpy(copy, line);
        if (!step(r, copy)) {
            char *screen = screen_text(r);

            fprintf(stderr, "%s:%d: %s: %s\n%s", r->test, number, line, r->message, screen);
            free(screen);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    Run   r = { .fd = -1, .in = -1 };
    FILE *steps;
    bool  passed;
    int   at = argc > 1 && !strcmp(argv[1], "-u") ? 2 : 1;

    if (argc != at + 3 || sscanf(argv[at + 2], "%dx%d", &r.cols, &r.rows) != 2) {
        fprintf(stderr, "usage: screen [-u] PROGRAM TEST.steps COLUMNSxLINES\n");
        return 2;
    }
    r.program = argv[at];
    r.test = argv[at + 1];
    r.update = at == 2;
    r.out = stdout;
    steps = fopen(r.test, "r");
    if (!steps) {
        perror(r.test);
        return 2;
    }
    open_terminal(&r);
    passed = play(&r, steps);
    if (r.pid > 0 && !r.ended) {
        kill(r.pid, SIGKILL);
        waitpid(r.pid, &r.status, 0);
    }
    fclose(steps);
    vterm_free(r.vt);
    return passed ? 0 : 1;
}
