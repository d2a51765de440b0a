/* ui/term/curses_device.h -- the terminal's side of a Term; for curses.c and curses_input.c, which alone
 * include ncurses. */
#ifndef UI_TERM_CURSES_DEVICE_H
#define UI_TERM_CURSES_DEVICE_H

#include <curses.h>

#include "ui/term/term.h"

#define MOUSE_CODE 0x7001 /* of the beginning of a mouse report */

struct TermDevice {
    SCREEN          *screen;
    struct PairSlot *pairs; /* owned; PAIR_SLOTS */
    int              pair_count, pair_most;
    TermCell        *sent; /* owned; what the screen shows */
    cchar_t         *line; /* owned; one row */
    bool             send_all, lost;
};

/* Cells for the size that the screen has; false: no memory. */
bool device_allocate(Term *term);

#endif
