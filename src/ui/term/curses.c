/* curses.c -- the terminal through ncurses: opening, closing, colours, sending.
 *
 * ncurses compares screens and sends little, which beats writing escapes by
 * hand.  Direct colour needs a terminal entry Debian does not install, so two
 * are embedded and given to newterm through TERMINFO (base64 form).  Mouse
 * reports are requested and decoded by hand, because the entries of tmux and
 * screen promise an older protocol than the terminal speaks.
 */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "core/shortage.h"
#include "core/utf8.h"
#include "terminfo_direct.h"
#include "ui/term/term.h"

#define MOUSE_CODE 0x7001 /* of the beginning of a mouse report */

struct TermDevice {
    SCREEN          *screen;
    struct PairSlot *pairs; /* owned; PAIR_SLOTS */
    int              pair_count, pair_most;
    TermCell        *sent; /* owned; what the screen shows */
    cchar_t         *line; /* owned; one row */
    bool             send_all, lost;
    char             begun[4]; /* bytes of a character whose others have not come */
    int              begun_length;
    Sequence         sequence; /* being read */
    struct timespec  heard;    /* when its last character came */
};

#define PAIR_SLOTS  131072 /* power of two, at least twice the pairs */
#define MOUSE_ON    "\033[?1002;1006h"
#define MOUSE_OFF   "\033[?1002;1006l"
#define RESET_BYTES MOUSE_OFF "\033[?1l\033>\033[0m\033[?1049l\033[?25h\r\n"

typedef struct PairSlot {
    int fg, bg;
    int pair; /* 0: free */
} PairSlot;

static void write_all(const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        ssize_t done = write(STDOUT_FILENO, text, length);

        if (done < 0 && errno != EINTR)
            return;
        text += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
}

/* ---- opening ---------------------------------------------------------------- */

static SCREEN *open_direct(const Capability *can)
{
    const char *entry = can->tmux ? terminfo_tmux : terminfo_xterm;
    char       *before = getenv("TERMINFO"), *kept = before ? strdup(before) : NULL;
    Text        value = { 0 };
    SCREEN     *screen = NULL;

    text_addf(&value, "b64:%s", entry);
    if (text_ok(&value) && setenv("TERMINFO", text_str(&value), 1) == 0)
        screen = newterm(can->tmux ? "attn-tmux" : "attn-xterm", stdout, stdin);
    if (kept)
        setenv("TERMINFO", kept, 1);
    else
        unsetenv("TERMINFO");
    free(kept);
    text_free(&value);
    return screen;
}

static TermColours colours_there_are(TermColours wanted)
{
    if (COLORS < 8)
        return TERM_MONO;
    if (wanted == TERM_TRUE && COLORS > 256)
        return TERM_TRUE;
    if (wanted >= TERM_256 && COLORS >= 256)
        return TERM_256;
    return wanted >= TERM_16 && COLORS >= 16 ? TERM_16 : TERM_8;
}

static void set_modes(void)
{
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    leaveok(stdscr, TRUE);
    if (!getenv("ESCDELAY"))
        set_escdelay(25);
    curs_set(0);
    define_key("\033[<", MOUSE_CODE);
}

/* Cells for the size that the screen has; false: no memory. */
static bool device_allocate(Term *term)
{
    struct TermDevice *d = term->device;
    size_t             count = (size_t)LINES * (size_t)COLS;

    free(term->cells);
    free(d->sent);
    free(d->line);
    term->rows = LINES;
    term->cols = COLS;
    term->cells = calloc(count + 1, sizeof(*term->cells));
    d->sent = calloc(count + 1, sizeof(*d->sent));
    d->line = calloc((size_t)COLS + 1, sizeof(*d->line));
    d->send_all = true;
    return term->cells && d->sent && d->line;
}

static void pairs_forget(struct TermDevice *d)
{
    memset(d->pairs, 0, PAIR_SLOTS * sizeof(*d->pairs));
    d->pair_count = 0;
    d->send_all = true;
}

/* libtinfo lists what it frees, and does not look whether there was memory for the list: then its
 * blocks stay. */
static void screen_free(SCREEN *screen)
{
    void *list = malloc(4096);

    if (list)
        delscreen(screen);
    free(list);
}

#define SIDE_MOST 32767 /* columns or lines that the library counts */

/* Why there is no screen: a size that nobody has, or a terminal without an entry. */
static void no_screen(const char *terminal, Error *err)
{
    static const char *const sides[] = { "COLUMNS", "LINES" };
    struct winsize           size;

    for (int i = 0; i < 2; i++) {
        const char *value = getenv(sides[i]);

        if (value && strtol(value, NULL, 10) > SIDE_MOST) {
            error_set(err, ERR_USAGE, "%s=%.40s: no terminal has more than %d; unset %s", sides[i],
                      value, SIDE_MOST, sides[i]);
            return;
        }
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        (size.ws_col > SIDE_MOST || size.ws_row > SIDE_MOST)) {
        error_set(err, ERR_UNSUPPORTED, "the terminal says that it has %d columns and %d lines; at "
                  "most %d are drawn: make it smaller, or set COLUMNS and LINES", size.ws_col,
                  size.ws_row, SIDE_MOST);
        return;
    }
    if (!terminal || !*terminal)
        error_set(err, ERR_UNSUPPORTED, "TERM is not set, so the kind of this terminal is not "
                  "known; set it, for example to xterm-256color");
    else
        error_set(err, ERR_UNSUPPORTED, "the terminal '%.60s' is not known here; set TERM, for "
                  "example to xterm-256color", terminal);
}

static bool open_screen(Term *term, const Capability *can, Error *err)
{
    struct TermDevice *device = term->device;
    const char        *name = getenv("TERM");

    if (can->wanted == TERM_TRUE)
        device->screen = open_direct(can);
    if (!device->screen)
        device->screen = newterm(NULL, stdout, stdin);
    if (!device->screen) {
        signals_restore();
        if (shortage_noted())
            error_set(err, ERR_NOMEM, "opening the terminal: out of memory");
        else
            no_screen(name, err);
        return false;
    }
    if (!tigetstr("cup")) {
        endwin();
        screen_free(device->screen);
        signals_restore();
        return error_set(err, ERR_UNSUPPORTED,
                         "the terminal '%.60s' cannot place its cursor; set TERM, for example to "
                         "xterm-256color, or use the commands: attnscope --help",
                         name ? name : "");
    }
    set_modes();
    term->utf8 = can->utf8;
    term->half_block = can->half_block;
    if (can->wanted != TERM_MONO && has_colors()) {
        start_color();
        use_default_colors();
        device->pair_most = (COLOR_PAIRS < 65536 ? COLOR_PAIRS : 65536) - 1;
        term->colours = colours_there_are(can->wanted);
    }
    return true;
}

Term *term_open(const TermOptions *options, Error *err)
{
    Term       *term = calloc(1, sizeof(*term));
    Capability  can = capability_find(options);
    bool        opened;

    if (term)
        term->device = calloc(1, sizeof(*term->device));
    if (!term || !term->device || !(term->device->pairs = calloc(PAIR_SLOTS, sizeof(PairSlot)))) {
        error_set(err, ERR_NOMEM, "opening the terminal: out of memory");
        goto fail;
    }
    if (!signals_install(RESET_BYTES)) {
        error_set(err, ERR_INTERNAL, "opening the terminal: no pipe for signals");
        goto fail;
    }
    shortage_in_library(true);
    opened = open_screen(term, &can, err);
    shortage_in_library(false);
    if (!opened)
        goto fail;
    if (!device_allocate(term)) {
        error_set(err, ERR_NOMEM, "opening the terminal: out of memory");
        term_close(term);
        return NULL;
    }
    term_mouse(term, options->mouse);
    return term;
fail:
    if (term && term->device)
        free(term->device->pairs);
    free(term ? term->device : NULL);
    free(term);
    return NULL;
}

/* ncurses reads through a null pointer where memory is short. */
static void draw_all(void)
{
    shortage_in_library(true);
    refresh();
    shortage_in_library(false);
}

/* Shows the cursor again after the alternate screen is left: some terminals restore the hidden
 * cursor that they saved during a scroll. */
static void leave_screen(void)
{
    const char *show;

    shortage_in_library(true);
    show = tigetstr("cnorm");
    if (!tigetstr("smcup")) { /* without an alternate screen the shell's text would remain */
        erase();
        clearok(stdscr, TRUE);
        refresh();
    }
    endwin();
    shortage_in_library(false);
    if (show && strstr(show, "\033[?25h"))
        write_all("\033[?25h");
}

void term_close(Term *term)
{
    if (!term)
        return;
    term_mouse(term, false);
    leave_screen();
    signals_restore();
    screen_free(term->device->screen);
    free(term->device->pairs);
    free(term->device->sent);
    free(term->device->line);
    free(term->device);
    free(term->cells);
    free(term);
}

/* The escape bypasses curses, so it must not be sent to a terminal without a mouse. Such terminals
 * have neither colours nor cursor keys. */
void term_mouse(Term *term, bool on)
{
    bool has_arrows;

    shortage_in_library(true);
    has_arrows = tigetstr("kcuu1") != NULL;
    shortage_in_library(false);
    if (term->mouse == on || (on && !has_arrows))
        return;
    term->mouse = on;
    write_all(on ? MOUSE_ON : MOUSE_OFF);
}

void term_redraw(Term *term)
{
    clearok(curscr, TRUE);
    term->device->send_all = true;
}

void term_suspend(Term *term)
{
    bool mouse = term->mouse;

    term_mouse(term, false);
    leave_screen();
    /* Stops the whole process group: a make or script that waits for us must stop too. */
    kill(0, SIGTSTP);
    raise(SIGSTOP);
    signals_take_stop();
    draw_all();
    term_mouse(term, mouse);
    term_redraw(term);
}

void term_copy(Term *term, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    Text              out = { 0 };
    size_t            length = strlen(text);

    text_add(&out, "\033]52;c;");
    for (size_t i = 0; i < length; i += 3) {
        size_t   left = length - i < 3 ? length - i : 3;
        unsigned bits = 0;
        char     four[5] = "====";

        for (size_t k = 0; k < left; k++)
            bits |= (unsigned)(unsigned char)text[i + k] << (16 - 8 * k);
        for (size_t k = 0; k <= left; k++)
            four[k] = digits[bits >> (18 - 6 * k) & 63];
        text_add(&out, four);
    }
    text_add(&out, "\a");
    if (text_ok(&out) && term->colours != TERM_MONO)
        write_all(text_str(&out));
    text_free(&out);
}

/* ---- colours ---------------------------------------------------------------- */

/* Channels near the strongest one make one of the eight colours. */
static int ansi_of(Ink ink)
{
    int r = ink >> 16 & 255, g = ink >> 8 & 255, b = ink & 255;
    int most = r > g ? r : g;

    most = most > b ? most : b;
    if (most < 40)
        return 0;
    return (r * 100 > most * 65 ? 1 : 0) | (g * 100 > most * 65 ? 2 : 0) |
           (b * 100 > most * 65 ? 4 : 0);
}

static int colour_number(const Term *term, Ink ink)
{
    int rgb = (int)(ink & 0xFFFFFF);

    if (ink == INK_NONE)
        return -1;
    switch (term->colours) {
    case TERM_TRUE:
        return rgb == 0 ? 0 : rgb < 8 ? 8 : rgb; /* 1 to 7 mean the eight colours there */
    case TERM_256: return (int)(ink >> 24);
    default: return ansi_of(ink);
    }
}

static int pair_of(Term *term, Ink fg_ink, Ink bg_ink)
{
    struct TermDevice *d = term->device;
    int                fg = colour_number(term, fg_ink), bg = colour_number(term, bg_ink);
    uint32_t           at = ((uint32_t)fg * 2654435761u ^ (uint32_t)bg * 2246822519u) >> 7;

    if (fg < 0 && bg < 0)
        return 0;
    for (at &= PAIR_SLOTS - 1; d->pairs[at].pair; at = (at + 1) & (PAIR_SLOTS - 1))
        if (d->pairs[at].fg == fg && d->pairs[at].bg == bg)
            return d->pairs[at].pair;
    if (d->pair_count >= d->pair_most)
        return -1;
    d->pairs[at] = (PairSlot){ .fg = fg, .bg = bg, .pair = ++d->pair_count };
    init_extended_pair(d->pair_count, fg, bg);
    return d->pair_count;
}

/* ---- sending ---------------------------------------------------------------- */

static attr_t attributes_of(unsigned attr)
{
    return (attr & ATTR_BOLD ? A_BOLD : 0) | (attr & ATTR_DIM ? A_DIM : 0) |
           (attr & ATTR_REVERSE ? A_REVERSE : 0) | (attr & ATTR_UNDERLINE ? A_UNDERLINE : 0);
}

/* False: the pairs ran out. */
static bool send_row(Term *term, int y)
{
    struct TermDevice *d = term->device;
    const TermCell    *cells = term->cells + y * term->cols;
    int                count = 0;

    for (int x = 0; x < term->cols; x++) {
        wchar_t text[2] = { (wchar_t)cells[x].ch, 0 };
        int     pair = 0;

        if (cells[x].ch == 0 && x > 0)
            continue;
        if (term->colours != TERM_MONO)
            pair = pair_of(term, cells[x].style.fg, cells[x].style.bg);
        if (pair < 0)
            return false;
        setcchar(&d->line[count++], text[0] ? text : L" ", attributes_of(cells[x].style.attr), 0,
                 &pair);
    }
    mvadd_wchnstr(y, 0, d->line, count);
    return true;
}

void term_flush(Term *term)
{
    struct TermDevice *d = term->device;
    size_t             row = (size_t)term->cols * sizeof(*term->cells);

    for (int pass = 0, y = 0; y < term->rows; y++) {
        TermCell *now = term->cells + y * term->cols, *sent = d->sent + y * term->cols;

        if (!d->send_all && memcmp(now, sent, row) == 0)
            continue;
        if (!send_row(term, y) && pass++ == 0) {
            pairs_forget(d);
            clearok(curscr, TRUE);
            y = -1;
            continue;
        }
        memcpy(sent, now, row);
    }
    d->send_all = false;
    draw_all();
}

/* Keys, mouse reports and signals as events. */

/* ---- keys and mouse --------------------------------------------------------- */

static uint32_t key_of_curses(wint_t code)
{
    if (code >= KEY_F(1) && code <= KEY_F(12))
        return K_FUNCTION + (uint32_t)(code - KEY_F(1));
    switch (code) {
    case KEY_UP: return K_ARROW_UP;
    case KEY_DOWN: return K_ARROW_DOWN;
    case KEY_LEFT: return K_ARROW_LEFT;
    case KEY_RIGHT: return K_ARROW_RIGHT;
    case KEY_SR: return K_SHIFT_UP;
    case KEY_SF: return K_SHIFT_DOWN;
    case KEY_SLEFT: return K_SHIFT_LEFT;
    case KEY_SRIGHT: return K_SHIFT_RIGHT;
    case KEY_PPAGE: return K_PAGE_UP;
    case KEY_NPAGE: return K_PAGE_DOWN;
    case KEY_HOME: return K_LINE_HOME;
    case KEY_END: return K_LINE_END;
    case KEY_DC: return K_DELETE;
    case KEY_IC: return K_INSERT;
    case KEY_BTAB: return K_SHIFT_TAB;
    case KEY_ENTER: return K_RETURN;
    case KEY_BACKSPACE: return K_BACK;
    default: return K_UNKNOWN;
    }
}

static uint32_t key_of_character(wint_t code)
{
    if (code == '\n' || code == '\r')
        return K_RETURN;
    return code == 8 ? K_BACK : (uint32_t)code;
}

/* True with the character that `byte` ends.  What a terminal sends is UTF-8, as names of files are,
 * whatever the locale says; a locale of single bytes has its own.  Malformed bytes are dropped. */
static bool take_byte(struct TermDevice *d, int byte, wint_t *code)
{
    wint_t   own = MB_CUR_MAX == 1 ? btowc(byte) : WEOF;
    uint32_t whole;

    if (d->begun_length && !utf8_continues((char)byte))
        d->begun_length = 0;
    d->begun[d->begun_length++] = (char)byte;
    if (own == WEOF && utf8_decode(d->begun, (size_t)d->begun_length, &whole))
        own = whole;
    if (own != WEOF || d->begun_length == (int)sizeof(d->begun))
        d->begun_length = 0;
    *code = own;
    return own != WEOF;
}

/* As get_wch, which takes up to 15 more keys after a byte that is none of the locale's. */
static int next_character(struct TermDevice *d, wint_t *code)
{
    int byte;

    while ((byte = getch()) != ERR && byte < KEY_MIN)
        if (take_byte(d, byte, code))
            return OK;
    *code = (wint_t)byte;
    return byte == ERR ? ERR : KEY_CODE_YES;
}

/* The rest of "ESC [ < button ; column ; row M"; false: something else. */
static bool read_mouse(struct TermDevice *d, Event *event)
{
    int numbers[3] = { 0 }, field = 0, button;

    for (int tries = 0; tries < 40; tries++) {
        wint_t code;

        timeout(20);
        if (next_character(d, &code) == ERR)
            break;
        if (code >= '0' && code <= '9') {
            numbers[field] = numbers[field] % 100000 * 10 + (int)(code - '0');
        } else if (code == ';' && field < 2) {
            field++;
        } else if ((code == 'M' || code == 'm') && field == 2) {
            nodelay(stdscr, TRUE);
            button = numbers[0] & 3;
            *event = (Event){ .kind = code == 'm' ? EVENT_RELEASE : EVENT_PRESS,
                              .x = numbers[1] - 1,
                              .y = numbers[2] - 1,
                              .button = button };
            if (numbers[0] & 64)
                event->kind = button == 0 ? EVENT_WHEEL_UP : EVENT_WHEEL_DOWN;
            else if (numbers[0] & 32)
                event->kind = EVENT_DRAG;
            return true;
        } else {
            break;
        }
    }
    nodelay(stdscr, TRUE);
    return false;
}

/* Our own handler wakes the loop whenever the signal comes; that of ncurses
 * could be missed between reading keys and sleeping. */
static bool term_resize(Term *term)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resize_term(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
    return device_allocate(term);
}

static bool event_of_signals(Term *term, Event *event)
{
    signals_drain();
    if (signals_ending()) {
        *event = (Event){ .kind = EVENT_END };
        return true;
    }
    if (signals_take_stop()) {
        *event = (Event){ .kind = EVENT_SUSPEND };
        return true;
    }
    if (signals_take_resize()) {
        *event = (Event){ .kind = term_resize(term) ? EVENT_RESIZE : EVENT_END };
        return true;
    }
    return false;
}

#define SEQUENCE_GAP 500 /* ms of silence after which a sequence is given up */
#define SEQUENCE_NEXT 100 /* ms for what must follow ESC [, ESC O or ESC ] */

/* True if the sequence being read was given up: it fell silent in the middle. */
static bool fell_silent(struct TermDevice *d)
{
    struct timespec now;
    double          gap;

    clock_gettime(CLOCK_MONOTONIC, &now);
    gap = 1000.0 * (double)(now.tv_sec - d->heard.tv_sec) +
          (double)(now.tv_nsec - d->heard.tv_nsec) / 1e6;
    d->heard = now;
    return gap > SEQUENCE_GAP;
}

/* What follows ESC at once: a sequence, or the Esc key and whatever comes next. */
static uint32_t take_escape(struct TermDevice *d)
{
    wint_t first, next;
    int    status = next_character(d, &first);

    if (status == ERR)
        return K_ESCAPE;
    if (status == KEY_CODE_YES) {
        ungetch((int)first);
        return K_ESCAPE;
    }
    if (!sequence_begin(&d->sequence, first)) {
        unget_wch((wchar_t)first);
        return K_ESCAPE;
    }
    timeout(SEQUENCE_NEXT); /* "Esc" and then "[" typed are two keys */
    status = next_character(d, &next);
    nodelay(stdscr, TRUE);
    if (status == OK) {
        fell_silent(d);
        return sequence_take(&d->sequence, next);
    }
    d->sequence.state = 0;
    if (status == KEY_CODE_YES)
        ungetch((int)next);
    unget_wch((wchar_t)first);
    return K_ESCAPE;
}

/* The key of a character; 0: it belongs to a sequence. */
static uint32_t take_character(struct TermDevice *d, wint_t code)
{
    if (d->sequence.state && !fell_silent(d))
        return sequence_take(&d->sequence, code);
    d->sequence.state = 0;
    return code == 27 ? take_escape(d) : key_of_character(code);
}

bool term_event(Term *term, Event *event)
{
    wint_t code;
    int    status;

    if (term->device->lost) {
        *event = (Event){ .kind = EVENT_END };
        return true;
    }
    if (event_of_signals(term, event))
        return true;
    while ((status = next_character(term->device, &code)) != ERR) {
        *event = (Event){ .kind = EVENT_KEY };
        if (status != KEY_CODE_YES) {
            event->key = take_character(term->device, code);
        } else {
            term->device->sequence.state = 0;
            event->key = code == MOUSE_CODE ? 0 : key_of_curses(code);
            if (code == MOUSE_CODE && read_mouse(term->device, event))
                return true;
        }
        if (event->key)
            return true;
    }
    return false;
}

/* ms: a terminal that goes wakes its readers first and sends SIGHUP a moment later. */
#define HANGUP_AFTER 200

void term_wait(Term *term, const int *fds, int count, int limit)
{
    struct pollfd polled[8] = {
        { .fd = STDIN_FILENO, .events = POLLIN },
        { .fd = signals_wake_fd(), .events = POLLIN },
    };
    int used = 2;

    for (int i = 0; i < count && used < 8; i++)
        if (fds[i] >= 0)
            polled[used++] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
    if (poll(polled, (nfds_t)used, limit) <= 0)
        return;
    /* End of file: the terminal is gone. */
    if (polled[0].revents & (POLLERR | POLLNVAL) ||
        (polled[0].revents & POLLHUP && !(polled[0].revents & POLLIN))) {
        term->device->lost = true;
        poll(&polled[1], 1, HANGUP_AFTER);
    }
}
