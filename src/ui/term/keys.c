/* keys.c -- names of keys; see keys.h. */
#include "ui/term/keys.h"

#include <stdio.h>
#include <string.h>

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
};

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
        snprintf(text, size, "%c", key < 127 ? (char)key : '?');
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
