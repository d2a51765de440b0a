/* ui/term/theme.h -- how the parts of the screen look.  Text keeps the terminal's
 * own colours; a colour is never the only carrier of a meaning. */
#ifndef UI_TERM_THEME_H
#define UI_TERM_THEME_H

#include "ui/term/term.h"

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

#endif
