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
#include <stddef.h>
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

/* A letter on this colour, in black or white. */
static inline Style style_on(Rgb rgb, uint8_t index256)
{
    Rgb ink = colour_ink_on(rgb);

    return (Style){ .fg = ink_of(ink, ink.r ? 231 : 16), .bg = ink_of(rgb, index256) };
}

/* ---- device (curses.c) ------------------------------------------------------ */

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
    uint32_t  key;    /* a character or a KEY of term.h */
    int       y, x;   /* of the mouse */
    int       button; /* 0 left, 1 middle, 2 right */
} Event;

/* The next event that is there; false: none. */
bool term_event(Term *term, Event *event);
/* Sleeps until an event, a readable descriptor or the time limit (ms; -1: none). */
void term_wait(Term *term, const int *fds, int count, int timeout);

/* ---- drawing (term.c) ------------------------------------------------------ */

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

/* What the terminal can show, read from the environment. */

typedef struct Capability {
    TermColours wanted; /* at most; the terminal's own entry may allow less */
    bool        utf8;
    bool        half_block;
    bool        tmux; /* of the screen and tmux family */
} Capability;

/* The ladder: an explicit choice, NO_COLOR, COLORTERM and TERM, then what the
 * terminal's entry says (TERM_256 here).  Sets LC_CTYPE and nothing else. */
Capability capability_find(const TermOptions *options);
/* "auto", "truecolor", "256", "16", "8", "mono" or "none" */
bool        capability_parse(const char *name, int *out, Error *err);

/* Signals that reach the explorer, and the way out of a crash. */

/* Catches what would end or stop the program, and WINCH, as notes to be read, and SEGV, BUS, FPE,
 * ILL, ABRT, SYS and TRAP to give the terminal back before they do what they do; exit() gives it
 * back, too.  The terminal's present modes are remembered; reset_bytes (static) undo what the
 * screen switched on. */
bool signals_install(const char *reset_bytes);
void signals_restore(void); /* as before */
int  signals_wake_fd(void); /* readable when a signal was noted */
void signals_drain(void);
int  signals_ending(void);      /* the signal that asks to end, or 0 */
bool signals_take_stop(void);   /* a SIGTSTP came since the last call */
bool signals_take_resize(void); /* a SIGWINCH */
/* After signals_restore: where the process has not ended in some seconds, it ends as it is, by
 * `number` (0: with status 0). */
void signals_end_soon(int number);
/* Ends the process by `number` as if it had not been caught. */
void signals_raise(int number);

/* Keys by name, for the action table and the help. */

/* Keys without a character stand above Unicode; control characters are
 * themselves (Ctrl-P is 16). */
enum {
    K_TAB = 9,
    K_RETURN = 13,
    K_ESCAPE = 27,
    K_SPACE = 32,
    K_BACK = 127,
    K_FIRST = 0x200000,
    K_ARROW_UP = K_FIRST,
    K_ARROW_DOWN,
    K_ARROW_LEFT,
    K_ARROW_RIGHT,
    K_SHIFT_UP,
    K_SHIFT_DOWN,
    K_SHIFT_LEFT,
    K_SHIFT_RIGHT,
    K_PAGE_UP,
    K_PAGE_DOWN,
    K_LINE_HOME,
    K_LINE_END,
    K_DELETE,
    K_INSERT,
    K_SHIFT_TAB,
    K_FUNCTION, /* F1; the others follow */
    K_FUNCTION_LAST = K_FUNCTION + 11 /* F12 */,
    K_UNKNOWN,
};

#define K_CONTROL(letter) ((letter)&31)

/* The key of a name such as "j", "Up", "C-p", "S-Tab", "F5"; 0: no such name. */
uint32_t key_parse(const char *name, size_t length);
/* As a reader knows it: "↑", "Ctrl-P", "Shift-Tab". Returns text. */
char *key_label(uint32_t key, char *text, size_t size);
/* Is key one of the blank-separated names? */
bool key_among(uint32_t key, const char *names);

/* How the parts of the screen look.  Text keeps the terminal's
 * own colours; a colour is never the only carrier of a meaning. */

typedef enum Role {
    ROLE_TEXT,
    ROLE_DIM, /* explanations */
    ROLE_BAR, /* first line */
    ROLE_TAB, /* the open screen in it */
    ROLE_FRAME,
    ROLE_FOCUS, /* frame that has the keys */
    ROLE_TITLE,
    ROLE_KEY,    /* names of keys */
    ROLE_SELECT, /* the line under the list's cursor */
    ROLE_MARK,
    ROLE_GOOD,
    ROLE_WARN,
    ROLE_ERROR,
    ROLE_FIELD, /* text being typed */
    ROLE_METER, /* bars of numbers */
    ROLE_COUNT
} Role;

typedef enum Theme { THEME_DEFAULT, THEME_LIGHT, THEME_CONTRAST, THEME_MONO, THEME_COUNT } Theme;

const char *theme_name(Theme theme);
/* Of COLORFGBG ("0;15"), which some terminals set: light on a light background. */
Theme       theme_of_background(const char *colours);
/* The name or its beginning: "high". */
bool        theme_parse(const char *name, Theme *out, Error *err);
Style       theme_style(Theme theme, Role role);
bool        theme_dark(Theme theme);
/* Behind a matrix, so that its extent shows; and its cross-hair. */
Ink theme_matrix(Theme theme);
Ink theme_cross(Theme theme);
Ink theme_chunk(Theme theme); /* where nothing is allowed, of a square of the sorted order */

/* One line of text being typed. */

/* An escape sequence being read. */
typedef struct Sequence {
    int  state; /* 0: none */
    int  field, numbers[3], length;
    bool any, alien; /* a parameter was seen; one that no key has */
} Sequence;

/* Begins with the character after ESC; false: no sequence begins so. */
bool     sequence_begin(Sequence *s, uint32_t ch);
/* The next character; at its end the state is 0. Returns the key, or 0: none (yet). */
uint32_t sequence_take(Sequence *s, uint32_t ch);

typedef struct Field {
    char text[512];      /* UTF-8 */
    int  length, cursor; /* bytes; the cursor stands before text[cursor] */
} Field;

/* Lines typed before, newest last; `at`: the one in the field, `count`: none of them. */
typedef struct Past {
    char lines[64][256];
    int  count, at;
} Past;

void past_add(Past *past, const char *line);
/* An older line (by < 0) or a newer one goes into the field, if there is one. */
void past_recall(Past *past, int by, Field *field);

void field_set(Field *field, const char *text); /* cursor at the end */
void field_insert(Field *field, const char *text);
/* True when the key belonged to the field: characters and line editing. */
bool field_key(Field *field, uint32_t key);
void field_draw(const Field *field, Term *term, int y, int x, int width, Style style);

#endif
