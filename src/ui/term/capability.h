/* ui/term/capability.h -- what the terminal can show, read from the environment. */
#ifndef UI_TERM_CAPABILITY_H
#define UI_TERM_CAPABILITY_H

#include "ui/term/term.h"

typedef struct Capability {
    TermColours wanted; /* at most; the terminal's own entry may allow less */
    bool        utf8;
    bool        half_block;
    bool        tmux; /* of the screen and tmux family */
} Capability;

/* The ladder: an explicit choice, NO_COLOR, COLORTERM and TERM, then what the
 * terminal's entry says (TERM_256 here).  Sets LC_CTYPE and nothing else. */
Capability capability_find(const TermOptions *options);
/* "auto", "truecolor", "256", "16", "8", "mono" */
bool        capability_parse(const char *name, int *out, Error *err);

#endif
