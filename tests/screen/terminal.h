/* terminal.h -- a program in a pseudo-terminal, and the screen that libvterm makes of it.
 *
 * Shared by the screen tests and by the measurement of the explorer's speed.
 */
#ifndef SCREEN_TERMINAL_H
#define SCREEN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <vterm.h>

#define PATIENCE 60000 /* ms: how long a test waits before it fails */
#define REST     200   /* ms without output and without work */
#define LONG_REST 2000 /* ms without output, however busy the program is */

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
    double       computed; /* ms of processor time that the program had used by then */
    FILE        *out;   /* of -u */
    char         message[512];
} Run;

double now_ms(void);
/* Processor time that the program has used. */
double computed_ms(const Run *r);
/* False, with the message set. */
bool fail(Run *r, const char *what, const char *text);

/* An empty screen of r->rows and r->cols. */
void open_terminal(Run *r);
/* Takes what the program wrote within `limit` ms; false: nothing came. */
bool take_output(Run *r, int limit);
/* The screen as lines without blanks at their ends; the caller frees it. */
char *screen_text(Run *r);
bool  shows(Run *r, const char *text);
int   count_inked(Run *r);

/* Starts r->program with the words of the line. */
bool start(Run *r, char *line);
bool send_bytes(Run *r, const char *bytes, size_t length);
/* j C-p Up Enter Esc F1 ... */
bool send_key(Run *r, const char *name);
/* As typed; with \e escapes. */
bool send_raw(Run *r, const char *text);
/* Until the text is (not) there, or `limit` ms after the last key. */
bool wait_for(Run *r, const char *text, bool there, double limit);
/* Until the program neither writes nor works. */
bool settle(Run *r);
bool resize(Run *r, const char *size);
/* The same, of a terminal that forgets what it shows.  libvterm 0.1 loses a screen after hundreds
 * of resizes and crashes; a program draws everything again anyway. */
bool resize_empty(Run *r, const char *size); /* "80x24" */

#endif
