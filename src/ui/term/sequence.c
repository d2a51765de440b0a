/* sequence.c -- escape sequences that the terminal library does not know; see term.h.
 *
 * A sequence is taken whole, whatever it means and however it is split over reads: its
 * characters must never act as keys. */
#include <string.h>

#include "ui/term/term.h"

enum { NO_SEQUENCE, CONTROL, SINGLE_SHIFT, STRING, STRING_ESCAPE, CONSOLE_KEY, OLD_MOUSE };

/* Longer strings are a paste or a broken terminal. */
#define STRING_MOST 65536

bool sequence_begin(Sequence *s, uint32_t ch)
{
    *s = (Sequence){ 0 };
    switch (ch) {
    case '[': s->state = CONTROL; break;
    case 'O': s->state = SINGLE_SHIFT; break;
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_': s->state = STRING; break;
    default: break;
    }
    return s->state != NO_SEQUENCE;
}

/* The key of "ESC [ number ~". */
static uint32_t key_of_number(int number)
{
    static const uint32_t keys[] = {
        [1] = K_LINE_HOME, [2] = K_INSERT,  [3] = K_DELETE,    [4] = K_LINE_END,
        [5] = K_PAGE_UP,   [6] = K_PAGE_DOWN, [7] = K_LINE_HOME, [8] = K_LINE_END,
    };

    if (number >= 11 && number <= 15)
        return K_FUNCTION + (uint32_t)(number - 11);
    if (number >= 17 && number <= 21)
        return K_FUNCTION + (uint32_t)(number - 12);
    if (number == 23 || number == 24)
        return K_FUNCTION + (uint32_t)(number - 13);
    return number > 0 && number <= 8 ? keys[number] : 0;
}

/* The key of the last character of "ESC [ ... A" or "ESC O A". */
static uint32_t key_of_letter(uint32_t ch, bool shift)
{
    switch (ch) {
    case 'A': return shift ? K_SHIFT_UP : K_ARROW_UP;
    case 'B': return shift ? K_SHIFT_DOWN : K_ARROW_DOWN;
    case 'C': return shift ? K_SHIFT_RIGHT : K_ARROW_RIGHT;
    case 'D': return shift ? K_SHIFT_LEFT : K_ARROW_LEFT;
    case 'H': return K_LINE_HOME;
    case 'F': return K_LINE_END;
    case 'Z': return K_SHIFT_TAB;
    default: return 0;
    }
}

/* The keys of a numeric keypad and F1 to F4. */
static uint32_t key_of_shifted(uint32_t ch)
{
    if (ch >= 'P' && ch <= 'S')
        return K_FUNCTION + (ch - 'P');
    if (ch == 'M')
        return K_RETURN;
    return ch >= 'j' && ch <= 'y' ? ch - 'j' + '*' : key_of_letter(ch, false);
}

/* A character of "ESC [ parameters letter". */
static uint32_t take_control(Sequence *s, uint32_t ch)
{
    if (ch >= '0' && ch <= '9') {
        s->numbers[s->field] = s->numbers[s->field] % 10000 * 10 + (int)(ch - '0');
        s->any = true;
        return 0;
    }
    if (ch == ';' || ch == ':') {
        s->field = ch == ';' && !s->field ? 1 : 2;
        s->any = true;
        return 0;
    }
    if (ch >= 0x20 && ch < 0x40) { /* private: no key has one */
        s->alien = true;
        return 0;
    }
    s->state = ch == '[' && !s->any ? CONSOLE_KEY : ch == 'M' && !s->any ? OLD_MOUSE : NO_SEQUENCE;
    if (s->state || s->alien || ch < 0x40 || ch > 0x7e)
        return 0;
    return ch == '~' ? key_of_number(s->numbers[0]) : key_of_letter(ch, s->numbers[1] == 2);
}

uint32_t sequence_take(Sequence *s, uint32_t ch)
{
    int state = s->state;

    s->length++;
    if (state == CONTROL)
        return take_control(s, ch);
    if (state == OLD_MOUSE) { /* button, column and row */
        s->state = ++s->field < 3 ? OLD_MOUSE : NO_SEQUENCE;
        return 0;
    }
    if (state == STRING || state == STRING_ESCAPE) {
        bool ends = ch == 7 || ch == 0x9c || s->length > STRING_MOST ||
                    (state == STRING_ESCAPE && ch == '\\');

        s->state = ends ? NO_SEQUENCE : ch == 27 ? STRING_ESCAPE : STRING;
        return 0;
    }
    s->state = NO_SEQUENCE;
    if (state == CONSOLE_KEY)
        return ch >= 'A' && ch <= 'E' ? K_FUNCTION + (ch - 'A') : 0;
    return key_of_shifted(ch);
}
