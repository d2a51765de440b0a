/* theme.c -- see theme.h. */
#include "ui/term/theme.h"

#include <string.h>

#define INK(r, g, b, index) ((Ink)(index) << 24 | (r) << 16 | (g) << 8 | (b))
#define BLUE                INK(0x5f, 0xaf, 0xff, 75)
#define AMBER               INK(0xff, 0xaf, 0x00, 214)
#define GREEN               INK(0x5f, 0xd7, 0xaf, 79)
#define RED                 INK(0xff, 0x5f, 0x5f, 203)
#define GREY                INK(0x8a, 0x8a, 0x8a, 245)
#define DEEP                INK(0x00, 0x5f, 0xaf, 25)
#define BRICK               INK(0xaf, 0x5f, 0x00, 130)
#define TEAL                INK(0x00, 0x87, 0x5f, 29)
#define CRIMSON             INK(0xaf, 0x00, 0x00, 124)
#define ASH                 INK(0x6c, 0x6c, 0x6c, 242)
#define WHITE               INK(0xff, 0xff, 0xff, 231)
#define BLACK               INK(0x08, 0x08, 0x08, 232)

static const Style styles[THEME_COUNT][ROLE_COUNT] = {
    [THEME_DEFAULT] = {
        [ROLE_DIM] = { .fg = GREY },
        [ROLE_BAR] = { .fg = GREY },
        [ROLE_TAB] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_FRAME] = { .fg = INK(0x58, 0x58, 0x58, 240) },
        [ROLE_FOCUS] = { .fg = BLUE, .attr = ATTR_BOLD },
        [ROLE_TITLE] = { .attr = ATTR_BOLD },
        [ROLE_KEY] = { .fg = AMBER },
        [ROLE_SELECT] = { .attr = ATTR_REVERSE },
        [ROLE_MARK] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_GOOD] = { .fg = GREEN },
        [ROLE_WARN] = { .fg = AMBER },
        [ROLE_ERROR] = { .fg = RED, .attr = ATTR_BOLD },
        [ROLE_FIELD] = { .attr = ATTR_UNDERLINE },
        [ROLE_METER] = { .fg = BLUE },
    },
    [THEME_LIGHT] = {
        [ROLE_DIM] = { .fg = ASH },
        [ROLE_BAR] = { .fg = ASH },
        [ROLE_TAB] = { .fg = BRICK, .attr = ATTR_BOLD },
        [ROLE_FRAME] = { .fg = INK(0x9e, 0x9e, 0x9e, 247) },
        [ROLE_FOCUS] = { .fg = DEEP, .attr = ATTR_BOLD },
        [ROLE_TITLE] = { .attr = ATTR_BOLD },
        [ROLE_KEY] = { .fg = BRICK },
        [ROLE_SELECT] = { .attr = ATTR_REVERSE },
        [ROLE_MARK] = { .fg = BRICK, .attr = ATTR_BOLD },
        [ROLE_GOOD] = { .fg = TEAL },
        [ROLE_WARN] = { .fg = BRICK },
        [ROLE_ERROR] = { .fg = CRIMSON, .attr = ATTR_BOLD },
        [ROLE_FIELD] = { .attr = ATTR_UNDERLINE },
        [ROLE_METER] = { .fg = DEEP },
    },
    [THEME_CONTRAST] = {
        [ROLE_TAB] = { .fg = BLACK, .bg = AMBER, .attr = ATTR_BOLD },
        [ROLE_FOCUS] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_TITLE] = { .fg = WHITE, .attr = ATTR_BOLD },
        [ROLE_KEY] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_SELECT] = { .fg = BLACK, .bg = AMBER, .attr = ATTR_BOLD },
        [ROLE_MARK] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_GOOD] = { .fg = GREEN, .attr = ATTR_BOLD },
        [ROLE_WARN] = { .fg = AMBER, .attr = ATTR_BOLD },
        [ROLE_ERROR] = { .fg = WHITE, .bg = CRIMSON, .attr = ATTR_BOLD },
        [ROLE_FIELD] = { .attr = ATTR_UNDERLINE },
        [ROLE_METER] = { .fg = WHITE },
    },
    [THEME_MONO] = {
        [ROLE_TAB] = { .attr = ATTR_REVERSE },
        [ROLE_FOCUS] = { .attr = ATTR_BOLD },
        [ROLE_TITLE] = { .attr = ATTR_BOLD },
        [ROLE_KEY] = { .attr = ATTR_BOLD },
        [ROLE_SELECT] = { .attr = ATTR_REVERSE },
        [ROLE_MARK] = { .attr = ATTR_BOLD },
        [ROLE_ERROR] = { .attr = ATTR_BOLD | ATTR_REVERSE },
        [ROLE_FIELD] = { .attr = ATTR_UNDERLINE },
    },
};

const char *theme_name(Theme theme)
{
    static const char *const names[THEME_COUNT] = { "default", "light", "high contrast", "mono" };

    return names[theme];
}

Theme theme_of_background(const char *colours)
{
    const char *last = colours ? strrchr(colours, ';') : NULL;

    return last && (!strcmp(last, ";7") || !strcmp(last, ";15")) ? THEME_LIGHT : THEME_DEFAULT;
}

bool theme_parse(const char *name, Theme *out, Error *err)
{
    for (int i = 0; i < THEME_COUNT; i++)
        if (*name && !strncmp(theme_name((Theme)i), name, strlen(name))) {
            *out = (Theme)i;
            return true;
        }
    return error_set(err, ERR_USAGE,
                     "there is no theme '%.40s'; choose default, light, high contrast or mono",
                     name);
}

Style theme_style(Theme theme, Role role)
{
    return styles[theme][role];
}

bool theme_dark(Theme theme)
{
    return theme != THEME_LIGHT;
}

Ink theme_matrix(Theme theme)
{
    switch (theme) {
    case THEME_DEFAULT: return INK(0x1c, 0x1c, 0x1c, 234);
    case THEME_LIGHT: return INK(0xee, 0xee, 0xee, 255);
    case THEME_CONTRAST: return BLACK;
    default: return INK_NONE;
    }
}

Ink theme_cross(Theme theme)
{
    return theme == THEME_LIGHT ? INK(0xd0, 0xd0, 0xd0, 252) : INK(0x3a, 0x3a, 0x3a, 237);
}
