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
 *     type TEXT | raw BYTES          as typed; with \e escapes
 *     wait TEXT | gone TEXT          until it is (not) on the screen, 10 s at most
 *     within MS TEXT                 as wait, counted from the last key or start
 *     settle                         until the screen rests
 *     resize COLUMNSxLINES
 *     screen NAME                    compare with "== NAME COLUMNSxLINES" in TEST.screen
 *     has TEXT | lacks TEXT          now
 *     inked LEAST                    cells with a background colour, at least
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
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#define PATIENCE 10000 /* ms */
#define REST     250   /* ms without output */

typedef struct Run {
    const char  *program, *test;
    VTerm       *vt;
    VTermScreen *screen;
    int          rows, cols, fd, status;
    pid_t        pid;
    bool         ended, alternate, cursor, update;
    int          mouse;
    int          in;    /* keys go there; -1: to fd */
    bool         apart;
    int          ignored; /* signal; 0: none */
    long         slow, wrote; /* bytes */
    double       asked; /* ms: when the last key was sent */
    FILE        *out;   /* of -u */
    char         message[512];
} Run;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool fail(Run *r, const char *what, const char *text)
{
    snprintf(r->message, sizeof(r->message), "%s '%.300s'", what, text);
    return false;
}

/* ---- the terminal ----------------------------------------------------------- */

static int on_property(VTermProp property, VTermValue *value, void *user)
{
    Run *r = user;

    if (property == VTERM_PROP_ALTSCREEN)
        r->alternate = value->boolean;
    if (property == VTERM_PROP_CURSORVISIBLE)
        r->cursor = value->boolean;
    if (property == VTERM_PROP_MOUSE)
        r->mouse = value->number;
    return 1;
}

static const VTermScreenCallbacks callbacks = { .settermprop = on_property };

static void open_terminal(Run *r)
{
    r->vt = vterm_new(r->rows, r->cols);
    vterm_set_utf8(r->vt, 1);
    r->screen = vterm_obtain_screen(r->vt);
    vterm_screen_enable_altscreen(r->screen, 1);
    vterm_screen_set_callbacks(r->screen, &callbacks, r);
    vterm_screen_reset(r->screen, 1);
    r->cursor = true;
}

/* Takes what the program wrote within `limit` ms; false: nothing came. */
static bool take_output(Run *r, int limit)
{
    struct pollfd polled = { .fd = r->fd, .events = POLLIN };
    char          bytes[65536];
    ssize_t       length;

    if (r->fd < 0 || poll(&polled, 1, limit) <= 0)
        return false;
    length = read(r->fd, bytes, r->slow > 0 ? (size_t)r->slow : sizeof(bytes));
    if (r->slow > 0)
        usleep(10000);
    r->wrote += length > 0 ? length : 0;
    if (length <= 0) {
        usleep(1000);
        return false;
    }
    vterm_input_write(r->vt, bytes, (size_t)length);
    length = (ssize_t)vterm_output_read(r->vt, bytes, sizeof(bytes));
    return length <= 0 || write(r->fd, bytes, (size_t)length) == length;
}

static void add_utf8(char **at, uint32_t ch)
{
    if (ch < 0x80) {
        *(*at)++ = (char)ch;
    } else if (ch < 0x800) {
        *(*at)++ = (char)(0xC0 | ch >> 6);
        *(*at)++ = (char)(0x80 | (ch & 63));
    } else {
        *(*at)++ = (char)(0xE0 | (ch >> 12 & 15));
        *(*at)++ = (char)(0x80 | (ch >> 6 & 63));
        *(*at)++ = (char)(0x80 | (ch & 63));
    }
}

/* The screen as lines without blanks at their ends; the caller frees it. */
static char *screen_text(Run *r)
{
    char *text = malloc((size_t)r->rows * ((size_t)r->cols * 4 + 1) + 1), *at = text;

    for (int y = 0; y < r->rows; y++) {
        for (int x = 0; x < r->cols; x++) {
            VTermScreenCell cell;

            if (vterm_screen_get_cell(r->screen, (VTermPos){ y, x }, &cell) &&
                cell.chars[0] != (uint32_t)-1)
                add_utf8(&at, cell.chars[0] ? cell.chars[0] : ' ');
        }
        while (at > text && at[-1] == ' ')
            at--;
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

static bool shows(Run *r, const char *text)
{
    char *screen = screen_text(r);
    bool  found = strstr(screen, text) != NULL;

    free(screen);
    return found;
}

static int count_inked(Run *r)
{
    int count = 0;

    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->cols; x++) {
            VTermScreenCell cell;

            vterm_screen_get_cell(r->screen, (VTermPos){ y, x }, &cell);
            count += !VTERM_COLOR_IS_DEFAULT_BG(&cell.bg) || cell.attrs.reverse;
        }
    return count;
}

/* ---- steps ------------------------------------------------------------------ */

/* Another terminal than the controlling one as standard input. */
static void take_input(const char *name)
{
    int fd = open(name, O_RDWR | O_NOCTTY);

    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        _exit(126);
    close(fd);
}

static void child(Run *r, char *line, const char *input)
{
    char *argv[64] = { (char *)(uintptr_t)r->program };
    int   count = 1;

    for (char *word = strtok(line, " "); word && count < 63; word = strtok(NULL, " "))
        argv[count++] = word;
    if (r->ignored)
        signal(r->ignored, SIG_IGN);
    if (*input)
        take_input(input);
    execv(r->program, argv);
    _exit(127);
}

static bool start(Run *r, char *line)
{
    struct winsize size = { .ws_row = (unsigned short)r->rows, .ws_col = (unsigned short)r->cols };

    char           input[128] = "";
    int            slave = -1;

    r->in = -1;
    if (r->apart && openpty(&r->in, &slave, input, NULL, &size) != 0)
        return fail(r, "no second terminal", "");
    if (r->apart)
        fcntl(r->in, F_SETFD, FD_CLOEXEC); /* or the program would hold the other end itself */
    r->asked = now_ms();
    r->pid = forkpty(&r->fd, NULL, NULL, &size);
    if (r->pid == 0)
        child(r, line, input);
    if (slave >= 0) {
        usleep(200000); /* the program has opened it by its name */
        close(slave);
    }
    return r->pid > 0 || fail(r, "cannot start", r->program);
}

static const struct {
    const char *name, *bytes;
} named_keys[] = {
    { "Up", "\033OA" },         { "Down", "\033OB" },
    { "Right", "\033OC" },      { "Left", "\033OD" },
    { "Home", "\033OH" },       { "End", "\033OF" },
    { "PgUp", "\033[5~" },      { "PgDn", "\033[6~" },
    { "Del", "\033[3~" },       { "F1", "\033OP" },
    { "S-Tab", "\033[Z" },      { "Enter", "\r" },
    { "Esc", "\033" },          { "Tab", "\t" },
    { "Space", " " },           { "Back", "\177" },
    { "S-Right", "\033[1;2C" }, { "S-Left", "\033[1;2D" },
};

static bool send(Run *r, const char *bytes, size_t length)
{
    r->asked = now_ms();
    return write(r->in >= 0 ? r->in : r->fd, bytes, length) == (ssize_t)length ||
           fail(r, "cannot send", bytes);
}

static bool send_key(Run *r, const char *name)
{
    char control = (char)(name[0] == 'C' && name[1] == '-' ? name[2] & 31 : 0);

    for (size_t i = 0; i < sizeof(named_keys) / sizeof(*named_keys); i++)
        if (!strcmp(name, named_keys[i].name)) {
            bool sent = send(r, named_keys[i].bytes, strlen(named_keys[i].bytes));

            if (!strcmp(name, "Esc")) /* else it would begin the next key */
                usleep(60000);
            return sent;
        }
    return control ? send(r, &control, 1) : send(r, name, strlen(name));
}

static bool send_raw(Run *r, const char *text)
{
    char   bytes[512];
    size_t count = 0;

    for (; *text && count < sizeof(bytes); text++) {
        bool escape = text[0] == '\\' && text[1] == 'e';

        bytes[count++] = escape ? '\033' : *text;
        text += escape;
    }
    return send(r, bytes, count);
}

static bool wait_for(Run *r, const char *text, bool there, double limit)
{
    double until = r->asked + limit;

    while (shows(r, text) != there) {
        double left = until - now_ms();

        if (left <= 0)
            return fail(r, there ? "did not appear in time:" : "did not go:", text);
        take_output(r, left < 20 ? (int)left + 1 : 20);
    }
    return true;
}

/* A promise about time.  With SCREEN_TIMES set it is measured and printed
 * instead of judged: that is what `make bench` does, for a machine that is busy
 * with other tests proves nothing. */
static bool wait_within(Run *r, const char *text, double limit)
{
    bool measure = getenv("SCREEN_TIMES") != NULL;

    if (!wait_for(r, text, true, measure ? PATIENCE : limit))
        return false;
    if (measure)
        printf("  %-28s %7.1f ms   (goal %.0f)\n", text, now_ms() - r->asked, limit);
    return true;
}

static bool settle(Run *r)
{
    double until = now_ms() + PATIENCE;

    while (now_ms() < until)
        if (!take_output(r, REST))
            return true;
    return fail(r, "the screen does not rest", "");
}

static bool resize(Run *r, const char *size)
{
    struct winsize window = { 0 };

    if (sscanf(size, "%dx%d", &r->cols, &r->rows) != 2)
        return fail(r, "no size", size);
    window.ws_row = (unsigned short)r->rows;
    window.ws_col = (unsigned short)r->cols;
    vterm_set_size(r->vt, r->rows, r->cols);
    r->asked = now_ms();
    return ioctl(r->fd, TIOCSWINSZ, &window) == 0 || fail(r, "cannot resize to", size);
}

static int signal_of(const char *name)
{
    static const struct {
        const char *name;
        int         number;
    } list[] = { { "TERM", SIGTERM }, { "HUP", SIGHUP },   { "INT", SIGINT },  { "QUIT", SIGQUIT },
                 { "SEGV", SIGSEGV }, { "ABRT", SIGABRT }, { "TSTP", SIGTSTP },
                 { "BUS", SIGBUS },   { "FPE", SIGFPE },   { "ILL", SIGILL },
                 { "PIPE", SIGPIPE } };

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        if (!strcmp(list[i].name, name))
            return list[i].number;
    return 0;
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

static bool compare_screen(Run *r, const char *name)
{
    char heading[128], *screen, *wanted;
    bool same;

    if (!settle(r))
        return false;
    snprintf(heading, sizeof(heading), "%s %dx%d", name, r->cols, r->rows);
    screen = screen_text(r);
    if (r->update) {
        fprintf(r->out, "== %s\n%s", heading, screen);
        free(screen);
        return true;
    }
    wanted = expected(r, heading);
    same = wanted && !strcmp(screen, wanted);
    if (!same) {
        fprintf(stderr, "---- %s, wanted:\n%s---- got:\n%s", heading, wanted ? wanted : "(none)\n",
                screen);
        fail(r, "another screen than", heading);
    }
    free(wanted);
    free(screen);
    return same;
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
    if (!strcmp(verb, "has"))
        return shows(r, rest) || fail(r, "not on the screen:", rest);
    if (!strcmp(verb, "lacks"))
        return !shows(r, rest) || fail(r, "on the screen:", rest);
    if (!strcmp(verb, "inked"))
        return count_inked(r) >= atoi(rest) || fail(r, "fewer than", rest);
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

        return text && wait_within(r, text + 1, atof(rest));
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
