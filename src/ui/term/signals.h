/* ui/term/signals.h -- signals that reach the explorer, and the way out of a crash. */
#ifndef UI_TERM_SIGNALS_H
#define UI_TERM_SIGNALS_H

#include <stdbool.h>

/* Catches INT, TERM, HUP, QUIT, TSTP and WINCH as notes to be read, and SEGV, BUS, FPE, ILL and
 * ABRT to give the terminal back before they do what they do.  The terminal's present modes
 * are remembered; reset_bytes (static) undo what the screen switched on. */
bool signals_install(const char *reset_bytes);
void signals_restore(void); /* as before */
int  signals_wake_fd(void); /* readable when a signal was noted */
void signals_drain(void);
int  signals_ending(void);      /* the signal that asks to end, or 0 */
bool signals_take_stop(void);   /* a SIGTSTP came since the last call */
bool signals_take_resize(void); /* a SIGWINCH */
/* Ends the process by `number` as if it had not been caught. */
void signals_raise(int number);

#endif
