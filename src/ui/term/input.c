/* input.c -- names of keys, and the line being typed; see term.h. */
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"
#include "ui/term/term.h"

static const struct KeyName {
    const char *name, *label;
    uint32_t    key;
} names[] = {
    { "Up", "↑", K_ARROW_UP },
    { "Down", "↓", K_ARROW_DOWN },
    { "Left", "←", K_ARROW_LEFT },
    { "Right", "→", K_ARROW_RIGHT },
    { "S-Up", "Shift-↑", K_SHIFT_UP },
    { "S-Down", "Shift-↓", K_SHIFT_DOWN },
    { "S-Left", "Shift-←", K_SHIFT_LEFT },
    { "S-Right", "Shift-→", K_SHIFT_RIGHT },
    { "PgUp", "PgUp", K_PAGE_UP },
    { "PgDn", "PgDn", K_PAGE_DOWN },
    { "Home", "Home", K_LINE_HOME },
    { "End", "End", K_LINE_END },
    { "Del", "Del", K_DELETE },
    { "Ins", "Ins", K_INSERT },
    { "Tab", "Tab", K_TAB },
    { "S-Tab", "Shift-Tab", K_SHIFT_TAB },
    { "Enter", "Enter", K_RETURN },
    { "Esc", "Esc", K_ESCAPE },
    { "Space", "Space", K_SPACE },
    { "BSpace", "Backspace", K_BACK },
};

/* As it is printed; what cannot be is "?". */
static void character_label(uint32_t key, char *text, size_t size)
{
    char bytes[4];
    bool shown = key >= 32 && key < 0x110000 && (key < 127 || key >= 160);
    int  length = shown ? utf8_encode(key, bytes) : 0;

    if (length > 0)
        snprintf(text, size, "%.*s", length, bytes);
    else
        snprintf(text, size, "?");
}

static bool named(const char *name, size_t length, const char *other)
{
    return strlen(other) == length && memcmp(name, other, length) == 0;
}

/* "F1" to "F12"; 0: something else. */
static uint32_t function_key(const char *name, size_t length)
{
    for (uint32_t key = K_FUNCTION; key <= K_FUNCTION_LAST; key++) {
        char text[8];

        snprintf(text, sizeof(text), "F%d", (int)(key - K_FUNCTION + 1));
        if (named(name, length, text))
            return key;
    }
    return 0;
}

uint32_t key_parse(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (named(name, length, names[i].name))
            return names[i].key;
    if (length == 3 && name[0] == 'C' && name[1] == '-')
        return (uint32_t)K_CONTROL(name[2]);
    return length == 1 ? (unsigned char)name[0] : function_key(name, length);
}

char *key_label(uint32_t key, char *text, size_t size)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (names[i].key == key) {
            snprintf(text, size, "%s", names[i].label);
            return text;
        }
    if (key >= K_FUNCTION && key <= K_FUNCTION_LAST)
        snprintf(text, size, "F%d", (int)(key - K_FUNCTION + 1));
    else if (key < 32)
        snprintf(text, size, "Ctrl-%c", (char)(key + 64));
    else
        character_label(key, text, size);
    return text;
}

bool key_among(uint32_t key, const char *list)
{
    while (*list) {
        size_t length = strcspn(list, " ");

        if (length && key_parse(list, length) == key)
            return true;
        list += length + (list[length] == ' ');
    }
    return false;
}

/* ---- a line of text -------------------------------------------------------- */

void field_set(Field *f, const char *text)
{
    snprintf(f->text, sizeof(f->text), "%s", text);
    f->length = f->cursor = (int)strlen(f->text);
}

void field_insert(Field *f, const char *text)
{
    int length = (int)strlen(text);

    if (f->length + length >= (int)sizeof(f->text))
        return;
    memmove(f->text + f->cursor + length, f->text + f->cursor, (size_t)(f->length - f->cursor) + 1);
    memcpy(f->text + f->cursor, text, (size_t)length);
    f->cursor += length;
    f->length += length;
}

static void insert_character(Field *f, uint32_t ch)
{
    char utf8[5] = { 0 };

    utf8_encode(ch, utf8);
    field_insert(f, utf8);
}

static bool inside_character(const Field *f, int at)
{
    return at > 0 && at < f->length && utf8_continues(f->text[at]);
}

static int step_character(const Field *f, int at, int direction)
{
    do
        at += direction;
    while (inside_character(f, at));
    return at < 0 ? 0 : at > f->length ? f->length : at;
}

static void cut(Field *f, int from, int to)
{
    memmove(f->text + from, f->text + to, (size_t)(f->length - to) + 1);
    f->length -= to - from;
    f->cursor = from;
}

static int word_before(const Field *f)
{
    int at = f->cursor;

    while (at > 0 && f->text[at - 1] == ' ')
        at--;
    while (at > 0 && f->text[at - 1] != ' ')
        at--;
    return at;
}

bool field_key(Field *f, uint32_t key)
{
    switch (key) {
    case K_ARROW_LEFT: f->cursor = step_character(f, f->cursor, -1); return true;
    case K_ARROW_RIGHT: f->cursor = step_character(f, f->cursor, 1); return true;
    case K_LINE_HOME:
    case K_CONTROL('A'): f->cursor = 0; return true;
    case K_LINE_END:
    case K_CONTROL('E'): f->cursor = f->length; return true;
    case K_BACK: cut(f, step_character(f, f->cursor, -1), f->cursor); return true;
    case K_DELETE: cut(f, f->cursor, step_character(f, f->cursor, 1)); return true;
    case K_CONTROL('U'): cut(f, 0, f->cursor); return true;
    case K_CONTROL('K'): cut(f, f->cursor, f->length); return true;
    case K_CONTROL('W'): cut(f, word_before(f), f->cursor); return true;
    default:
        if (key < 32 || (key >= 127 && key < 160) || key >= 0x110000)
            return false;
        insert_character(f, key);
        return true;
    }
}

void field_draw(const Field *f, Term *term, int y, int x, int width, Style style)
{
    char        before[sizeof(f->text)];
    const char *from = f->text;
    int         column;

    snprintf(before, sizeof(before), "%.*s", f->cursor, f->text);
    column = term_width(before);
    /* Scrolled by whole characters so that the cursor stays in sight. */
    while (column >= width && *from) {
        from++;
        while (utf8_continues(*from))
            from++;
        snprintf(before, sizeof(before), "%.*s", (int)(f->text + f->cursor - from), from);
        column = term_width(before);
    }
    term_fill(term, (Area){ y, x, 1, width }, ' ', style);
    term_text(term, y, x, width, from, style);
    if (column < width && y >= 0 && y < term->rows && x + column < term->cols)
        term->cells[y * term->cols + x + column].style.attr |= ATTR_REVERSE;
}

void past_add(Past *past, const char *line)
{
    int most = sizeof(past->lines) / sizeof(*past->lines);

    if (past->count == most) {
        memmove(past->lines[0], past->lines[1], (size_t)(most - 1) * sizeof(*past->lines));
        past->count--;
    }
    snprintf(past->lines[past->count++], sizeof(*past->lines), "%.250s", line);
    past->at = past->count;
}

void past_recall(Past *past, int by, Field *field)
{
    int at = past->at + by;

    if (at < 0 || at > past->count)
        return;
    past->at = at;
    field_set(field, at == past->count ? "" : past->lines[at]);
}
