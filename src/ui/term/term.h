/* ui/term/term.h -- the terminal as a grid of coloured cells and a queue of events.
 *
 * The screen is drawn from nothing into `cells` for every frame; term_flush
 * sends what differs.  Colours are wishes: an Ink carries true colour and the
 * entry of the 256-colour palette, and the terminal shows what it can.
 * Characters beyond ASCII have an ASCII stand-in, used when the terminal or
 * the locale cannot show them.
 */
#ifndef UI_TERM_TERM_H
#define UI_TERM_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/text.h"
#include "draw/colour/colour.h"

typedef enum TermColours { TERM_MONO, TERM_8, TERM_16, TERM_256, TERM_TRUE } TermColours;

/* 0: the terminal's own colour.  Else index256 << 24 | rgb. */
typedef uint32_t Ink;
#define INK_NONE 0u

static inline Ink ink_of(Rgb rgb, uint8_t index256)
{
    return (Ink)index256 << 24 | (Ink)rgb.r << 16 | (Ink)rgb.g << 8 | rgb.b;
}

enum { ATTR_BOLD = 1, ATTR_DIM = 2, ATTR_REVERSE = 4, ATTR_UNDERLINE = 8 };

typedef struct Style {
    Ink      fg, bg;
    unsigned attr; /* ATTR_* */
} Style;

typedef struct TermCell {
    uint32_t ch; /* Unicode; 0: right half of the wide character before */
    Style    style;
} TermCell;

typedef struct TermOptions {
    int  colours; /* a TermColours, or -1: what the terminal can */
    int  utf8;    /* 1, 0, or -1: as the locale says */
    bool mouse;
} TermOptions;

typedef struct Term {
    int                rows, cols;
    TermColours        colours;
    bool               utf8;       /* characters beyond ASCII may be used */
    bool               half_block; /* the font has upper and lower half blocks */
    bool               mouse;      /* reports are switched on */
    TermCell          *cells;      /* owned; rows * cols */
    struct TermDevice *device;
} Term;

typedef struct Area {
    int y, x, h, w;
} Area;

/* ---- device (curses.c, curses_input.c) -------------------------------------- */

Term *term_open(const TermOptions *options, Error *err);
void  term_close(Term *term); /* the terminal is as before */
void  term_flush(Term *term);
void  term_redraw(Term *term); /* the next flush sends everything */
void  term_mouse(Term *term, bool on);
void  term_suspend(Term *term); /* stops the process as Ctrl-Z does; returns when it goes on */
/* Asks the terminal to put text on the clipboard (OSC 52). */
void term_copy(Term *term, const char *text);

typedef enum EventKind {
    EVENT_KEY,
    EVENT_PRESS,
    EVENT_DRAG,
    EVENT_RELEASE,
    EVENT_WHEEL_UP,
    EVENT_WHEEL_DOWN,
    EVENT_RESIZE,
    EVENT_SUSPEND, /* SIGTSTP from outside */
    EVENT_END,     /* a signal to end, or the terminal is gone */
} EventKind;

typedef struct Event {
    EventKind kind;
    uint32_t  key;    /* a character or a KEY of keys.h */
    int       y, x;   /* of the mouse */
    int       button; /* 0 left, 1 middle, 2 right */
} Event;

/* The next event that is there; false: none. */
bool term_event(Term *term, Event *event);
/* Sleeps until an event, a readable descriptor or the time limit (ms; -1: none). */
void term_wait(Term *term, const int *fds, int count, int timeout);

/* ---- drawing (cells.c) ------------------------------------------------------ */

void term_clear(Term *term, Style style);
void term_char(Term *term, int y, int x, uint32_t ch, Style style);
/* At most `width` columns, cut with an ellipsis; returns the columns used. */
int term_text(Term *term, int y, int x, int width, const char *text, Style style);
int term_textf(Term *term, int y, int x, int width, Style style, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void term_fill(Term *term, Area box, uint32_t ch, Style style);
/* A frame with a title in its upper edge; heavy for the focused one. */
void term_frame(Term *term, Area box, const char *title, bool heavy, Style frame,
                Style title_style);
/* Words of `text` broken into lines; returns the lines drawn (at most box.h),
 * with box.w == 0 none.  term NULL: they are only counted. */
int term_paragraph(Term *term, Area box, const char *text, Style style);
int term_width(const char *text); /* columns */

#endif
