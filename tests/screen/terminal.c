/* terminal.c -- see terminal.h. */
#include "terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

bool fail(Run *r, const char *what, const char *text)
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

void open_terminal(Run *r)
{
    r->vt = vterm_new(r->rows, r->cols);
    vterm_set_utf8(r->vt, 1);
    r->screen = vterm_obtain_screen(r->vt);
    vterm_screen_enable_altscreen(r->screen, 1);
    vterm_screen_set_callbacks(r->screen, &callbacks, r);
    vterm_screen_reset(r->screen, 1);
    r->cursor = true;
}

bool take_output(Run *r, int limit)
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

char *screen_text(Run *r)
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

bool shows(Run *r, const char *text)
{
    char *screen = screen_text(r);
    bool  found = strstr(screen, text) != NULL;

    free(screen);
    return found;
}

int count_inked(Run *r)
{
    int count = 0;

    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->cols; x++) {
            VTermScreenCell cell;

            vterm_screen_get_cell(r->screen, (VTermPos){ y, x }, &cell);
            count += !VTERM_COLOR_IS_DEFAULT_BG(&cell.bg) || cell.attrs.reverse ||
                     (cell.chars[0] >= 0x2588 && cell.chars[0] <= 0x2593 &&
                      !VTERM_COLOR_IS_DEFAULT_FG(&cell.fg));
        }
    return count;
}

/* ---- the program ------------------------------------------------------------ */

/* Whether the thread runs, can run or waits for a disk. */
static bool thread_works(int process, const char *thread)
{
    char        path[300], line[512] = "";
    const char *end;
    FILE       *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", process, thread);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    end = strrchr(line, ')');
    return end && (end[2] == 'R' || end[2] == 'D');
}

static bool program_works(const Run *r)
{
    char           path[64];
    bool           works = false;
    struct dirent *entry;
    DIR           *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)r->pid);
    threads = opendir(path);
    while (threads && !works && (entry = readdir(threads)))
        works = entry->d_name[0] != '.' && thread_works((int)r->pid, entry->d_name);
    if (threads)
        closedir(threads);
    return works;
}

double computed_ms(const Run *r)
{
    char          path[64], line[1024] = "";
    const char   *end;
    unsigned long user = 0, system = 0;
    FILE         *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)r->pid);
    file = fopen(path, "r");
    if (!file)
        return 0;
    end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    fclose(file);
    if (end)
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return (double)(user + system) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

/* An Esc that is read together with the next key would begin that key: waits until the program has
 * read it and rests.  Its other threads may go on. */
static void after_escape(const Run *r)
{
    char   thread[16];
    double until = now_ms() + 2000;
    int    quiet = 0;

    snprintf(thread, sizeof(thread), "%d", (int)r->pid);
    while (quiet < 6 && now_ms() < until) {
        usleep(10000);
        quiet = thread_works((int)r->pid, thread) ? 0 : quiet + 1;
    }
}

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

bool start(Run *r, char *line)
{
    struct winsize size = { .ws_row = (unsigned short)r->rows, .ws_col = (unsigned short)r->cols };

    char           input[128] = "";
    int            slave = -1, gate[2];

    r->in = -1;
    if (r->apart && openpty(&r->in, &slave, input, NULL, &size) != 0)
        return fail(r, "no second terminal", "");
    if (r->apart)
        fcntl(r->in, F_SETFD, FD_CLOEXEC); /* or the program would hold the other end itself */
    if (pipe2(gate, O_CLOEXEC) != 0)
        return fail(r, "no pipe", "");
    r->asked = now_ms();
    r->pid = forkpty(&r->fd, NULL, NULL, &size);
    if (r->pid == 0)
        child(r, line, input);
    close(gate[1]);
    while (read(gate[0], input, 1) < 0) /* ends when the program has replaced the child */
        ;
    close(gate[0]);
    if (slave >= 0)
        close(slave); /* the program has opened it by its name */
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
    { "F5", "\033[15~" },      { "F12", "\033[24~" },
    { "S-Tab", "\033[Z" },      { "Enter", "\r" },
    { "Esc", "\033" },          { "Tab", "\t" },
    { "Space", " " },           { "Back", "\177" },
    { "S-Right", "\033[1;2C" }, { "S-Left", "\033[1;2D" },
};

bool send_bytes(Run *r, const char *bytes, size_t length)
{
    r->asked = now_ms();
    r->computed = computed_ms(r);
    return write(r->in >= 0 ? r->in : r->fd, bytes, length) == (ssize_t)length ||
           fail(r, "cannot send", bytes);
}

bool send_key(Run *r, const char *name)
{
    char control = (char)(name[0] == 'C' && name[1] == '-' ? name[2] & 31 : 0);

    for (size_t i = 0; i < sizeof(named_keys) / sizeof(*named_keys); i++)
        if (!strcmp(name, named_keys[i].name)) {
            bool sent = send_bytes(r, named_keys[i].bytes, strlen(named_keys[i].bytes));

            if (!strcmp(name, "Esc"))
                after_escape(r);
            return sent;
        }
    return control ? send_bytes(r, &control, 1) : send_bytes(r, name, strlen(name));
}

bool send_raw(Run *r, const char *text)
{
    char   bytes[512];
    size_t count = 0;

    for (; *text && count < sizeof(bytes); text++) {
        bool         escape = text[0] == '\\' && text[1] == 'e';
        unsigned int byte;
        bool         coded = sscanf(text, "\\x%2x", &byte) == 1;

        bytes[count++] = escape ? '\033' : coded ? (char)byte : *text;
        text += escape ? 1 : coded ? 3 : 0;
    }
    return send_bytes(r, bytes, count);
}

bool wait_for(Run *r, const char *text, bool there, double limit)
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

bool settle(Run *r)
{
    double until = now_ms() + PATIENCE, wrote = now_ms(), worked = wrote;

    while (now_ms() < until) {
        if (take_output(r, 10))
            wrote = now_ms();
        if (program_works(r))
            worked = now_ms();
        if (now_ms() - wrote > REST && (now_ms() - worked > REST || now_ms() - wrote > LONG_REST))
            return true;
    }
    return fail(r, "the screen does not rest", "");
}

static bool read_size(Run *r, const char *size)
{
    return sscanf(size, "%dx%d", &r->cols, &r->rows) == 2 || fail(r, "no size", size);
}

static bool tell_size(Run *r, const char *size)
{
    struct winsize window = { .ws_row = (unsigned short)r->rows,
                              .ws_col = (unsigned short)r->cols };

    r->asked = now_ms();
    return ioctl(r->fd, TIOCSWINSZ, &window) == 0 || fail(r, "cannot resize to", size);
}

bool resize(Run *r, const char *size)
{
    if (!read_size(r, size))
        return false;
    vterm_set_size(r->vt, r->rows, r->cols);
    return tell_size(r, size);
}

bool resize_empty(Run *r, const char *size)
{
    if (!read_size(r, size))
        return false;
    vterm_free(r->vt);
    open_terminal(r);
    return tell_size(r, size);
}
