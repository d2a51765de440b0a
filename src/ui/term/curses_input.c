/* curses_input.c -- keys, mouse reports and signals as events. */
#include "ui/term/curses_device.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ui/term/keys.h"
#include "ui/term/signals.h"

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

/* The rest of "ESC [ < button ; column ; row M"; false: something else. */
static bool read_mouse(Event *event)
{
    int numbers[3] = { 0 }, field = 0, button;

    for (int tries = 0; tries < 40; tries++) {
        wint_t code;

        timeout(20);
        if (get_wch(&code) == ERR)
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
    status = get_wch(&code);
    if (status == ERR)
        return false;
    *event = (Event){ .kind = EVENT_KEY };
    if (status != KEY_CODE_YES) {
        event->key = key_of_character(code);
        return true;
    }
    if (code == MOUSE_CODE)
        event->key = K_UNKNOWN;
    else
        event->key = key_of_curses(code);
    /* What is not understood is still an event: more may lie behind it. */
    if (code == MOUSE_CODE && !read_mouse(event))
        *event = (Event){ .kind = EVENT_KEY, .key = K_UNKNOWN };
    return true;
}

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
    /* Nothing to read, but the other side is gone. */
    if (polled[0].revents & (POLLERR | POLLNVAL) ||
        (polled[0].revents & POLLHUP && !(polled[0].revents & POLLIN)))
        term->device->lost = true;
}
