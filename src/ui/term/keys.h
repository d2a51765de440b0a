/* ui/term/keys.h -- keys by name, for the action table and the help. */
#ifndef UI_TERM_KEYS_H
#define UI_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
