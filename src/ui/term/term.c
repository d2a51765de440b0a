/* term.c -- text, frames and fills on the cells of a Term; no curses here. */
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "ui/term/term.h"
#include "core/utf8.h"

/* What stands for a character where only ASCII can be shown. */
static uint32_t ascii_of(uint32_t ch)
{
    static const struct {
        uint32_t ch;
        char     ascii;
    } table[] = {
        { 0x2500, '-' }, { 0x2501, '=' }, { 0x2502, '|' }, { 0x2503, '|' }, { 0x250C, '+' },
        { 0x2510, '+' }, { 0x2514, '+' }, { 0x2518, '+' }, { 0x250F, '+' }, { 0x2513, '+' },
        { 0x2517, '+' }, { 0x251B, '+' }, { 0x2588, '#' }, { 0x25A0, '#' }, { 0x2591, '.' },
        { 0x2592, ':' }, { 0x2593, '*' }, { 0x25B8, '>' }, { 0x25BE, 'v' }, { 0x25B4, '^' },
        { 0x25CF, '*' }, { 0x25CB, 'o' }, { 0x00B7, '-' }, { 0x2026, '~' }, { 0x2190, '<' },
        { 0x2191, '^' }, { 0x2192, '>' }, { 0x2193, 'v' }, { 0x00D7, 'x' }, { 0x2014, '-' },
        { 0x2212, '-' }, { 0x2580, '"' }, { 0x2584, '_' }, { 0x25C2, '<' }, { 0x2264, '<' },
        { 0x0394, 'D' }, { 0x00B1, '~' }, { 0x258F, '|' }, { 0x2022, '*' }, { 0x203A, '>' },
        { 0x25A1, '.' }, { 0x2423, '_' }, { 0x21B5, '$' },
    };

    if (ch < 128)
        return ch;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].ch == ch)
            return (uint32_t)table[i].ascii;
    return ch >= 0x2589 && ch <= 0x258E ? '=' : '?';
}

void term_clear(Term *term, Style style)
{
    term_fill(term, (Area){ 0, 0, term->rows, term->cols }, ' ', style);
}

void term_char(Term *term, int y, int x, uint32_t ch, Style style)
{
    if (y < 0 || x < 0 || y >= term->rows || x >= term->cols)
        return;
    term->cells[y * term->cols + x] =
        (TermCell){ .ch = term->utf8 ? ch : ascii_of(ch), .style = style };
}

/* The next character; a malformed byte, and what would reorder a line, becomes U+FFFD. */
static uint32_t next_character(const char **text)
{
    uint32_t ch = utf8_next(text);

    return ch == UTF8_MALFORMED || utf8_reorders(ch) ? UTF8_REPLACEMENT : ch;
}

/* Columns of a character; a control character is shown as a blank. */
static int columns_of(uint32_t ch)
{
    int columns;

    if (ch < 0x300)
        return 1;
    columns = wcwidth((wchar_t)ch);
    return columns < 0 ? 1 : columns;
}

int term_width(const char *text)
{
    int columns = 0;

    while (*text)
        columns += columns_of(next_character(&text));
    return columns;
}

int term_text(Term *term, int y, int x, int width, const char *text, Style style)
{
    int at = 0;

    if (width <= 0)
        return 0;
    while (*text) {
        const char *here = text;
        uint32_t    ch = next_character(&text);
        int         columns = columns_of(ch);

        if (columns == 0)
            continue;
        if (at + columns > width ||
            (at + columns == width && *text && term_width(here) > columns)) {
            term_char(term, y, x + at, 0x2026, style);
            return at + 1;
        }
        if (ch < 32 || (ch >= 127 && ch < 160))
            ch = ' ';
        term_char(term, y, x + at, ch, style);
        if (columns == 2 && x + at + 1 < term->cols && x >= 0)
            term_char(term, y, x + at + 1, term->utf8 ? 0 : ' ', style);
        at += columns;
    }
    return at;
}

int term_textf(Term *term, int y, int x, int width, Style style, const char *fmt, ...)
{
    char    text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return term_text(term, y, x, width, text, style);
}

void term_fill(Term *term, Area box, uint32_t ch, Style style)
{
    for (int y = box.y; y < box.y + box.h; y++)
        for (int x = box.x; x < box.x + box.w; x++)
            term_char(term, y, x, ch, style);
}

void term_frame(Term *term, Area b, const char *title, bool heavy, Style frame, Style title_style)
{
    uint32_t across = heavy ? 0x2501 : 0x2500, down = heavy ? 0x2503 : 0x2502;
    int      right = b.x + b.w - 1, bottom = b.y + b.h - 1, used;

    if (b.w < 2 || b.h < 2)
        return;
    for (int x = b.x + 1; x < right; x++) {
        term_char(term, b.y, x, across, frame);
        term_char(term, bottom, x, across, frame);
    }
    for (int y = b.y + 1; y < bottom; y++) {
        term_char(term, y, b.x, down, frame);
        term_char(term, y, right, down, frame);
    }
    term_char(term, b.y, b.x, heavy ? 0x250F : 0x250C, frame);
    term_char(term, b.y, right, heavy ? 0x2513 : 0x2510, frame);
    term_char(term, bottom, b.x, heavy ? 0x2517 : 0x2514, frame);
    term_char(term, bottom, right, heavy ? 0x251B : 0x2518, frame);
    if (!title || !*title || b.w < 8)
        return;
    term_char(term, b.y, b.x + 2, ' ', title_style);
    used = term_text(term, b.y, b.x + 3, b.w - 6, title, title_style);
    term_char(term, b.y, b.x + 3 + used, ' ', title_style);
}

/* Bytes of the next line of at most `width` columns; *skip: blanks after it. */
static size_t line_length(const char *text, int width, size_t *skip)
{
    const char *at = text, *good = text;
    int         columns = 0;

    *skip = 0;
    while (*at && *at != '\n') {
        const char *next = at;

        columns += columns_of(next_character(&next));
        if (columns > width)
            break;
        if (*next == ' ' || *next == '\n' || !*next)
            good = next;
        at = next;
    }
    if (*at == '\n' || !*at)
        good = at;
    else if (good == text)
        good = at > text ? at : at + 1;
    while (good[*skip] == ' ')
        ++*skip;
    if (good[*skip] == '\n')
        ++*skip;
    return (size_t)(good - text);
}

int term_paragraph(Term *term, Area box, const char *text, Style style)
{
    int lines = 0, width = 0;

    while (*text && lines < box.h && box.w > 0) {
        size_t skip, length = line_length(text, box.w, &skip);
        char   line[512];

        snprintf(line, sizeof(line), "%.*s", (int)(length < 500 ? length : 500), text);
        if (term)
            term_text(term, box.y + lines, box.x, box.w, line, style);
        text += length + skip;
        width = term_width(line);
        lines++;
    }
    if (term && lines && text[strspn(text, " \n")]) /* the rest has no room */
        term_char(term, box.y + lines - 1, box.x + (width < box.w ? width : box.w - 1), 0x2026,
                  style);
    return lines;
}

/* ---- what the terminal can show -------------------------------------------- */

static const char *const colour_names[] = { "mono", "8", "16", "256", "truecolor" };

bool capability_parse(const char *name, int *out, Error *err)
{
    if (!strcmp(name, "auto")) {
        *out = -1;
        return true;
    }
    if (!strcmp(name, "none")) /* the word of figures as text */
        name = colour_names[0];
    for (int i = 0; i <= TERM_TRUE; i++)
        if (!strcmp(name, colour_names[i])) {
            *out = i;
            return true;
        }
    return error_set(err, ERR_USAGE,
                     "there is no colour mode '%.40s'; choose auto, truecolor, 256, 16, 8 or none",
                     name);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

static TermColours colours_of_environment(const char *term)
{
    const char *colour = environment("COLORTERM");

    if (*environment("NO_COLOR"))
        return TERM_MONO;
    if (!strcmp(colour, "truecolor") || !strcmp(colour, "24bit") || strstr(term, "direct"))
        return TERM_TRUE;
    return TERM_256;
}

Capability capability_find(const TermOptions *options)
{
    const char *term = environment("TERM");
    Capability  found = {
         .wanted =
            options->colours >= 0 ? (TermColours)options->colours : colours_of_environment(term),
         .tmux = !strncmp(term, "tmux", 4) || !strncmp(term, "screen", 6),
    };

    setlocale(LC_CTYPE, "");
    found.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    if (options->utf8 == 1 && !found.utf8)
        found.utf8 = setlocale(LC_CTYPE, "C.UTF-8") != NULL;
    if (options->utf8 == 0)
        found.utf8 = false;
    found.half_block = found.utf8 && strcmp(term, "linux") != 0;
    if (!strcmp(term, "linux") || !strcmp(term, "dumb") || !strncmp(term, "vt", 2))
        found.wanted = found.wanted == TERM_TRUE && options->colours < 0 ? TERM_256 : found.wanted;
    return found;
}

/* ---- theme ----------------------------------------------------------------- */

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

Ink theme_chunk(Theme theme)
{
    return theme == THEME_LIGHT ? INK(0xc6, 0xc6, 0xc6, 251) : INK(0x44, 0x44, 0x44, 238);
}
